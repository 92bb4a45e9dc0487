// Categorical features of the order-free forest: where their cells lie, the sides of levels, what a forest takes.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/call.hpp"
#include "orderfree/labels/forest.hpp"
#include "orderfree/law/layout.hpp"
#include "orderfree/law/proposal.hpp"
#include "orderfree/law/sample_store.hpp"
#include "orderfree/numbers/forest.hpp"
#include "orderfree/tree/flat_tree.hpp"
#include "orderfree/tree/options.hpp"
#include "orderfree/worlds.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::orderfree;

namespace {

Level draw_level(std::mt19937& draw) { return (Word{draw()} << 32 | draw()) >> 4; }

float draw_salt(std::mt19937& draw) { return HashCell::of(draw() >> 2); }

TEST_CASE("a row has one cell for each numeric feature, then two for each categorical one") {
  for (std::size_t n_numeric = 0; n_numeric < 5; ++n_numeric) {
    for (std::size_t n_categorical = 0; n_categorical < 5; ++n_categorical) {
      const Layout layout{n_numeric + n_categorical, n_categorical};
      CHECK(layout.n_numeric() == n_numeric);
      CHECK(layout.width() == n_numeric + 2 * n_categorical);
      std::size_t cell = 0;
      for (std::size_t d = 0; d < layout.n_features; ++d) {
        INFO("feature " << d << " of " << n_numeric << " and " << n_categorical);
        CHECK(layout.is_categorical(d) == (d >= n_numeric));
        CHECK(layout.cell_of(d) == cell);
        CHECK(layout.feature_of(cell) == d);
        CHECK(layout.is_level_cell(cell) == layout.is_categorical(d));
        cell += d < n_numeric ? 1 : 2;
      }
      CHECK(cell == layout.width());
    }
  }
  CHECK(Layout{3, 1} == Layout{3, 1});
  CHECK(Layout{3, 1} != Layout{3, 2});
  CHECK(Layout{3, 1} != Layout{4, 1});
}

TEST_CASE("two cells hold all 60 bits of a level") {
  std::mt19937 draw(1);
  const Level most = (Level{1} << 60) - 1;
  std::vector<Level> levels{0, 1, most, Level{1} << 29, Level{1} << 30, Level{1} << 59, (Level{1} << 30) - 1};
  for (int i = 0; i < 1000; ++i) levels.push_back(draw_level(draw));
  for (const Level level : levels) {
    float cells[2], stored[2];
    put_level(level, cells);
    CHECK(level_at(cells) == level);
    CHECK(HashCell::may_be(cells[0]));
    CHECK(HashCell::may_be(cells[1]));
    SampleStore<LabelHashes>::copy_canonical(cells, 2, stored);
    CHECK(level_at(stored) == level);
  }
}

TEST_CASE("a cell of a level is a normal float less than 4") {
  constexpr float least = std::numeric_limits<float>::min();
  for (const float cell : {least, 1.0f, 2.0f, std::nextafter(4.0f, 0.0f)}) CHECK(HashCell::may_be(cell));
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float cell : {0.0f, -0.0f, -1e-45f, 1e-45f, std::nextafter(least, 0.0f), -1.0f, 4.0f, 1e30f, infinity,
                           -infinity, kMissing, -kMissing}) {
    CHECK_FALSE(HashCell::may_be(cell));
  }
}

TEST_CASE("each salt sends about half of all levels left, each level goes left at about half of all salts") {
  std::mt19937 draw(2);
  constexpr int n = 4000;  // the standard deviation of a count is 32
  const auto is_half = [](int count) { return std::abs(count - n / 2) < 160; };
  for (int trial = 0; trial < 50; ++trial) {
    const LevelSides sides(draw_salt(draw));
    const Level level = draw_level(draw);
    int n_left = 0, n_left_in_order = 0, n_salts_left = 0, n_salts_left_in_order = 0;
    for (unsigned i = 0; i < n; ++i) {
      n_left += sides.sends_left(draw_level(draw));
      n_left_in_order += sides.sends_left(i);  // consecutive levels, which no hash of values gives
      n_salts_left += LevelSides(draw_salt(draw)).sends_left(level);
      n_salts_left_in_order += LevelSides(HashCell::of(static_cast<Word>(i))).sends_left(level);
    }
    CHECK(is_half(n_left));
    CHECK(is_half(n_left_in_order));
    CHECK(is_half(n_salts_left));
    CHECK(is_half(n_salts_left_in_order));
  }
}

