#include "orderfree/labels/ballot.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "orderfree/labels/labels.hpp"

namespace onlineforest::orderfree {

void Ballot::keep(const Panel<Labels>& panel) {
  clear();
  if (!panel.is_light() || !panel.has_distinct_x() || panel.has_missing() || panel.size() < kMostDeciding) return;
  if (panel.layout().is_wide()) return;
  totals_ = panel.judge().totals();
  entries_.reserve(panel.proposals().size());
  for (std::size_t q = 0; q < panel.proposals().size(); ++q) {
    const Neighbours n_differing = panel.judge().differing()[q];
    entries_.push_back({panel.proposals()[q], panel.judge().sides()[q], n_differing > 0, n_differing});
  }
}

bool Ballot::is_open_to(const Samples& samples, std::span<const Slot> seats, Slot slot) const {
  const float* const row = samples.row(slot);
  if (samples.has_missing() && std::any_of(row, row + samples.layout().n_numeric(), is_missing)) return false;
  const Word hash = samples.x_hash(slot);
  return LightWeights::may_be(static_cast<Weight>(totals_.weight) * kOne + samples.weight(slot)) &&
         std::ranges::none_of(seats, [&](Slot other) { return samples.x_hash(other) == hash; });
}

// Updates the proposals after one deciding sample was replaced by another.
class Ballot::Replacement {
 public:
  Replacement(const Samples& samples, const Order& order, std::span<const Slot> seats, std::size_t seat, Slot leaving,
              int old_weight)
      : samples_(samples),
        order_(order),
        seats_(seats),
        seat_(seat),
        coming_(seats[seat]),
        leaving_(leaving),
        old_weight_(old_weight),
        new_weight_(LightWeights::whole(samples.weight(coming_))),
        place_(order.place(coming_)) {
    const Label left = samples.value(leaving), came = samples.value(coming_);
    for (std::size_t i = 0; i < seats.size(); ++i) {
      const Label label = samples.value(seats[i]);
      like_leaving_ |= static_cast<Block>(label == left) << i;
      like_coming_ |= static_cast<Block>(label == came) << i;
      weights_.set(i, samples.weight(seats[i]));
    }
    like_leaving_ &= ~(Block{1} << seat);
    like_coming_ &= ~(Block{1} << seat);
  }

  void update(LabelTotals& totals) const {
    totals.weight += new_weight_ - old_weight_;
    totals.squares += share(like_coming_, new_weight_) - share(like_leaving_, old_weight_);
    totals.n_squares += 2 * (std::popcount(like_coming_) - std::popcount(like_leaving_));
  }

  void update(Entry& entry, bool is_pair, Word seed) {
    Proposal& proposal = entry.proposal;
    LabelSides& sides = entry.sides;
    const std::int32_t cell = proposal.split.cell;
    if (is_pair ? is_other_pair(proposal, seed) : is_other_range(proposal, seed) || is_other_feature(proposal, seed)) {
      propose(proposal, is_pair, seed);
      count(proposal, sides);
      if (proposal.split.cell != cell) entry.forget_count();
      lose_count(entry);
      return;
    }
    lose_count(entry);
    const Block bit = Block{1} << seat_;
    if ((proposal.left & bit) != 0) {
      proposal.left &= ~bit;
      sides.n_left = static_cast<std::uint8_t>(sides.n_left - old_weight_);
      sides.squares_left -= share(proposal.left & like_leaving_, old_weight_);
    } else {
      sides.squares_right -= share(~proposal.left & like_leaving_, old_weight_);
    }
    if (sends_left(proposal.split, {}, samples_.row(coming_))) {
      sides.squares_left += share(proposal.left & like_coming_, new_weight_);
      proposal.left |= bit;
      sides.n_left = static_cast<std::uint8_t>(sides.n_left + new_weight_);
    } else {
      sides.squares_right += share(~proposal.left & like_coming_, new_weight_);
    }
  }

