#include "guided/panel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/simd.hpp"

namespace onlineforest::guided {

namespace {

constexpr int kFew = 12;  // a block of so few samples is looked at one by one

// A position between two values: low <= position < high.
float between(float low, float high, double share) {
  const double span = static_cast<double>(high) - static_cast<double>(low);
  const double position = static_cast<double>(low) + share * span;
  if (!(position < static_cast<double>(high))) return low;
  const auto rounded = static_cast<float>(position);
  if (static_cast<double>(rounded) <= position) return rounded;
  return std::nextafter(rounded, -std::numeric_limits<float>::infinity());
}

double share_of(Word proposal) { return unit_interval(derive(proposal, of_proposal::kPosition)); }

// Of all features that are considered, the one of least hash.
class LeastHash {
 public:
  explicit LeastHash(Word proposal) : proposal_(proposal) {}

  void consider(std::int32_t feature) {
    const Word hash = derive(proposal_, of_proposal::kScan + static_cast<Word>(feature));
    if (feature_ < 0 || hash < least_) {
      feature_ = feature;
      least_ = hash;
    }
  }
  [[nodiscard]] std::int32_t feature() const { return feature_; }

 private:
  Word proposal_, least_ = 0;
  std::int32_t feature_ = -1;
};

}  // namespace

void Panel::load(const SampleStore& samples, const RankOrder& order, std::span<const Slot> slots) {
  n_ = slots.size();
  n_features_ = samples.n_features();
  n_labels_ = 0;
  has_unit_weights_ = true;
  cached_ = ranged_ = 0;
  positions_.resize(static_cast<std::size_t>(samples.n_labels()), 0);
  for (std::size_t i = 0; i < n_; ++i) {
    rows_[i] = samples.row(slots[i]);
    places_[i] = order.place(slots[i]);
    weights_[i] = samples.weight(slots[i]);
    has_unit_weights_ &= weights_[i] == 1;
    const Label code = samples.label(slots[i]);
    std::uint8_t& position = positions_[static_cast<std::size_t>(code)];
    if (position == 0) {
      codes_[n_labels_] = code;
      label_blocks_[n_labels_] = 0;
      position = static_cast<std::uint8_t>(++n_labels_);
    }
    labels_[i] = static_cast<std::uint8_t>(position - 1);
    label_blocks_[labels_[i]] |= Block{1} << i;
  }
  std::fill(places_.begin() + static_cast<std::ptrdiff_t>(n_), places_.end(), ~Word{0});
  for (std::size_t c = 0; c < n_labels_; ++c) positions_[static_cast<std::size_t>(codes_[c])] = 0;
  find_same_x(samples, slots);
}

void Panel::find_same_x(const SampleStore& samples, std::span<const Slot> slots) {
  // A small table of hashes: a sample that meets another one in its place, or a full place, may have its x.
  constexpr std::size_t kTable = 256;
  std::array<std::uint8_t, kTable> table{};
  has_same_x_ = false;
  for (std::size_t i = 0; i < n_ && !has_same_x_; ++i) {
    const Word hash = samples.x_hash(slots[i]);
    for (std::size_t at = hash % kTable;; at = (at + 1) % kTable) {
      if (table[at] == 0) {
        table[at] = static_cast<std::uint8_t>(i + 1);
        break;
      }
      if (samples.x_hash(slots[table[at] - 1u]) == hash) {
        has_same_x_ = true;
        break;
      }
    }
  }
  if (!has_same_x_) return;
  for (std::size_t i = 0; i < n_; ++i) same_x_[i] = Block{1} << i;
  for (std::size_t i = 0; i < n_; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!samples.same_x(slots[i], slots[j])) continue;
      same_x_[i] |= Block{1} << j;
      same_x_[j] |= Block{1} << i;
    }
  }
}

