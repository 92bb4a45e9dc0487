"""The streams of the league: data sets in their order, and generators with drift.

It knows no models.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.common import load

N_GENERATED = 9_000
N_FEATURES, NOISE = 6, 0.1
CONCEPTS = (
    lambda X: X[:, 0] + X[:, 1] > 1,
    lambda X: X[:, 0] > X[:, 1],
    lambda X: X[:, 2] + X[:, 3] > 1,
)

Samples = tuple[Any, NDArray[Any]]
"""Rows, an array of float32 or a data frame with text, and their targets."""
Draw = Callable[[int, int], Samples]
"""At most a number of samples, of a seed."""


@dataclass(frozen=True)
class Stream:
    """Samples in the order in which they come.

    Parameters
    ----------
    about : str
        What changes.
    draw : callable
        Returns the samples of a length and a seed.
    n_samples : int
        Number of samples, unless fewer are asked for.
    numbers : bool
        Targets are numbers, not labels.
    file : str or None
        Where it is in the folder of data; None: it needs no folder.
    """

    about: str
    draw: Draw
    n_samples: int = N_GENERATED
    numbers: bool = False
    file: str | None = None

    def missing(self) -> str | None:
        """Why it cannot be drawn; None: it can."""
        if self.file is None:
            return None
        folder = os.environ.get("ONLINEFOREST_DATA")
        if not folder:
            return f"needs {self.file} in the folder that ONLINEFOREST_DATA names"
        return None if Path(folder, self.file).exists() else f"{self.file} is not in {folder}"


def schedule(kind: str, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The number of the concept of each sample."""
    t = np.arange(n) / n
    if kind == "steady":
        return np.zeros(n, dtype=np.int64)
    if kind == "recurring":  # four segments: 0 1 0 1
        return (4 * t).astype(np.int64) % 2
    # Three segments: 0 1 2. Gradual drift: around each switch, during a fifth of the stream, the
    # share of the new concept grows linearly.
    blur = {"abrupt": 0.0, "gradual": 0.6}[kind] * (rng.random(n) - 0.5)
    return np.clip(np.floor(3 * t + blur), 0, 2).astype(np.int64)


