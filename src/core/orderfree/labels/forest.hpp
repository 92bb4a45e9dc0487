// The order-free forest of labels. Must not know Python.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "orderfree/forest/forest.hpp"
#include "orderfree/labels/calibration.hpp"
#include "orderfree/labels/labels.hpp"
#include "orderfree/labels/tree.hpp"

namespace onlineforest::orderfree {

class LabelForest : public Forest<Labels> {
 public:
  using Forest::Forest;

  // Restores a forest. Throws std::invalid_argument if the state is not that of a forest, TooLarge if the grown forest
  // would need more than max_bytes, about. The trees are grown when they are first used.
  explicit LabelForest(const State& state, std::size_t max_bytes = std::numeric_limits<std::size_t>::max());

  // Gives labels the codes 0, 1, ... `hashes` are those of all labels; the first ones keep their codes.
  void set_labels(std::span<const Word> hashes, std::span<const std::uint8_t> are_declared);

  // The labels that are known, in the order of their codes, and for each row the probabilities of these labels.
  struct Answer {
    std::vector<Word> hashes;
    std::vector<double> probabilities;
  };
  [[nodiscard]] Answer predict(std::span<const float> rows, const LabelCalibration& calibration,
                               const Call& call) const;

  // What the trees that leave out the samples that calibrate say about them, those [begin, end) or as many as there
  // are, in the order of their keys. To ask for some of them splits the blocks that they need.
  [[nodiscard]] LeftOutVotes left_out_votes(std::size_t begin, std::size_t end, const Call& call) const;
  // Those of this forest when it had seen n_seen samples. None may have been forgotten since. Grows the trees that vote
  // a second time.
  [[nodiscard]] LeftOutVotes left_out_votes_at(std::size_t n_seen, const Call& call) const;
  // Those of this forest if it learned these samples next; it does not. Grows the trees that vote a second time.
  [[nodiscard]] LeftOutVotes left_out_votes_after(std::span<const float> rows, std::span<const Label> labels,
                                                  std::span<const Weight> weights, const Call& call) const;

  // Probabilities of each sample held, in the order of serials(), from the trees that have not learned it; and the
  // number of these trees. NaN where there are none.
  struct LeftOut {
    std::vector<double> probabilities;
    std::vector<std::int64_t> n_trees;
  };
  [[nodiscard]] LeftOut predict_left_out(const Call& call) const;

  // Sums over the trees of a shard, which can be added up: for each row the mass of each label, then the rest.
  [[nodiscard]] std::vector<std::uint64_t> masses(std::span<const float> rows, const Call& call) const;
  // The answer that such sums over all trees of a forest give.
  // `n_columns` are the numbers of each row.
  [[nodiscard]] Answer finish(std::span<const std::uint64_t> sums, std::size_t n_columns,
                              const LabelCalibration& calibration) const;

  // Sums over the trees that have not learned a sample, and their number, for the arrivals [begin, end) in the order of
  // serials().
  struct LeftOutMasses {
    std::vector<std::uint64_t> masses;
    std::vector<std::int64_t> n_trees;
  };
  [[nodiscard]] LeftOutMasses left_out_masses(std::size_t begin, std::size_t end, const Call& call) const;

  [[nodiscard]] std::int32_t n_labels() const {  // labels that have a code
    const auto pass = gate_.reading();
    return samples_.values().n_labels();
  }
  [[nodiscard]] std::vector<double> label_weights() const {  // of the samples held, by code
    const auto pass = gate_.reading();
    std::vector<double> result(n_codes(), 0.0);
    for (const auto& [label, weight] : ledger_.totals().entries()) {
      result[static_cast<std::size_t>(label)] = multiplicity(weight);
    }
    return result;
  }
  [[nodiscard]] std::vector<Word> known_labels() const {  // the hashes of the labels that are known, by code
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
  // The answer for rows whose probabilities are not filled in yet.
  [[nodiscard]] Answer answer_for(std::size_t n_rows) const;
  // The answers of trees that vote about the rows of a piece: the masses of labels and the rest of each row, summed
  // over the trees that are half voters and over the others.
  struct VoteSums {
    std::array<std::vector<std::uint64_t>, 2> masses, rests;
  };
  [[nodiscard]] VoteSums vote_sums(const Pieces& pieces, std::size_t piece, std::span<const float> rows, bool are_plain,
                                   Scratch& scratch, StopProbe& stop) const;
  // Calls use(i, masses, rest) for each row i.
  template <class Use>
  void for_each_sum(std::span<const float> rows, const Call& call, Use use) const;
  // Calls use(i, masses, rest, n_trees) for each slots[i], with the sums over the trees that have not learned it.
  template <class Use>
  void for_each_left_out(std::span<const Slot> slots, const Call& call, Use use) const;
};

}  // namespace onlineforest::orderfree
