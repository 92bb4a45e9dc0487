// How much the cuts on each feature of a tree gain. Must not know forests.
#pragma once

#include <cstddef>
#include <vector>

#include "base/stop.hpp"
#include "guided/sample_store.hpp"
#include "guided/tree.hpp"
#include "guided/tree_table.hpp"

namespace onlineforest::guided {

// The decrease of the Gini impurity at the cuts on each feature, per sample.
[[nodiscard]] std::vector<double> decreases(const TreeTable& table, std::size_t n_features);

// The decrease of the squared error on the samples that the tree has left out, per sample: the frequencies of labels at
// a node predict them worse than those at its children. For a feature of pure chance its mean is not above 0.
[[nodiscard]] std::vector<double> left_out_decreases(const SampleStore& samples, const Tree& tree,
                                                     const TreeTable& table, StopProbe& stop);

}  // namespace onlineforest::guided
