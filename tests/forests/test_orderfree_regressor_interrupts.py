"""The order-free regressor beside other threads, and after an interrupt at any moment."""

from __future__ import annotations

import copy
import math
import threading

import numpy as np
import pytest

from onlineforest._forests.base import BaseForest
from support.diabetes import WHOLE, X, Y, fitted, small
from support.examples import thorough_but
from support.interrupts import Signal, interrupted_in_the_middle


def test_threads_may_learn_and_predict_at_once():
    """The calibration asks the core several times: in between, samples come and go."""
    forest = fitted(slice(100))
    errors = []

    def predict():
        try:
            while forest.n_samples_seen_ < 340:
                quantiles = forest.predict_quantiles(X[:9], [0.1, 0.9])
                assert (quantiles[:, 0] <= quantiles[:, 1]).all()
                assert math.isfinite(forest.predict_one(X[0], return_std=True)[1])
                assert len(forest.oob_prediction_) <= 300
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=predict) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(100, 300):
        forest.learn_one(X[i], Y[i])
        if i % 5 == 0:
            forest.forget(X[i - 9 : i - 8], Y[i - 9 : i - 8])
            forest.partial_fit(X[i - 9 : i - 8], Y[i - 9 : i - 8])
    for thread in threads:
        thread.join()
    assert not errors, errors
    assert forest.digest_ == WHOLE
    assert np.array_equal(forest.recalibrate().predict_interval(X), fitted().predict_interval(X))


def test_an_interrupt_when_the_core_has_just_returned(monkeypatch):
    """The batch is stored: its ids are known, whatever is called next."""

    def interrupt(*_):
        raise KeyboardInterrupt

    forest = small().fit(X[:50], Y[:50])
    with monkeypatch.context() as patch:
        patch.setattr(BaseForest, "_record", interrupt)
        with pytest.raises(KeyboardInterrupt):
            forest.partial_fit(X[50:], Y[50:], ids=range(50, 300))
    assert np.array_equal(copy.deepcopy(forest).predict(X), fitted().predict(X))
    assert forest.ids_ == frozenset(range(50, 300))
    assert forest.digest_ == WHOLE


N_BIG = 8_000


def big_data():
    rng = np.random.default_rng(0)
    return rng.random((N_BIG, 10), dtype=np.float32), rng.normal(size=N_BIG)


def test_an_interrupted_fit_leaves_the_forest_unchanged():
    rows, numbers = big_data()
    forest = fitted().set_params(n_estimators=400)
    with Signal(0.2), pytest.raises(KeyboardInterrupt):
        forest.fit(rows, numbers)
    assert forest.n_samples_seen_ == 300
    assert forest.set_params(n_estimators=5).digest_ == WHOLE


@pytest.mark.slow
@pytest.mark.parametrize("forgets", thorough_but(True, of=[False, True]))
def test_an_interrupted_change_is_finished_when_it_is_needed(forgets):
    rows, numbers = big_data()
    some = range(0, N_BIG, 3)
    rest = np.setdiff1d(np.arange(N_BIG), some)
    start = np.arange(N_BIG) if forgets else rest
    forest = interrupted_in_the_middle(
        lambda: small(n_estimators=20, n_jobs=2).fit(
            rows[start], numbers[start], ids=start.tolist()
        ),
        lambda forest: (
            forest.forget(ids=some)
            if forgets
            else forest.partial_fit(rows[some], numbers[some], ids=some)
        ),
        lambda forest: forest.n_samples_stored_ == (len(rest) if forgets else N_BIG),
    )
    end = rest if forgets else np.arange(N_BIG)
    assert forest.ids_ == frozenset(end.tolist())
    whole = small(n_estimators=20).fit(rows[end], numbers[end])
    queries = rows[:50]
    forest.recalibrate()  # it lags after partial_fit
    assert np.array_equal(forest.predict_interval(queries), whole.predict_interval(queries))
    assert forest.digest_ == whole.digest_
