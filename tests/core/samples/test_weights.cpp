// Weights of samples and of slots, against plain code.
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "samples/slot_numbers.hpp"
#include "samples/weight.hpp"
#include "testing.hpp"

using namespace onlineforest;

namespace {

TEST_CASE("squares of weights are added without rounding") {
  std::mt19937_64 draw(1);
  for (int trial = 0; trial < 1000; ++trial) {
    SquaresOfWeights small, four, one;
    std::uint64_t expected = 0;
    for (auto n = 1 + draw() % 20; n > 0; --n) {
      const auto weight = static_cast<Weight>(draw() >> (36 + draw() % 20));
      small.add(weight);
      expected += static_cast<std::uint64_t>(weight) * static_cast<std::uint64_t>(weight);
    }
    CHECK(small.value() == static_cast<double>(expected));
    // Four equal squares are the square of the double, and none is lost below a large one.
    const auto weight = static_cast<Weight>(draw() >> (13 + draw() % 30));
    for (int k = 0; k < 4; ++k) four.add(weight);
    one.add(2 * weight);
    CHECK(four.value() == one.value());
  }
  SquaresOfWeights most;
  most.add(kMostWeight);
  CHECK(most.value() == 0x1p104);
  SquaresOfWeights carry;
  for (int k = 0; k < 3; ++k) carry.add(Weight{1} << 32);
  CHECK(carry.value() == 3 * 0x1p64);
  for (int k = 0; k < 65536; ++k) carry.add((Weight{1} << 24) - 1);  // carries into the upper half at times
  CHECK(carry.value() == 3 * 0x1p64 + 65536.0 * (0x1p24 - 1) * (0x1p24 - 1));
}

TEST_CASE("products of weights are added without rounding") {
  std::mt19937_64 draw(3);
  const auto product_of = [](Weight a, Weight b) {
    ProductsOfWeights products;
    products.add(a, b);
    return products.value();
  };
  for (int trial = 0; trial < 1000; ++trial) {
    const auto a = static_cast<Weight>(draw() >> (12 + draw() % 40)),
               b = static_cast<Weight>(draw() >> (38 + draw() % 20));
    ProductsOfWeights parts;
    parts.add(a / 3, b);
    parts.add(a - a / 3, b);
    CHECK(parts.value() == product_of(a, b));
    CHECK(product_of(b, a) == product_of(a, b));
    CHECK(product_of(a, Weight{1} << 20) == std::ldexp(static_cast<double>(a), 20));
    CHECK(product_of(a >> 26, b) == static_cast<double>((a >> 26) * b));
  }
}

TEST_CASE("weights count in parts of a sample") {
  CHECK(multiplicity(kOne) == 1.0);
  CHECK(multiplicity(3 * kOne / 2) == 1.5);
  CHECK(is_whole(5 * kOne));
  CHECK_FALSE(is_whole(5 * kOne + 1));
}

TEST_CASE("weights of slots follow those that come and leave") {
  std::mt19937 draw(2);
  for (const bool starts_plain : {true, false}) {
    SlotWeights weights;
    std::vector<Weight> expected;
    for (int step = 0; step < 500; ++step) {
      const bool weighs = draw() % 3 == 0 && (!starts_plain || step > 100);
      std::vector<Weight> coming;
      const std::size_t n = draw() % 5;
      for (std::size_t i = 0; i < n && weighs; ++i) coming.push_back(1 + static_cast<Weight>(draw() % 1000));
      if (!coming.empty() || !weights.empty()) weights.reserve(expected.size(), n);
      std::vector<Slot> leaving;
      for (auto slot = static_cast<Slot>(expected.size()); slot-- > 0;) {
        if (draw() % 20 == 0) leaving.push_back(slot);
      }
      const std::vector<Move> moves = moves_after(leaving, expected.size());
      for (const Move& move : moves)
        expected[static_cast<std::size_t>(move.to)] = expected[static_cast<std::size_t>(move.from)];
      expected.resize(expected.size() - leaving.size());
      weights.remove(leaving, moves);
      weights.append(coming, n);
      if (coming.empty()) coming.assign(n, kOne);
      expected.insert(expected.end(), coming.begin(), coming.end());
      for (std::size_t i = 0; i < expected.size(); ++i) CHECK(weights[static_cast<Slot>(i)] == expected[i]);
      if (starts_plain && step <= 100) CHECK(weights.nbytes() == 0);
    }
  }
}

}  // namespace
