#include <algorithm>
#include <cstdint>
#include <map>
#include <random>

#include "orderfree/labels/counts.hpp"
#include "testing.hpp"

using namespace onlineforest;
using namespace onlineforest::orderfree;

namespace {

TEST_CASE("label counts equal those of a map") {
  std::mt19937 draw(5);
  LabelCounts counts;
  std::map<Label, std::int64_t> expected;
  std::int64_t total = 0;
  const auto as_map = [&] {
    std::map<Label, std::int64_t> result;
    for (const auto& [label, weight] : counts.entries()) result[label] = weight;
    return result;
  };
  for (int step = 0; step < 2000; ++step) {
    const auto label = static_cast<Label>(draw() % 12);
    const auto by = draw() % 3 == 0 ? -expected[label] : static_cast<std::int64_t>(draw() % 3) + 1;
    if (by != 0) counts.add(label, by);
    total += by;
    if ((expected[label] += by) == 0) expected.erase(label);
    CHECK(as_map() == expected);
    CHECK(counts.n_labels() == expected.size());
    CHECK(counts.total() == total);
    CHECK(std::ranges::is_sorted(counts.entries(), {}, &LabelCounts::Entry::label));
  }
}

}  // namespace
