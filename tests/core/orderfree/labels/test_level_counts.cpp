// The counts of levels are those of the samples that they hold, whatever came before.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "orderfree/labels/levels.hpp"

using namespace onlineforest::orderfree;
using onlineforest::kOne;
using onlineforest::Weight;

namespace {

constexpr std::size_t kLabels = 3;
const Layout kLayout{3, 2};

struct Sample {
  std::array<float, 5> row;
  Label label;
  Weight weight;
};

std::vector<Sample> some_samples(std::size_t n) {
  std::mt19937 draw(3);
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < n; ++i) {
    const Word level = draw() % 7, other = draw() % 40;
    const auto label = static_cast<Label>(draw() % 4 == 0 ? draw() % kLabels : level % kLabels);
    samples.push_back({{0.5f, HashCell::of(level), HashCell::of(1), HashCell::of(other), HashCell::of(0)},
                       label,
                       static_cast<Weight>(1 + draw() % (3 * kOne))});
  }
  return samples;
}

struct Held {
  LevelCounts counts{kLayout};
  LabelCounts totals;

  void add(const Sample& sample) {
    counts.add(sample.row.data(), sample.label, sample.weight);
    totals.add(sample.label, sample.weight);
  }
  void subtract(const Sample& sample) {
    counts.subtract(sample.row.data(), sample.label, sample.weight);
    totals.add(sample.label, -sample.weight);
  }
  [[nodiscard]] std::array<double, kLabels> evidence(const Sample& sample, LabelCounts::Entry own = {0, 0}) const {
    std::array<double, kLabels> result{};
    LevelEvidence(counts, totals, kLabels).find(sample.row.data(), result, own);
    return result;
  }
};

}  // namespace

TEST_CASE("evidence depends on the samples held alone") {
  const std::vector<Sample> samples = some_samples(400);
  Held some, all;
  for (std::size_t i = 100; i < 400; ++i) some.add(samples[i]);
  for (std::size_t i = 400; i-- > 0;) all.add(samples[i]);
  CHECK(some.evidence(samples[0]) != all.evidence(samples[0]));
  for (std::size_t i = 0; i < 100; ++i) all.subtract(samples[i]);
  bool has_some = false;
  for (const Sample& sample : samples) {
    CHECK(some.evidence(sample) == all.evidence(sample));
    has_some = has_some || some.evidence(sample)[0] > 0.5;
  }
  CHECK(has_some);
  for (std::size_t i = 100; i < 400; ++i) all.subtract(samples[i]);
  for (const auto& feature : all.counts.features()) {
    CHECK(feature.levels.empty());
    CHECK(feature.agreement == 0);
    CHECK(feature.paired == 0);
  }
}

TEST_CASE("a sample that is alone in its level tells nothing of itself") {
  Held held;
  const std::vector<Sample> samples = some_samples(2000);
  for (const Sample& sample : samples) held.add(sample);
  const Sample alone{{0.5f, HashCell::of(99), HashCell::of(1), HashCell::of(99), HashCell::of(0)}, 2, kOne};
  held.add(alone);
  CHECK(held.evidence(alone)[2] > 0.0);
  CHECK(held.evidence(alone, {2, kOne}) == std::array<double, kLabels>{});
  CHECK(held.evidence(alone)[0] == 0.0);
}

TEST_CASE("two samples of a block agree as often as all pairs do") {
  LabelCounts counts;
  counts.add(0, kOne);
  CHECK(agreement_of(counts) == 0);
  counts.add(0, 3 * kOne);
  CHECK(agreement_of(counts) == 4 * kOne);
  counts.add(1, 2 * kOne);
  // 4 * 3 + 2 * 1 of 6 * 5 pairs, times 6 samples
  CHECK(std::abs(static_cast<double>(agreement_of(counts)) / kOne - 14.0 / 5.0) < 1e-4);
}
