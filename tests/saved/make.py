"""Makes the files of the current format: small forests and their predictions.

    python tests/saved/make.py

Existing files are never written again: they stand for files of users.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import is_classifier

from onlineforest import MondrianForestClassifier, OnlineForestClassifier, OnlineForestRegressor
from onlineforest._files.container import FORMAT_VERSION

FOLDER = Path(__file__).parent / f"format-{FORMAT_VERSION}"
RNG = np.random.default_rng(8)
X = RNG.normal(size=(120, 4)).round(3).astype(np.float32)
Y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * RNG.normal(size=120)
QUERIES = RNG.normal(scale=2.0, size=(15, 4)).round(2)


def forests():
    """Forests that differ in what a file holds."""
    kind = np.where(Y > 1, "high", np.where(X[:, 2] > 0, "mid", "łow"))
    frame = pd.DataFrame(X, columns=["length", "width", "Höhe", "x y"])
    ids = [i if i % 2 else f"person {i}" for i in range(120)]
    names = MondrianForestClassifier(4, window=60, random_state=1)
    yield "classifier-names-ids-window", names.fit(frame, kind, ids=ids).forget(ids=ids[100:105])
    many = MondrianForestClassifier(3, random_state=2, feature_weights="range", leaf_discount=0.1)
    yield "classifier-many-classes", many.fit(X, np.arange(120) % 70 - 5)
    plain = MondrianForestClassifier(
        3, lifetime=2, discount=5, min_samples_split=4, feature_weights=[1, 0, 2, 1], n_jobs=2
    )
    plain.random_state = np.random.RandomState(3)
    yield "classifier-plain", plain.partial_fit(X[:50], Y[:50] > 1).partial_fit(X[50:], Y[50:] > 1)
    sampled = MondrianForestClassifier(3, reservoir=50, half_life=40, random_state=5)
    yield "classifier-reservoir", sampled.fit(X, kind)
    twice = MondrianForestClassifier(3, random_state=4).fit(X, kind)
    yield "classifier-twice", twice.partial_fit(X[:20], kind[:20])  # some samples twice
    gone = MondrianForestClassifier(2, random_state=6).fit(X, kind)
    yield "classifier-forgotten", gone.keep_latest(0)
    yield from order_free_forests(frame, kind, ids)


def order_free_forests(frame, kind, ids):
    """Order-free forests, whose files hold no trees."""
    holes = np.where(np.random.default_rng(9).random(X.shape) < 0.2, np.nan, X)
    holes[:, 3] = np.nan  # always missing
    plain = OnlineForestClassifier(3, max_samples=0.7, smoothing=0.1, min_samples_split=2, n_jobs=2)
    plain.random_state = np.random.RandomState(3)
    plain.partial_fit(X[:50], Y[:50] > 1).partial_fit(X[30:], Y[30:] > 1)  # some samples twice
    yield "online-classifier-plain", plain
    names = OnlineForestClassifier(4, window=60, random_state=1)
    names.fit(frame, kind, ids=ids).forget(ids=ids[100:105])
    yield "online-classifier-names-ids-window", names
    sampled = OnlineForestClassifier(3, reservoir=50, half_life=40, random_state=5)
    yield "online-classifier-reservoir", sampled.fit(X, np.arange(120) % 70 - 5)
    declared = OnlineForestClassifier(3, random_state=2)
    declared.partial_fit(X, kind, classes=["high", "mid", "łow", "never seen"])
    declared.partial_fit(X[:3], ["gone"] * 3, classes=["gone"])
    yield "online-classifier-declared", declared.forget(X[:3], ["gone"] * 3)
    gone = OnlineForestClassifier(2, random_state=6).fit(X, kind)
    yield "online-classifier-forgotten", gone.keep_latest(0)
    calibrated = OnlineForestClassifier(11, random_state=8)
    calibrated.fit(np.concatenate([X, X + 1]), np.concatenate([kind, kind]))
    yield "online-classifier-calibrated", calibrated.partial_fit(X[:20] - 1, kind[:20])  # lags
    lacking = OnlineForestClassifier(3, random_state=7).fit(holes, kind)
    yield "online-classifier-missing", lacking.partial_fit(X[:20], kind[:20])
    numbers = OnlineForestRegressor(5, window=100, random_state=4)
    numbers.fit(frame, Y, ids=ids).forget(ids=ids[100:105])
    yield "online-regressor-names-ids-window", numbers
    plain = OnlineForestRegressor(3, max_samples=0.7, calibrate=False, min_samples_split=2)
    plain.set_params(reservoir=60, half_life=40, n_jobs=2, random_state=np.random.RandomState(3))
    yield (
        "online-regressor-reservoir",
        plain.partial_fit(X[:50], Y[:50]).partial_fit(X[30:], Y[30:]),
    )
    yield "online-regressor-missing", OnlineForestRegressor(5, random_state=8).fit(holes, Y)
    calibrated = OnlineForestRegressor(5, random_state=8)
    calibrated.fit(np.concatenate([X, X + 1]), np.concatenate([Y, Y]))
    yield "online-regressor-calibrated", calibrated.partial_fit(X[:20] - 1, Y[:20])  # lags
    gone = OnlineForestRegressor(2, random_state=6).fit(X, Y)
    yield "online-regressor-forgotten", gone.keep_latest(0)


def predictions(forest, queries):
    """Predictions that every later version must reproduce."""
    if forest.n_samples_stored_ == 0:
        return {}
    if hasattr(forest, "feature_names_in_"):
        queries = pd.DataFrame(queries, columns=forest.feature_names_in_)
    answers = {"apply": forest.apply(queries)}
    if hasattr(forest, "digest_"):
        answers["digest"] = np.array(forest.digest_)
    else:
        answers["feature_weights"] = forest.feature_weights_
    if is_classifier(forest):
        answers |= {"classes": forest.classes_, "predict_proba": forest.predict_proba(queries)}
    else:
        answers["mean"], answers["std"] = forest.predict(queries, return_std=True)
        answers["quantiles"] = forest.predict_quantiles(queries)
    return {name: answer.tolist() for name, answer in answers.items()}


def main():
    """Make the files that do not exist."""
    FOLDER.mkdir(exist_ok=True)
    for name, forest in forests():
        if (FOLDER / f"{name}.safetensors").exists():
            continue
        forest.save(FOLDER / f"{name}.safetensors")
        expected = {
            "queries": QUERIES.tolist(),
            "n_samples_seen": forest.n_samples_seen_,
            "ids": sorted(map(str, forest.ids_)),
            "predictions": predictions(forest, QUERIES),
        }
        (FOLDER / f"{name}.json").write_text(json.dumps(expected, indent=0) + "\n")


if __name__ == "__main__":
    main()
