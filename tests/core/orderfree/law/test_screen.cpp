// The features that a screen finds, beside sums in double precision.
#include "orderfree/law/screen.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::orderfree;

namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

// Samples in groups: their rows, by bit.
struct World {
  std::size_t n_features;
  std::vector<std::vector<float>> rows;
  std::vector<Block> groups;

  // Draws `n` samples in `n_groups` groups. The features `told` differ between groups.
  World(std::mt19937& draw, std::size_t n, std::size_t n_groups, std::size_t width, std::span<const std::size_t> told)
      : n_features(width), groups(n_groups) {
    std::normal_distribution<float> noise(0.0f, 1.0f);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t group = draw() % n_groups;
      groups[group] |= Block{1} << i;
      std::vector<float>& row = rows.emplace_back(width);
      for (float& x : row) x = noise(draw);
      for (std::size_t k = 0; k < told.size(); ++k) row[told[k]] += static_cast<float>(group * (5 * k + 3));
    }
  }

  [[nodiscard]] std::vector<std::int32_t> found(bool may_lack) const {
    std::vector<const float*> places;
    for (const auto& row : rows) places.push_back(row.data());
    Screen screen;
    screen.find(places, n_features, groups, may_lack);
    return {screen.features().begin(), screen.features().end()};
  }

  // The share of the variance of a feature that lies between the groups.
  [[nodiscard]] double share(std::size_t d) const {
    double sum = 0.0, squares = 0.0, between = 0.0, n = 0.0;
    for (const Block group : groups) {
      double of_group = 0.0, n_here = 0.0;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if ((group >> i & 1) == 0 || std::isnan(rows[i][d])) continue;
        const double x = static_cast<double>(rows[i][d]);
        of_group += x;
        squares += x * x;
        n_here += 1.0;
      }
      if (n_here > 0.0) between += of_group * of_group / n_here;
      sum += of_group;
      n += n_here;
    }
    return n > 0.0 ? (between - sum * sum / n) / (squares - sum * sum / n) : 0.0;
  }
};

TEST_CASE("a screen finds the features of greatest share, the best first") {
  std::mt19937 draw(3);
  for (int trial = 0; trial < 400; ++trial) {
    const std::size_t n = 32 + draw() % 33, n_features = 17 + draw() % 60;
    World world(draw, n, 2 + draw() % 5, n_features, {});
    const bool may_lack = trial % 2 == 0;
    if (may_lack) {
      for (auto& row : world.rows) {
        for (float& x : row) x = draw() % 4 == 0 ? kNone : x;
      }
    }
    std::vector<std::size_t> order(n_features);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, std::greater<>(), [&](std::size_t d) { return world.share(d); });
    const std::vector<std::int32_t> found = world.found(may_lack);
    REQUIRE(found.size() == kMostScreened);
    for (std::size_t k = 0; k < found.size(); ++k) {
      // Features whose shares differ by the rounding of floats may change places.
      const double expected = world.share(order[k]);
      CHECK(std::abs(world.share(static_cast<std::size_t>(found[k])) - expected) < 1e-4);
    }
  }
}

TEST_CASE("a screen gives the same features whether or not samples may lack some") {
  std::mt19937 draw(4);
  for (int trial = 0; trial < 50; ++trial) {
    const World world(draw, 64, 3, 40, {});
    CHECK(world.found(true) == world.found(false));
  }
}

TEST_CASE("a screen finds features that tell groups apart in each place of a line") {
  std::mt19937 draw(5);
  for (std::size_t first = 0; first < 35; ++first) {
    const std::size_t told[] = {first, (first + 17) % 35};
    const World world(draw, 48, 2, 35, told);
    const std::vector<std::int32_t> found = world.found(false);
    CHECK(found[0] == static_cast<std::int32_t>(told[1]));
    CHECK(found[1] == static_cast<std::int32_t>(told[0]));
  }
}

TEST_CASE("a screen leaves out features that do not vary or are lacking, and takes any size") {
  constexpr float most = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::denorm_min();
  std::mt19937 draw(6);
  World world(draw, 64, 2, 20, {});
  for (std::size_t i = 0; i < 64; ++i) {
    auto& row = world.rows[i];
    const bool is_first = (world.groups[0] >> i & 1) != 0;
    std::ranges::fill(row, 7.0f);         // most features do not vary
    row[3] = kNone;                       // nobody has this one
    row[5] = is_first ? 1e-30f : 3e-30f;  // tiny
    row[8] = is_first ? 1e30f : 3e30f;    // huge
    row[11] = is_first ? most : -most;    // too far apart
    row[12] = is_first ? least : 0.0f;    // too close
    row[19] = is_first ? 1.0f : kNone;    // only one group has it, and it does not vary there
  }
  CHECK(world.found(true) == std::vector<std::int32_t>{5, 8});
  world.groups = {world.groups[0] | world.groups[1], 0};  // one group tells nothing, nor does an empty one
  CHECK(world.found(true).empty());
}

TEST_CASE("of equal shares, a screen takes the lower features") {
  std::mt19937 draw(7);
  World world(draw, 40, 2, 30, {});
  for (auto& row : world.rows) std::fill(row.begin() + 1, row.end(), row[0]);
  CHECK(world.found(false) == std::vector<std::int32_t>{0, 1, 2, 3});
}

}  // namespace
