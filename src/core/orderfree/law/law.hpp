// The constants and hashes of the order-free forest. Must not know samples, trees or forests.
//
// docs/order-free.md is the definition. A forest is a function of its seed and its set of samples, so every number here
// is part of what a seed means.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/hash.hpp"

namespace onlineforest::orderfree {

using Word = std::uint64_t;

// The number of the law. Raise it with any change, here or elsewhere, after which other trees grow from the same seed
// and samples: files and pickles hold no trees, and those of another law must be refused.
inline constexpr int kLaw = 1;

// The samples of a block that decide its cut: one bit each in a word.
inline constexpr std::size_t kMostDeciding = 64;

// The weight left for the ancestors of a node below which the rest is uniform.
inline constexpr double kLeastLeft = 0x1p-10;
// Probabilities are whole multiples of 1 / kUnit, so that their sums do not depend on the order of trees.
inline constexpr double kUnit = 0x1p31;

// At least so many samples that decide are many: they get more proposals.
inline constexpr int kManyDeciding = 16;

// Whether a proposal separates two samples of different values; the others cut the range of a feature.
[[nodiscard]] constexpr bool is_between(std::uint32_t proposal) { return proposal % 2 == 0; }

// Whether a proposal over the range of a feature that some samples lack asks who lacks it: one in eight does.
[[nodiscard]] constexpr bool asks(Word word) { return word >> 61 == 0; }

// Features tried by hash before all are scanned.
inline constexpr std::uint32_t kMostTries = 32;

// The n-th number of the stream that starts at `state`. Every use of a state has its own n.
[[nodiscard]] constexpr Word derive(Word state, Word n) { return scramble(state + kGolden * n); }

// Numbers for derive(), by state.
namespace of_x {
inline constexpr Word kHash = 1;
}
namespace of_sample {
inline constexpr Word kKey = 2;
}
namespace of_tree {
inline constexpr Word kRank = 1, kMembership = 2, kRoot = 3;
}
namespace of_node {
inline constexpr Word kLeft = 1, kRight = 2, kProposal = 8;
}
namespace of_proposal {
inline constexpr Word kFirst = 1, kSecond = 2, kPosition = 3, kAsk = 4, kTry = 16, kScan = 64;
inline constexpr Word kSalt = ~Word{0};  // and down from there: there may be any number of features to scan
}  // namespace of_proposal
namespace of_seed {
inline constexpr Word kFeature = 16;
}

// Seeds of a tree.
struct TreeSeeds {
  Word rank, membership, root;

  TreeSeeds(Word seed, std::size_t tree) {
    const Word state = derive(scramble(seed ^ kGolden), tree);
    rank = derive(state, of_tree::kRank);
    membership = derive(state, of_tree::kMembership);
    root = derive(state, of_tree::kRoot);
  }
};

// The place on the circle of a sample of this rank.
[[nodiscard]] constexpr Word place_of(Word rank) { return std::rotl(rank, 32); }

// A number in [0, 1).
[[nodiscard]] constexpr double unit_interval(Word word) { return static_cast<double>(word >> 11) * 0x1p-53; }

// A whole number in [0, n); n < 2^32.
[[nodiscard]] constexpr std::size_t below(Word word, std::size_t n) {
  return static_cast<std::size_t>(((word >> 32) * static_cast<Word>(n)) >> 32);
}

}  // namespace onlineforest::orderfree
