"""Combines order-free forests of different parts of the data. Must not know their kinds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, overload

from sklearn.utils.validation import check_is_fitted

from onlineforest._forests.core import LOCAL
from onlineforest._forests.orderfree.base import BaseOnlineForest
from onlineforest._forests.orderfree.classifier import OnlineForestClassifier
from onlineforest._forests.orderfree.regressor import OnlineForestRegressor


@overload
def merge(forests: Iterable[OnlineForestClassifier]) -> OnlineForestClassifier: ...
@overload
def merge(forests: Iterable[OnlineForestRegressor]) -> OnlineForestRegressor: ...
def merge(forests: Iterable[Any]) -> Any:
    """Combine order-free forests that learned different parts of the data.

    The result is the forest that `fit` makes of the samples of all forests together, to the last
    bit. It has all samples and learns on.

    Parameters
    ----------
    forests : iterable of estimators
        At least one `OnlineForestClassifier`, or at least one `OnlineForestRegressor`; all fitted,
        with the same features, equal seeds and parameters, distinct ids, and no `window` or
        `reservoir`: see `OnlineForestClassifier.learn_from`. They are not changed.

    Returns
    -------
    OnlineForestClassifier or OnlineForestRegressor
        The forest of all samples.

    Raises
    ------
    TypeError
        If something is not an order-free forest, or forests are of two kinds.
    ValueError
        If there is no forest, if features, kinds of labels, seeds or parameters differ, or if two
        samples have the same id.
    sklearn.exceptions.NotFittedError
        If a forest has learned nothing yet.

    See Also
    --------
    OnlineForestClassifier.learn_from : Exact as well, but without a copy of the largest forest.

    Notes
    -----
    The forest with the most samples is copied and learns those of the others. Its samples count as
    the first to arrive, then those of the others in the order given.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from onlineforest import OnlineForestClassifier, merge
    >>> X, y = load_digits(return_X_y=True)
    >>> parts = [slice(0, 500), slice(500, 1000), slice(1000, 1500)]
    >>> forests = [OnlineForestClassifier(20, random_state=0).fit(X[p], y[p]) for p in parts]
    >>> whole = OnlineForestClassifier(20, random_state=0).fit(X[:1500], y[:1500])
    >>> merge(forests).digest_ == whole.digest_
    True
    """
    members = list(forests)
    _check_kinds(members)
    for i, forest in enumerate(members):
        check_is_fitted(forest, msg=f"forests[{i}], a %(name)s, has learned nothing yet.")
    names = [f"forests[{i}]" for i in range(len(members))]
    largest = max(range(len(members)), key=lambda i: members[i].n_samples_stored_)
    merged = members[largest]._copy_with_core(LOCAL.restore)
    others = [i for i in range(len(members)) if i != largest]
    merged._merge([members[i] for i in others], names[largest], [names[i] for i in others])
    return merged


merge.__module__ = "onlineforest"


def _check_kinds(forests: Sequence[Any]) -> None:
    """Raise unless the forests are order-free and of one kind."""
    if not forests:
        raise ValueError("merge needs at least one forest. Got none.")
    first = _kind_of(forests, 0)
    for i in range(1, len(forests)):
        kind = _kind_of(forests, i)
        if kind is not first:
            raise TypeError(
                f"merge needs forests of one kind, but forests[0] is a {first.__name__} and "
                f"forests[{i}] a {kind.__name__}."
            )


def _kind_of(forests: Sequence[Any], i: int) -> type[BaseOnlineForest[Any]]:
    """The order-free class that a forest is of, or an error."""
    for kind in (OnlineForestClassifier, OnlineForestRegressor):
        if isinstance(forests[i], kind):
            return kind
    raise TypeError(
        "merge needs order-free forests, such as OnlineForestClassifier, but "
        f"forests[{i}] is of type {type(forests[i]).__name__}."
        + (" Merge the result of its gather()." if hasattr(forests[i], "gather") else "")
    )
