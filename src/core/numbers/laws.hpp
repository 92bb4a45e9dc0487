// The laws of rows, mixtures of what the trees of a forest say, as flat arrays: so that parts of a forest can hand them
// on, and be joined. Knows nothing of trees.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "numbers/mixture.hpp"

namespace onlineforest {

// The components of one row, tree by tree, and of which completion of the row each is.
struct Law {
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

struct Laws {
  std::vector<std::uint64_t> ends;  // per row: where its components end, and those of the next begin
  std::vector<std::int32_t> completion_of;
  std::vector<double> masses, means, variances;

  static Laws of_rows(std::vector<Law> rows) {
    Laws laws;
    std::size_t n = 0;
    for (const Law& law : rows) n += law.components.size();
    laws.ends.reserve(rows.size());
    laws.completion_of.reserve(n);
    for (std::vector<double>* numbers : {&laws.masses, &laws.means, &laws.variances}) numbers->reserve(n);
    for (Law& row : rows) {
      const Law law = std::exchange(row, {});  // not twice in memory
      for (const Component& c : law.components) {
        laws.masses.push_back(c.mass);
        laws.means.push_back(c.mean);
        laws.variances.push_back(c.variance);
      }
      laws.completion_of.insert(laws.completion_of.end(), law.completion_of.begin(), law.completion_of.end());
      laws.ends.push_back(laws.masses.size());
    }
    return laws;
  }

  // Puts the law of a row in place of `law`.
  void copy(std::size_t row, Law& law) const {
    law.clear();
    for (std::size_t i = row == 0 ? 0 : ends[row - 1]; i < ends[row]; ++i) {
      law.components.push_back({masses[i], means[i], variances[i]});
      law.completion_of.push_back(completion_of[i]);
    }
  }

  // Throws std::invalid_argument if arrays from elsewhere are no laws of so many rows.
  void check(std::size_t n_rows) const {
    bool ok = ends.size() == n_rows && means.size() == masses.size() && variances.size() == masses.size() &&
              completion_of.size() == masses.size() && (ends.empty() ? 0 : ends.back()) == masses.size();
    for (std::size_t i = 1; ok && i < ends.size(); ++i) ok = ends[i - 1] <= ends[i];
    if (!ok) throw std::invalid_argument("the laws are not those of these rows");
    for (std::size_t i = 0; i < masses.size(); ++i) {
      ok &= std::isfinite(masses[i]) && masses[i] >= 0.0 && std::isfinite(means[i]) && std::isfinite(variances[i]) &&
            variances[i] > 0.0;
    }
    if (!ok) throw std::invalid_argument("the laws are no mixtures of normals");
  }
};

}  // namespace onlineforest
