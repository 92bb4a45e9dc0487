"""Checks of the arguments of pictures. Knows no single picture."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral
from typing import Any

from sklearn.utils.validation import check_is_fitted

from onlineforest._forests.base import BaseForest
from onlineforest._forests.classification import BaseClassifier
from onlineforest._forests.mondrian.classifier import MondrianForestClassifier
from onlineforest._forests.orderfree.classifier import OnlineForestClassifier
from onlineforest._forests.orderfree.regressor import OnlineForestRegressor
from onlineforest._forests.trees import MondrianTree, OnlineTree
from onlineforest.plot.figures import printable, shortened

Classifier = OnlineForestClassifier | MondrianForestClassifier
Forest = Classifier | OnlineForestRegressor


def check_forest(forest: Any) -> None:
    """Raise unless `forest` is a fitted forest that stores samples."""
    if not isinstance(forest, BaseForest):
        raise TypeError(
            "forest must be a forest of this library, such as an OnlineForestClassifier. "
            f"Got {_type_name(forest)} instead."
        )
    check_is_fitted(forest)
    forest._core_with_samples()


def check_regressor(forest: Any) -> None:
    """Raise unless `forest` is a fitted regressor that stores samples."""
    if not isinstance(forest, BaseForest) or isinstance(forest, BaseClassifier):
        raise TypeError(
            "forest must be a regressor, such as an OnlineForestRegressor. "
            f"Got {_type_name(forest)} instead."
        )
    check_forest(forest)


def check_has_novelty(forest: Any) -> None:
    """Raise unless `forest` is a fitted forest with boxes, which novelty needs."""
    check_forest(forest)
    if not isinstance(forest, MondrianForestClassifier):
        raise ValueError(
            "Novelty is the distance from the boxes of a Mondrian forest, but this forest is an "
            f"{_type_name(forest)}, which has none. Fit a MondrianForestClassifier."
        )


def _type_name(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def check_count(value: object, name: str, least: int, most: int = 2**31 - 1) -> int:
    """The value as an int; raises unless it is an integer from `least` to `most`."""
    if (
        not isinstance(value, Integral)
        or isinstance(value, bool)
        or not least <= int(value) <= most
    ):
        limits = f"at least {least}" if most == 2**31 - 1 else f"{least} to {most}"
        raise ValueError(f"{name} must be an integer, {limits}. Got {value!r} instead.")
    return int(value)


def check_tree(forest: Forest, index: int) -> OnlineTree | MondrianTree:
    """The tree of this index; raises if the index is no integer or the tree has no nodes."""
    if not isinstance(index, Integral) or isinstance(index, bool):
        raise TypeError(f"tree must be the index of a tree, an integer. Got {index!r} instead.")
    tree = forest.trees_[int(index)]
    if tree.n_nodes == 0:
        reason = (
            "it has learned no sample, because max_samples is small."
            if isinstance(tree, OnlineTree)
            else "a call was interrupted. The next call grows it again."
        )
        raise ValueError(f"Tree {index} has no nodes: {reason}")
    return tree


def numeric_features(forest: Forest) -> list[int]:
    """The indices of the features that are not categorical: those that can be axes."""
    return list(forest._rows.numeric)


def categorical_names(forest: Forest) -> str:
    """The categorical features as an error names them."""
    names = raw_feature_names(forest)
    return _listed([names[column] for column in forest._rows.columns])


def _listed(names: list[str]) -> str:
    shown = [repr(shortened(name)) for name in names[:10]]
    return ", ".join([*shown, f"and {len(names) - 10} more"] if len(names) > 10 else shown)


def raw_feature_names(forest: Forest) -> list[str]:
    """The names of the features; "feature 0" and so on if the forest has no names."""
    names = getattr(forest, "feature_names_in_", None)
    if names is None:
        return [f"feature {i}" for i in range(forest.n_features_in_)]
    return [str(name) for name in names]


def without_name_warning(predict: Callable[[Any], Any], rows: Any) -> Any:
    """Call a method of a forest with rows without feature names, without the warning about it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return predict(rows)


def feature_names(forest: Forest) -> list[str]:
    """The names of the features, shortened and escaped for matplotlib."""
    return [printable(name) for name in raw_feature_names(forest)]
