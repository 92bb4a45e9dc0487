"""Order-free forests of the same samples with other columns or labels."""

from __future__ import annotations

import numpy as np
import pytest

from onlineforest import OnlineForestClassifier
from onlineforest._forests.orderfree.copies import relabelled, with_columns

RNG = np.random.default_rng(0)
X = RNG.integers(0, 9, size=(200, 4)).astype(np.float32)  # some samples are equal
Y = RNG.integers(0, 5, size=200)


def forest_of(**parameters):
    return OnlineForestClassifier(4, random_state=1, **parameters)


@pytest.mark.parametrize("columns", [[0, 1, 2, 3], [2, 0, 3, 1], [3, 2, 1, 0]])
def test_a_forest_of_permuted_columns_is_that_of_the_permuted_table(columns):
    forest = forest_of().fit(X, Y)
    digest, found = forest.digest_, with_columns(forest, columns)
    assert found.digest_ == forest_of().fit(X[:, columns], Y).digest_
    assert found.verify() and forest.digest_ == digest
    found.learn_one(X[0, columns], 7).forget(X[:50, columns], Y[:50])
    expected = forest_of().fit(np.vstack([X[50:], X[:1]])[:, columns], [*Y[50:], 7])
    assert found.digest_ == expected.digest_


def test_relabelled_samples_have_the_forest_of_the_texts():
    forest = forest_of().fit(X, Y)
    digest, found = forest.digest_, relabelled(forest, lambda label: f"label {9 - label}")
    texts = [f"label {9 - label}" for label in Y]
    assert found.digest_ == forest_of().fit(X, texts).digest_
    assert found.verify() and forest.digest_ == digest
    found.learn_one(X[0], "new").forget(X[:50], texts[:50])
    expected = forest_of().fit(np.vstack([X[50:], X[:1]]), [*texts[50:], "new"])
    assert found.digest_ == expected.digest_


def test_labels_that_were_declared_or_forgotten_keep_their_part():
    forest = forest_of().partial_fit(X, Y, classes=[0, 1, 2, 3, 4, 8])
    forest.learn_one(X[0], 6).forget(X[:1], [6])
    found = relabelled(forest, str)
    assert found.classes_.tolist() == ["0", "1", "2", "3", "4", "8"]
    expected = forest_of().partial_fit(X, Y.astype(str), classes=list("012348"))
    assert found.digest_ == expected.digest_


@pytest.mark.parametrize("tenure", [{"window": 60}, {"reservoir": 60}])
def test_arrivals_and_ids_are_kept(tenure):
    forest = forest_of(**tenure).fit(X[:150], Y[:150], ids=range(150))
    changed = [with_columns(forest, [3, 2, 1, 0]), relabelled(forest, str)]
    for other in changed:
        assert other.n_samples_seen_ == 150 and other.ids_ == forest.ids_
    forest.partial_fit(X[150:], Y[150:], ids=range(150, 200))
    changed[0].partial_fit(X[150:, ::-1], Y[150:], ids=range(150, 200))
    changed[1].partial_fit(X[150:], Y[150:].astype(str), ids=range(150, 200))
    for other in changed:
        assert other.ids_ == forest.ids_ and len(forest.ids_) == 60