std::int64_t Panel::weight_of_many(Block block) const {
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

template <class IsFit>
std::int32_t Panel::first_feature(Word proposal, IsFit is_fit) const {
  for (std::uint32_t t = 0; t < kMostTries; ++t) {
    const auto feature = static_cast<std::int32_t>(below(derive(proposal, of_proposal::kTry + t), n_features_));
    if (is_fit(feature)) return feature;
  }
  return -1;
}

const std::vector<std::int32_t>& Panel::varying(Block block) {
  if (!varying_.empty()) return varying_;
  const float* const first = rows_[first_bit(block)];
  std::vector<std::uint8_t> varies(n_features_, 0);
  for (Block rest = block & (block - 1); rest != 0; rest &= rest - 1) {
    const float* const x = rows_[first_bit(rest)];
    for (std::size_t d = 0; d < n_features_; ++d) varies[d] |= static_cast<std::uint8_t>(x[d] != first[d]);
  }
  for (std::size_t d = 0; d < n_features_; ++d) {
    if (varies[d] != 0) varying_.push_back(static_cast<std::int32_t>(d));
  }
  return varying_;
}

Cut Panel::propose_pair(Block block, Word proposal) const {
  const std::size_t i = first_from(block, derive(proposal, of_proposal::kFirst));
  const Block other_x = block & ~same_x(i), other = other_x & ~label_blocks_[labels_[i]];
  const std::size_t j = first_from(other != 0 ? other : other_x, derive(proposal, of_proposal::kSecond));
  const auto differ = [&](std::int32_t d) { return rows_[i][d] != rows_[j][d]; };
  std::int32_t feature = first_feature(proposal, differ);
  if (feature < 0) {
    LeastHash least(proposal);
    for (std::size_t d = 0; d < n_features_; ++d) {
      if (differ(static_cast<std::int32_t>(d))) least.consider(static_cast<std::int32_t>(d));
    }
    feature = least.feature();
  }
  const float a = rows_[i][feature], b = rows_[j][feature];
  return {feature, between(std::min(a, b), std::max(a, b), share_of(proposal))};
}

Cut Panel::propose_range(Block block, Word proposal) {
  Range found{};
  std::int32_t feature = first_feature(proposal, [&](std::int32_t d) {
    found = range(block, d);
    return found.low < found.high;
  });
  if (feature < 0) {
    LeastHash least(proposal);
    for (const std::int32_t d : varying(block)) least.consider(d);
    feature = least.feature();
    found = range(block, feature);
  }
  return {feature, between(found.low, found.high, share_of(proposal))};
}

Cut Panel::decide(Block block, Word seed) {
  varying_.clear();
  count_labels(block);
  Cut best;
  double best_score = -1.0;
  const std::uint32_t k = n_proposals(std::popcount(block));
  for (std::uint32_t q = 0; q < k; ++q) {
    const Word proposal = derive(seed, of_node::kProposal + q);
    const Cut cut = q % 2 == 0 ? propose_pair(block, proposal) : propose_range(block, proposal);
    const double result = score(left_of(block, cut));
    if (result > best_score) {
      best = cut;
      best_score = result;
    }
  }
  return best;
}

// The sums of squared weights of labels over the weight, on both sides. All sums are exact.
double Panel::score(Block left) const {
  const std::int64_t n_left = weight(left), n_right = total_ - n_left;
  // With l of t on the left, the right side has (t - l)^2 = t^2 - 2 t l + l^2.
  std::uint64_t squares_left = 0, products = 0;
  if (has_unit_weights_) {
    squares_left = products = static_cast<std::uint64_t>(std::popcount(left & singles_));
    for (std::size_t c = 0; c < n_present_; ++c) {
      const auto on_left = static_cast<std::uint64_t>(std::popcount(left & present_[c]));
      squares_left += on_left * on_left;
      products += on_left * totals_[c];
    }
  } else {
    for (std::size_t c = 0; c < n_present_; ++c) {
      const auto on_left = static_cast<std::uint64_t>(weight_of_many(left & present_[c]));
      squares_left += on_left * on_left;
      products += on_left * totals_[c];
    }
  }
  const std::uint64_t squares_right = squares_ - 2 * products + squares_left;
  return static_cast<double>(squares_left) / static_cast<double>(n_left) +
         static_cast<double>(squares_right) / static_cast<double>(n_right);
}

// Prepares score() for a block.
void Panel::count_labels(Block block) {
  total_ = weight(block);
  n_present_ = 0;
  singles_ = 0;
  squares_ = 0;
  for (std::size_t c = 0; c < n_labels_; ++c) {
    const Block those = block & label_blocks_[c];
    if (those == 0) continue;
    if (has_unit_weights_ && (those & (those - 1)) == 0) {
      singles_ |= those;
      ++squares_;
      continue;
    }
    const auto total = static_cast<std::uint64_t>(weight(those));
    present_[n_present_] = those;
    totals_[n_present_++] = total;
    squares_ += total * total;
  }
}

const float* Panel::column(Block block, std::int32_t feature) {
  if (n_features_ > kMostCached) {
    for (Block left = block; left != 0; left &= left - 1) {
      const std::size_t i = first_bit(left);
      columns_[i] = rows_[i][feature];
    }
    return columns_.data();
  }
  float* const column = columns_.data() + static_cast<std::size_t>(feature) * kMostDeciding;
  if ((cached_ >> feature & 1) == 0) {
    if (n_features_ <= kMostAtOnce) {
      fill_columns();
      return column;
    }
    for (std::size_t i = 0; i < n_; ++i) column[i] = rows_[i][feature];
    cached_ |= Block{1} << feature;
  }
  return column;
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
  cached_ = ~Block{0};
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
  const float* const values = column(block, feature);
  if (n_features_ > kMostCached || block != all()) return range_of(block, values);
  Range& known = ranges_[static_cast<std::size_t>(feature)];
  if ((ranged_ >> feature & 1) == 0) {
    known = range_of(block, values);
    ranged_ |= Block{1} << feature;
  }
  return known;
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