TEST_CASE("the sides of levels at one salt tell nothing of their sides at another") {
  std::mt19937 draw(3);
  constexpr int n = 4000;
  const auto is_half = [](int count) { return std::abs(count - n / 2) < 160; };
  for (int trial = 0; trial < 50; ++trial) {
    const auto salt = static_cast<std::uint32_t>(draw() >> 2);
    // Salts that differ in one bit, and neighbours.
    const std::uint32_t other = trial < 30 ? salt ^ 1u << trial : salt + static_cast<std::uint32_t>(trial);
    const LevelSides one(HashCell::of(salt)), two(HashCell::of(other));
    int n_same = 0, n_same_halves = 0, n_same_pairs = 0;
    for (int i = 0; i < n; ++i) {
      const Level level = draw_level(draw), flipped = level ^ Level{1} << draw() % 60;
      n_same += one.sends_left(level) == two.sends_left(level);
      // The sides of similar levels are independent, too.
      n_same_halves += one.sends_left(level) == one.sends_left(flipped);
      n_same_pairs +=
          (one.sends_left(level) == one.sends_left(flipped)) == (two.sends_left(level) == two.sends_left(flipped));
    }
    CHECK(is_half(n_same));
    CHECK(is_half(n_same_halves));
    CHECK(is_half(n_same_pairs));
  }
}

TEST_CASE("the side of a level is the first bit of the word that it derives from the salt") {
  std::mt19937 draw(4);
  for (int trial = 0; trial < 1000; ++trial) {
    const float salt = draw_salt(draw);
    const Level level = draw_level(draw);
    const bool is_left = derive(level, HashCell::bits(salt)) >= Word{1} << 63;
    CHECK(LevelSides(salt).sends_left(level) == is_left);
    CHECK(is_same(LevelSides(salt).threshold(), salt));
    // A split on a categorical feature reads both cells of the feature.
    float row[4] = {kMissing, 0.0f, 0.0f, 7.0f};
    put_level(level, row + 1);
    CHECK(sends_left({1, salt, trial % 2 == 0, true}, {}, row) == is_left);
    // A surrogate reads both cells, too, if the row lacks the feature of the split.
    const Surrogate surrogate{1, salt, trial % 3 == 0, true};
    CHECK(sends_left({0, 1.0f, trial % 2 == 0}, {&surrogate, 1}, row) == (is_left != surrogate.is_reversed));
    row[0] = 0.5f;
    CHECK(sends_left({0, 1.0f, false}, {&surrogate, 1}, row));
    row[0] = 1.5f;
    CHECK_FALSE(sends_left({0, 1.0f, true}, {&surrogate, 1}, row));
  }
}

TEST_CASE("a drawn salt separates the two levels, and is the first that does") {
  std::mt19937 draw(5);
  std::map<int, int> n_by_salt;  // how often each of the salts in turn is taken
  std::set<std::uint32_t> salts;
  for (int trial = 0; trial < 4000; ++trial) {
    const Level a = draw_level(draw);
    const Level b = trial % 2 == 0 ? draw_level(draw) : a ^ Level{1} << draw() % 60;
    const Word word = Word{draw()} << 32 | draw();
    const Split split = draw_level_split(word, 5, a, b);
    CHECK(split.cell == 5);
    CHECK(split.is_of_levels);
    CHECK_FALSE(split.missing_left);
    CHECK_FALSE(split.asks_if_missing());
    CHECK(HashCell::may_be(split.threshold));
    const LevelSides sides(split.threshold);
    CHECK(sides.sends_left(a) != sides.sends_left(b));
    CHECK(draw_level_split(word, 5, b, a) == split);
    const std::uint32_t salt = HashCell::bits(split.threshold);
    salts.insert(salt);
    int t = 0;
    while (derive(word, ~static_cast<Word>(t)) >> 34 != salt) {
      const LevelSides before = LevelSides::drawn(derive(word, ~static_cast<Word>(t)));
      CHECK(before.sends_left(a) == before.sends_left(b));
      REQUIRE(++t < 64);
    }
    ++n_by_salt[t];
  }
  CHECK(salts.size() > 3990);
  CHECK(std::abs(n_by_salt[0] - 2000) < 160);
  CHECK(std::abs(n_by_salt[1] - 1000) < 140);
  CHECK(n_by_salt[2] > 350);
}

