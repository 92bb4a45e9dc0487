// How the probabilities of labels are calibrated by samples that some trees have left out. Must not know trees.
//
// The mean of many trees is too cautious. So each probability p becomes p^power over the sum of all, and a share of all
// is spread evenly, because samples that calibrate tell nothing about chances much smaller than one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "orderfree/labels/counts.hpp"

namespace onlineforest::orderfree {

struct LabelCalibration {
  double power = 1.0;
  double spread = 0.0;  // the share that is spread evenly over the known labels

  [[nodiscard]] bool is_none() const { return power == 1.0 && spread == 0.0; }
};

// Bounds of a calibration. find_calibration() finds powers between 0.046 and 87.
inline constexpr double kLeastPower = 0x1p-5, kMostPower = 0x1p7, kMostSpread = 1.0;

// With fewer trees, none can be spared to leave out the samples that calibrate.
inline constexpr std::size_t kFewestTreesToCalibrate = 10;

// Whether a tree leaves out the samples that calibrate: half of the first ten trees, then every fourth.
[[nodiscard]] constexpr bool is_left_out_voter(std::size_t tree) { return tree % (tree < 10 ? 2 : 4) == 0; }
// Whether it is one of about half of these.
[[nodiscard]] constexpr bool is_half_voter(std::size_t tree) { return tree % (tree < 10 ? 4 : 8) == 0; }

// Throws std::invalid_argument if a number is out of range.
void check_calibration(const LabelCalibration& calibration);

// What trees say about samples that they have left out: the mass of each of `n_labels` labels, then the rest, for each
// sample. Votes of the shards of a forest can be added up.
struct LeftOutVotes {
  std::size_t n_labels = 0;
  std::vector<Label> held;    // the labels of all samples that the forest holds
  std::vector<Label> labels;  // the true ones
  std::vector<Weight> weights;
  std::vector<std::uint64_t> all;   // sums over all trees that leave these samples out
  std::vector<std::uint64_t> half;  // sums over half of these trees
};

// The probabilities of labels, given their masses and the rest, which is uniform over the known labels. `probabilities`
// has one place for each known label, in their order. A label's probability does not depend on the order of labels.
void find_probabilities(std::span<const std::uint64_t> masses, std::uint64_t rest, std::span<const Label> known,
                        const LabelCalibration& calibration, std::span<double> probabilities);

// Copies the probability of each known label to the place of its code. Other places keep their values.
void put_by_code(std::span<const double> probabilities, std::span<const Label> known, std::span<double> by_code);

// How many of so many trees leave out the samples that calibrate.
[[nodiscard]] std::size_t n_left_out_voters(std::size_t n_trees);

// Throws std::invalid_argument if sizes do not fit, or a label is out of range.
void check_votes(const LeftOutVotes& votes);

// Calibrations of what all trees of a forest say together, and of what those say that vote.
struct FoundCalibration {
  LabelCalibration of_all, of_voters;
};

// The calibration of a forest of n_trees, by votes about samples in an order that does not depend on that of their
// arrival. None if they are too few. Declared labels without samples do not count.
[[nodiscard]] FoundCalibration find_calibration(const LeftOutVotes& votes, std::size_t n_trees);

// The probabilities that votes give their samples: n_labels for each.
[[nodiscard]] std::vector<double> probabilities_by(const LeftOutVotes& votes, const LabelCalibration& calibration);

}  // namespace onlineforest::orderfree
