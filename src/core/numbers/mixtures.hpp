// Predictive distributions of rows as flat arrays, so that shards can send them and the driver can join them.
// Knows nothing of trees.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "numbers/mixture.hpp"

namespace onlineforest {

// The components of one row, tree by tree, and the completion of the row that each belongs to.
struct RowMixture {
  std::vector<Component> components;
  std::vector<std::int32_t> completion_of;

  void clear() {
    components.clear();
    completion_of.clear();
  }

  void add(const Component& component, std::size_t completion) {
    components.push_back(component);
    completion_of.push_back(static_cast<std::int32_t>(completion));
  }
};

struct Mixtures {
  std::vector<std::uint64_t> ends;  // per row: the end of its components, where those of the next row begin
  std::vector<std::int32_t> completion_of;
  std::vector<double> masses, means, variances;

  static Mixtures of_rows(std::vector<RowMixture> rows) {
    Mixtures mixtures;
    std::size_t n = 0;
    for (const RowMixture& row : rows) n += row.components.size();
    mixtures.ends.reserve(rows.size());
    mixtures.completion_of.reserve(n);
    for (std::vector<double>* numbers : {&mixtures.masses, &mixtures.means, &mixtures.variances}) numbers->reserve(n);
    for (RowMixture& each : rows) {
      const RowMixture row = std::exchange(each, {});  // frees its memory row by row
      for (const Component& c : row.components) {
        mixtures.masses.push_back(c.mass);
        mixtures.means.push_back(c.mean);
        mixtures.variances.push_back(c.variance);
      }
      mixtures.completion_of.insert(mixtures.completion_of.end(), row.completion_of.begin(), row.completion_of.end());
      mixtures.ends.push_back(mixtures.masses.size());
    }
    return mixtures;
  }

  // Replaces `mixture` by that of a row.
  void copy(std::size_t row, RowMixture& mixture) const {
    mixture.clear();
    for (std::size_t i = row == 0 ? 0 : ends[row - 1]; i < ends[row]; ++i) {
      mixture.components.push_back({masses[i], means[i], variances[i]});
      mixture.completion_of.push_back(completion_of[i]);
    }
  }

  // Throws std::invalid_argument if arrays from outside are not valid mixtures of `n_rows` rows.
  void check(std::size_t n_rows) const {
    bool ok = ends.size() == n_rows && means.size() == masses.size() && variances.size() == masses.size() &&
              completion_of.size() == masses.size() && (ends.empty() ? 0 : ends.back()) == masses.size();
    for (std::size_t i = 1; ok && i < ends.size(); ++i) ok = ends[i - 1] <= ends[i];
    if (!ok) {
      throw std::invalid_argument("the mixtures have arrays of inconsistent lengths, or are not those of " +
                                  std::to_string(n_rows) + " rows");
    }
    for (std::size_t i = 0; i < masses.size(); ++i) {
      if (!(std::isfinite(masses[i]) && masses[i] >= 0.0 && std::isfinite(means[i]) && std::isfinite(variances[i]) &&
            variances[i] > 0.0)) {
        throw std::invalid_argument("component " + std::to_string(i) + " of the mixtures has mass " +
                                    std::to_string(masses[i]) + ", mean " + std::to_string(means[i]) +
                                    " and variance " + std::to_string(variances[i]) +
                                    ": they must be finite, the mass at least 0, the variance positive");
      }
    }
  }
};

}  // namespace onlineforest
