"""Order-free trees of the core and of the definition, described in one form to be compared."""

from __future__ import annotations

import numpy as np

from reference import order_free_forest as reference
from reference.order_free_forest import bits_of, float_bits, weigh
from reference.order_free_numbers import Line, Term, has_no_line, moments_of, rests_of

LEAST_NORMAL = np.uint32(0x00800000)  # cells are no denormal numbers


def describe_reference(root, case):
    """Nodes in preorder: parent, children, cut, and what the node says of its values.

    That is the weight of each label hash; or the weight, the line, and at leaves the means of
    numbers and of rests.
    """
    nodes, stack = [], [] if root is None else [(root, -1, None)]
    while stack:
        node, parent, side = stack.pop()
        index = len(nodes)
        if case.hashes is None:
            contents = [reference.weight(node.block)]
            if node.left is None:
                line = None if has_no_line(node) else node.line
                contents += [moments_of(node.block)[0], rests_of(node)[0], line]
            else:
                contents += [None, None, node.line]
        else:
            counts = weigh(node.block).items()
            contents = sorted((int(case.hashes[code]), weight) for code, weight in counts)
        feature, threshold, missing_left, surrogates = node.cut
        others = [(d, bits_of(t), int(is_reversed)) for d, t, is_reversed in surrogates]
        cut = [feature, bits_of(threshold), int(missing_left), others]
        nodes.append([parent, -1, -1, *cut, contents])
        if side is not None:
            nodes[parent][side] = index
        if node.left is not None:
            stack += [(node.right, index, 2), (node.left, index, 1)]
    return nodes


def threshold_bits(feature, threshold, case):
    """The bits of a threshold, or the salt of a cut on a categorical feature."""
    first_categorical = case.X.shape[1] - 2 * case.n_categorical
    return float_bits(threshold) - (int(LEAST_NORMAL) if feature >= first_categorical else 0)


def line_of(tree, index):
    """A line of a core tree."""
    names = ("feature", "low", "high", "centre", "slope")
    terms = zip(*(tree[f"line_{name}"][index].tolist() for name in names), strict=True)
    base, least, most = (float(tree[f"line_{name}"][index]) for name in ("base", "least", "most"))
    return Line(base, least, most, [Term(*term) for term in terms if term[0] >= 0])


def describe_core(tree, case):
    """Arrays of a core tree in the form of `describe_reference`."""
    nodes, begin, first = [], 0, 0
    for i, weight in enumerate(tree["weight"].tolist()):
        if case.hashes is None:
            is_leaf = tree["feature"][i] < 0
            assert np.isnan(tree["rest"][i]) != is_leaf
            contents = [weight, *((tree["mean"][i], tree["rest"][i]) if is_leaf else (None, None))]
            contents.append(None if tree["line"][i] < 0 else line_of(tree, tree["line"][i]))
        else:
            end = tree["counts_end"][i]
            labels, weights = case.hashes[tree["label"][begin:end]], tree["count"][begin:end]
            contents = sorted(zip(labels.tolist(), weights.tolist()))
            assert weight == sum(weights)
            begin = end
        links = [int(tree[name][i]) for name in ("parent", "left", "right", "feature")]
        end = tree["surrogates_end"][i]
        others = [
            (int(d), threshold_bits(d, t, case), int(is_reversed))
            for d, t, is_reversed in zip(
                tree["surrogate_feature"][first:end],
                tree["surrogate_threshold"][first:end],
                tree["surrogate_reversed"][first:end],
            )
        ]
        first = end
        threshold = threshold_bits(links[-1], tree["threshold"][i], case)
        cut = [threshold, int(tree["missing_left"][i]), others]
        nodes.append([*links, *cut, contents])
    return nodes