TEST_CASE("of equal levels, for which no salt can do, the last one is drawn") {
  const Split split = draw_level_split(9, 0, 4, 4);
  CHECK(HashCell::bits(split.threshold) == derive(9, ~Word{63}) >> 34);
}

TEST_CASE("the cell of a split keeps what a split is") {
  for (const std::int32_t cell : {0, 1, 77, SplitCell::kMost - 1}) {
    for (const bool missing_left : {false, true}) {
      for (const bool is_of_levels : {false, true}) {
        const Split split{cell, 0.25f, missing_left, is_of_levels};
        CHECK(SplitCell(split).cell() == cell);
        CHECK(SplitCell(split).split(0.25f) == split);
      }
    }
  }
}

TEST_CASE("the store tells levels apart by all their bits") {
  for (const int key_bits : {64, 0}) {
    SampleStore<LabelHashes> samples({2, 1}, 1, key_bits);
    samples.values().set(label_hashes(2));
    const Level low = 5, high = Level{5} << 30;
    std::vector<Slot> slots;
    for (const Level level : {low, high, low | high, Level{0}}) {
      float row[3] = {1.0f, 0.0f, 0.0f};
      put_level(level, row + 1);
      const Slot slot = samples.add(row, 0, kOne);
      CHECK(std::ranges::find(slots, slot) == slots.end());
      CHECK(samples.find(row, 0) == slot);
      slots.push_back(slot);
    }
    // The low bits come first in the order of contents.
    std::vector<Slot> sorted = slots;
    std::ranges::sort(sorted, [&](Slot a, Slot b) { return samples.content_less(a, b); });
    CHECK(sorted == std::vector<Slot>{slots[3], slots[1], slots[0], slots[2]});
    for (const Slot a : slots) {
      for (const Slot b : slots) CHECK(samples.same_x(a, b) == (a == b));
    }
    std::set<Word> hashes;
    for (const Slot slot : slots) hashes.insert(samples.x_hash(slot));
    CHECK(hashes.size() == slots.size());
    CHECK_FALSE(samples.has_missing());
    const float lacking[] = {kMissing, 0.0f, 0.0f};
    samples.add(lacking, 0, kOne);
    CHECK(samples.has_missing(0));
    CHECK_FALSE(samples.has_missing(1));
  }
}

TEST_CASE("features in which rows differ, by both cells of a level") {
  const Layout layout{4, 2};
  // Rows that differ in a number, in a missing value, in the low bits of a level, and in its high bits.
  const std::vector<std::vector<float>> rows{{1.0f, kMissing, 0.5f, 1.0f, 1.0f, 1.0f},
                                             {1.0f, kMissing, 1.0f, 1.0f, 1.0f, 0.5f},
                                             {1.0f, kMissing, 0.5f, 1.0f, 1.0f, 1.0f}};
  const std::vector<const float*> each{rows[0].data(), rows[1].data(), rows[2].data()};
  CHECK(varying_features(each, layout) == std::vector<std::int32_t>{2, 3});
  CHECK(varying_features(std::vector{each[0], each[2]}, layout).empty());
  for (const bool must_have : {false, true}) {
    for (std::int32_t d = 0; d < 4; ++d) {
      CHECK(differ(layout, d, each[0], each[1], must_have) == (d >= 2));
      CHECK_FALSE(differ(layout, d, each[0], each[2], must_have));
    }
  }
}

// Rows of a forest with one numeric feature and two categorical ones, and their values.
template <class Forest>
struct Learned {
  std::vector<float> rows;
  std::vector<typename Forest::Value> values;

