// A tree that predicts with a stop weight is a pruned prefix of the whole tree.
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "base/call.hpp"
#include "orderfree/labels/labels.hpp"
#include "orderfree/labels/tree.hpp"
#include "orderfree/law/sample_store.hpp"
#include "orderfree/tree/tree.hpp"
#include "orderfree/worlds.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::orderfree;

namespace {

constexpr std::size_t kWidth = 2, kLabels = 3, kQueries = 40;

// A tree, its samples, and rows to predict.
struct World {
  std::mt19937 draw{10};
  Options options;
  SampleStore<LabelHashes> samples{{kWidth}, 0};
  std::vector<float> queries;
  Call call{1};
  StopProbe stop = call.probe();
  Scratch<Labels> scratch;
  Tree<Labels> tree;

  World() : options(options_of()), tree(options, 0) {
    samples.values().set(label_hashes(kLabels));
    for (int i = 0; i < 700; ++i) (void)add();
    for (std::size_t i = 0; i < kQueries * kWidth; ++i) queries.push_back(number());
    tree.regrow(samples, scratch, stop);
  }

  static Options options_of() {
    Options options;
    options.layout = {kWidth};
    return options;
  }
  float number() { return static_cast<float>(draw() % 200); }
  Slot add() {
    const float row[] = {number(), number()};
    return samples.add(row, static_cast<Label>(draw() % kLabels), kOne / 2 + static_cast<Weight>(draw() % kOne));
  }

  // The masses and the rest of each query.
  struct Sums {
    std::vector<std::uint64_t> masses = std::vector<std::uint64_t>(kQueries * kLabels);
    std::vector<std::uint64_t> rests = std::vector<std::uint64_t>(kQueries);

    [[nodiscard]] Labels::Answers answers() { return {masses.data(), rests.data(), kLabels}; }
    bool operator==(const Sums&) const = default;
  };
  [[nodiscard]] Sums predict(Tree<Labels>& by) {
    Sums sums;
    by.predict(samples, queries, true, sums.answers(), scratch, stop);
    return sums;
  }
  // The prediction of a fresh tree.
  [[nodiscard]] Sums expected(Weight stop_weight) {
    Tree<Labels> fresh(options, 0);
    fresh.regrow(samples, scratch, stop);
    fresh.stop_at(stop_weight, samples, scratch);
    return predict(fresh);
  }
};

const std::vector<Weight> kStops{0, 2 * kOne, 10 * kOne, 30 * kOne, 70 * kOne, 150 * kOne, 10'000 * kOne};

void check_same_table(const TreeTable<Labels>& one, const TreeTable<Labels>& other) {
  CHECK(one.parent == other.parent);
  CHECK(one.cell == other.cell);
  CHECK(one.threshold == other.threshold);
  CHECK(one.weight == other.weight);
  CHECK(one.columns.label == other.columns.label);
  CHECK(one.columns.count == other.columns.count);
}

TEST_CASE("a walk for several stop weights gives what each of them gives alone") {
  World world;
  world.tree.stop_at(30 * kOne, world.samples, world.scratch);
  for (int step = 0; step < 3; ++step) {
    std::vector<World::Sums> found(kStops.size());
    std::vector<Labels::Answers> answers;
    for (World::Sums& sums : found) answers.push_back(sums.answers());
    world.tree.predict_each(world.samples, world.queries, kStops, answers, world.scratch, world.stop);
    for (std::size_t k = 0; k < kStops.size(); ++k) CHECK(found[k] == world.expected(kStops[k]));
    CHECK(found[0] != found[3]);
    CHECK(world.tree.stop_weight() == 30 * kOne);
    CHECK(world.predict(world.tree) == found[3]);
    if (step == 1) world.tree.grow_all(world.samples, world.scratch, world.stop);
  }
}

TEST_CASE("a tree predicts with any stop weight after another") {
  World world;
  for (int step = 0; step < 40; ++step) {
    const Weight stop_weight = kStops[world.draw() % kStops.size()];
    world.tree.stop_at(stop_weight, world.samples, world.scratch);
    if (step % 3 == 0) world.tree.grow_all(world.samples, world.scratch, world.stop);
    CHECK(world.predict(world.tree) == world.expected(stop_weight));
    const Slot slot = world.add();
    const Change change{slot, 0, false};
    world.tree.follow(world.samples, {&change, 1}, world.scratch, world.stop);
  }
}

TEST_CASE("the table of the whole tree does not depend on the stop weight, and leaves no memory") {
  World world;
  const TreeTable<Labels> whole = world.tree.table(world.samples, world.scratch, world.stop);
  for (const Weight stop_weight : kStops) {
    world.tree.stop_at(stop_weight, world.samples, world.scratch);
    world.tree.grow_all(world.samples, world.scratch, world.stop);
    const std::size_t n_bytes = world.tree.nbytes();
    const TreeTable<Labels> found = world.tree.table(world.samples, world.scratch, world.stop);
    check_same_table(found, whole);
    CHECK(found.stop_weight == stop_weight);
    CHECK(world.tree.nbytes() <= n_bytes + n_bytes / 50);
    CHECK(world.tree.is_flat());
  }
}

TEST_CASE("the table of the nodes that predict is a prefix of the table of all") {
  World world;
  const TreeTable<Labels> whole = world.tree.table(world.samples, world.scratch, world.stop);
  for (const Weight stop_weight : kStops) {
    world.tree.stop_at(stop_weight, world.samples, world.scratch);
    const TreeTable<Labels> above = world.tree.table_above(world.samples, world.scratch, world.stop);
    std::vector<std::size_t> of_whole{0};  // the node of the whole tree, for each node of the prefix
    for (std::size_t node = 0; node < above.cell.size(); ++node) {
      const std::size_t same = of_whole[node];
      CHECK(above.weight[node] == whole.weight[same]);
      const bool is_entered = node == 0 || above.weight[node] >= stop_weight;
      CHECK(above.is_split(node) == (is_entered && whole.is_split(same)));
      if (!above.is_split(node)) continue;
      CHECK(above.cell[node] == whole.cell[same]);
      of_whole.resize(above.cell.size());
      of_whole[static_cast<std::size_t>(above.left[node])] = static_cast<std::size_t>(whole.left[same]);
      of_whole[static_cast<std::size_t>(above.right[node])] = static_cast<std::size_t>(whole.right[same]);
    }
    TreeTable<Labels> stopped = whole;
    stopped.stop_weight = stop_weight;
    for (std::size_t i = 0; i < kQueries; ++i) {
      const float* const row = world.queries.data() + i * kWidth;
      CHECK(of_whole[static_cast<std::size_t>(above.leaf_of(row))] == static_cast<std::size_t>(stopped.leaf_of(row)));
    }
  }
}

TEST_CASE("a larger stop weight frees memory") {
  World world;
  std::size_t least = 0;
  for (auto stop_weight = kStops.rbegin(); stop_weight != kStops.rend(); ++stop_weight) {
    world.tree.stop_at(*stop_weight, world.samples, world.scratch);
    (void)world.predict(world.tree);
    if (least == 0) least = world.tree.nbytes();
  }
  CHECK(world.tree.nbytes() > 2 * least);
  world.tree.stop_at(kStops.back(), world.samples, world.scratch);
  CHECK(world.tree.nbytes() <= least + least / 20);
}

}  // namespace