 private:
  // A sample has two neighbours, so one that leaves and one that comes change the number of differing neighbours by at
  // most two, either way. Shares of neighbours are rounded down, which may change it a little more. Levels have no
  // order, and one sample may change all their neighbours.
  static void lose_count(Entry& entry) {
    constexpr Neighbours kMostChange = 2 * kOneNeighbour + 2 * kMostDeciding;
    entry.is_counted = false;
    const bool may_be_none = entry.proposal.split.is_of_levels || entry.fewest_differing < kMostChange;
    entry.fewest_differing = may_be_none ? 0 : entry.fewest_differing - kMostChange;
  }

  // A sample of weight w adds (n + w)^2 - n^2 to a sum of squares, where n is the weight of the other samples of its
  // label.
  [[nodiscard]] int share(Block others, int w) const { return w * (2 * weights_.of(others) + w); }

  [[nodiscard]] const Layout& layout() const { return samples_.layout(); }
  [[nodiscard]] float x(Slot slot, std::int32_t cell) const { return samples_.row(slot)[cell]; }
  [[nodiscard]] Level level(Slot slot, std::int32_t cell) const { return level_at(samples_.row(slot) + cell); }

  // Whether the seed may now draw another pair. If a sample of the pair leaves, the new sample has its seat, and
  // comes_before() is true of it.
  [[nodiscard]] bool is_other_pair(const Proposal& proposal, Word seed) const {
    const Slot first = seats_[proposal.first], second = seats_[proposal.second];
    if (comes_before(first, derive(seed, of_proposal::kFirst))) return true;
    const Label label = samples_.value(first);
    if (samples_.value(coming_) == label) return samples_.value(second) == label;
    return samples_.value(second) == label || comes_before(second, derive(seed, of_proposal::kSecond));
  }
  // Whether the new sample comes before the other one in the order of the circle that begins at `from`, or is that one.
  [[nodiscard]] bool comes_before(Slot other, Word from) const { return place_ - from <= order_.place(other) - from; }

  // Whether the range of the feature, or the pair of levels, may have changed.
  [[nodiscard]] bool is_other_range(const Proposal& proposal, Word seed) const {
    const std::int32_t cell = proposal.split.cell;
    if (proposal.split.is_of_levels) {
      const Slot first = seats_[proposal.first], second = seats_[proposal.second];
      if (comes_before(first, derive(seed, of_proposal::kFirst))) return true;
      const Level of_first = level(first, cell);
      if (level(second, cell) == of_first) return true;  // the second sample has left
      return level(coming_, cell) != of_first && comes_before(second, derive(seed, of_proposal::kSecond));
    }
    const float came = x(coming_, cell), left = x(leaving_, cell);
    return came < proposal.low || came > proposal.high || left <= proposal.low || left >= proposal.high;
  }
  // Whether the seed may now draw another feature. The seed gives an order of features and takes the first one that is
  // not constant. A feature that was constant varies now only if the new sample differs in it from the one that leaves.
  [[nodiscard]] bool is_other_feature(const Proposal& proposal, Word seed) const {
    const auto feature = static_cast<std::int32_t>(layout().feature_of(static_cast<std::size_t>(proposal.split.cell)));
    const float *const came = samples_.row(coming_), *const left = samples_.row(leaving_);
    if (layout().n_categorical == 0) {  // a shortcut: each feature has one cell
      const auto is_fit = [&](std::int32_t d) { return d == feature || came[d] != left[d]; };
      return first_fit(seed, layout().n_features, is_fit) != feature;
    }
    const auto is_fit = [&](std::int32_t d) { return d == feature || differ(layout(), d, came, left, true); };
    return first_fit(seed, layout().n_features, is_fit) != feature;
  }

