#include "mondrian/process/grouped_rate.hpp"

#include <vector>

#include "base/simd.hpp"

#if defined(__GNUC__) && defined(__x86_64__) && defined(__SSE2__)
#define ONLINEFOREST_HAS_AVX2 1
#include <cpuid.h>
#include <immintrin.h>
#else
#define ONLINEFOREST_HAS_AVX2 0
#endif

namespace onlineforest::mondrian {

namespace {

namespace common {

using namespace simd;

#include "mondrian/process/grouped_rate.inc"

}  // namespace common

#if ONLINEFOREST_HAS_AVX2

// Functions from here to the end of the region may use AVX2. They are in a namespace of their own, so that no linker
// can take one of them for a function that every processor runs.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

namespace avx2 {

using simd::clamp, simd::differ, simd::Float4, simd::kWidth, simd::load;
using Double4 = __m256d;

inline Double4 zero() { return _mm256_setzero_pd(); }
inline Double4 distance(Float4 a, Float4 b) {
  return _mm256_andnot_pd(_mm256_set1_pd(-0.0), _mm256_sub_pd(_mm256_cvtps_pd(a), _mm256_cvtps_pd(b)));
}
inline Double4 add(Double4 a, Double4 b) { return _mm256_add_pd(a, b); }
inline Double4 scale(Double4 a, const double* by) { return _mm256_mul_pd(a, _mm256_loadu_pd(by)); }
inline double total(Double4 a) {
  double x[4];
  _mm256_storeu_pd(x, a);
  return (x[0] + x[1]) + (x[2] + x[3]);
}

#include "mondrian/process/grouped_rate.inc"

}  // namespace avx2

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

// Asks the processor itself: not every runtime library that compilers link has __builtin_cpu_supports.
bool has_avx2() {
  constexpr unsigned kSavesAndHasAvx = 3u << 27, kSavesWideRegisters = 6u, kHasAvx2 = 1u << 5;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kSavesAndHasAvx) != kSavesAndHasAvx) return false;
  __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  if ((a & kSavesWideRegisters) != kSavesWideRegisters) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & kHasAvx2) != 0;
}

#endif

}  // namespace

std::span<const GroupedRate> grouped_rates() {
  static const std::vector<GroupedRate> available = [] {
    std::vector<GroupedRate> rates{common::grouped_rate};
#if ONLINEFOREST_HAS_AVX2
    if (has_avx2()) rates.push_back(avx2::grouped_rate);
#endif
    return rates;
  }();
  return available;
}

}  // namespace onlineforest::mondrian
