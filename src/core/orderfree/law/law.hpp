// The constants and hashes of the order-free forest. Must not know samples, trees or forests.
//
// docs/order-free.md defines the law. A forest is a function of its seed and its set of samples, so every number here
// is part of the meaning of a seed.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/hash.hpp"

namespace onlineforest::orderfree {

using Word = std::uint64_t;

// The law number. Raise it with any change, here or elsewhere, that grows other trees from the same seed and samples.
// Files and pickles hold samples, not trees, so a file of another law must be refused.
inline constexpr int kLaw = 2;

// Number of deciding samples of a block; a word has one bit for each.
inline constexpr std::size_t kMostDeciding = 64;

// A prediction mixes the labels of a leaf and its ancestors. When less than this share of the mixture is left for the
// further ancestors, it is spread evenly over the labels.
inline constexpr double kLeastLeft = 0x1p-10;
// Probabilities of trees are rounded to whole multiples of 1 / kFullMass, so that their sum does not depend on the
// order of the trees.
inline constexpr double kFullMass = 0x1p31;

// Blocks with at least this many deciding samples get the larger number of proposals.
inline constexpr int kManyDeciding = 16;

// Rows with more numeric features than this are wide. Where enough samples of wide rows decide, every fourth proposal
// draws one of the few features that tell most about the values.
inline constexpr std::size_t kMostNarrow = 16, kMostScreened = 4;
inline constexpr int kEnoughToScreen = 32;
[[nodiscard]] constexpr bool is_screened(std::uint32_t proposal) { return proposal % 4 == 1; }

// Proposals of even number separate two samples of different values. The others split the range of a feature.
[[nodiscard]] constexpr bool is_between(std::uint32_t proposal) { return proposal % 2 == 0; }

// If some samples lack the feature, one in eight of the proposals on its range separates missing from present values.
[[nodiscard]] constexpr bool asks(Word word) { return word >> 61 == 0; }

// Number of features that a proposal tries by hash before it scans all features.
inline constexpr std::uint32_t kMostTries = 32;

// The n-th number of the stream that starts at `state`. Each purpose of a state has an n of its own, listed below.
[[nodiscard]] constexpr Word derive(Word state, Word n) { return scramble(state + kGolden * n); }

// The values of n for derive(). The name of a namespace says what the state belongs to.
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
inline constexpr Word kSalt = ~Word{0};  // salts count down from here: kScan plus a feature has no upper bound
}  // namespace of_proposal
namespace of_seed {
inline constexpr Word kFeature = 16;
}

// The seeds of one tree: for ranks, for the choice of its samples, and for the root.
struct TreeSeeds {
  Word rank, membership, root;

  TreeSeeds(Word seed, std::size_t tree) {
    const Word state = derive(scramble(seed ^ kGolden), tree);
    rank = derive(state, of_tree::kRank);
    membership = derive(state, of_tree::kMembership);
    root = derive(state, of_tree::kRoot);
  }
};

// The place, on the circle of all words, of a sample of this rank.
[[nodiscard]] constexpr Word place_of(Word rank) { return std::rotl(rank, 32); }

// Maps a word to a double in [0, 1).
[[nodiscard]] constexpr double unit_interval(Word word) { return static_cast<double>(word >> 11) * 0x1p-53; }

// Maps a word to a whole number in [0, n); n < 2^32.
[[nodiscard]] constexpr std::size_t below(Word word, std::size_t n) {
  return static_cast<std::size_t>(((word >> 32) * static_cast<Word>(n)) >> 32);
}

}  // namespace onlineforest::orderfree
