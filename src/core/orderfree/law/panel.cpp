#include "orderfree/law/panel.hpp"

#include <algorithm>
#include <limits>

#include "base/simd.hpp"

namespace onlineforest::orderfree {

namespace {

constexpr int kFew = 12;  // up to this many samples are read one by one, not four at a time
constexpr Block kWhole = ~Block{0};

}  // namespace

void PanelRows::begin(std::size_t n, const Layout& layout) {
  n_ = n;
  layout_ = layout;
  width_ = layout.width();
  total_ = 0;
  is_light_ = true;
  light_.clear();
  has_columns_ = false;
  ranged_ = gathered_ = 0;
  levels_.resize(layout.n_categorical);
  for (Groups& levels : levels_) levels.clear();
}

void PanelRows::add(std::size_t i, const float* row, Word x_hash, Weight weight) {
  rows_[i] = row;
  x_hashes_[i] = x_hash;
  weights_[i] = weight;
  total_ += weight;
  is_light_ = is_light_ && LightWeights::may_be(total_);
  if (is_light()) light_.set(i, weight);
}

void PanelRows::finish(bool may_lack_cells) {
  lacking_ = 0;
  for (std::size_t i = 0; may_lack_cells && i < n_; ++i) {
    if (std::any_of(rows_[i], rows_[i] + layout_.n_numeric(), is_missing)) lacking_ |= Block{1} << i;
  }
  find_same_x();
}

void PanelRows::find_same_x() {
  // A small hash table finds out whether two samples have equal hashes. If none do, all rows differ.
  constexpr std::size_t kTable = 256;
  std::array<std::uint8_t, kTable> table{};
  has_same_x_ = false;
  for (std::size_t i = 0; i < n_ && !has_same_x_; ++i) {
    const Word hash = x_hashes_[i];
    for (std::size_t at = hash % kTable;; at = (at + 1) % kTable) {
      if (table[at] == 0) {
        table[at] = static_cast<std::uint8_t>(i + 1);
        break;
      }
      if (x_hashes_[table[at] - 1u] == hash) {
        has_same_x_ = true;
        break;
      }
    }
  }
  if (!has_same_x_) return;
  for (std::size_t i = 0; i < n_; ++i) same_x_[i] = Block{1} << i;
  for (std::size_t i = 0; i < n_; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (x_hashes_[i] != x_hashes_[j]) continue;
      if (!std::equal(rows_[i], rows_[i] + width_, rows_[j], is_same)) continue;
      same_x_[i] |= Block{1} << j;
      same_x_[j] |= Block{1} << i;
    }
  }
}

Weight PanelRows::heavy_weight(Block block) const {
  Weight total = 0;
  for (; block != 0; block &= block - 1) total += weights_[first_bit(block)];
  return total;
}

std::size_t PanelRows::first_from(Block block, Word place) const {
  static_assert(kMostDeciding == 64);
  std::size_t at = 0;  // binary search: number of places before `place`, at most 63
  for (std::size_t step = 32; step > 0; step /= 2) at += places_[at + step - 1] < place ? step : 0;
  Block after = block >> at << at;
  if (places_[at] < place) after = 0;  // all 64 places are before `place`
  return first_bit(after != 0 ? after : block);
}

const std::vector<std::int32_t>& PanelRows::varying(Block block) {
  if (!varying_.empty()) return varying_;
  std::array<const float*, kMostDeciding> rows;
  std::size_t n = 0;
  for (; block != 0; block &= block - 1) rows[n++] = rows_[first_bit(block)];
  varying_ = varying_features({rows.data(), n}, layout_);
  return varying_;
}

Proposal PanelRows::propose_pair(Block block, Word seed, std::size_t first, Block like) const {
  const Block other_x = block & ~same_x(first), other = other_x & ~like;
  const std::size_t second = first_from(other != 0 ? other : other_x, derive(seed, of_proposal::kSecond));
  Proposal result;
  result.first = static_cast<std::uint8_t>(first);
  result.second = static_cast<std::uint8_t>(second);
  result.split = draw_between(seed, rows_[first], rows_[second], layout_);
  return result;
}

Proposal PanelRows::propose_range(Block block, Word seed) {
  const auto cell_of = [&](std::int32_t d) {
    return static_cast<std::int32_t>(layout_.cell_of(static_cast<std::size_t>(d)));
  };
  const auto is_categorical = [&](std::int32_t d) { return layout_.is_categorical(static_cast<std::size_t>(d)); };
  Range found{};
  const auto varies = [&](std::int32_t d) {
    if (is_categorical(d)) return like_level(block, cell_of(d), first_bit(block)) != block;
    found = range(block, d);
    return found.varies();
  };
  const auto for_each_varying = [&](auto use) { std::ranges::for_each(varying(block), use); };
  const std::int32_t feature = draw_feature(seed, layout_.n_features, varies, for_each_varying);
  if (is_categorical(feature)) {
    Proposal result;
    const std::int32_t cell = cell_of(feature);
    const std::size_t first = first_of_pair(block, seed);
    const Block other = block & ~like_level(block, cell, first);
    const std::size_t second = first_from(other, derive(seed, of_proposal::kSecond));
    result.first = static_cast<std::uint8_t>(first);
    result.second = static_cast<std::uint8_t>(second);
    result.split = draw_level_split(seed, cell, level_at(rows_[first] + cell), level_at(rows_[second] + cell));
    return result;
  }
  return propose_in(found.varies() ? found : range(block, feature), seed, feature);
}