def generate(
    kind: str, n: int, seed: int, noise: float = NOISE
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Points of the unit cube, labelled by the side of a plane; noise flips some labels."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, N_FEATURES), dtype=np.float32)
    sides = np.stack([concept(X) for concept in CONCEPTS])
    y = sides[schedule(kind, n, rng), np.arange(n)] ^ (rng.random(n) < noise)
    return X, y.astype(np.int64)


def planes(kind: str) -> Draw:
    return lambda n, seed: generate(kind, n, seed)


def taken(stream: Any, n: int, kind: type = np.int64) -> Samples:
    """The first samples of one of River's streams as arrays."""
    samples = list(stream.take(n))
    X = np.array([list(x.values()) for x, _ in samples], dtype=np.float32)
    return X, np.array([y for _, y in samples], dtype=kind)


def river_stream(name: str, variant: str, variants: Sequence[float], **parameters: float) -> Draw:
    """Variants of one of River's generators, one after the other, of equal length."""
    n_variants = len(variants)

    def draw(n: int, seed: int) -> Samples:
        from river.datasets import synth

        parts = []
        for k, value in enumerate(variants):
            options = {**parameters, variant: value, "seed": n_variants * seed + k}
            length = (k + 1) * n // n_variants - k * n // n_variants
            parts.append(taken(getattr(synth, name)(**options), length))
        X, y = zip(*parts, strict=True)
        return np.concatenate(X), np.concatenate(y)

    return draw


def permuted_digits(n: int, seed: int) -> Samples:
    """River's LED; in each third of the stream, the columns have another order."""
    draw = river_stream("LED", "noise_percentage", (NOISE,), irrelevant_features=True)
    X, y = draw(n, seed)
    rng = np.random.default_rng(seed)
    for part in np.array_split(np.arange(len(y)), 3):
        X[part] = X[part][:, rng.permutation(X.shape[1])]
    return X, y


def moving_centres(n: int, seed: int) -> Samples:
    """Five classes around fifty centres, which move by .001 with each sample."""
    from river.datasets import synth

    return taken(
        synth.RandomRBFDrift(seed, seed, n_classes=5, change_speed=0.001, n_drift_centroids=50), n
    )


def moving_prior(n: int, seed: int) -> Samples:
    """Two normal classes; the share of the second moves twice from .5 to .95, .05 and back."""
    rng = np.random.default_rng(seed)
    share = 0.5 + 0.45 * np.sin(4 * np.pi * np.arange(n) / n)
    y = (rng.random(n) < share).astype(np.int64)
    X = rng.normal(size=(n, N_FEATURES))
    X[:, :2] += 1.2 * y[:, np.newaxis]
    return X.astype(np.float32), y


def friedman(n: int, seed: int) -> Samples:
    """River's Friedman function with three local abrupt drifts, which expand."""
    from river.datasets import synth

    positions = (n // 4, n // 2, 3 * n // 4)
    return taken(synth.FriedmanDrift(position=positions, seed=seed), n, np.float64)


def moving_plane(n: int, seed: int) -> Samples:
    """A linear function of two features whose direction makes one turn, with normal noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, N_FEATURES)).astype(np.float32)
    turn = 2 * np.pi * np.arange(n) / n
    y = np.cos(turn) * X[:, 0] + np.sin(turn) * X[:, 1] + 0.3 * rng.normal(size=n)
    return X, y


def of_river(name: str) -> Draw:
    """A data set that is part of River's package."""

    def draw(n: int, _seed: int) -> Samples:
        from river import datasets

        return taken(getattr(datasets, name)(), n)

    return draw


def of_file(name: str, first_column: int = 0) -> Draw:
    """A data set in the order of its file."""

    def draw(n: int, _seed: int) -> Samples:
        X, y = load(name, "X", "y")
        return X[:n, first_column:].astype(np.float32), y[:n].astype(np.int64)

    return draw


def shuffled(name: str) -> Draw:
    """A data set without drift: its samples for training, in an order of the seed."""

    def draw(n: int, seed: int) -> Samples:
        X, y = load(name, "X_train", "y_train")
        some = np.random.default_rng(seed).permutation(len(y))[:n]
        return X[some].astype(np.float32), y[some].astype(np.int64)

    return draw


def flights(n: int, _seed: int) -> Samples:
    """Departures in order of time, with text, and whether they arrived 15 minutes late."""
    from experiments.categories import flights as first_flights

    return first_flights(n)


GENERATED = {
    "steady": Stream("one plane, no drift", planes("steady")),
    "abrupt": Stream("three planes, one after the other", planes("abrupt")),
    "gradual": Stream("three planes, each slowly replacing the one before", planes("gradual")),
    "recurring": Stream("two planes in turn, each twice", planes("recurring")),
    "sea": Stream("three variants of SEA", river_stream("SEA", "variant", (0, 2, 3), noise=NOISE)),
    "agrawal": Stream(
        "three functions of AGRAWAL",
        river_stream("Agrawal", "classification_function", (0, 3, 6), perturbation=0.05),
    ),
    "led": Stream("LED; in each third the columns are permuted", permuted_digits),
    "rbf": Stream("fifty moving centres of five classes", moving_centres),
    "hyperplane": Stream(
        "a plane of ten features that turns",
        river_stream("Hyperplane", "n_drift_features", (10,), mag_change=0.01),
    ),
    "prior": Stream("the shares of two classes move, the classes stay", moving_prior),
    "friedman": Stream("numbers: the function changes in three regions", friedman, numbers=True),
    "plane": Stream("numbers: a plane that turns", moving_plane, numbers=True),
}
REAL = {
    "elec2": Stream("in order of time", of_file("elec2"), 45_312, file="elec2.npz"),
    "elec2-no-date": Stream(
        "elec2 without its first column, the date", of_file("elec2", 1), 45_312, file="elec2.npz"
    ),
    "covtype": Stream("in the order of its file", of_file("covtype"), 50_000, file="covtype.npz"),
    "phishing": Stream("in the order of its file", of_river("Phishing"), 1_250),
    "bananas": Stream("in the order of its file", of_river("Bananas"), 5_300),
    "flights": Stream(
        "in order of time, with columns of text", flights, 50_000, file="flights.parquet"
    ),
    "letter": Stream("no drift: shuffled", shuffled("letter"), 15_000, file="letter.npz"),
    "satimages": Stream("no drift: shuffled", shuffled("satimages"), 3_104, file="satimages.npz"),
}
STREAMS = {**GENERATED, **REAL}
