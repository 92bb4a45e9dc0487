"""After any history, predictions and files are those of a twin that did only what changes a forest.

The twin learns, forgets and declares the same, one sample at a time, and is never predicted, saved,
copied or interrupted before the comparison. So batches, predictions at any moment, files, pickles,
checkpoints and resuming from them have no influence: not on the trees, and not on what is fitted on
left-out samples.
"""

from __future__ import annotations

import copy
import io
import pickle
import shutil
import tempfile
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from onlineforest import Checkpointer, OnlineForestClassifier, OnlineForestRegressor, load
from support.examples import examples
from support.model_files import saved

N_TREES = 11  # enough for a calibration
LABELS = ["no", "yes", "maybe", "new"]
TEXTS = [f"text {i}" for i in range(30)]  # each has an effect of its own on the target
seeds = st.integers(0, 2**32 - 1)
# The least forest that is calibrated has 160 samples.
sizes = st.sampled_from([1, 1, 2, 5, 23, 24, 60, 170])


def cuts_of(n, rng):
    """Where a batch of `n` is cut: nowhere, anywhere or everywhere."""
    n_cuts = rng.choice([0, 0, 1, 3, n])
    inner = rng.choice(np.arange(1, n), min(n_cuts, n - 1), replace=False) if n > 1 else []
    places = [0, *sorted(int(place) for place in inner), n]
    return pairwise(places)


class FittedHistory(RuleBasedStateMachine):
    """`history` has the calls that change the forest, which the twin repeats."""

    kind = None  # class of the forests

    def __init__(self):
        super().__init__()
        self.forest = None

    @initialize(
        seed=seeds,
        keep=st.sampled_from([{}, {}, {"window": 200}, {"window": 33}, {"reservoir": 190}]),
        max_samples=st.sampled_from([1.0, 1.0, 0.7]),
        has_text=st.booleans(),
        has_names=st.booleans(),
        n_values=st.sampled_from([3, 1000]),
        n=sizes,
        fits=st.booleans(),
    )
    def start(self, seed, keep, max_samples, has_text, has_names, n_values, n, fits):
        self.parameters = {"random_state": seed, "max_samples": max_samples, **keep}
        self.has_text, self.has_names, self.n_values = has_text, has_names or has_text, n_values
        self.history, self.n_ids = [], 0
        self.folder = tempfile.mkdtemp()
        self.checkpointer = Checkpointer(self.folder, every_samples=1)
        self.saved_at = None
        rng = np.random.default_rng(seed)
        self.forest = self.kind(N_TREES, **self.parameters)
        batch = self.draw(rng, n)
        if fits:
            self.history.append(("fit", *batch))
            self.forest.fit(batch[0], batch[1], sample_weight=batch[2], ids=batch[3])
        else:
            self.history.append(("learn", *batch))
            self.partial_fit(self.forest, batch)

    def rows(self, rng, n):
        numbers = rng.integers(0, self.n_values, (n, 2)).astype(float)
        numbers[rng.random((n, 2)) < 0.05] = np.nan
        if not self.has_names:
            return numbers
        frame = pd.DataFrame(numbers, columns=["a", "b"])
        if self.has_text:
            frame["t"] = rng.choice(TEXTS, n).astype(object)
        return frame

    def draw(self, rng, n):
        """Rows, targets, weights and ids of new samples."""
        X = self.rows(rng, n)
        signal = np.nan_to_num(np.asarray(X)[:, 0].astype(float)) / self.n_values
        if self.has_text:
            signal = signal / 2 + [TEXTS.index(text) * 7 % 30 / 30 for text in X["t"]]
        weights = rng.choice([1.0, 1.0, 2.0, 0.5], n) if rng.random() < 0.3 else None
        ids = list(range(self.n_ids, self.n_ids + n))
        self.n_ids += n
        return X, self.targets(rng, signal), weights, ids

    @staticmethod
    def part(batch, begin, end):
        X, y, weights, ids = batch
        rows = X.iloc[begin:end] if isinstance(X, pd.DataFrame) else X[begin:end]
        part_of_weights = None if weights is None else weights[begin:end]
        return rows, y[begin:end], part_of_weights, ids[begin:end]

    @staticmethod
    def partial_fit(forest, batch):
        X, y, weights, ids = batch
        forest.partial_fit(X, y, sample_weight=weights, ids=ids)

    def repeat(self, forest, history, rng=None):
        """Let a forest do what a history says: one sample at a time, or cut anyhow by `rng`."""
        for what, *details in history:
            if what == "fit":
                X, y, weights, ids = details
                forest.fit(X, y, sample_weight=weights, ids=ids)
            elif what == "learn":
                n = len(details[1])
                each = cuts_of(n, rng) if rng else ((i, i + 1) for i in range(n))
                for begin, end in each:
                    self.partial_fit(forest, self.part(details, begin, end))
            elif what == "declare":
                X, y, labels = details
                forest.partial_fit(X, y, classes=labels, sample_weight=np.zeros(len(y)))
            elif what == "forget":
                (ids,) = details
                for some in [ids] if rng else [[each] for each in ids]:
                    forest.forget(ids=some)
            elif what == "keep":
                forest.keep_latest(*details)
            else:
                forest.recalibrate()

    def do(self, *call):
        """Note a call that changes the forest, and let the forest do it."""
        self.history.append(call)
        self.repeat(self.forest, [call], np.random.default_rng(len(self.history)))

    @rule(n=sizes, seed=seeds)
    def learn(self, n, seed):
        self.do("learn", *self.draw(np.random.default_rng(seed), n))

    @rule(n=st.sampled_from([1, 3, 30]), seed=seeds, predicts=st.booleans())
    def stream(self, n, seed, predicts):
        """Single samples, each of them predicted or not."""
        batch = X, y, weights, ids = self.draw(np.random.default_rng(seed), n)
        self.history.append(("learn", *batch))
        for i in range(n):
            row = X.iloc[i].to_dict() if isinstance(X, pd.DataFrame) else X[i]
            weight = 1.0 if weights is None else weights[i]
            if predicts:
                self.predict_one(row)
            self.forest.learn_one(row, y[i], ids[i], sample_weight=weight)

    @precondition(lambda self: self.forest.n_samples_stored_)
    @rule(n=st.sampled_from([1, 1, 2, 40]), seed=seeds)
    def forget(self, n, seed):
        held = sorted(self.forest.ids_)
        chosen = np.random.default_rng(seed).choice(held, min(n, len(held)), replace=False)
        self.do("forget", chosen.tolist())

    @rule(n=st.sampled_from([0, 1, 100, 180, 10_000]))
    def keep_latest(self, n):
        self.do("keep", n)

    @rule()
    def recalibrate(self):
        self.do("recalibrate")

    @rule()
    def ask_what_is_stored(self):
        """Questions that fit nothing."""
        assert self.forest.n_samples_stored_ <= self.forest.n_samples_seen_
        assert self.forest.digest_ and self.forest.nbytes_
        repr(self.forest)

    @precondition(lambda self: self.forest.n_samples_stored_)
    @rule(n=st.sampled_from([1, 20]), seed=seeds)
    def predict(self, n, seed):
        self.answers(self.forest, self.rows(np.random.default_rng(seed), n))

    @rule()
    def refused_calls(self):
        """Errors change nothing."""
        with pytest.raises(ValueError, match="id"):
            self.forest.forget(ids=["nobody"])
        X = np.zeros((1, 4))
        X = pd.DataFrame(X, columns=[*"abtu"]) if self.has_names else X
        with pytest.raises(ValueError, match="feature"):
            self.forest.partial_fit(X, self.targets(None, np.zeros(1)))

    @rule(how=st.sampled_from(["pickle", "deepcopy", "file"]), continues=st.booleans())
    def copy(self, how, continues):
        if how == "file":
            other = load(io.BytesIO(saved(self.forest)))
        else:
            other = copy.deepcopy(self.forest) if how == "deepcopy" else as_pickled(self.forest)
        if continues:
            self.forest = other

    @rule()
    def save_checkpoint(self):
        self.saved_at = len(self.history)
        self.checkpointer.save(self.forest, self.saved_at)

    @precondition(lambda self: self.saved_at is not None)
    @rule(seed=seeds)
    def be_killed_and_resume(self, seed):
        """Learn again the samples that came after the checkpoint, in other batches."""
        opened = self.checkpointer.open()
        assert opened.position == self.saved_at
        self.forest = opened.forest
        self.repeat(self.forest, self.history[self.saved_at :], np.random.default_rng(seed))

    @rule()
    def compare(self):
        twin = self.kind(N_TREES, **self.parameters)
        self.repeat(twin, self.history)
        assert saved(self.forest) == saved(twin)
        if twin.n_samples_stored_:
            queries = self.rows(np.random.default_rng(7), 12)
            ours, theirs = self.answers(self.forest, queries), self.answers(twin, queries)
            for name, answer in theirs.items():
                assert np.array_equal(ours[name], answer, equal_nan=True), name
        assert self.forest.digest_ == twin.digest_

    def teardown(self):
        if self.forest is not None:
            shutil.rmtree(self.folder)
            self.compare()