Proposal PanelRows::propose_screened(Block block, Word seed) {
  const std::int32_t feature = least_fit(seed, [&](auto use) { std::ranges::for_each(screen_.features(), use); });
  return propose_in(range(block, feature), seed, feature);
}

Proposal PanelRows::propose_in(const Range& range, Word seed, std::int32_t cell) const {
  Proposal result;
  result.low = range.low;
  result.high = range.high;
  const bool asks_who_lacks = !(range.low < range.high) || (range.has_missing && asks(derive(seed, of_proposal::kAsk)));
  result.split = draw_split(seed, cell, range.low, asks_who_lacks ? kMissing : range.high);
  return result;
}

const Groups& PanelRows::levels(std::int32_t cell) {
  Groups& levels = levels_[layout_.feature_of(static_cast<std::size_t>(cell)) - layout_.n_numeric()];
  if (levels.size() > 0) return levels;
  for (std::size_t i = 0; i < n_; ++i) levels.add(i, level_at(rows_[i] + cell));
  return levels;
}

Block PanelRows::like_level(Block block, std::int32_t cell, std::size_t i) {
  if (std::popcount(block) > kFew) return block & levels(cell).like(i);
  const Level level = level_at(rows_[i] + cell);
  Block result = 0;
  for (Block rest = block; rest != 0; rest &= rest - 1) {
    const std::size_t k = first_bit(rest);
    result |= static_cast<Block>(level_at(rows_[k] + cell) == level) << k;
  }
  return result;
}

const float* PanelRows::column(Block block, std::int32_t cell) {
  if (width_ > kMostCached) {
    if (cell == gathered_from_ && (block & ~gathered_) == 0) return columns_.data();
    for (Block left = block; left != 0; left &= left - 1) {
      const std::size_t i = first_bit(left);
      columns_[i] = rows_[i][cell];
    }
    gathered_from_ = cell;
    gathered_ = block;
    return columns_.data();
  }
  if (!has_columns_) fill_columns();
  return columns_.data() + static_cast<std::size_t>(cell) * kMostDeciding;
}

// Fills the columns of all cells. Transposes squares of four samples and four cells.
void PanelRows::fill_columns() {
  const std::size_t n_whole = width_ / simd::kWidth * simd::kWidth;
  for (std::size_t i = 0; i < n_; i += simd::kWidth) {
    // Lanes behind the last sample repeat the first sample.
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
    for (std::size_t d = n_whole; d < width_; ++d) {
      for (std::size_t k = 0; k < simd::kWidth; ++k) columns_[d * kMostDeciding + i + k] = row(k)[d];
    }
  }
  has_columns_ = true;
}

Block PanelRows::left_of(Block block, Split split) {
  if (split.is_of_levels) {
    const LevelSides sides(split.threshold);
    Block result = 0;
    if (std::popcount(block) <= kFew) {
      for (Block rest = block; rest != 0; rest &= rest - 1) {
        const std::size_t i = first_bit(rest);
        result |= static_cast<Block>(sides.sends_left(level_at(rows_[i] + split.cell))) << i;
      }
      return result;
    }
    const Groups& groups = levels(split.cell);
    for (std::size_t k = 0; k < groups.size(); ++k) {  // no branch, since it would often be mispredicted
      result |= groups.block(k) & (Block{0} - static_cast<Block>(sides.sends_left(groups.word(k))));
    }
    return result & block;
  }
  const float* const x = column(block, split.cell);
  const simd::Float4 threshold = simd::all(split.threshold);
  Block result = 0;
  for (std::size_t i = 0; i < n_; i += simd::kWidth) {
    result |= static_cast<Block>(simd::at_most(simd::load(x + i), threshold)) << i;
  }
  return result & block;
}

PanelRows::Range PanelRows::range(Block block, std::int32_t cell) {
  if (width_ > kMostCached) return range_of(block, column(block, cell));
  Range& whole = ranges_[static_cast<std::size_t>(cell)];
  if ((ranged_ >> cell & 1) == 0) {
    whole = range_of(all(), column(all(), cell));
    ranged_ |= Block{1} << cell;
  }
  return block == all() || !whole.varies() ? whole : range_of(block, column(block, cell));
}

