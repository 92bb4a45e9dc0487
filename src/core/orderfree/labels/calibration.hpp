// Calibrates the probabilities of labels on samples that some trees have left out. Must not know trees.
//
// The mean of many trees is too cautious. So each probability p becomes p^power, divided by the sum over all labels. A
// share, `spread`, is then distributed evenly over the labels: n calibrators cannot measure probabilities much below
// 1/n. The calibrators choose the stop weight of the trees, too, and how much the evidence of levels counts: before the
// division, p^power is multiplied by 2^(level_power * evidence).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "orderfree/labels/counts.hpp"

namespace onlineforest::orderfree {

struct LabelCalibration {
  double power = 1.0;
  double spread = 0.0;       // the share that is spread evenly over the known labels
  Weight stop_weight = 0;    // with which trees predict
  double level_power = 0.0;  // 0 if the evidence of levels does not count

  [[nodiscard]] bool is_none() const { return power == 1.0 && spread == 0.0 && level_power == 0.0; }
};

// Bounds of a calibration. find_calibration() finds powers between 0.046 and 87.
inline constexpr double kLeastPower = 0x1p-5, kMostPower = 0x1p7, kMostSpread = 1.0, kMostLevelPower = 2.0;

// A forest of fewer trees has no calibration: each of its trees must learn all samples.
inline constexpr std::size_t kFewestTreesToCalibrate = 10;

// Whether a tree is a left-out voter, which leaves out the calibrators: half of the first ten trees, then every fourth.
[[nodiscard]] constexpr bool is_left_out_voter(std::size_t tree) { return tree % (tree < 10 ? 2 : 4) == 0; }
// Whether a tree is a half voter: about half of the left-out voters.
[[nodiscard]] constexpr bool is_half_voter(std::size_t tree) { return tree % (tree < 10 ? 4 : 8) == 0; }

// Throws std::invalid_argument if a number is out of range.
void check_calibration(const LabelCalibration& calibration);

// The predictions of the left-out voters for the calibrators, with several stop weights. `all` and `half` hold, for
// each stop weight and each calibrator, the mass of each of `n_labels` labels, then the rest. The votes of the shards
// of a forest are summed entry by entry.
struct LeftOutVotes {
  std::size_t n_labels = 0;
  std::vector<Label> held;    // the labels of all samples that the forest holds
  std::vector<Label> labels;  // the true label of each calibrator, in the order of keys
  std::vector<Weight> weights;
  std::vector<Weight> stop_weights;
  std::vector<std::uint64_t> all;   // sums over all left-out voters
  std::vector<std::uint64_t> half;  // sums over the half voters
  // The evidence of the levels of each calibrator for each of `n_labels` labels, without the calibrator itself. Empty
  // if there are no categorical features. The same in all shards.
  std::vector<double> evidence;
};

// Computes the calibrated probabilities of the known labels from their masses. The rest is spread evenly over the known
// labels. probabilities[k] is for known[k]. The probability of a label does not depend on the order of labels.
// `evidence` is that of the levels of the row for each label; it may be empty if the level power is 0.
void find_probabilities(std::span<const std::uint64_t> masses, std::uint64_t rest, std::span<const Label> known,
                        const LabelCalibration& calibration, std::span<const double> evidence,
                        std::span<double> probabilities);

// Copies the probability of each known label to by_code[code]. The other entries keep their values.
void put_by_code(std::span<const double> probabilities, std::span<const Label> known, std::span<double> by_code);

// The number of left-out voters among `n_trees` trees.
[[nodiscard]] std::size_t n_left_out_voters(std::size_t n_trees);

// Throws std::invalid_argument if arrays have the wrong size, or a label or an evidence is out of range.
void check_votes(const LeftOutVotes& votes);

// The calibrations of the mean of all trees of a forest, and of the mean of its left-out voters.
struct FoundCalibration {
  LabelCalibration of_all, of_voters;
};

// The loss of each stop weight of votes: the log loss of every second calibrator after the best power, plus a penalty
// that grows with the stop weight. The least loss is best; the other calibrators remain to give the thresholds of sets.
[[nodiscard]] std::vector<double> losses_of_stops(const LeftOutVotes& votes);

// Fits the calibration of a forest of `n_trees` trees to votes with one stop weight. The samples of the votes must be
// in an order that does not depend on the order of arrival. Returns no calibration if samples, held labels or trees are
// too few. Declared labels without samples do not count.
[[nodiscard]] FoundCalibration find_calibration(const LeftOutVotes& votes, std::size_t n_trees);

// The calibrated probabilities of the samples of votes with one stop weight: `n_labels` for each sample, by label code.
[[nodiscard]] std::vector<double> probabilities_by(const LeftOutVotes& votes, const LabelCalibration& calibration);

}  // namespace onlineforest::orderfree
