// How a forest predicts: sums over trees, and leaves.
// A file of its own: beside the growth of trees GCC inlines less of the walk, and predictions take 6 % longer.
#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/require.hpp"
#include "mondrian/forest/forest.hpp"
#include "mondrian/forest/sums.hpp"
#include "mondrian/labels/walk.hpp"
#include "mondrian/tree/walk.hpp"

namespace onlineforest::mondrian {

// Sums over the trees, n_rows x width. make_worker() gives each thread its scratch memory, and
// add(worker, trees, queries, sums, stop) adds trees to the sums of some rows.
template <class MakeWorker, class Add>
std::vector<double> Forest::sum_of_trees(std::span<const float> rows, std::size_t width, const Call& call,
                                         MakeWorker make_worker, Add add) const {
  return sum_over_trees(
      {n_rows(rows), trees_.size(), width}, call, make_worker,
      [&](std::size_t begin, std::size_t end, Piece piece, auto& worker, double* sums, StopProbe& stop) {
        add(worker, std::span(trees_).subspan(begin, end - begin),
            Queries{rows.data() + piece.begin * options_.n_features, piece.size()}, sums, stop);
      });
}

std::vector<double> Forest::predict(std::span<const float> rows, const Call& call) const {
  const auto pass = gate_.reading();
  const std::size_t n_trees = n_grown();
  if (n_trees == 0) {
    return std::vector<double>(n_rows(rows) * static_cast<std::size_t>(n_classes_),
                               1.0 / static_cast<double>(n_classes_));
  }
  std::vector<double> sums = sum_of_trees(
      rows, LabelWalk::width(n_classes_), call, [this] { return walks_.lend(); },
      [this](Pool<LabelWalk>::Loan& walk, std::span<const LabelTree> trees, Queries queries, double* to,
             StopProbe& stop) {
        (*walk).add_predictions(trees, points_, queries, n_classes_, to,
                                [&stop](std::size_t work) { stop.tick(work); });
      });
  LabelWalk::finish(sums, n_classes_, static_cast<double>(n_trees));
  return sums;
}

std::vector<double> Forest::novelty(std::span<const float> rows, const Call& call) const {
  const auto pass = gate_.reading();
  const std::size_t n_trees = n_grown();
  if (n_trees == 0) return std::vector<double>(n_rows(rows), 1.0);
  std::vector<double> sums = sum_of_trees(
      rows, 1, call, [] { return SetWalk(); },
      [this](SetWalk& walk, std::span<const LabelTree> trees, Queries queries, double* to, StopProbe& stop) {
        walk.walk_trees(trees, points_, queries, [&](const LabelTree&) {
          return [&](const RowPath& path) {
            to[path.row] += separated_above_leaf(path);
            stop.tick(path.steps.size() * options_.n_features);
          };
        });
      });
  for (double& each : sums) each /= static_cast<double>(n_trees);
  return sums;
}

std::vector<NodeIndex> Forest::apply(std::span<const float> rows, const Call& call) const {
  const auto pass = gate_.reading();
  constexpr std::size_t most_rows = 1024;  // at a time, so that their leaves stay in the cache
  const std::size_t n = n_rows(rows), m = trees_.size();
  std::vector<NodeIndex> result(n * m, kNoNode);
  for (std::size_t begin = 0; begin < n; begin += most_rows) {
    call.parallel_for(m, [&] {
      return [&](std::size_t t, StopProbe& stop) {
        if (trees_[t].empty()) return;
        for (std::size_t i = begin; i < std::min(begin + most_rows, n); ++i) {
          result[i * m + t] = find_leaf(trees_[t].nodes(), rows.data() + i * options_.n_features);
          stop.tick(kUsualDepth);
        }
      };
    });
  }
  return result;
}

std::size_t Forest::n_grown() const {
  return static_cast<std::size_t>(std::ranges::count_if(trees_, [](const LabelTree& tree) { return !tree.empty(); }));
}

std::size_t Forest::n_rows(std::span<const float> rows) const {
  require(rows.size() % options_.n_features == 0, [&] {
    return "rows hold " + std::to_string(rows.size()) + " values, which is no multiple of the " +
           std::to_string(options_.n_features) + " features of the forest";
  });
  return rows.size() / options_.n_features;
}

}  // namespace onlineforest::mondrian
