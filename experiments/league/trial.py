"""One trial: a model takes a stream, in a process of its own; its scores are one line of JSON.

    python -m experiments.league.trial '{"model": "ours", "stream": "sea", "seed": 0, ...}'

The argument has the fields of `Task`. It must not know other trials.
"""

from __future__ import annotations

import json
import math
import sys
import time
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.league.models import MODELS, Pass, Task
from experiments.league.streams import STREAMS

LEAST_PROBABILITY = 1e-6
ACCURACY, KAPPA, LOG_LOSS, RMSE = "accuracy", "kappa temporal", "log loss", "RMSE"
SECONDS, MEGABYTES = "processor seconds", "peak memory, MB"


def kappa_temporal(accuracy: float, y: NDArray[Any]) -> float:
    """How far the accuracy is above that of the label before, 1: all are right.

    NaN if the label before is always right. The first sample has none before.
    """
    of_label_before = float(np.sum(y[1:] == y[:-1])) / len(y)
    return (accuracy - of_label_before) / (1 - of_label_before) if of_label_before < 1 else math.nan


def scores_of_labels(answers: NDArray[np.float64], y: NDArray[Any]) -> dict[str, float]:
    """Accuracy, kappa temporal and log loss.

    Without an answer, the guess is wrong and all classes of the stream are equally probable.
    """
    of_truth, right = answers.T
    accuracy = float(np.nan_to_num(right).mean())
    probable = np.where(np.isnan(of_truth), 1 / len(np.unique(y)), of_truth)
    return {
        ACCURACY: accuracy,
        KAPPA: kappa_temporal(accuracy, y),
        LOG_LOSS: float(-np.log(np.maximum(probable, LEAST_PROBABILITY)).mean()),
    }


def scores_of_numbers(answers: NDArray[np.float64], y: NDArray[Any]) -> dict[str, float]:
    """The root of the mean squared error; without an answer, the number is 0."""
    return {RMSE: float(np.sqrt(np.mean((np.nan_to_num(answers[:, 0]) - y) ** 2)))}


def result_of(task: Task) -> dict[str, Any]:
    """The scores of a trial, with what it took."""
    start = time.perf_counter()
    stream = STREAMS[task.stream]
    make = MODELS[task.model].make(stream.numbers)
    if make is None:
        raise ValueError(f"{task.model} has no model for the stream {task.stream}")
    X, y = stream.draw(task.n_samples, task.seed)
    done: Pass = make(task).go(X, y)
    scores = scores_of_numbers if stream.numbers else scores_of_labels
    return {
        "task": asdict(task),
        "n_samples": len(y),
        "scores": {
            **scores(done.answers, y),
            SECONDS: done.seconds,
            MEGABYTES: done.n_bytes / 1e6,
        },
        "elapsed": time.perf_counter() - start,
        "versions": done.versions,
    }


if __name__ == "__main__":
    try:
        print(json.dumps(result_of(Task(**json.loads(sys.argv[1])))))
    except KeyboardInterrupt:
        sys.exit(130)
