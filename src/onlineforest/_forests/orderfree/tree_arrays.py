"""Arrays of a tree as users see them, from the table of a core forest. Must not know estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlineforest._inputs.rows import MixedRows, RowFormat

Table = dict[str, NDArray[Any]]


def tree_arrays(table: Table, rows: RowFormat) -> dict[str, Any]:
    """The arrays that trees of labels and of numbers have in common."""
    features, thresholds = table["feature"], table["threshold"]
    levels = np.full(len(features), None, dtype=object)
    if isinstance(rows, MixedRows):
        levels = rows.left_levels(features, thresholds)
    features, thresholds = _in_columns(features, thresholds, rows)
    return {
        "parent": table["parent"],
        "left": table["left"],
        "right": table["right"],
        "split_dimension": features,
        "split_location": np.where(features >= 0, thresholds, np.float32(np.nan)),
        "split_levels": levels,
        "missing_left": table["missing_left"].astype(np.bool_),
        "weight": table["weight"],
    } | _surrogates(table, rows)


def _surrogates(table: Table, rows: RowFormat) -> dict[str, Any]:
    """The surrogates of each node, in as many columns as a node has most."""
    ends = table["surrogates_end"]
    features, thresholds = _in_columns(
        table["surrogate_feature"], table["surrogate_threshold"], rows
    )
    n_surrogates = np.diff(ends, prepend=0)
    nodes = np.repeat(np.arange(len(ends)), n_surrogates)
    places = np.arange(len(nodes)) - np.repeat(ends - n_surrogates, n_surrogates)
    shape = (len(ends), int(n_surrogates.max(initial=0)))
    dimension, location = np.full(shape, -1, np.int32), np.full(shape, np.nan, thresholds.dtype)
    are_reversed = np.zeros(shape, np.bool_)
    dimension[nodes, places] = features
    location[nodes, places] = thresholds
    are_reversed[nodes, places] = table["surrogate_reversed"]
    return {
        "surrogate_dimension": dimension,
        "surrogate_location": location,
        "surrogate_reversed": are_reversed,
    }


def number_arrays(table: Table, rows: RowFormat) -> dict[str, Any]:
    """The arrays of trees of numbers: means, variances, lines, and what leaves add to them."""
    features = table["line_feature"]
    low, high, centers = (
        _in_columns(features, table[f"line_{name}"], rows)[1] for name in ("low", "high", "centre")
    )
    is_term = features >= 0
    return {
        "mean": table["mean"],
        "variance": table["variance"],
        "rest": table["rest"],
        "line": table["line"],
        "line_dimension": _in_columns(features, table["line_low"], rows)[0],
        "line_slope": table["line_slope"],
        "line_center": np.where(is_term, centers, 0.0),
        "line_clip": np.where(is_term, np.stack([low, high]), 0.0).transpose(1, 2, 0),
        "line_base": table["line_base"],
        "line_range": np.column_stack([table["line_least"], table["line_most"]]),
    }


def _in_columns(
    features: NDArray[np.int32], thresholds: NDArray[np.float32], rows: RowFormat
) -> tuple[NDArray[np.int32], NDArray[np.floating]]:
    """Columns instead of features of the core forest, and thresholds in the units of X."""
    found: NDArray[np.floating] = thresholds
    if isinstance(rows, MixedRows):
        n_numeric, order = len(rows.numeric), rows.order.astype(np.int32)
        found = np.where(features < n_numeric, thresholds, np.float32(np.nan))
        features = np.where(features >= 0, order[features], features)
    if rows.offsets is not None:  # -1, no feature, gets any of them
        found = found + rows.offsets[features]
    return features, found