  void propose(Proposal& proposal, bool is_pair, Word seed) {
    look_at_all();
    if (is_pair) {
      const std::size_t i = first_from(derive(seed, of_proposal::kFirst), [](std::size_t) { return true; });
      const auto is_rival = [&](std::size_t k) { return labels_[k] != labels_[i]; };
      const auto is_other = [&](std::size_t k) { return k != i; };
      const Word place = derive(seed, of_proposal::kSecond);
      std::size_t j = first_from(place, is_rival);
      if (j == kNone) j = first_from(place, is_other);
      proposal.first = static_cast<std::uint8_t>(i);
      proposal.second = static_cast<std::uint8_t>(j);
      proposal.split = draw_between(seed, rows_[i], rows_[j], layout());
    } else {
      const auto varies = [&](std::int32_t d) {
        return std::ranges::any_of(rows_, [&](const float* row) { return differ(layout(), d, row, rows_[0], true); });
      };
      const auto for_each_varying = [&](auto use) { std::ranges::for_each(varying_features(rows_, layout()), use); };
      const std::int32_t feature = draw_feature(seed, layout().n_features, varies, for_each_varying);
      const std::size_t k = layout().cell_of(static_cast<std::size_t>(feature));
      const auto cell = static_cast<std::int32_t>(k);
      if (layout().is_categorical(static_cast<std::size_t>(feature))) {
        const std::size_t i = first_from(derive(seed, of_proposal::kFirst), [](std::size_t) { return true; });
        const Level level = level_at(rows_[i] + k);
        const auto is_other = [&](std::size_t other) { return level_at(rows_[other] + k) != level; };
        const std::size_t j = first_from(derive(seed, of_proposal::kSecond), is_other);
        proposal.first = static_cast<std::uint8_t>(i);
        proposal.second = static_cast<std::uint8_t>(j);
        proposal.split = draw_level_split(seed, cell, level, level_at(rows_[j] + k));
        return;
      }
      find_range(proposal, cell);
      proposal.split = draw_split(seed, cell, proposal.low, proposal.high);
    }
  }

  void look_at_all() {
    if (has_looked_) return;
    has_looked_ = true;
    groups_.clear();
    for (std::size_t i = 0; i < kMostDeciding; ++i) {
      rows_[i] = samples_.row(seats_[i]);
      labels_[i] = samples_.value(seats_[i]);
      places_[i] = order_.place(seats_[i]);
      groups_.add(i, LabelHashes::word(labels_[i]));
    }
  }

  static constexpr std::size_t kNone = kMostDeciding;

  // The seat of the first fit sample in the order of the circle that begins at `from`; kNone if no sample is fit.
  template <class IsFit>
  [[nodiscard]] std::size_t first_from(Word from, IsFit is_fit) const {
    std::size_t best = kNone;
    for (std::size_t i = 0; i < kMostDeciding; ++i) {
      if (!is_fit(i)) continue;
      if (best == kNone || order_.less(places_[i] - from, seats_[i], places_[best] - from, seats_[best])) best = i;
    }
    return best;
  }

  void find_range(Proposal& proposal, std::int32_t cell) const {
    proposal.low = proposal.high = rows_[0][cell];
    for (const float* const row : rows_) {
      proposal.low = std::min(proposal.low, row[cell]);
      proposal.high = std::max(proposal.high, row[cell]);
    }
  }

  void count(Proposal& proposal, LabelSides& sides) const {
    proposal.left = 0;
    for (std::size_t i = 0; i < kMostDeciding; ++i) {
      proposal.left |= static_cast<Block>(sends_left(proposal.split, {}, rows_[i])) << i;
    }
    int left = 0, right = 0;
    for (std::size_t c = 0; c < groups_.size(); ++c) {
      const int n_left = weights_.of(groups_.block(c) & proposal.left);
      const int n_right = weights_.of(groups_.block(c) & ~proposal.left);
      left += n_left * n_left;
      right += n_right * n_right;
    }
    sides.n_left = static_cast<std::uint8_t>(weights_.of(proposal.left));
    sides.squares_left = static_cast<std::uint16_t>(left);
    sides.squares_right = static_cast<std::uint16_t>(right);
  }

