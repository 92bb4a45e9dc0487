"""A file that is cut, flipped, spliced or rewritten is refused, or gives the same forest.

An attacker can recompute the digest. Then a changed file may be a valid file of another forest,
which must keep every invariant and be usable.
"""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import event, given, settings
from sklearn.base import is_classifier

from onlineforest import ModelFileError, load
from onlineforest._forests.mondrian.classifier import MondrianForestClassifier
from support.bits import assert_same_forest
from support.examples import examples
from support.hostile_files import FILES, ROWS, damaged, rewritten
from support.model_files import saved, signed

N_CASES = examples(1000)  # files that each test tries
quick = settings(max_examples=N_CASES)


def loaded(data):
    """The forest of a file; None if it is refused, with an error of one line."""
    try:
        forest = load(io.BytesIO(data), max_bytes=2**26)
    except ModelFileError as error:
        message = str(error)
    else:
        event("accepted")
        return forest
    event("refused")
    assert "\n" not in message
    return None


@quick
@given(damaged())
def test_a_damaged_file_is_refused(case):
    original, data = case
    forest = loaded(data)
    if forest is None:
        return
    assert data == original
    assert_same_forest(forest, load(io.BytesIO(original)))


def check_refused_or_sound(data):
    forest = loaded(data)
    if forest is None:
        return
    forest._check_trees()
    if forest.n_features_in_ != 3:
        return
    if forest.n_samples_stored_:
        if isinstance(forest, MondrianForestClassifier):
            assert np.isfinite(forest.novelty(ROWS)).all()
        if is_classifier(forest):
            assert np.isfinite(forest.predict_proba(ROWS)).all()
        else:
            assert np.isfinite(forest.predict(ROWS, return_std=True)).all()
            assert np.isfinite(forest.predict_quantiles(ROWS)).all()
            assert not np.isnan(forest.log_density(ROWS, ROWS[:, 0].astype(float))).any()
    target = np.resize(getattr(forest, "classes_", np.arange(3.0)), 5)
    forest.partial_fit(ROWS[:5], target).keep_latest(20)
    forest._check_trees()
    assert_same_forest(load(io.BytesIO(saved(forest))), forest)


@quick
@given(damaged())
def test_a_damaged_file_with_a_valid_digest_is_refused_or_sound(case):
    check_refused_or_sound(signed(case[1]) if len(case[1]) > 99 else case[1])


@quick
@given(rewritten())
def test_a_file_with_a_rewritten_header_is_refused_or_sound(data):
    check_refused_or_sound(data)


@pytest.mark.parametrize("data", FILES)
def test_an_undamaged_file_gives_a_forest_that_saves_the_same_bytes(data):
    forest = load(io.BytesIO(data))
    forest._check_trees()
    assert saved(forest) == data
