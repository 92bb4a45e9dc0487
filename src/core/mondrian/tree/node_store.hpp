// The nodes of one tree: children, cuts, split times and boxes in flat arrays. Must not know targets or how trees grow.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/compiler.hpp"
#include "base/memory.hpp"
#include "base/types.hpp"
#include "mondrian/points/box.hpp"
#include "mondrian/points/point_store.hpp"

namespace onlineforest::mondrian {

// A block of at most this many points stores no box. Most blocks of a tree are so small, and their boxes are quickly
// computed from the points.
inline constexpr std::int32_t kFewPoints = 4;

// 16 bytes, all that a path to a leaf reads. An internal node has two adjacent children and a cut; `x <=
// split_location` goes left. A leaf has the first point of the linked list of its points, their number, and
// split_dimension kLeaf.
struct Node {
  static constexpr std::int32_t kLeaf = -1;

  union {
    NodeIndex left = kNoNode;
    Slot first_point;
  };
  BoxIndex box = kNoBox;
  std::int32_t split_dimension = kLeaf;
  union {
    std::int32_t n_points = 0;
    float split_location;
  };

  [[nodiscard]] bool is_leaf() const { return split_dimension == kLeaf; }
  [[nodiscard]] NodeIndex right() const { return left + 1; }
  [[nodiscard]] NodeIndex child(const float* row) const { return left + !(row[split_dimension] <= split_location); }
};

// Layout: each box is `lower[D]`, then `upper[D]`, contiguous for loops over the features. Boxes are stored in pages,
// so that they never move and little memory is unused.
class BoxStore {
 public:
  explicit BoxStore(std::size_t n_features)
      : n_features_(n_features),
        shift_(std::bit_width(std::clamp<std::size_t>(kPageNumbers / (2 * n_features), 1, 256)) - 1) {}

  // A lower bound on the memory of `n_boxes` boxes, close to the true size.
  [[nodiscard]] static std::size_t nbytes_of(std::size_t n_boxes, std::size_t n_features) {
    const std::size_t per_page = std::size_t{1} << BoxStore(n_features).shift_;
    return (n_boxes + per_page - 1) / per_page * per_page * 2 * sizeof(float) * n_features;
  }

  [[nodiscard]] BoxIndex add() {
    if (!free_.empty()) {
      const BoxIndex i = free_.back();
      free_.pop_back();
      return i;
    }
    if ((n_boxes_ >> shift_) == pages_.size()) {
      pages_.push_back(std::make_unique_for_overwrite<float[]>((std::size_t{2} << shift_) * n_features_));
    }
    return static_cast<BoxIndex>(n_boxes_++);
  }

  // Releases a box for reuse. Overwrites its bounds: they may be values of a point that must be forgotten.
  void release(BoxIndex i) {
    free_.push_back(i);
    std::fill_n(lower(i), 2 * n_features_, 0.0f);
  }

  float* lower(BoxIndex i) { return pages_[page(i)].get() + place(i); }
  float* upper(BoxIndex i) { return lower(i) + n_features_; }
  BoxView view(BoxIndex i) const {
    const float* lower = pages_[page(i)].get() + place(i);
    return {lower, lower + n_features_};
  }

  std::size_t nbytes() const {
    return pages_.capacity() * sizeof(pages_[0]) + free_.capacity() * sizeof(free_[0]) +
           pages_.size() * (sizeof(float) << shift_) * 2 * n_features_;
  }

 private:
  static constexpr std::size_t kPageNumbers = 4096;  // 16 KiB

  std::size_t page(BoxIndex i) const { return static_cast<std::size_t>(i) >> shift_; }
  std::size_t place(BoxIndex i) const {
    return (static_cast<std::size_t>(i) & ((std::size_t{1} << shift_) - 1)) * 2 * n_features_;
  }

  std::size_t n_features_;
  int shift_;
  std::size_t n_boxes_ = 0;
  std::vector<std::unique_ptr<float[]>> pages_;
  std::vector<BoxIndex> free_;
};

// The root is node 0; an empty tree has no nodes. Adding nodes may move all nodes in memory, so callers must hold
// indices, not references. Boxes never move.
class NodeStore {
 public:
  explicit NodeStore(std::size_t n_features) : n_features_(n_features), boxes_(n_features) {}

  [[nodiscard]] std::size_t n_features() const { return n_features_; }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }

  // Allocates memory for `n` nodes in advance.
  void expect(std::size_t n) { nodes_.reserve(n); }

  // Adds `n` leaves without points. Returns the first.
  NodeIndex add(std::size_t n) {
    const std::size_t first = nodes_.size();
    resize_tightly(nodes_, first + n, Entry());
    return static_cast<NodeIndex>(first);
  }

  // Removes the last two nodes. Their contents must have been moved.
  void remove_last_two() { nodes_.resize(nodes_.size() - 2); }

  Node& operator[](NodeIndex j) { return nodes_[static_cast<std::size_t>(j)].node; }
  const Node& operator[](NodeIndex j) const { return nodes_[static_cast<std::size_t>(j)].node; }

  // The time of the node's cut; the lifetime for a leaf.
  double& split_time(NodeIndex j) { return nodes_[static_cast<std::size_t>(j)].split_time; }
  double split_time(NodeIndex j) const { return nodes_[static_cast<std::size_t>(j)].split_time; }

  ONLINEFOREST_ALWAYS_INLINE void prefetch_split_time(NodeIndex j) const {
    prefetch(&nodes_[static_cast<std::size_t>(j)].split_time);
  }

  [[nodiscard]] bool has_box(NodeIndex j) const { return (*this)[j].box != kNoBox; }
  // Gives the node a stored box, unless it has one. A new box has unspecified bounds.
  void add_box(NodeIndex j) {
    if (!has_box(j)) (*this)[j].box = boxes_.add();
  }
  void release_box(NodeIndex j) {
    if (!has_box(j)) return;
    boxes_.release((*this)[j].box);
    (*this)[j].box = kNoBox;
  }
  // Prefetches the first `most` values of the stored box of a node, if there is one.
  ONLINEFOREST_ALWAYS_INLINE void prefetch_box(NodeIndex j, std::size_t most) const {
    constexpr std::size_t per_line = 16;
    if (!has_box(j)) return;
    const float* box = stored_box(j).lower;
    for (std::size_t d = 0; d < std::min(2 * n_features_, most); d += per_line) prefetch(box + d);
  }

  // These require has_box(j).
  float* lower(NodeIndex j) { return boxes_.lower((*this)[j].box); }
  float* upper(NodeIndex j) { return boxes_.upper((*this)[j].box); }
  BoxView stored_box(NodeIndex j) const { return boxes_.view((*this)[j].box); }

  std::size_t nbytes() const { return nodes_.capacity() * sizeof(Entry) + boxes_.nbytes(); }

 private:
  std::size_t n_features_;
  // Side by side: a path that is predicted from reads both, and a line of the cache then serves for both.
  struct Entry {
    Node node;
    double split_time = 0.0;
  };

  std::vector<Entry> nodes_;
  BoxStore boxes_;
};

}  // namespace onlineforest::mondrian
