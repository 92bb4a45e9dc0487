// Declares the members of Tree that are specialised for labels, so that no other file instantiates them.
#pragma once

#include "orderfree/labels/labels.hpp"
#include "orderfree/tree/tree.hpp"

namespace onlineforest::orderfree {

template <>
void Tree<Labels>::add_counts(const LabelCounts& counts, double& left, Masses answer) const;
template <>
NodeIndex Tree<Labels>::add_ancestors(NodeIndex at, double left, Masses answer) const;
template <>
void Tree<Labels>::answer_nothing(Masses answer) const;
template <>
void Tree<Labels>::answer_junction(NodeIndex at, const Samples&, const float*, Scratch&, Masses answer);
template <>
void Tree<Labels>::answer_list(List& list, const Samples&, const float*, Masses answer) const;
template <>
void Tree<Labels>::answer_twig(const List& list, std::uint32_t leaf, const float*, Masses answer) const;
template <>
void Tree<Labels>::make_leaf(List& list, std::span<const std::uint32_t> path, const Panel<Labels>& panel) const;
template <>
void Tree<Labels>::take_shares(const LabelCounts& labels, Flat& flat, Scratch& scratch);
template <>
void Tree<Labels>::flatten_twig_leaf(const List& list, std::uint32_t number, NodeIndex at, Flat& flat,
                                     Scratch& scratch) const;
template <>
void Tree<Labels>::flatten_large_leaf(NodeIndex from, const Samples&, NodeIndex at, Flat& flat, Scratch& scratch);
template <>
void Tree<Labels>::describe_node(NodeIndex at, const Samples&, Scratch&, Table& table);
template <>
void Tree<Labels>::describe_twig(Block block, const Panel<Labels>& panel, Table& table) const;
template <>
void Tree<Labels>::finish_table(Table&);

extern template class Tree<Labels>;

}  // namespace onlineforest::orderfree
