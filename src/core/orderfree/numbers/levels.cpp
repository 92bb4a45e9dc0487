#include "orderfree/numbers/levels.hpp"

#include <algorithm>
#include <cmath>

#include "orderfree/forest/level_strength.hpp"

namespace onlineforest::orderfree {

void NumberLevels::add(const float* row, double value, Weight weight) {
  if (empty()) return;
  std::size_t c = 0;
  try {
    for (; c < features_.size(); ++c) features_[c][level(row, c)].add(value, weight);
  } catch (...) {  // memory ran out
    subtract(row, value, weight, c);
    throw;
  }
  all_.add(value, weight);
}

void NumberLevels::subtract(const float* row, double value, Weight weight, std::size_t n) noexcept {
  if (empty()) return;
  for (std::size_t c = 0; c < n; ++c) {
    const auto found = features_[c].find(level(row, c));
    found->second.add(value, -weight);
    if (found->second.total == 0) features_[c].erase(found);
  }
  if (n == features_.size()) all_.add(value, -weight);
}

std::size_t NumberLevels::nbytes() const {
  constexpr std::size_t entry = 40 + sizeof(Block);  // an entry of a hash table, with its pointers
  std::size_t n = features_.capacity() * sizeof(Blocks);
  for (const Blocks& blocks : features_) n += blocks.size() * entry;
  return n;
}

std::vector<double> NumberLevels::strengths() const {
  std::vector<double> result(features_.size(), 0.0);
  if (all_.total() < kPair) return result;
  const auto [mean, variance] = all_.leaf();
  if (!(variance > 0.0)) return result;
  const double n = multiplicity(all_.total()), deviation_of_all = std::sqrt(variance);
  for (std::size_t c = 0; c < features_.size(); ++c) {
    ExactSum squares;  // squared deviations of levels: what levels explain of the variance
    Weight degrees = 0;
    for (const auto& [level, block] : features_[c]) {
      const double deviation = (block.mean() - mean) / deviation_of_all;
      squares.add(deviation * deviation, block.total);
      if (block.total >= kPair) degrees += block.total - kOne;
    }
    if (degrees == 0) continue;
    const auto [high, low] = squares.rounded(-kWeightBits);
    const double within = std::max(n - (high + low), 0.0) / multiplicity(degrees), among_all = n / (n - 1.0);
    if (within < among_all) result[c] = std::max(within / (among_all - within), kLeastStrength);
  }
  return result;
}

double NumberLevels::deviation(const float* row, std::span<const double> strengths, Own own) const {
  double sum = 0.0;
  if (all_.total() == 0) return sum;
  const double mean = all_.mean();
  for (std::size_t c = 0; c < features_.size(); ++c) {
    if (!(strengths[c] > 0.0)) continue;
    const auto found = features_[c].find(level(row, c));
    if (found == features_[c].end() || found->second.total <= own.weight) continue;
    Block block = found->second;
    if (own.weight > 0) block.add(own.value, -own.weight);
    const double n = multiplicity(block.total);
    sum += (block.mean() - mean) * (n / (n + strengths[c]));
  }
  return sum;
}

}  // namespace onlineforest::orderfree
