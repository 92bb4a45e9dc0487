#include "guided/panel.hpp"

#include <algorithm>
#include <limits>

#include "base/simd.hpp"

namespace onlineforest::guided {

namespace {

constexpr int kFew = 12;  // a block of so few samples is looked at one by one
constexpr Block kWhole = ~Block{0};

}  // namespace

void Panel::load(const SampleStore& samples, const RankOrder& order, std::span<const Slot> slots) {
  n_ = slots.size();
  n_features_ = samples.n_features();
  n_labels_ = 0;
  total_ = 0;
  light_.clear();
  has_columns_ = false;
  ranged_ = gathered_ = 0;
  sort(order, slots);
  positions_.resize(static_cast<std::size_t>(samples.n_labels()), 0);
  for (std::size_t i = 0; i < n_; ++i) {
    rows_[i] = samples.row(slots_[i]);
    weights_[i] = samples.weight(slots_[i]);
    total_ += weights_[i];
    if (is_light()) light_.set(i, weights_[i]);
    const Label code = samples.label(slots_[i]);
    std::uint8_t& position = positions_[static_cast<std::size_t>(code)];
    if (position == 0) {
      codes_[n_labels_] = code;
      label_blocks_[n_labels_] = 0;
      position = static_cast<std::uint8_t>(++n_labels_);
    }
    labels_[i] = static_cast<std::uint8_t>(position - 1);
    label_blocks_[labels_[i]] |= Block{1} << i;
  }
  for (std::size_t c = 0; c < n_labels_; ++c) positions_[static_cast<std::size_t>(codes_[c])] = 0;
  find_same_x(samples);
}

// Sorts samples by place. Places are uniform, so each one is sent near to where it belongs first.
void Panel::sort(const RankOrder& order, std::span<const Slot> slots) {
  constexpr int kShift = 58;  // leaves 64 buckets
  std::array<Word, kMostDeciding> places;
  std::array<std::uint8_t, 65> ends{};
  for (std::size_t i = 0; i < n_; ++i) {
    places[i] = order.place(slots[i]);
    ++ends[(places[i] >> kShift) + 1];
  }
  for (std::size_t i = 1; i < ends.size(); ++i) ends[i] = static_cast<std::uint8_t>(ends[i] + ends[i - 1]);
  for (std::size_t i = 0; i < n_; ++i) {
    const std::size_t at = ends[places[i] >> kShift]++;
    places_[at] = places[i];
    slots_[at] = slots[i];
  }
  for (std::size_t i = 1; i < n_; ++i) {
    const Word place = places_[i];
    if (place > places_[i - 1]) continue;
    const Slot slot = slots_[i];
    std::size_t at = i;
    for (; at > 0 && order.less(place, slot, places_[at - 1], slots_[at - 1]); --at) {
      places_[at] = places_[at - 1];
      slots_[at] = slots_[at - 1];
    }
    places_[at] = place;
    slots_[at] = slot;
  }
  std::fill(places_.begin() + static_cast<std::ptrdiff_t>(n_), places_.end(), ~Word{0});
}

void Panel::find_same_x(const SampleStore& samples) {
  // A small table of hashes: a sample that meets another one in its place, or a full place, may have its x.
  constexpr std::size_t kTable = 256;
  std::array<std::uint8_t, kTable> table{};
  has_same_x_ = false;
  for (std::size_t i = 0; i < n_ && !has_same_x_; ++i) {
    const Word hash = samples.x_hash(slots_[i]);
    for (std::size_t at = hash % kTable;; at = (at + 1) % kTable) {
      if (table[at] == 0) {
        table[at] = static_cast<std::uint8_t>(i + 1);
        break;
      }
      if (samples.x_hash(slots_[table[at] - 1u]) == hash) {
        has_same_x_ = true;
        break;
      }
    }
  }
  if (!has_same_x_) return;
  for (std::size_t i = 0; i < n_; ++i) same_x_[i] = Block{1} << i;
  for (std::size_t i = 0; i < n_; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!samples.same_x(slots_[i], slots_[j])) continue;
      same_x_[i] |= Block{1} << j;
      same_x_[j] |= Block{1} << i;
    }
  }
}

std::int64_t Panel::heavy_weight(Block block) const {
  std::int64_t total = 0;
  for (; block != 0; block &= block - 1) total += weights_[first_bit(block)];
  return total;
}

std::size_t Panel::first_from(Block block, Word place) const {
  static_assert(kMostDeciding == 64);
  std::size_t at = 0;  // the number of places before `place`, at most 63 of them
  for (std::size_t step = 32; step > 0; step /= 2) at += places_[at + step - 1] < place ? step : 0;
  Block after = block >> at << at;
  if (places_[at] < place) after = 0;  // all 64 are before it
  return first_bit(after != 0 ? after : block);
}

