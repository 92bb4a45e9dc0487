#include "base/simd.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <vector>

#include "testing.hpp"

using namespace onlineforest;

TEST_CASE("only() keeps a number in the lanes of its bits") {
  for (std::uint64_t bits = 0; bits < 64; ++bits) {  // bits beyond the four lanes do not count
    std::vector<double> lanes(4), expected(4);
    simd::store(lanes.data(), simd::only(bits, -2.5));
    for (unsigned i = 0; i < 4; ++i) expected[i] = bits >> i & 1u ? -2.5 : 0.0;
    CHECK(lanes == expected);
  }
}

TEST_CASE("operations on four floats equal those on each") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float values[] = {0.0f,     -0.0f,    1.0f,      -1.0f, std::nextafter(1.0f, 2.0f), 1e-45f, -1e-45f, 3.4e38f,
                          -3.4e38f, infinity, -infinity, 0.5f};
  std::mt19937 draw(6);
  for (int trial = 0; trial < 3000; ++trial) {
    float a[4], b[4], out[4];
    for (int i = 0; i < 4; ++i) {
      a[i] = values[draw() % std::size(values)];
      b[i] = values[draw() % std::size(values)];
    }
    const simd::Float4 x = simd::load(a), y = simd::load(b);
    unsigned expected = 0;
    for (unsigned i = 0; i < 4; ++i) expected |= static_cast<unsigned>(a[i] <= b[i]) << i;
    CHECK(simd::at_most(x, y) == expected);
    for (unsigned bits = 0; bits < 16; ++bits) {
      simd::store(out, simd::select(bits, x, y));
      for (unsigned i = 0; i < 4; ++i) {
        CHECK(std::bit_cast<std::uint32_t>(out[i]) == std::bit_cast<std::uint32_t>(bits >> i & 1 ? a[i] : b[i]));
      }
    }
    const auto check = [&](simd::Float4 found, auto of_each) {
      simd::store(out, found);
      for (int i = 0; i < 4; ++i) {
        const float each = of_each(a[i], b[i]);
        CHECK((out[i] == each || (std::isnan(out[i]) && std::isnan(each))));
      }
    };
    check(simd::add(x, y), [](float p, float q) { return p + q; });
    check(simd::subtract(x, y), [](float p, float q) { return p - q; });
    check(simd::multiply(x, y), [](float p, float q) { return p * q; });
    check(simd::divide(x, y), [](float p, float q) { return p / q; });
    CHECK(simd::least(x) == *std::min_element(a, a + 4));
    CHECK(simd::greatest(x) == *std::max_element(a, a + 4));
    simd::store(out, simd::all(a[0]));
    CHECK(std::ranges::all_of(out, [&](float v) { return v == a[0]; }));
  }
}
