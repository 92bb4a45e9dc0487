#include "orderfree/labels/forest.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <mutex>
#include <numeric>
#include <string>

#include "base/require.hpp"
#include "orderfree/forest/stages.hpp"
#include "orderfree/labels/credit.hpp"

namespace onlineforest::orderfree {

template class Forest<Labels>;

namespace {

// Sums over trees, for each row, to which several threads add. They are integers, so the order of additions does not
// matter.
class MassSums {
 public:
  MassSums(std::size_t n_rows, std::size_t n_labels, std::size_t n_pieces)
      : n_labels_(n_labels), masses_(n_rows * n_labels), rests_(n_rows), mutexes_(n_pieces) {}

  // Adds the sums of the rows of a piece. `begin` is the first row of the piece.
  void add(std::size_t piece, std::size_t begin, std::span<const std::uint64_t> masses,
           std::span<const std::uint64_t> rests) {
    const std::lock_guard lock(mutexes_[piece]);
    add(masses, masses_.data() + begin * n_labels_);
    add(rests, rests_.data() + begin);
  }

  [[nodiscard]] std::span<const std::uint64_t> masses(std::size_t row) const {
    return std::span(masses_).subspan(row * n_labels_, n_labels_);
  }
  [[nodiscard]] std::uint64_t rest(std::size_t row) const { return rests_[row]; }

 private:
  static void add(std::span<const std::uint64_t> from, std::uint64_t* to) {
    for (std::size_t i = 0; i < from.size(); ++i) to[i] += from[i];
  }