const std::vector<std::int32_t>& Panel::varying(Block block) {
  if (!varying_.empty()) return varying_;
  std::array<const float*, kMostDeciding> rows;
  std::size_t n = 0;
  for (; block != 0; block &= block - 1) rows[n++] = rows_[first_bit(block)];
  varying_ = varying_features({rows.data(), n}, n_features_);
  return varying_;
}

Proposal Panel::propose_pair(Block block, Word seed) const {
  const std::size_t i = first_from(block, derive(seed, of_proposal::kFirst));
  const Block other_x = block & ~same_x(i), other = other_x & ~label_blocks_[labels_[i]];
  const std::size_t j = first_from(other != 0 ? other : other_x, derive(seed, of_proposal::kSecond));
  Proposal result;
  result.first = static_cast<std::uint8_t>(i);
  result.second = static_cast<std::uint8_t>(j);
  result.cut = draw_between(seed, rows_[i], rows_[j], n_features_);
  return result;
}

Proposal Panel::propose_range(Block block, Word seed) {
  Range found{};
  const auto varies = [&](std::int32_t d) {
    found = range(block, d);
    return found.low < found.high;
  };
  const auto for_each_varying = [&](auto use) { std::ranges::for_each(varying(block), use); };
  const std::int32_t feature = draw_feature(seed, n_features_, varies, for_each_varying);
  if (!(found.low < found.high)) found = range(block, feature);
  Proposal result;
  result.low = found.low;
  result.high = found.high;
  result.cut = {feature, draw_threshold(seed, found.low, found.high)};
  return result;
}

const Proposal& Panel::decide(Block block, Word seed) {
  varying_.clear();
  n_proposals_ = n_proposals(std::popcount(block));
  for (std::uint32_t q = 0; q < n_proposals_; ++q) {
    const Word proposal = derive(seed, of_node::kProposal + q);
    proposals_[q] = is_between_labels(q) ? propose_pair(block, proposal) : propose_range(block, proposal);
    proposals_[q].left = left_of(block, proposals_[q].cut);
  }
  if (!is_light()) return proposals_[best_of_heavy(block)];
  return proposals_[n_proposals_ == kMostProposals ? best_of_light<kMostProposals>(block) : best_of_light<4>(block)];
}

template <std::size_t K>
std::size_t Panel::best_of_light(Block block) {
  static_assert(LightWeights::kMost * LightWeights::kMost <= std::numeric_limits<std::uint16_t>::max());
  std::array<Block, K> lefts;
  std::array<std::uint16_t, K> on_left, squares{}, products{};
  for (std::size_t q = 0; q < K; ++q) lefts[q] = proposals_[q].left;
  // A label that has one sample, of weight 1, is counted with the others of this kind.
  Block singles = 0;
  int total = 0;
  for (std::size_t c = 0; c < n_labels_; ++c) {
    const Block those = block & label_blocks_[c];
    const int n = light_.of(those);
    if (n <= 1) {
      singles |= those;
      continue;
    }
    total += n * n;
    light_.of(those, lefts, on_left);
    for (std::size_t q = 0; q < K; ++q) {
      squares[q] = static_cast<std::uint16_t>(squares[q] + on_left[q] * on_left[q]);
      products[q] = static_cast<std::uint16_t>(products[q] + on_left[q] * n);
    }
  }
  const int n_singles = std::popcount(singles), n_block = light_.of(block);
  std::size_t best = 0;
  double best_score = -1.0;
  for (std::size_t q = 0; q < K; ++q) {
    Proposal& proposal = proposals_[q];
    const int singles_left = std::popcount(lefts[q] & singles);
    // With l of n on the left, the right side has (n - l)^2 = n^2 - 2 n l + l^2.
    proposal.squares_left = static_cast<std::uint16_t>(squares[q] + singles_left);
    proposal.squares_right =
        static_cast<std::uint16_t>(total - 2 * products[q] + squares[q] + n_singles - singles_left);
    proposal.n_left = static_cast<std::uint8_t>(light_.of(lefts[q]));
    const double score =
        score_of(proposal.squares_left, proposal.n_left, proposal.squares_right, n_block - proposal.n_left);
    if (score > best_score) {
      best = q;
      best_score = score;
    }
  }
  return best;
}

