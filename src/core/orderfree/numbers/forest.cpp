#include "orderfree/numbers/forest.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>

#include "base/require.hpp"
#include "orderfree/forest/stages.hpp"
#include "orderfree/numbers/credit.hpp"

namespace onlineforest::orderfree {

template class Forest<Numbers>;

std::optional<TreeMoments> moments_of(std::vector<NumberLeaf>& leaves) {
  std::erase_if(leaves, [](const NumberLeaf& leaf) { return leaf.variance < 0.0; });
  if (leaves.empty()) return std::nullopt;
  const auto n = static_cast<double>(leaves.size());
  double sum = 0.0, within = 0.0, squares = 0.0;
  for (const NumberLeaf& leaf : leaves) {
    sum += leaf.mean;
    within += leaf.variance;
  }
  // The mean of equal answers is exactly that answer; sum / n might differ from it by rounding.
  const bool are_equal =
      std::ranges::all_of(leaves, [&](const NumberLeaf& leaf) { return leaf.mean == leaves[0].mean; });
  const double mean = are_equal ? leaves[0].mean : sum / n;
  for (const NumberLeaf& leaf : leaves) squares += (leaf.mean - mean) * (leaf.mean - mean);
  return TreeMoments{mean, within / n, leaves.size() > 1 ? squares / (n - 1.0) : 0.0};
}

NumberForest::NumberForest(const State& state, std::size_t max_bytes) : Forest(options_within(state, max_bytes)) {
  take_in(state);
}

TreeMoments NumberForest::mean_of_samples() const {
  if (sample_of_.empty()) return {};
  NumberSums sums;
  for (std::size_t i = 0; i < sample_of_.size(); ++i) {
    sums.add(samples_.value(sample_of_[i]), weight_of_[static_cast<Slot>(i)]);
  }
  const NumberLeaf leaf = sums.leaf();
  return {leaf.mean, leaf.variance, 0.0};
}

TreeMoments NumberForest::of_all_samples() const {
  const auto pass = gate_.reading();
  return mean_of_samples();
}

using Leaves = std::vector<NumberLeaf>;

// Answers are stored tree by tree: for all rows if several tasks share a piece, otherwise for the rows of one piece.
template <class Use>
void NumberForest::for_each_row(std::span<const float> rows, Weight stop_weight, const Call& call, Use use) const {
  check_stop_weight(stop_weight);
  const std::size_t n_trees = trees_.size();
  const bool are_plain = check_rows(rows);
  const Pieces pieces = shared_pieces_of(n_rows(rows), n_trees * sizeof(NumberLeaf), call, 1);
  if (pieces.n() > 1) grow_all_for(pieces.n_rows(), stop_weight, call);
  Leaves of_all(pieces.are_whole() ? 0 : pieces.n_rows() * n_trees);
  const auto use_row = [&](std::size_t i, const NumberLeaf* first, std::size_t stride, Leaves& leaves) {
    leaves.clear();
    for (std::size_t t = 0; t < n_trees; ++t) leaves.push_back(first[t * stride]);
    use(i, leaves);
  };
  call.parallel_for(pieces.n_tasks(), [&] {
    return [&, loan = scratches_.lend(), of_piece = Leaves(), of_row = Leaves()](std::size_t task,
                                                                                 StopProbe& stop) mutable {
      const std::size_t begin = pieces.begin(task), size = pieces.size(task);
      if (!pieces.are_whole()) {
        answer_task(pieces, task, rows, are_plain, stop_weight, {of_all.data() + begin, pieces.n_rows()}, *loan, stop);
        return;
      }
      of_piece.resize(size * n_trees);
      answer_task(pieces, task, rows, are_plain, stop_weight, {of_piece.data(), size}, *loan, stop);
      for (std::size_t i = 0; i < size; ++i) use_row(begin + i, of_piece.data() + i, size, of_row);
    };
  });
  if (pieces.are_whole()) return;
  const Pieces parts(pieces.n_rows(), 0, 1, call.n_threads(), 1);
  call.parallel_for(parts.n(), [&] {
    return [&, of_row = Leaves()](std::size_t part, StopProbe&) mutable {
      for (std::size_t i = parts.begin(part), end = i + parts.size(part); i < end; ++i) {
        use_row(i, of_all.data() + i, pieces.n_rows(), of_row);
      }
    };
  });
}

void NumberForest::answer_task(const Pieces& pieces, std::size_t task, std::span<const float> rows, bool are_plain,
                               Weight stop_weight, LeafColumns answers, Scratch& scratch, StopProbe& stop) const {
  const std::size_t width = options_.layout.width(), begin = pieces.begin(task), size = pieces.size(task);
  const auto predict = [&](std::size_t t, OneTree& tree) {
    NumberLeaf* const first = answers.of_tree(t);
    if (tree.empty()) {
      std::fill_n(first, size, kNoLeaf);
      return;
    }
    tree.predict(samples_, rows.subspan(begin * width, size * width), are_plain, {first}, scratch, stop);
  };
  if (pieces.n_rows() == 1) {
    const auto answer_of = [&](std::size_t t) -> NumberLeaf& { return *answers.of_tree(t); };
    predict_row(rows.data(), are_plain, stop_weight, answer_of, scratch, stop, predict);
    return;
  }
  for (std::size_t k = 0; k < pieces.n_trees(task); ++k) {
    const std::size_t t = pieces.tree(task, k);
    with_tree(t, pieces.n_rows(), stop_weight, scratch, stop, [&](OneTree& tree) { predict(t, tree); });
    stop.tick(64 * size);
  }
}

std::vector<TreeMoments> NumberForest::predict(std::span<const float> rows, const NumberFit& fit,
                                               const Call& call) const {
  const auto pass = gate_.reading();
  require(fit.level_share >= 0.0 && fit.level_share <= std::numeric_limits<double>::max(), [&] {
    return "the share of the deviations of levels is " + std::to_string(fit.level_share) +
           ", it must be at least 0 and finite";
  });
  if (fit.level_share > 0.0) check_strengths(fit.strengths);
  std::vector<TreeMoments> result(n_rows(rows));
  for_each_row(rows, fit.stop_weight, call, [&](std::size_t i, std::vector<NumberLeaf>& leaves) {
    const std::optional<TreeMoments> moments = moments_of(leaves);
    result[i] = moments ? *moments : mean_of_samples();
    if (fit.level_share == 0.0) return;
    result[i].mean += fit.level_share * levels_.deviation(rows.data() + i * options_.layout.width(), fit.strengths);
  });
  return result;
}

std::vector<NumberLeaf> NumberForest::leaves(std::span<const float> rows, Weight stop_weight, const Call& call) const {
  const auto pass = gate_.reading();
  std::vector<NumberLeaf> result(n_rows(rows) * trees_.size());
  for_each_row(rows, stop_weight, call, [&](std::size_t i, const std::vector<NumberLeaf>& leaves) {
    std::ranges::copy(leaves, result.begin() + static_cast<std::ptrdiff_t>(i * leaves.size()));
  });
  return result;
}

template <class Use>
void NumberForest::for_each_left_out(std::span<const Slot> slots, Weight stop_weight, const Call& call, Use use) const {
  check_stop_weight(stop_weight);
  const Pieces pieces = pieces_of(slots.size(), trees_.size() * sizeof(NumberLeaf), call);
  grow_all_for(pieces.n_rows(), stop_weight, call);
  call.parallel_for(pieces.n(), [&] {
    return [&, loan = scratches_.lend()](std::size_t piece, StopProbe& stop) {
      const std::span<const Slot> own = slots.subspan(pieces.begin(piece), pieces.size(piece));
      std::vector<NumberLeaf> answers(own.size() * trees_.size(), kNoLeaf), of_tree, of_row;
      std::vector<std::size_t> places;
      std::vector<float> rows;
      for (std::size_t k = 0; k < trees_.size(); ++k) {
        const std::size_t t = pieces.tree(piece, k);
        if (!trees_[t]->tree.leaves_out()) continue;
        with_tree(t, pieces.n_rows(), stop_weight, *loan, stop, [&](OneTree& tree) {
          if (tree.empty()) return;
          places.clear();
          rows.clear();
          for (std::size_t i = 0; i < own.size(); ++i) {
            if (tree.takes(samples_, own[i])) continue;
            places.push_back(i);
            const float* row = samples_.row(own[i]);
            rows.insert(rows.end(), row, row + options_.layout.width());
          }
          of_tree.resize(places.size());
          tree.predict(samples_, rows, check_rows(rows), {of_tree.data()}, *loan, stop);
          for (std::size_t i = 0; i < places.size(); ++i) answers[places[i] * trees_.size() + t] = of_tree[i];
        });
        stop.tick(64 * own.size());
      }
      for (std::size_t i = 0; i < own.size(); ++i) {
        const auto first = answers.begin() + static_cast<std::ptrdiff_t>(i * trees_.size());
        of_row.assign(first, first + static_cast<std::ptrdiff_t>(trees_.size()));
        use(pieces.begin(piece) + i, of_row);
      }
    };
  });
}

NumberForest::LeftOut NumberForest::predict_left_out(Weight stop_weight, const Call& call) const {
  const auto pass = gate_.reading();
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  std::vector<Slot> slots;
  for (Slot slot = 0; slot < static_cast<Slot>(samples_.n_slots()); ++slot) {
    if (may_be_left_out(slot)) slots.push_back(slot);
  }
  std::vector<TreeMoments> moments(samples_.n_slots(), {kNone, kNone, kNone});
  std::vector<std::int64_t> n_trees(samples_.n_slots(), 0);
  for_each_left_out(slots, stop_weight, call, [&](std::size_t i, std::vector<NumberLeaf>& leaves) {
    const std::optional<TreeMoments> own = moments_of(leaves);
    if (!own) return;
    moments[static_cast<std::size_t>(slots[i])] = *own;
    n_trees[static_cast<std::size_t>(slots[i])] = static_cast<std::int64_t>(leaves.size());
  });
  LeftOut result;
  for (const Slot slot : arrivals(0, sample_of_.size())) {
    result.moments.push_back(moments[static_cast<std::size_t>(slot)]);
    result.n_trees.push_back(n_trees[static_cast<std::size_t>(slot)]);
  }
  return result;
}

NumberForest::LeftOutLeaves NumberForest::left_out_leaves(std::size_t begin, std::size_t end, Weight stop_weight,
                                                          const Call& call) const {
  const auto pass = gate_.reading();
  LeftOutLeaves result;
  std::vector<Slot> slots;
  const std::vector<Slot> of_arrivals = arrivals(begin, end);
  for (std::size_t i = 0; i < of_arrivals.size(); ++i) {
    if (!may_be_left_out(of_arrivals[i])) continue;
    slots.push_back(of_arrivals[i]);
    result.places.push_back(static_cast<std::int64_t>(begin + i));
  }
  result.leaves.resize(slots.size() * trees_.size());
  for_each_left_out(slots, stop_weight, call, [&](std::size_t i, const std::vector<NumberLeaf>& leaves) {
    std::ranges::copy(leaves, result.leaves.begin() + static_cast<std::ptrdiff_t>(i * leaves.size()));
  });
  return result;
}

NumberVotes NumberForest::left_out_votes(std::size_t begin, std::size_t end, StopRange range, const Call& call) const {
  const auto pass = gate_.reading();
  const std::size_t width = options_.layout.width();
  NumberVotes votes;
  votes.stop_weights = stop_weights(total_weight_, range);
  votes.strengths = levels_.strengths();
  std::vector<float> rows;
  for (const Slot slot : calibrators_.chosen(begin, end)) {
    const NumberLevels::Own own{samples_.value(slot), samples_.weight(slot)};
    votes.deviations.push_back(levels_.deviation(samples_.row(slot), votes.strengths, own));
    votes.values.push_back(samples_.value(slot));
    votes.weights.push_back(samples_.weight(slot));
    rows.insert(rows.end(), samples_.row(slot), samples_.row(slot) + width);
  }
  std::vector<std::size_t> voters;
  for (std::size_t t = 0; t < trees_.size(); ++t) {
    if (trees_[t]->tree.leaves_calibrators_out()) voters.push_back(t);
  }
  votes.n_trees = voters.size();
  const std::size_t n = votes.values.size(), n_stops = votes.stop_weights.size();
  votes.leaves.assign(n_stops * n * votes.n_trees, kNoLeaf);
  if (n_stops == 0 || n == 0) return votes;
  // One thread asks a tree about all calibrators, so threads do not wait for each other.
  call.parallel_for(voters.size(), [&] {
    return [&, loan = scratches_.lend(), of_tree = Leaves()](std::size_t v, StopProbe& stop) mutable {
      with_tree_alone(voters[v], n, *loan, stop, [&](OneTree& tree) {
        if (tree.empty()) return;
        of_tree.resize(n_stops * n);
        std::vector<Numbers::Answers> answers;
        for (std::size_t k = 0; k < n_stops; ++k) answers.push_back({of_tree.data() + k * n});
        tree.predict_each(samples_, rows, votes.stop_weights, answers, *loan, stop);
        for (std::size_t i = 0; i < of_tree.size(); ++i) votes.leaves[i * votes.n_trees + v] = of_tree[i];
      });
      stop.tick(64 * n);
    };
  });
  return votes;
}

void NumberForest::check_strengths(std::span<const double> strengths) const {
  const std::size_t n = levels_.empty() ? 0 : options_.layout.n_categorical;
  require(strengths.size() == n, [&] {
    return "there are " + std::to_string(strengths.size()) + " strengths for the sums of levels of " +
           std::to_string(n) + " features";
  });
}

std::vector<double> NumberForest::level_deviations(std::span<const float> rows,
                                                   std::span<const double> strengths) const {
  const auto pass = gate_.reading();
  const std::size_t width = options_.layout.width();
  (void)check_rows(rows);
  check_strengths(strengths);
  std::vector<double> result;
  for (std::size_t i = 0; i < n_rows(rows); ++i) {
    result.push_back(levels_.deviation(rows.data() + i * width, strengths));
  }
  return result;
}

NumberVotes NumberForest::left_out_votes_at(std::size_t n_seen, StopRange range, const Call& call) const {
  return NumberForest(state_at(save(), n_seen)).left_out_votes(0, kAllCalibrators, range, call);
}

NumberVotes NumberForest::left_out_votes_after(std::span<const float> rows, std::span<const double> values,
                                               std::span<const Weight> weights, StopRange range,
                                               const Call& call) const {
  NumberForest next(save());
  next.learn(rows, values, weights, call);
  return next.left_out_votes(0, kAllCalibrators, range, call);
}

}  // namespace onlineforest::orderfree
