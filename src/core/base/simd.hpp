// Arithmetic on four floats at a time, with NEON, SSE2 or plain C++. Must not know boxes.
//
// Bit i of a set of lanes stands for lane i: `at_most(a, b)` is the set where a <= b, `select(bits, a, b)` takes lanes
// of the set from a and the others from b. `transpose` turns four rows into four columns. A sum runs in four lanes. The
// lanes are added in a fixed order at the end, so all instruction sets give the same bits. Values are finite. The
// minimum or maximum of zeros of different sign may have either sign.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#if defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#elif defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#endif

namespace onlineforest::simd {

inline constexpr std::size_t kWidth = 4;

// The entry `of[bits]` is a mask of the lanes whose bit is set.
struct LaneMasks {
  alignas(32) std::uint64_t of[16][4];
};
inline constexpr LaneMasks kLaneMasks = [] {
  LaneMasks masks{};
  for (unsigned bits = 0; bits < 16; ++bits) {
    for (unsigned i = 0; i < 4; ++i) masks.of[bits][i] = bits >> i & 1u ? ~std::uint64_t{0} : 0;
  }
  return masks;
}();

#if defined(__aarch64__) && defined(__ARM_NEON)

using Float4 = float32x4_t;
struct Double4 {
  float64x2_t low, high;
};

inline Float4 load(const float* p) { return vld1q_f32(p); }
inline void store(float* p, Float4 a) { vst1q_f32(p, a); }
inline Float4 min(Float4 a, Float4 b) { return vminq_f32(a, b); }
inline Float4 max(Float4 a, Float4 b) { return vmaxq_f32(a, b); }
inline Float4 add(Float4 a, Float4 b) { return vaddq_f32(a, b); }
inline Float4 subtract(Float4 a, Float4 b) { return vsubq_f32(a, b); }
inline Float4 multiply(Float4 a, Float4 b) { return vmulq_f32(a, b); }
inline Float4 divide(Float4 a, Float4 b) { return vdivq_f32(a, b); }
inline bool differ(Float4 a, Float4 b) { return vminvq_u32(vceqq_f32(a, b)) == 0; }
inline Float4 all(float x) { return vdupq_n_f32(x); }
inline void transpose(Float4& a, Float4& b, Float4& c, Float4& d) {
  const float32x4x2_t ab = vtrnq_f32(a, b), cd = vtrnq_f32(c, d);
  a = vcombine_f32(vget_low_f32(ab.val[0]), vget_low_f32(cd.val[0]));
  b = vcombine_f32(vget_low_f32(ab.val[1]), vget_low_f32(cd.val[1]));
  c = vcombine_f32(vget_high_f32(ab.val[0]), vget_high_f32(cd.val[0]));
  d = vcombine_f32(vget_high_f32(ab.val[1]), vget_high_f32(cd.val[1]));
}
inline Float4 select(unsigned bits, Float4 a, Float4 b) {
  constexpr unsigned each[] = {1, 2, 4, 8};
  return vbslq_f32(vtstq_u32(vdupq_n_u32(bits), vld1q_u32(each)), a, b);
}
inline unsigned at_most(Float4 a, Float4 b) {
  constexpr unsigned each[] = {1, 2, 4, 8};
  return vaddvq_u32(vandq_u32(vcleq_f32(a, b), vld1q_u32(each)));
}

inline Double4 zero() { return {vdupq_n_f64(0.0), vdupq_n_f64(0.0)}; }
inline Double4 distance(Float4 a, Float4 b) {
  return {vabdq_f64(vcvt_f64_f32(vget_low_f32(a)), vcvt_f64_f32(vget_low_f32(b))),
          vabdq_f64(vcvt_high_f64_f32(a), vcvt_high_f64_f32(b))};
}
inline Double4 add(Double4 a, Double4 b) { return {vaddq_f64(a.low, b.low), vaddq_f64(a.high, b.high)}; }
inline Double4 scale(Double4 a, const double* by) {
  return {vmulq_f64(a.low, vld1q_f64(by)), vmulq_f64(a.high, vld1q_f64(by + 2))};
}
inline double total(Double4 a) { return vaddvq_f64(a.low) + vaddvq_f64(a.high); }
inline Double4 load(const double* p) { return {vld1q_f64(p), vld1q_f64(p + 2)}; }
inline void store(double* p, Double4 a) {
  vst1q_f64(p, a.low);
  vst1q_f64(p + 2, a.high);
}
inline Double4 only(std::uint64_t bits, double x) {
  const std::uint64_t* const lanes = kLaneMasks.of[bits & 15u];
  const uint64x2_t all_lanes = vreinterpretq_u64_f64(vdupq_n_f64(x));
  return {vreinterpretq_f64_u64(vandq_u64(all_lanes, vld1q_u64(lanes))),
          vreinterpretq_f64_u64(vandq_u64(all_lanes, vld1q_u64(lanes + 2)))};
}

#elif defined(__SSE2__) || defined(_M_X64)

using Float4 = __m128;
struct Double4 {
  __m128d low, high;
};

inline Float4 load(const float* p) { return _mm_loadu_ps(p); }
inline void store(float* p, Float4 a) { _mm_storeu_ps(p, a); }
inline Float4 min(Float4 a, Float4 b) { return _mm_min_ps(a, b); }
inline Float4 max(Float4 a, Float4 b) { return _mm_max_ps(a, b); }
inline Float4 add(Float4 a, Float4 b) { return _mm_add_ps(a, b); }
inline Float4 subtract(Float4 a, Float4 b) { return _mm_sub_ps(a, b); }
inline Float4 multiply(Float4 a, Float4 b) { return _mm_mul_ps(a, b); }
inline Float4 divide(Float4 a, Float4 b) { return _mm_div_ps(a, b); }
inline bool differ(Float4 a, Float4 b) { return _mm_movemask_ps(_mm_cmpneq_ps(a, b)) != 0; }
inline Float4 all(float x) { return _mm_set1_ps(x); }
inline void transpose(Float4& a, Float4& b, Float4& c, Float4& d) { _MM_TRANSPOSE4_PS(a, b, c, d); }
inline Float4 select(unsigned bits, Float4 a, Float4 b) {
  const __m128i each = _mm_set_epi32(8, 4, 2, 1);
  const __m128i chosen = _mm_cmpeq_epi32(_mm_and_si128(_mm_set1_epi32(static_cast<int>(bits)), each), each);
  const __m128 mask = _mm_castsi128_ps(chosen);
  return _mm_or_ps(_mm_and_ps(mask, a), _mm_andnot_ps(mask, b));
}
inline unsigned at_most(Float4 a, Float4 b) { return static_cast<unsigned>(_mm_movemask_ps(_mm_cmple_ps(a, b))); }

inline Double4 zero() { return {_mm_setzero_pd(), _mm_setzero_pd()}; }
inline Double4 distance(Float4 a, Float4 b) {
  const __m128d sign = _mm_set1_pd(-0.0);
  const __m128d low = _mm_sub_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b));
  const __m128d high = _mm_sub_pd(_mm_cvtps_pd(_mm_movehl_ps(a, a)), _mm_cvtps_pd(_mm_movehl_ps(b, b)));
  return {_mm_andnot_pd(sign, low), _mm_andnot_pd(sign, high)};
}
inline Double4 add(Double4 a, Double4 b) { return {_mm_add_pd(a.low, b.low), _mm_add_pd(a.high, b.high)}; }
inline Double4 scale(Double4 a, const double* by) {
  return {_mm_mul_pd(a.low, _mm_loadu_pd(by)), _mm_mul_pd(a.high, _mm_loadu_pd(by + 2))};
}
inline double total(Double4 a) {
  double x[4];
  _mm_storeu_pd(x, a.low);
  _mm_storeu_pd(x + 2, a.high);
  return (x[0] + x[1]) + (x[2] + x[3]);
}
inline Double4 load(const double* p) { return {_mm_loadu_pd(p), _mm_loadu_pd(p + 2)}; }
inline void store(double* p, Double4 a) {
  _mm_storeu_pd(p, a.low);
  _mm_storeu_pd(p + 2, a.high);
}
inline Double4 only(std::uint64_t bits, double x) {
  const __m128d* const lanes = reinterpret_cast<const __m128d*>(kLaneMasks.of[bits & 15u]);
  const __m128d all_lanes = _mm_set1_pd(x);
  return {_mm_and_pd(all_lanes, lanes[0]), _mm_and_pd(all_lanes, lanes[1])};
}