std::size_t Panel::best_of_heavy(Block block) const {
  const std::int64_t total = weight(block);
  std::size_t best = 0;
  double best_score = -1.0;
  for (std::size_t q = 0; q < n_proposals_; ++q) {
    const Block left = proposals_[q].left;
    const std::int64_t n_left = weight(left);
    std::uint64_t squares_left = 0, squares_right = 0;
    for (std::size_t c = 0; c < n_labels_; ++c) {
      const Block those = block & label_blocks_[c];
      const auto on_left = static_cast<std::uint64_t>(heavy_weight(those & left));
      const auto on_right = static_cast<std::uint64_t>(heavy_weight(those & ~left));
      squares_left += on_left * on_left;
      squares_right += on_right * on_right;
    }
    const double score = score_of(squares_left, n_left, squares_right, total - n_left);
    if (score > best_score) {
      best = q;
      best_score = score;
    }
  }
  return best;
}

const float* Panel::column(Block block, std::int32_t feature) {
  if (n_features_ > kMostCached) {
    if (feature == gathered_from_ && (block & ~gathered_) == 0) return columns_.data();
    for (Block left = block; left != 0; left &= left - 1) {
      const std::size_t i = first_bit(left);
      columns_[i] = rows_[i][feature];
    }
    gathered_from_ = feature;
    gathered_ = block;
    return columns_.data();
  }
  if (!has_columns_) fill_columns();
  return columns_.data() + static_cast<std::size_t>(feature) * kMostDeciding;
}

// Fills the columns of all features, four samples and four features at a time.
void Panel::fill_columns() {
  const std::size_t n_whole = n_features_ / simd::kWidth * simd::kWidth;
  for (std::size_t i = 0; i < n_; i += simd::kWidth) {
    // Behind the last sample, the first one is repeated.
    const auto row = [&](std::size_t k) { return rows_[i + k < n_ ? i + k : 0]; };
    for (std::size_t d = 0; d < n_whole; d += simd::kWidth) {
      simd::Float4 a = simd::load(row(0) + d), b = simd::load(row(1) + d);
      simd::Float4 c = simd::load(row(2) + d), e = simd::load(row(3) + d);
      simd::transpose(a, b, c, e);
      float* const to = columns_.data() + d * kMostDeciding + i;
      simd::store(to, a);
      simd::store(to + kMostDeciding, b);
      simd::store(to + 2 * kMostDeciding, c);
      simd::store(to + 3 * kMostDeciding, e);
    }
    for (std::size_t d = n_whole; d < n_features_; ++d) {
      for (std::size_t k = 0; k < simd::kWidth; ++k) columns_[d * kMostDeciding + i + k] = row(k)[d];
    }
  }
  has_columns_ = true;
}

Block Panel::left_of(Block block, Cut cut) {
  const float* const x = column(block, cut.feature);
  if (std::popcount(block) <= kFew) {
    Block left = block;
    for (Block rest = block; rest != 0; rest &= rest - 1) {
      if (x[first_bit(rest)] > cut.threshold) left ^= rest & (~rest + 1);
    }
    return left;
  }
  const simd::Float4 threshold = simd::all(cut.threshold);
  Block result = 0;
  for (std::size_t i = 0; i < n_; i += simd::kWidth) {
    result |= static_cast<Block>(simd::at_most(simd::load(x + i), threshold)) << i;
  }
  return result & block;
}

Panel::Range Panel::range(Block block, std::int32_t feature) {
  if (n_features_ > kMostCached) return range_of(block, column(block, feature));
  Range& whole = ranges_[static_cast<std::size_t>(feature)];
  if ((ranged_ >> feature & 1) == 0) {
    whole = range_of(all(), column(all(), feature));
    ranged_ |= Block{1} << feature;
  }
  return block == all() || whole.low == whole.high ? whole : range_of(block, column(block, feature));
}

Panel::Range Panel::range_of(Block block, const float* column) const {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  if (std::popcount(block) <= kFew) {
    Range result{infinity, -infinity};
    for (; block != 0; block &= block - 1) {
      const float x = column[first_bit(block)];
      result = {simd::min(result.low, x), simd::max(result.high, x)};
    }
    return result;
  }
  if (block == kWhole) {
    simd::Float4 low = simd::load(column), high = low;
    for (std::size_t i = simd::kWidth; i < kMostDeciding; i += simd::kWidth) {
      const simd::Float4 x = simd::load(column + i);
      low = simd::min(low, x);
      high = simd::max(high, x);
    }
    return {simd::least(low), simd::greatest(high)};
  }
  // Samples that are not in the block count as its first one.
  const simd::Float4 first = simd::all(column[first_bit(block)]);
  simd::Float4 low = first, high = first;
  for (std::size_t i = 0; i < n_; i += simd::kWidth) {
    const simd::Float4 x = simd::select(static_cast<unsigned>(block >> i & 15u), simd::load(column + i), first);
    low = simd::min(low, x);
    high = simd::max(high, x);
  }
  return {simd::least(low), simd::greatest(high)};
}

}  // namespace onlineforest::guided