  explicit Learned(std::size_t n) {
    std::mt19937 draw(6);
    for (std::size_t i = 0; i < n; ++i) {
      float row[5] = {static_cast<float>(draw() % 7), 0.0f, 0.0f, 0.0f, 0.0f};
      if (draw() % 9 == 0) row[0] = kMissing;
      const int first = static_cast<int>(draw() % 5), second = static_cast<int>(draw() % 40);
      put_level(level_of(first), row + 1);
      put_level(level_of(second), row + 3);
      rows.insert(rows.end(), row, row + 5);
      values.push_back(static_cast<typename Forest::Value>((first + second) % 2));
    }
  }
};

Options options_of_three() {
  Options options;
  options.n_trees = 3;
  options.layout = {3, 2};
  return options;
}

template <class Forest>
void set_labels_of(Forest& forest) {
  if constexpr (std::is_same_v<Forest, orderfree::LabelForest>) {
    forest.set_labels(label_hashes(2), std::vector<std::uint8_t>{0, 0});
  }
}

template <class Forest>
auto predict(const Forest& forest, const std::vector<float>& rows) {
  if constexpr (std::is_same_v<Forest, orderfree::LabelForest>) {
    return forest.predict(rows, {}, Call(1)).probabilities;
  } else {
    std::vector<double> result;
    for (const TreeMoments& moments : forest.predict(rows, {}, Call(1))) {
      result.insert(result.end(), {moments.mean, moments.within, moments.between});
    }
    return result;
  }
}

TEST_CASE_TEMPLATE("a forest has features and cells", Forest, orderfree::LabelForest, orderfree::NumberForest) {
  const Learned<Forest> data(300);
  Forest forest(options_of_three());
  set_labels_of(forest);
  CHECK(forest.n_features() == 3);
  CHECK(forest.width() == 5);
  forest.learn(data.rows, data.values, {}, Call(1));
  CHECK(forest.importances(0, Call(1)).size() == 9);
  bool has_levels = false, has_numbers = false;
  for (std::size_t t = 0; t < 3; ++t) {
    const auto table = forest.table(t, Call(1));
    for (std::size_t node = 0; node < table.cell.size(); ++node) {
      if (!table.is_split(node)) continue;
      const std::int32_t cell = table.cell[node];
      CHECK((cell == 0 || cell == 1 || cell == 3));
      CHECK((table.is_of_levels[node] != 0) == (cell > 0));
      (cell > 0 ? has_levels : has_numbers) = true;
    }
  }
  CHECK(has_levels);
  CHECK(has_numbers);
}

TEST_CASE_TEMPLATE("a fully grown tree predicts what it did before", Forest, orderfree::LabelForest,
                   orderfree::NumberForest) {
  const Learned<Forest> data(400);
  Forest forest(options_of_three());
  set_labels_of(forest);
  forest.learn(data.rows, data.values, {}, Call(1));
  const std::vector<double> before = predict(forest, data.rows);
  forest.grow_all(0, Call(1));
  CHECK(predict(forest, data.rows) == before);
}

TEST_CASE_TEMPLATE("a forest refuses cells that are no levels, and learns nothing of the batch", Forest,
                   orderfree::LabelForest, orderfree::NumberForest) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Learned<Forest> data(20);
  Forest forest(options_of_three());
  set_labels_of(forest);
  for (const float wrong : {kMissing, 0.0f, -0.0f, -1.0f, -1e-45f, 1e-45f, 4.0f, 3e38f, infinity, -infinity}) {
    for (const std::size_t cell : {1, 2, 3, 4}) {
      for (const std::size_t row : {0, 7, 19}) {
        std::vector<float> rows = data.rows;
        rows[row * 5 + cell] = wrong;
        INFO("cell " << cell << " of row " << row << " is " << wrong);
        CHECK_THROWS_AS(forest.learn(rows, data.values, {}, Call(1)), std::invalid_argument);
        CHECK_THROWS_AS((void)predict(forest, rows), std::invalid_argument);
        CHECK_THROWS_AS((void)forest.apply(rows, 0, Call(1)), std::invalid_argument);
        CHECK(forest.n_samples() == 0);
        CHECK(forest.n_seen() == 0);
      }
    }
  }
  std::vector<float> rows = data.rows;
  rows[5] = infinity;
  CHECK_THROWS_WITH_AS(forest.learn(rows, data.values, {}, Call(1)), "row 1, feature 0: the value is infinite",
                       std::invalid_argument);
  rows[5] = 0.0f;
  rows[14] = kMissing;
  CHECK_THROWS_WITH_AS(forest.learn(rows, data.values, {}, Call(1)),
                       "row 2, categorical feature 1: the cells do not encode a level", std::invalid_argument);
  rows[14] = data.rows[14];
  rows[5] = -3e38f;
  rows[10] = kMissing;
  forest.learn(rows, data.values, {}, Call(1));
  CHECK(forest.n_samples() == 20);
}