// If all samples of the block lack the feature, the range is empty: low is above high.
PanelRows::Range PanelRows::range_of(Block block, const float* column) const {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  if (std::popcount(block) <= kFew) {
    Range result{infinity, -infinity, false};
    for (; block != 0; block &= block - 1) {
      const float x = column[first_bit(block)];
      if (is_missing(x)) {
        result.has_missing = true;
      } else {
        result.low = simd::min(result.low, x);
        result.high = simd::max(result.high, x);
      }
    }
    return result;
  }
  if (has_missing()) {
    const Block there = block & ~missing_in(block, column);
    const simd::Float4 most = simd::all(infinity), least = simd::all(-infinity);
    simd::Float4 low = most, high = least;
    for (std::size_t i = 0; i < n_; i += simd::kWidth) {
      const simd::Float4 x = simd::load(column + i);
      const auto known = static_cast<unsigned>(there >> i & 15u);
      low = simd::min(low, simd::select(known, x, most));
      high = simd::max(high, simd::select(known, x, least));
    }
    return {simd::least(low), simd::greatest(high), there != block};
  }
  if (block == kWhole) {
    simd::Float4 low = simd::load(column), high = low;
    for (std::size_t i = simd::kWidth; i < kMostDeciding; i += simd::kWidth) {
      const simd::Float4 x = simd::load(column + i);
      low = simd::min(low, x);
      high = simd::max(high, x);
    }
    return {simd::least(low), simd::greatest(high), false};
  }
  // Lanes of samples outside the block take the value of the first sample in it, which leaves the range unchanged.
  const simd::Float4 first = simd::all(column[first_bit(block)]);
  simd::Float4 low = first, high = first;
  for (std::size_t i = 0; i < n_; i += simd::kWidth) {
    const simd::Float4 x = simd::select(static_cast<unsigned>(block >> i & 15u), simd::load(column + i), first);
    low = simd::min(low, x);
    high = simd::max(high, x);
  }
  return {simd::least(low), simd::greatest(high), false};
}

// A surrogate is a proposal on another feature whose sides agree (or, reversed, disagree) with the best split on most
// samples that have both features. Candidates are ordered by their share of agreeing samples. A share of few samples is
// unreliable, so four samples are added for each candidate, of which two agree. A candidate must beat the simplest
// rule, which sends every sample to the larger side of the best split.
void PanelRows::find_surrogates(Block block, std::span<const Proposal> proposals, Proposal& best) {
  surrogates_.clear();
  if (!has_missing() || best.split.asks_if_missing()) return;
  const Block missing_best = missing(block, best.split.cell);
  if (missing_best == 0) return;
  struct Candidate {
    int n_right, n;  // number of agreeing samples and of all samples, both with the added ones
    Surrogate surrogate;
  };
  std::vector<Candidate> candidates;
  const int n_known = std::popcount(block & ~missing_best), n_left = std::popcount(best.left & ~missing_best);
  const int n_larger = std::max(n_left, n_known - n_left);
  for (const Proposal& proposal : proposals) {
    if (proposal.split.cell == best.split.cell || proposal.split.asks_if_missing()) continue;
    const Block both = block & ~missing_best & ~missing(block, proposal.split.cell);
    const int n = std::popcount(both);
    const int n_same = std::popcount(~(proposal.left ^ best.left) & both);
    const int n_right = std::max(n_same, n - n_same) + 2;
    if (n_right * n_known <= n_larger * (n + 4)) continue;
    candidates.push_back(
        {n_right,
         n + 4,
         {proposal.split.cell, proposal.split.threshold, n_same < n - n_same, proposal.split.is_of_levels}});
  }
  std::ranges::stable_sort(candidates,
                           [](const Candidate& a, const Candidate& b) { return a.n_right * b.n > b.n_right * a.n; });
  for (const auto& [n_right, n, surrogate] : candidates) {
    if (surrogates_.size() == kMostSurrogates) break;
    if (std::ranges::find(surrogates_, surrogate.cell, &Surrogate::cell) != surrogates_.end()) continue;
    surrogates_.push_back(surrogate);
  }
  for (Block rest = missing_best; rest != 0; rest &= rest - 1) {
    const Block bit = rest & (~rest + 1);
    best.left = sends_left(best.split, surrogates_, rows_[first_bit(rest)]) ? best.left | bit : best.left & ~bit;
  }
}

Block PanelRows::missing_in(Block block, const float* column) const {
  const simd::Float4 most = simd::all(std::numeric_limits<float>::infinity());
  Block there = 0;  // comparisons with a missing value, which is NaN, are false
  for (std::size_t i = 0; i < n_; i += simd::kWidth) {
    there |= static_cast<Block>(simd::at_most(simd::load(column + i), most)) << i;
  }
  return block & ~there;
}

}  // namespace onlineforest::orderfree
