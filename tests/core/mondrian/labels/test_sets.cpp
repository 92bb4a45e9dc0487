#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "base/rng.hpp"
#include "mondrian/labels/sets.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::mondrian;

namespace {

std::vector<Label> contents(const LabelSets& sets, NodeIndex j) {
  std::vector<Label> labels;
  sets.for_each(j, [&](Label label) { labels.push_back(label); });
  return labels;
}

// Random operations on a few sets, compared with std::set. Half-way there are `widen_to` classes.
void compare_with_std_set(std::int32_t n_classes, std::int32_t widen_to) {
  Rng rng(n_classes, widen_to);
  const auto below = [&](int n) { return static_cast<int>(rng.uniform() * n); };
  constexpr int n_nodes = 6;
  LabelSets sets;
  sets.reserve_classes(n_classes);
  sets.reserve_nodes(n_nodes);
  std::vector<std::set<Label>> expected(n_nodes);
  for (int step = 0; step < 3000; ++step) {
    if (step == 1500 && widen_to > n_classes) sets.reserve_classes(n_classes = widen_to);
    const std::size_t j = static_cast<std::size_t>(below(n_nodes));
    const NodeIndex node = static_cast<NodeIndex>(j);
    const int action = below(20);
    if (action == 0) {
      sets.clear(node);
      expected[j].clear();
    } else if (action == 1) {
      const std::size_t a = static_cast<std::size_t>(below(n_nodes)), b = static_cast<std::size_t>(below(n_nodes));
      std::set<Label> both = expected[a];
      both.insert(expected[b].begin(), expected[b].end());
      sets.assign_union(node, static_cast<NodeIndex>(a), static_cast<NodeIndex>(b));
      expected[j] = both;
    } else if (action < 8 && !expected[j].empty()) {
      const Label label = *std::next(expected[j].begin(), below(static_cast<int>(expected[j].size())));
      sets.erase(node, label);
      expected[j].erase(label);
    } else {
      const Label label = below(n_classes);
      CHECK(sets.contains(node, label) == (expected[j].count(label) == 1));
      CHECK(sets.rank(node, label) == std::distance(expected[j].begin(), expected[j].lower_bound(label)));
      sets.insert(node, label);
      expected[j].insert(label);
    }
    const auto labels = contents(sets, node);
    CHECK(std::equal(labels.begin(), labels.end(), expected[j].begin(), expected[j].end()));
    CHECK(sets.size(node) == expected[j].size());

    const NodeIndex other = static_cast<NodeIndex>(below(n_nodes));
    std::vector<Label> common, wanted;
    sets.for_each_common(node, other, [&](Label label) { common.push_back(label); });
    std::ranges::set_intersection(expected[j], expected[static_cast<std::size_t>(other)], std::back_inserter(wanted));
    CHECK(common == wanted);
    CHECK(sets.size_common(node, other) == wanted.size());
  }
}

TEST_CASE("label sets agree with std::set under random operations") {
  compare_with_std_set(2, 2);
  compare_with_std_set(64, 64);
  compare_with_std_set(65, 65);
  compare_with_std_set(40, 200);
  compare_with_std_set(3000, 3000);
}

}  // namespace
