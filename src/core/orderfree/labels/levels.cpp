#include "orderfree/labels/levels.hpp"

#include <algorithm>
#include <limits>

#include "base/powers.hpp"
#include "orderfree/forest/level_strength.hpp"
#include "samples/weight.hpp"

namespace onlineforest::orderfree {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kOfOnce = 4.0;  // binary logarithm of the rarity of a level that counts once

// The number of samples at which a level counts as much as the labels of all samples. If rates vary much between the
// levels of a feature, samples of one level agree more often than others, and few suffice.
[[nodiscard]] double strength_of(const LevelCounts::Feature& feature, const LabelCounts& totals) {
  if (feature.paired == 0 || totals.total() < kPair) return kNever;
  const double within = static_cast<double>(feature.agreement) / static_cast<double>(feature.paired);
  const double among_all = static_cast<double>(agreement_of(totals)) / static_cast<double>(totals.total());
  return within > among_all ? std::max((1.0 - within) / (within - among_all), kLeastStrength) : kNever;
}

// Changes the counts of a level by calling change().
template <class Change>
void change_counts(LevelCounts::Feature& feature, LabelCounts& counts, Change change) {
  feature.agreement -= agreement_of(counts);
  feature.paired -= counts.total() < kPair ? 0 : counts.total();
  change();
  feature.agreement += agreement_of(counts);
  feature.paired += counts.total() < kPair ? 0 : counts.total();
}

}  // namespace

void LevelCounts::add(const float* row, Label label, Weight weight) {
  std::size_t c = 0;
  try {
    for (; c < features_.size(); ++c) {
      const auto found = features_[c].levels.try_emplace(level(row, c)).first;
      try {
        found->second.reserve_one();
      } catch (...) {
        if (found->second.total() == 0) features_[c].levels.erase(found);
        throw;
      }
      change_counts(features_[c], found->second, [&] { found->second.add(label, weight); });
    }
  } catch (...) {  // memory ran out
    subtract(row, label, weight, c);
    throw;
  }
}

void LevelCounts::subtract(const float* row, Label label, Weight weight, std::size_t n) noexcept {
  for (std::size_t c = 0; c < n; ++c) {
    const auto found = features_[c].levels.find(level(row, c));
    change_counts(features_[c], found->second, [&] { found->second.add(label, -weight); });
    if (found->second.total() == 0) features_[c].levels.erase(found);
  }
}

std::size_t LevelCounts::nbytes() const {
  constexpr std::size_t entry = 80;  // an entry of a hash table, with its pointers
  std::size_t n = features_.capacity() * sizeof(Feature);
  for (const Feature& feature : features_) {
    for (const auto& [level, counts] : feature.levels) n += entry + counts.nbytes();
  }
  return n;
}

std::int64_t agreement_of(const LabelCounts& counts) {
  if (counts.total() < kPair) return 0;
  const double others = multiplicity(counts.total()) - 1.0;
  std::int64_t sum = 0;
  for (const auto& [label, weight] : counts.entries()) {
    const double n = multiplicity(weight);
    if (n > 1.0) sum += static_cast<std::int64_t>(static_cast<double>(weight) * ((n - 1.0) / others));
  }
  return sum;
}

LevelEvidence::LevelEvidence(const LevelCounts& counts, const LabelCounts& totals, std::size_t n_labels)
    : counts_(counts), total_(static_cast<double>(totals.total())), rarities_(n_labels, 0.0) {
  for (const auto& feature : counts.features()) strengths_.push_back(strength_of(feature, totals));
  for (const auto& [label, weight] : totals.entries()) {
    rarities_[static_cast<std::size_t>(label)] = total_ / static_cast<double>(weight);
  }
}

void LevelEvidence::find(const float* row, std::span<double> evidence, LabelCounts::Entry own) const {
  std::ranges::fill(evidence, 0.0);
  for (std::size_t c = 0; c < strengths_.size(); ++c) {
    if (strengths_[c] == kNever) continue;
    const auto& levels = counts_.features()[c].levels;
    const auto found = levels.find(counts_.level(row, c));
    if (found == levels.end()) continue;
    // Trees separate frequent levels by themselves, so rare ones count more.
    const double times = binary_log(total_ / static_cast<double>(found->second.total())) / kOfOnce;
    for (const auto& [label, weight] : found->second.entries()) {
      const auto at = static_cast<std::size_t>(label);
      const double n = multiplicity(label == own.label ? weight - own.weight : weight);
      evidence[at] += times * binary_log(1.0 + n * rarities_[at] / strengths_[c]);
    }
  }
}

}  // namespace onlineforest::orderfree
