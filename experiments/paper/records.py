"""Measurements of one run, and the store from which an interrupted experiment resumes."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Record:
    """The test scores of one model after it has learned a fraction of the training data.

    Attributes
    ----------
    data, method : str
        Names of the data set and of the method.
    seed : int
        Number of the run. Runs with equal seeds see the rows in the same order, for any method.
    fraction : float
        Share of the training rows learned so far.
    n_passes : int
        Number of passes over the rows: more than 1 only for methods that make further passes.
    n_samples : int
        Number of rows in the fraction.
    seconds : float
        Processor time of learning: since the start for a method that learns online, of this
        training alone for a method that is retrained.
    accuracy, log_loss : float
        Scores on the test set; a probability of 0 counts as 1e-15 in the log loss.
    reliability : tuple of tuples
        Per tenth of the confidence (the largest probability): number of test rows, sum of the
        confidences, number of correct predictions.
    depth : float or None
        Mean depth of a Mondrian forest's leaves, over points and trees.
    """

    data: str
    method: str
    seed: int
    fraction: float
    n_passes: int
    n_samples: int
    seconds: float
    accuracy: float
    log_loss: float
    reliability: tuple[tuple[int, float, int], ...]
    depth: float | None = None


def record_of(fields: dict) -> Record:
    """A record from its JSON object."""
    fields["reliability"] = tuple(tuple(row) for row in fields["reliability"])
    return Record(**fields)


class Store:
    """Records of finished tasks as files in a folder, one per task.

    The name of a file is a hash of everything its records depend on (the key). So the store never
    returns an old result for a changed setting or version.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: dict) -> Path:
        """The file of a task's records."""
        text = json.dumps(key, sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"

    def load(self, key: dict) -> tuple[list[Record], dict] | None:
        """Records of a task and a description of its run; None if the file is missing or bad."""
        try:
            content = json.loads(self.path(key).read_text())
            if content["key"] != json.loads(json.dumps(key)):
                return None
            return [record_of(fields) for fields in content["records"]], dict(content["about"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def save(self, key: dict, records: Sequence[Record], about: dict) -> None:
        """Store the records of a task and a description of its run.

        The file is written completely or not at all.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.path(key)
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        content = {"key": key, "about": about, "records": [asdict(record) for record in records]}
        temporary.write_text(json.dumps(content))
        os.replace(temporary, path)


def select(records: Iterable[Record], **wanted: object) -> list[Record]:
    """The records whose fields have these values."""
    return [
        record
        for record in records
        if all(getattr(record, field) == value for field, value in wanted.items())
    ]