#else

struct Float4 {
  float x[4];
};
struct Double4 {
  double x[4];
};

inline Float4 load(const float* p) { return {{p[0], p[1], p[2], p[3]}}; }
inline void store(float* p, Float4 a) { std::copy_n(a.x, 4, p); }
inline Float4 min(Float4 a, Float4 b) {
  for (int i = 0; i < 4; ++i) a.x[i] = std::min(a.x[i], b.x[i]);
  return a;
}
inline Float4 max(Float4 a, Float4 b) {
  for (int i = 0; i < 4; ++i) a.x[i] = std::max(a.x[i], b.x[i]);
  return a;
}
inline Float4 add(Float4 a, Float4 b) {
  for (int i = 0; i < 4; ++i) a.x[i] += b.x[i];
  return a;
}
inline Float4 subtract(Float4 a, Float4 b) {
  for (int i = 0; i < 4; ++i) a.x[i] -= b.x[i];
  return a;
}
inline Float4 multiply(Float4 a, Float4 b) {
  for (int i = 0; i < 4; ++i) a.x[i] *= b.x[i];
  return a;
}
inline Float4 divide(Float4 a, Float4 b) {
  for (int i = 0; i < 4; ++i) a.x[i] /= b.x[i];
  return a;
}
inline bool differ(Float4 a, Float4 b) { return !std::equal(a.x, a.x + 4, b.x); }
inline Float4 all(float x) { return {{x, x, x, x}}; }
inline void transpose(Float4& a, Float4& b, Float4& c, Float4& d) {
  const Float4 rows[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i) {
    a.x[i] = rows[i].x[0];
    b.x[i] = rows[i].x[1];
    c.x[i] = rows[i].x[2];
    d.x[i] = rows[i].x[3];
  }
}
inline Float4 select(unsigned bits, Float4 a, Float4 b) {
  for (unsigned i = 0; i < 4; ++i) a.x[i] = bits >> i & 1u ? a.x[i] : b.x[i];
  return a;
}
inline unsigned at_most(Float4 a, Float4 b) {
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) result |= static_cast<unsigned>(a.x[i] <= b.x[i]) << i;
  return result;
}