TEST_CASE_TEMPLATE("rows must have all cells", Forest, orderfree::LabelForest, orderfree::NumberForest) {
  const Learned<Forest> data(20);
  Forest forest(options_of_three());
  set_labels_of(forest);
  // As many numbers as 20 rows of three features have.
  const std::vector<float> few(data.rows.begin(), data.rows.begin() + 59);
  CHECK_THROWS_AS(forest.learn(few, data.values, {}, Call(1)), std::invalid_argument);
  CHECK_THROWS_AS((void)predict(forest, few), std::invalid_argument);
  const std::vector<float> of_features(data.rows.begin(), data.rows.begin() + 60);
  CHECK_THROWS_AS(forest.learn(of_features, data.values, {}, Call(1)), std::invalid_argument);
  CHECK(forest.n_samples() == 0);
}

TEST_CASE("options say how many features are categorical, at most all") {
  Options options;
  for (const Layout& layout : {Layout{1, 0}, Layout{1, 1}, Layout{9, 4}, Layout{9, 9}, Layout{SplitCell::kMost, 0}}) {
    options.layout = layout;
    CHECK_NOTHROW(check_options(options));
  }
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  for (const Layout& layout :
       {Layout{0, 0}, Layout{1, 2}, Layout{9, 10}, Layout{3, most}, Layout{3, most - 1},
        Layout{SplitCell::kMost + std::size_t{1}, 0}, Layout{SplitCell::kMost, 1}, Layout{most, most}}) {
    options.layout = layout;
    CHECK_THROWS_AS(check_options(options), std::invalid_argument);
  }
}

TEST_CASE_TEMPLATE("a state is restored only if its rows have the cells of its layout", Forest, orderfree::LabelForest,
                   orderfree::NumberForest) {
  const Learned<Forest> data(150);
  Forest forest(options_of_three());
  set_labels_of(forest);
  forest.learn(data.rows, data.values, {}, Call(1));
  const auto state = forest.save();
  CHECK(state.rows.size() == 5 * state.values.size());
  const auto again = std::make_unique<Forest>(state);
  CHECK(again->options().layout == Layout{3, 2});
  CHECK(predict(*again, data.rows) == predict(forest, data.rows));
  const auto rejected = [&](auto change) {
    auto other = state;
    change(other);
    CHECK_THROWS_AS(Forest{other}, std::invalid_argument);
  };
  // Layouts of other widths, and of the same width with other cells.
  for (const Layout& layout : {Layout{3, 0}, Layout{3, 1}, Layout{3, 3}, Layout{2, 2}, Layout{4, 2}, Layout{3, 4}}) {
    rejected([&](auto& other) { other.options.layout = layout; });
  }
  rejected([](auto& other) {
    other.options.layout = {4, 1};
    other.rows[2] = 0.0f;
    other.rows[3] = 5.0f;
  });
  rejected([](auto& other) { other.rows.resize(3 * other.values.size()); });
  rejected([](auto& other) { other.rows.pop_back(); });
  rejected([](auto& other) { other.rows.insert(other.rows.end(), 5, 0.5f); });
  for (const float wrong : {kMissing, -1.0f, 0.0f, 4.0f, std::numeric_limits<float>::infinity()}) {
    rejected([&](auto& other) { other.rows[other.rows.size() - 1] = wrong; });
    rejected([&](auto& other) { other.rows[1] = wrong; });
  }
}

}  // namespace
