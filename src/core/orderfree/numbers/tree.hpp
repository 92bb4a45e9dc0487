// Declares the members of Tree that are specialised for numbers, so that no other file instantiates them.
#pragma once

#include "orderfree/numbers/numbers.hpp"
#include "orderfree/tree/tree.hpp"

namespace onlineforest::orderfree {

template <>
void Tree<Numbers>::answer_nothing(NumberLeaf& answer) const;
template <>
void Tree<Numbers>::answer_junction(NodeIndex at, const Samples&, const float*, Scratch&, NumberLeaf& answer);
template <>
void Tree<Numbers>::answer_list(List& list, const Samples& samples, const float* x, NumberLeaf& answer) const;
template <>
void Tree<Numbers>::answer_twig(const List& list, std::uint32_t leaf, const float* x, NumberLeaf& answer) const;
template <>
void Tree<Numbers>::make_leaf(List& list, std::span<const std::uint32_t> path, const Panel<Numbers>& panel) const;
template <>
void Tree<Numbers>::flatten_twig_leaf(const List& list, std::uint32_t leaf, NodeIndex at, Flat& flat, Scratch&) const;
template <>
void Tree<Numbers>::flatten_large_leaf(NodeIndex from, const Samples& samples, NodeIndex at, Flat& flat, Scratch&);
template <>
void Tree<Numbers>::describe_node(NodeIndex at, const Samples&, Scratch&, Table& table);
template <>
void Tree<Numbers>::describe_twig(Block block, const Panel<Numbers>& panel, Table& table) const;
template <>
void Tree<Numbers>::finish_table(Table& table);

extern template class Tree<Numbers>;

}  // namespace onlineforest::orderfree
