// A complete tree for predictions alone: nodes side by side, with the whole prediction at each leaf. Must not know
// samples.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "guided/sample_store.hpp"

namespace onlineforest::guided {

class FlatTree {
 public:
  // A part of a prediction, in multiples of 1 / kUnit.
  struct Share {
    Label label;
    std::uint32_t mass;
  };

  [[nodiscard]] bool empty() const { return nodes_.empty(); }
  void clear() { *this = {}; }

  // Building: the root first, then children in pairs.
  NodeIndex add_root() {
    nodes_.emplace_back();
    return kRoot;
  }
  // Makes a node a cut and returns its left child; the right one follows.
  NodeIndex cut(NodeIndex at, std::int32_t feature, float threshold) {
    const auto left = static_cast<NodeIndex>(nodes_.size());
    nodes_[static_cast<std::size_t>(at)] = {threshold, feature, left};
    nodes_.resize(nodes_.size() + 2);
    return left;
  }
  // Makes a node a leaf, whose shares are added next.
  void make_leaf(NodeIndex at, std::uint64_t rest) {
    nodes_[static_cast<std::size_t>(at)] = {0.0f, kLeaf, static_cast<std::int32_t>(leaves_.size())};
    leaves_.push_back({static_cast<std::uint32_t>(shares_.size()), static_cast<std::uint32_t>(rest)});
  }
  void add_share(Label label, std::uint64_t mass) { shares_.push_back({label, static_cast<std::uint32_t>(mass)}); }
  void finish() {
    leaves_.push_back({static_cast<std::uint32_t>(shares_.size()), 0});
    nodes_.shrink_to_fit();
    leaves_.shrink_to_fit();
    shares_.shrink_to_fit();
  }

  // Adds the predictions at rows to the masses of `n_labels` labels and to the rest, for each row.
  void predict(const float* rows, std::size_t n_features, std::span<std::uint64_t> rests, std::uint64_t* masses,
               std::size_t n_labels) const {
    // Several rows go down side by side, because each one waits for memory at every step.
    constexpr std::size_t kSideBySide = 8;
    std::array<NodeIndex, kSideBySide> at;
    for (std::size_t first = 0; first < rests.size(); first += kSideBySide) {
      const std::size_t n = std::min(kSideBySide, rests.size() - first);
      const float* const x = rows + first * n_features;
      at.fill(kRoot);
      for (bool is_moving = true; is_moving;) {
        is_moving = false;
        for (std::size_t i = 0; i < n; ++i) {
          const Node& node = nodes_[static_cast<std::size_t>(at[i])];
          if (node.feature == kLeaf) continue;
          const float value = x[i * n_features + static_cast<std::size_t>(node.feature)];
          at[i] = node.next + static_cast<NodeIndex>(value > node.threshold);
          is_moving = true;
        }
      }
      for (std::size_t i = 0; i < n; ++i) {
        const auto leaf = static_cast<std::size_t>(nodes_[static_cast<std::size_t>(at[i])].next);
        std::uint64_t* const sums = masses + (first + i) * n_labels;
        for (std::uint32_t s = leaves_[leaf].shares; s < leaves_[leaf + 1].shares; ++s) {
          sums[shares_[s].label] += shares_[s].mass;
        }
        rests[first + i] += leaves_[leaf].rest;
      }
    }
  }

  [[nodiscard]] std::size_t nbytes() const {
    return nodes_.capacity() * sizeof(Node) + leaves_.capacity() * sizeof(Leaf) + shares_.capacity() * sizeof(Share);
  }

 private:
  static constexpr std::int32_t kLeaf = -1;

  struct Node {
    float threshold = 0.0f;
    std::int32_t feature = kLeaf;
    NodeIndex next = 0;  // the left child, or the leaf
  };
  struct Leaf {
    std::uint32_t shares;  // where its shares begin; the next leaf's begin ends them
    std::uint32_t rest;
  };

  std::vector<Node> nodes_;
  std::vector<Leaf> leaves_;
  std::vector<Share> shares_;
};

}  // namespace onlineforest::guided
