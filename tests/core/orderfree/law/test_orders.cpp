#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "orderfree/law/orders.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::orderfree;

namespace {

using Column = std::array<float, kMostDeciding>;

Block draw_block(std::mt19937& draw, int trial) {
  const Block all = ~Block{0} >> draw() % 64;
  return trial % 3 == 0 ? all : all & (Word{draw()} << 32 | draw());
}

// Columns of many kinds: continuous, few values, heavy tails, values that are nearly equal, huge and tiny ones.
float draw_value(std::mt19937& draw, int kind) {
  const float x = static_cast<float>(draw()) * 0x1p-32f - 0.5f;
  switch (kind) {
    case 0:
      return x;
    case 1:
      return static_cast<float>(static_cast<int>(draw() % 5)) - 2.0f;
    case 2:
      return std::copysign(std::exp2(200.0f * x), x);
    case 3:
      return 1.0f + static_cast<float>(draw() % 3) * std::numeric_limits<float>::epsilon();
    case 4:
      return draw() % 2 == 0 ? std::numeric_limits<float>::max() * x * 2.0f : -std::numeric_limits<float>::max();
    default:
      return static_cast<float>(draw() % 4) * std::numeric_limits<float>::denorm_min();
  }
}

TEST_CASE("samples are sorted along a feature, missing values last") {
  std::mt19937 draw(3);
  for (int trial = 0; trial < 6000; ++trial) {
    const Block block = draw_block(draw, trial);
    if (block == 0) continue;
    Column column;
    for (float& x : column) x = trial % 5 == 4 && draw() % 4 == 0 ? kMissing : draw_value(draw, trial % 6);
    std::vector<std::size_t> expected;
    for (std::size_t i = 0; i < kMostDeciding; ++i) {
      if (block >> i & 1) expected.push_back(i);
    }
    const auto value = [&](std::size_t i) {
      return std::pair(is_missing(column[i]), is_missing(column[i]) ? 0 : column[i]);
    };
    std::ranges::stable_sort(expected, {}, value);
    FeatureOrder order;
    order.sort(block, column.data());
    REQUIRE(order.n == expected.size());
    Block starts = 0;
    for (std::size_t k = 0; k < order.n; ++k) {
      const bool is_start = k == 0 || value(expected[k]) != value(expected[k - 1]);
      starts |= static_cast<Block>(is_start) << k;
      CHECK(order.bits[k] == expected[k]);
    }
    CHECK(order.starts == starts);
  }
}

}  // namespace
