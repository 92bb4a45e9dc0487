// The order-free forest of labels. Must not know Python.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "orderfree/forest/forest.hpp"
#include "orderfree/forest/stop_weights.hpp"
#include "orderfree/labels/calibration.hpp"
#include "orderfree/labels/labels.hpp"
#include "orderfree/labels/tree.hpp"

namespace onlineforest::orderfree {

class LabelForest : public Forest<Labels> {
 public:
  using Forest::Forest;

  // Restores a forest from a state. Throws std::invalid_argument if the state is invalid, TooLarge if the estimated
  // memory of the fully grown forest exceeds `max_bytes`. Trees are grown at their first use.
  explicit LabelForest(const State& state, std::size_t max_bytes = std::numeric_limits<std::size_t>::max());

  // Sets the labels: the label of hashes[i] gets the code i. The labels that are known keep their codes.
  void set_labels(std::span<const Word> hashes, std::span<const std::uint8_t> are_declared);

  // The hashes of the known labels in the order of their codes, and for each row the probabilities of these labels.
  struct Answer {
    std::vector<Word> hashes;
    std::vector<double> probabilities;
  };
  [[nodiscard]] Answer predict(std::span<const float> rows, const LabelCalibration& calibration,
                               const Call& call) const;

  // The votes about the calibrators [begin, end) in the order of their keys, or up to the last one if there are fewer,
  // with the stop weights of a range. Splits only the blocks that these calibrators enter.
  [[nodiscard]] LeftOutVotes left_out_votes(std::size_t begin, std::size_t end, StopRange range,
                                            const Call& call) const;
  // The votes of the earlier forest of the first `n_seen` samples. No sample may have been forgotten since. Grows the
  // trees that vote a second time, in a copy.
  [[nodiscard]] LeftOutVotes left_out_votes_at(std::size_t n_seen, StopRange range, const Call& call) const;
  // The votes of a copy of this forest that has learned these samples, too. Grows the trees that vote a second time.
  [[nodiscard]] LeftOutVotes left_out_votes_after(std::span<const float> rows, std::span<const Label> labels,
                                                  std::span<const Weight> weights, StopRange range,
                                                  const Call& call) const;

  // The left-out prediction of each stored sample, in the order of serials(): probabilities from the trees that have
  // not learned it, and the number of these trees. Probabilities are NaN where there is no such tree.
  struct LeftOut {
    std::vector<double> probabilities;
    std::vector<std::int64_t> n_trees;
  };
  [[nodiscard]] LeftOut predict_left_out(Weight stop_weight, const Call& call) const;

  // Sums over the trees of a shard: for each row the mass of each label, then the rest. The sums of the shards of a
  // forest add up to the sums of the forest.
  [[nodiscard]] std::vector<std::uint64_t> masses(std::span<const float> rows, Weight stop_weight,
                                                  const Call& call) const;
  // Turns masses(), summed over all trees of a forest, into probabilities. `n_columns` is the number of sums of each
  // row. The rows may be empty if the level power is 0.
  [[nodiscard]] Answer finish(std::span<const std::uint64_t> sums, std::size_t n_columns, std::span<const float> rows,
                              const LabelCalibration& calibration) const;

  // For the arrivals [begin, end) in the order of serials(): the sums over the trees that have not learned the sample,
  // laid out as in masses(), and the number of these trees.
  struct LeftOutMasses {
    std::vector<std::uint64_t> masses;
    std::vector<std::int64_t> n_trees;
  };
  [[nodiscard]] LeftOutMasses left_out_masses(std::size_t begin, std::size_t end, Weight stop_weight,
                                              const Call& call) const;

  [[nodiscard]] std::int32_t n_labels() const {  // number of labels that have a code
    const auto pass = gate_.reading();
    return samples_.values().n_labels();
  }
  // The total weight of the stored samples of each label, by code.
  [[nodiscard]] std::vector<double> label_weights() const {
    const auto pass = gate_.reading();
    std::vector<double> result(n_codes(), 0.0);
    for (const auto& [label, weight] : ledger_.totals().entries()) {
      result[static_cast<std::size_t>(label)] = multiplicity(weight);
    }
    return result;
  }
  [[nodiscard]] std::vector<Word> known_labels() const {  // hashes of the known labels, in the order of codes
    const auto pass = gate_.reading();
    return answer_for(0).hashes;
  }
  template <class Visit>
  static void for_each_property(Visit visit) {
    Forest::for_each_property(visit);
    visit("n_labels", &LabelForest::n_labels);
    visit("label_weights", &LabelForest::label_weights);
  }

 private:
  [[nodiscard]] std::size_t n_codes() const { return static_cast<std::size_t>(samples_.values().n_labels()); }
  [[nodiscard]] LevelEvidence level_evidence() const { return {levels_, ledger_.totals(), n_codes()}; }
  // Computes the probabilities of a row. `row` may be null if the level power is 0.
  void find_answer(std::span<const std::uint64_t> masses, std::uint64_t rest, const float* row,
                   const LevelEvidence& levels, const LabelCalibration& calibration,
                   std::span<double> probabilities) const;
  // An answer with room for the probabilities of `n_rows` rows, which the caller fills in.
  [[nodiscard]] Answer answer_for(std::size_t n_rows) const;
  // The votes about the rows of a piece: for each stop weight, the masses of labels and the rest of each row. The first
  // entries are sums over the half voters, the second over the other left-out voters.
  struct VoteSums {
    std::array<std::vector<std::uint64_t>, 2> masses, rests;
  };
  [[nodiscard]] VoteSums vote_sums(const Pieces& pieces, std::size_t piece, std::span<const float> rows,
                                   std::span<const Weight> stop_weights, Scratch& scratch, StopProbe& stop) const;
  // Calls use(i, masses, rest) for each row i.
  template <class Use>
  void for_each_sum(std::span<const float> rows, Weight stop_weight, const Call& call, Use use) const;
  // Calls use(i, masses, rest, n_trees) for each slots[i], with the sums over the trees that have not learned it.
  template <class Use>
  void for_each_left_out(std::span<const Slot> slots, Weight stop_weight, const Call& call, Use use) const;
};

}  // namespace onlineforest::orderfree