  const Samples& samples_;
  const Order& order_;
  std::span<const Slot> seats_;
  std::size_t seat_;
  Slot coming_, leaving_;
  int old_weight_, new_weight_;
  LightWeights weights_;
  Word place_;                                // place of the new sample
  Block like_leaving_ = 0, like_coming_ = 0;  // the other samples with the label of the leaving and of the new sample
  // Rows, labels and places of all deciding samples. look_at_all() fills them when the first proposal is drawn again.
  bool has_looked_ = false;
  std::array<const float*, kMostDeciding> rows_;
  std::array<Label, kMostDeciding> labels_;
  std::array<Word, kMostDeciding> places_;
  Groups groups_;
};

void Ballot::replace(const Samples& samples, const Order& order, Word seed, std::span<Slot> seats, std::size_t seat,
                     Slot slot, Weight old_weight) {
  const Slot leaving = std::exchange(seats[seat], slot);
  Replacement replacement(samples, order, seats, seat, leaving, LightWeights::whole(old_weight));
  replacement.update(totals_);
  for (std::uint32_t q = 0; q < entries_.size(); ++q) {
    replacement.update(entries_[q], is_between(q), derive(seed, of_node::kProposal + q));
  }
}

// The deciding samples along features.
class Ballot::Neighbourhood {
 public:
  Neighbourhood(const Samples& samples, std::span<const Slot> seats) : samples_(samples), seats_(seats) {}

  [[nodiscard]] Neighbours differing(const Split& split, const LabelTotals& totals) {
    if (groups_.size() == 0) {
      for (std::size_t i = 0; i < seats_.size(); ++i) groups_.add(i, LabelHashes::word(samples_.value(seats_[i])));
    }
    if (split.is_of_levels) {
      Groups levels;
      for (std::size_t i = 0; i < seats_.size(); ++i) levels.add(i, level_at(cells(i, split)));
      return differing_neighbours(levels, kAll, groups_, totals);
    }
    std::array<float, kMostDeciding> column;
    for (std::size_t i = 0; i < seats_.size(); ++i) column[i] = *cells(i, split);
    order_.sort(kAll, column.data());
    return differing_neighbours(order_, kAll, groups_);
  }

 private:
  static constexpr Block kAll = ~Block{0};

  [[nodiscard]] const float* cells(std::size_t i, const Split& split) const {
    return samples_.row(seats_[i]) + split.cell;
  }

  const Samples& samples_;
  std::span<const Slot> seats_;
  Groups groups_;
  FeatureOrder order_;
};

void Ballot::count(const Split& split, Neighbourhood& neighbourhood) {
  const Neighbours n_differing = neighbourhood.differing(split, totals_);
  for (Entry& entry : entries_) {
    if (entry.proposal.split.cell != split.cell) continue;
    entry.is_counted = true;
    entry.fewest_differing = n_differing;
  }
}

// No score is greater than that of the fewest differing neighbours. A finalist that is best by these scores is the best
// of all when its neighbours are counted.
Split Ballot::best(const Samples& samples, std::span<const Slot> seats) {
  const int total = static_cast<int>(totals_.weight);
  std::array<double, LabelJudge::kMostProposals> purities;
  for (std::size_t q = 0; q < entries_.size(); ++q) purities[q] = entries_[q].sides.purity(total);
  const Finalists finalists({purities.data(), entries_.size()});
  Neighbourhood neighbourhood(samples, seats);
  const auto score_of = [&](std::size_t q) { return totals_.score(purities[q], entries_[q].fewest_differing); };
  for (;;) {
    const Entry& best =
        entries_[finalists.best([&](std::size_t q) { return totals_.score(purities[q], 0); }, score_of)];
    Split split = best.proposal.split;
    if (best.is_counted) {
      split.missing_left = 2 * best.sides.n_left >= total;
      return split;
    }
    count(split, neighbourhood);
  }
}

}  // namespace onlineforest::orderfree