def as_pickled(forest):
    return pickle.loads(pickle.dumps(forest))


class FittedLabels(FittedHistory):
    """Classifiers, whose labels come, go and are declared."""

    kind = OnlineForestClassifier

    def targets(self, rng, signal):
        if rng is None:
            return ["no"]
        some = rng.choice(LABELS[: rng.integers(1, 5)], len(signal))
        return np.where(rng.random(len(signal)) < 0.8, np.where(signal > 0.4, "yes", "no"), some)

    def answers(self, forest, queries):
        return {
            "probabilities": forest.predict_proba(queries),
            "sets": forest.predict_set(queries, 0.8),
            "sets per class": forest.predict_set(queries, 0.8, per_class=True),
            "classes": forest.classes_ == forest.predict(queries)[:, np.newaxis],
        }

    def predict_one(self, row):
        if len(self.forest.classes_):
            self.forest.predict_proba_one(row)

    @rule(label=st.sampled_from([*LABELS, "declared", "also declared"]))
    def declare(self, label):
        known = [*self.forest.classes_.tolist(), label]
        X = self.rows(np.random.default_rng(0), 1)
        self.do("declare", X, [label], known)


class FittedNumbers(FittedHistory):
    """Regressors."""

    kind = OnlineForestRegressor

    def targets(self, rng, signal):
        if rng is None:
            return [0.0]
        return np.round(signal + rng.normal(size=len(signal)), 1)

    def answers(self, forest, queries):
        mean, std = forest.predict(queries, return_std=True)
        return {"mean": mean, "std": std, "quantiles": forest.predict_quantiles(queries)}

    def predict_one(self, row):
        if self.forest.n_samples_stored_:
            self.forest.predict_one(row)


FittedLabels.TestCase.pytestmark = [pytest.mark.slow]
FittedLabels.TestCase.settings = settings(max_examples=examples(40), stateful_step_count=12)
test_classifiers_are_those_of_the_twin = FittedLabels.TestCase

FittedNumbers.TestCase.pytestmark = [pytest.mark.slow]
FittedNumbers.TestCase.settings = settings(max_examples=examples(10), stateful_step_count=12)
test_regressors_are_those_of_the_twin = FittedNumbers.TestCase
