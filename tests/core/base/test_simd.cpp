#include "base/simd.hpp"

#include <cstdint>
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
