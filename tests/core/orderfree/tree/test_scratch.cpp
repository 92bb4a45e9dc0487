// A tree with the scratch memory of several threads.
#include <cstdint>
#include <random>

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

using LabelSamples = SampleStore<LabelHashes>;

TEST_CASE("a tree that several threads have used is that of its samples") {
  std::mt19937 draw(10);
  Options options;
  options.layout = {2};
  LabelSamples samples({2}, options.seed);
  samples.values().set(label_hashes(2));
  const Call call(1);
  StopProbe stop = call.probe();
  Scratch<Labels> one, other;
  Tree<Labels> tree(options, 0);
  const auto add = [&] {
    const float row[] = {static_cast<float>(draw() % 100), static_cast<float>(draw() % 100)};
    return samples.add(row, static_cast<Label>(draw() % 2), kOne);
  };
  for (int i = 0; i < 20; ++i) add();
  for (int step = 0; step < 30; ++step) {
    Scratch<Labels>&first = step % 2 == 0 ? one : other, &second = step % 2 == 0 ? other : one;
    tree.regrow(samples, first, stop);
    std::uint64_t rest = 0, masses[2] = {0, 0};
    tree.predict(samples, {samples.row(0), 2}, true, {masses, &rest, 2}, first, stop);
    const Slot slot = add();
    const Change change{slot, 0, false};
    if (samples.weight(slot) == kOne) tree.follow(samples, {&change, 1}, second, stop);
    tree.grow_all(samples, second, stop);
    const TreeTable<Labels> found = tree.table(samples, first, stop);
    Scratch<Labels> scratch;
    Tree<Labels> fresh(options, 0);
    fresh.regrow(samples, scratch, stop);
    const TreeTable<Labels> expected = fresh.table(samples, scratch, stop);
    CHECK(found.cell == expected.cell);
    CHECK(found.threshold == expected.threshold);
    CHECK(found.columns.count == expected.columns.count);
    if (samples.weight(slot) > kOne) tree.regrow(samples, first, stop);
  }
}

}  // namespace