  std::size_t n_labels_;
  std::vector<std::uint64_t> masses_, rests_;
  std::vector<std::mutex> mutexes_;  // one per piece
};

}  // namespace

LabelForest::LabelForest(const State& state, std::size_t max_bytes) : Forest(options_within(state, max_bytes)) {
  take_in(state);
}

void LabelForest::set_labels(std::span<const Word> hashes, std::span<const std::uint8_t> are_declared) {
  const auto pass = gate_.writing();
  ledger_.set(hashes, are_declared, samples_.values());
}

template <class Use>
void LabelForest::for_each_sum(std::span<const float> rows, Weight stop_weight, const Call& call, Use use) const {
  check_stop_weight(stop_weight);
  const std::size_t width = options_.layout.width(), n_labels = n_codes();
  const bool are_plain = check_rows(rows);
  // Adding the sums of a row then takes less than a tenth of the time of these trees.
  const std::size_t least_trees = 1 + n_labels / 8;
  const Pieces pieces = shared_pieces_of(n_rows(rows), n_labels * sizeof(std::uint64_t), call, least_trees);
  if (pieces.n() > 1) grow_all_for(pieces.n_rows(), stop_weight, call);
  MassSums sums(pieces.are_whole() ? 0 : pieces.n_rows(), n_labels, pieces.n());
  call.parallel_for(pieces.n_tasks(), [&] {
    return [&, loan = scratches_.lend(), masses = std::vector<std::uint64_t>(), rests = std::vector<std::uint64_t>()](
               std::size_t task, StopProbe& stop) mutable {
      const std::size_t begin = pieces.begin(task), size = pieces.size(task);
      masses.assign(size * n_labels, 0);
      rests.assign(size, 0);
      const Labels::Answers answers{masses.data(), rests.data(), n_labels};
      const auto predict = [&](std::size_t, OneTree& tree) {
        tree.predict(samples_, rows.subspan(begin * width, size * width), are_plain, answers, *loan, stop);
      };
      if (pieces.n_rows() == 1) {
        predict_row(
            rows.data(), are_plain, stop_weight, [&](std::size_t) { return answers.at(0); }, *loan, stop, predict);
      } else {
        for (std::size_t k = 0; k < pieces.n_trees(task); ++k) {
          const std::size_t t = pieces.tree(task, k);
          with_tree(t, pieces.n_rows(), stop_weight, *loan, stop, [&](OneTree& tree) { predict(t, tree); });
          stop.tick(64 * size);
        }
      }
      if (!pieces.are_whole()) {
        sums.add(pieces.piece(task), begin, masses, rests);
        return;
      }
      for (std::size_t i = 0; i < size; ++i) {
        use(begin + i, std::span<const std::uint64_t>(masses).subspan(i * n_labels, n_labels), rests[i]);
      }
    };
  });
  if (pieces.are_whole()) return;
  const Pieces parts(pieces.n_rows(), 0, 1, call.n_threads(), 1);
  call.parallel_for(parts.n(), [&] {
    return [&](std::size_t part, StopProbe&) {
      for (std::size_t i = parts.begin(part), end = i + parts.size(part); i < end; ++i) {
        use(i, sums.masses(i), sums.rest(i));
      }
    };
  });
}

LabelForest::Answer LabelForest::answer_for(std::size_t n_rows) const {
  Answer answer;
  answer.hashes.reserve(ledger_.known().size());
  for (const Label label : ledger_.known()) answer.hashes.push_back(samples_.values().hash(label));
  answer.probabilities.resize(n_rows * answer.hashes.size());
  return answer;
}

void LabelForest::find_answer(std::span<const std::uint64_t> masses, std::uint64_t rest, const float* row,
                              const LevelEvidence& levels, const LabelCalibration& calibration,
                              std::span<double> probabilities) const {
  std::vector<double> evidence;
  if (calibration.level_power > 0.0) {
    evidence.resize(n_codes());
    levels.find(row, evidence);
  }
  find_probabilities(masses, rest, ledger_.known(), calibration, evidence, probabilities);
}

LabelForest::Answer LabelForest::predict(std::span<const float> rows, const LabelCalibration& calibration,
                                         const Call& call) const {
  check_calibration(calibration);
  const auto pass = gate_.reading();
  Answer answer = answer_for(n_rows(rows));
  const std::size_t n_known = answer.hashes.size(), width = options_.layout.width();
  const LevelEvidence levels = level_evidence();
  for_each_sum(rows, calibration.stop_weight, call,
               [&](std::size_t i, std::span<const std::uint64_t> masses, std::uint64_t rest) {
                 find_answer(masses, rest, rows.data() + i * width, levels, calibration,
                             std::span(answer.probabilities).subspan(i * n_known, n_known));
               });
  return answer;
}

std::vector<std::uint64_t> LabelForest::masses(std::span<const float> rows, Weight stop_weight,
                                               const Call& call) const {
  const auto pass = gate_.reading();
  const std::size_t n_labels = n_codes();
  std::vector<std::uint64_t> result(n_rows(rows) * (n_labels + 1));
  for_each_sum(rows, stop_weight, call, [&](std::size_t i, std::span<const std::uint64_t> masses, std::uint64_t rest) {
    std::ranges::copy(masses, result.begin() + static_cast<std::ptrdiff_t>(i * (n_labels + 1)));
    result[(i + 1) * (n_labels + 1) - 1] = rest;
  });
  return result;
}

LabelForest::Answer LabelForest::finish(std::span<const std::uint64_t> sums, std::size_t n_columns,
                                        std::span<const float> rows, const LabelCalibration& calibration) const {
  check_calibration(calibration);
  const auto pass = gate_.reading();
  const std::size_t n_labels = n_codes(), n = sums.size() / (n_labels + 1);
  require(n_columns == n_labels + 1, [&] {
    return "the sums have " + std::to_string(n_columns) + " columns instead of " + std::to_string(n_labels + 1) +
           ", one for each label and one for the rest";
  });
  require(n * n_columns == sums.size(), [&] {
    return "there are " + std::to_string(sums.size()) + " sums, which is not a multiple of the " +
           std::to_string(n_columns) + " columns";
  });
  const bool has_rows = !rows.empty() || calibration.level_power > 0.0;
  if (has_rows) (void)check_rows(rows);
  require(!has_rows || n_rows(rows) == n,
          [&] { return "there are " + std::to_string(n_rows(rows)) + " rows for the sums of " + std::to_string(n); });
  Answer answer = answer_for(n);
  const std::size_t n_known = answer.hashes.size(), width = has_rows ? options_.layout.width() : 0;
  const LevelEvidence levels = level_evidence();
  for (std::size_t i = 0; i < n; ++i) {
    const std::span<const std::uint64_t> of_row = sums.subspan(i * (n_labels + 1), n_labels + 1);
    find_answer(of_row.first(n_labels), of_row.back(), rows.data() + i * width, levels, calibration,
                std::span(answer.probabilities).subspan(i * n_known, n_known));
  }
  return answer;
}

template <class Use>
void LabelForest::for_each_left_out(std::span<const Slot> slots, Weight stop_weight, const Call& call, Use use) const {
  check_stop_weight(stop_weight);
  const std::size_t n_labels = n_codes();
  const Pieces pieces = pieces_of(slots.size(), n_labels * sizeof(std::uint64_t), call);
  grow_all_for(pieces.n_rows(), stop_weight, call);
  call.parallel_for(pieces.n(), [&] {
    return [&, loan = scratches_.lend()](std::size_t piece, StopProbe& stop) {
      const std::size_t begin = pieces.begin(piece), size = pieces.size(piece);
      std::vector<std::uint64_t> masses(size * n_labels, 0), rests(size, 0);
      std::vector<std::int64_t> n_trees(size, 0);
      const Labels::Answers answers{masses.data(), rests.data(), n_labels};
      for (std::size_t k = 0; k < trees_.size(); ++k) {
        const std::size_t each = pieces.tree(piece, k);
        if (!trees_[each]->tree.leaves_out()) continue;
        with_tree(each, pieces.n_rows(), stop_weight, *loan, stop, [&](OneTree& tree) {
          for (std::size_t i = 0; i < size; ++i) {
            const Slot slot = slots[begin + i];
            if (!may_be_left_out(slot) || tree.takes(samples_, slot)) continue;
            ++n_trees[i];
            tree.predict(samples_, {samples_.row(slot), options_.layout.width()}, false, answers.from(i), *loan, stop);
          }
        });
        stop.tick(64 * size);
      }
      for (std::size_t i = 0; i < size; ++i) {
        use(begin + i, std::span<const std::uint64_t>(masses).subspan(i * n_labels, n_labels), rests[i], n_trees[i]);
      }
    };
  });
}

LeftOutVotes LabelForest::left_out_votes(std::size_t begin_at, std::size_t end_at, StopRange range,
                                         const Call& call) const {
  const auto pass = gate_.reading();
  const std::size_t n_labels = n_codes(), width = options_.layout.width();
  const std::vector<Slot> slots = calibrators_.chosen(begin_at, end_at);
  const std::size_t n = slots.size();
  LeftOutVotes votes;
  votes.n_labels = n_labels;
  votes.stop_weights = stop_weights(ledger_.totals().total(), range);
  for (const auto& [label, weight] : ledger_.totals().entries()) votes.held.push_back(label);
  std::vector<float> rows;
  for (const Slot slot : slots) {
    votes.labels.push_back(samples_.value(slot));
    votes.weights.push_back(samples_.weight(slot));
    rows.insert(rows.end(), samples_.row(slot), samples_.row(slot) + width);
  }
  if (!levels_.empty()) {
    const LevelEvidence levels = level_evidence();
    votes.evidence.resize(n * n_labels);
    for (std::size_t i = 0; i < n; ++i) {
      levels.find(samples_.row(slots[i]), std::span(votes.evidence).subspan(i * n_labels, n_labels),
                  {votes.labels[i], votes.weights[i]});
    }
  }
  const std::size_t n_stops = votes.stop_weights.size();
  votes.all.resize(n_stops * n * (n_labels + 1));
  votes.half.resize(n_stops * n * (n_labels + 1));
  if (n_stops == 0) return votes;
  const Pieces pieces = pieces_of(n, 2 * n_stops * n_labels * sizeof(std::uint64_t), call);
  call.parallel_for(pieces.n(), [&] {
    return [&, loan = scratches_.lend()](std::size_t piece, StopProbe& stop) {
      const auto [masses, rests] = vote_sums(pieces, piece, rows, votes.stop_weights, *loan, stop);
      const std::size_t size = pieces.size(piece);
      for (std::size_t from = 0; from < n_stops * size; ++from) {
        const std::size_t at = (from / size * n + pieces.begin(piece) + from % size) * (n_labels + 1);
        const auto put = [&](std::size_t to, const auto& sums, std::size_t i) {
          votes.half[to] = sums[0][i];
          votes.all[to] = sums[0][i] + sums[1][i];
        };
        for (std::size_t c = 0; c < n_labels; ++c) put(at + c, masses, from * n_labels + c);
        put(at + n_labels, rests, from);
      }
    };
  });
  return votes;
}

LabelForest::VoteSums LabelForest::vote_sums(const Pieces& pieces, std::size_t piece, std::span<const float> rows,
                                             std::span<const Weight> stop_weights, Scratch& scratch,
                                             StopProbe& stop) const {
  const std::size_t n_labels = n_codes(), width = options_.layout.width();
  const std::size_t begin = pieces.begin(piece), size = pieces.size(piece);
  VoteSums sums;
  for (auto& each : sums.masses) each.resize(stop_weights.size() * size * n_labels);
  for (auto& each : sums.rests) each.resize(stop_weights.size() * size);
  std::array<std::vector<Labels::Answers>, 2> answers;
  for (const std::size_t part : {0, 1}) {
    const Labels::Answers all{sums.masses[part].data(), sums.rests[part].data(), n_labels};
    for (std::size_t k = 0; k < stop_weights.size(); ++k) answers[part].push_back(all.from(k * size));
  }
  for (std::size_t k = 0; k < trees_.size(); ++k) {
    const std::size_t each = pieces.tree(piece, k);
    if (!trees_[each]->tree.leaves_calibrators_out()) continue;
    const std::size_t part = is_half_voter(options_.first_tree + each) ? 0 : 1;
    with_tree_alone(each, pieces.n_rows(), scratch, stop, [&](OneTree& tree) {
      tree.predict_each(samples_, rows.subspan(begin * width, size * width), stop_weights, answers[part], scratch,
                        stop);
    });
    stop.tick(64 * size);
  }
  return sums;
}

LeftOutVotes LabelForest::left_out_votes_at(std::size_t n_seen, StopRange range, const Call& call) const {
  return LabelForest(state_at(save(), n_seen)).left_out_votes(0, kAllCalibrators, range, call);
}

LeftOutVotes LabelForest::left_out_votes_after(std::span<const float> rows, std::span<const Label> labels,
                                               std::span<const Weight> weights, StopRange range,
                                               const Call& call) const {
  LabelForest next(save());
  next.learn(rows, labels, weights, call);
  return next.left_out_votes(0, kAllCalibrators, range, call);
}

LabelForest::LeftOut LabelForest::predict_left_out(Weight stop_weight, const Call& call) const {
  const auto pass = gate_.reading();
  const std::size_t n_known = ledger_.known().size();
  std::vector<Slot> slots(samples_.n_slots());
  std::iota(slots.begin(), slots.end(), Slot{0});
  std::vector<double> by_slot(slots.size() * n_known, std::numeric_limits<double>::quiet_NaN());
  std::vector<std::int64_t> n_trees(slots.size(), 0);
  for_each_left_out(slots, stop_weight, call,
                    [&](std::size_t i, std::span<const std::uint64_t> masses, std::uint64_t rest, std::int64_t n) {
                      n_trees[i] = n;
                      if (n == 0) return;
                      find_probabilities(masses, rest, ledger_.known(), {}, {},
                                         std::span(by_slot).subspan(i * n_known, n_known));
                    });
  LeftOut result;
  for (const Slot slot : arrivals(0, sample_of_.size())) {
    const auto at = static_cast<std::size_t>(slot);
    const std::span<const double> probabilities = std::span(by_slot).subspan(at * n_known, n_known);
    result.probabilities.insert(result.probabilities.end(), probabilities.begin(), probabilities.end());
    result.n_trees.push_back(n_trees[at]);
  }
  return result;
}

LabelForest::LeftOutMasses LabelForest::left_out_masses(std::size_t begin, std::size_t end, Weight stop_weight,
                                                        const Call& call) const {
  const auto pass = gate_.reading();
  const std::vector<Slot> slots = arrivals(begin, end);
  const std::size_t width = n_codes() + 1;
  LeftOutMasses result{std::vector<std::uint64_t>(slots.size() * width), std::vector<std::int64_t>(slots.size())};
  for_each_left_out(slots, stop_weight, call,
                    [&](std::size_t i, std::span<const std::uint64_t> masses, std::uint64_t rest, std::int64_t n) {
                      std::ranges::copy(masses, result.masses.begin() + static_cast<std::ptrdiff_t>(i * width));
                      result.masses[(i + 1) * width - 1] = rest;
                      result.n_trees[i] = n;
                    });
  return result;
}

}  // namespace onlineforest::orderfree