inline Double4 zero() { return {}; }
inline Double4 distance(Float4 a, Float4 b) {
  Double4 result;
  for (int i = 0; i < 4; ++i) result.x[i] = std::abs(static_cast<double>(a.x[i]) - static_cast<double>(b.x[i]));
  return result;
}
inline Double4 add(Double4 a, Double4 b) {
  for (int i = 0; i < 4; ++i) a.x[i] += b.x[i];
  return a;
}
inline Double4 scale(Double4 a, const double* by) {
  for (int i = 0; i < 4; ++i) a.x[i] *= by[i];
  return a;
}
inline double total(Double4 a) { return (a.x[0] + a.x[1]) + (a.x[2] + a.x[3]); }
inline Double4 load(const double* p) { return {{p[0], p[1], p[2], p[3]}}; }
inline void store(double* p, Double4 a) { std::copy_n(a.x, 4, p); }
inline Double4 only(std::uint64_t bits, double x) {
  Double4 result;
  for (unsigned i = 0; i < 4; ++i) result.x[i] = bits >> i & 1u ? x : 0.0;
  return result;
}

#endif

// Minimum and maximum of the lanes.
inline float least(Float4 a) {
  float x[kWidth];
  store(x, a);
  return std::min(std::min(x[0], x[1]), std::min(x[2], x[3]));
}
inline float greatest(Float4 a) {
  float x[kWidth];
  store(x, a);
  return std::max(std::max(x[0], x[1]), std::max(x[2], x[3]));
}

// Minimum and maximum of two numbers without a branch.
#if defined(__aarch64__)
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
#else
inline float min(float a, float b) { return a < b ? a : b; }
inline float max(float a, float b) { return a > b ? a : b; }
#endif

inline Float4 clamp(Float4 a, Float4 low, Float4 high) { return min(max(a, low), high); }

}  // namespace onlineforest::simd
