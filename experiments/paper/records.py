"""What one run found, and the store that keeps it so that an interrupted experiment goes on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Record:
    """One model, after it has learned a fraction of the training data, on the test set.

    Attributes
    ----------
    data, method : str
        Names of the data set and of the method.
    seed : int
        The run. Equal seeds see the rows in the same order, whatever the method.
    fraction : float
        Of the training rows, the part learned so far.
    n_passes : int
        How often they were learned: 1, or more for methods that pass over the data again.
    n_samples : int
        Number of rows in the fraction.
    seconds : float
        Processor time of learning: of everything since the start for a method that learns online,
        of this training alone for one that is re-trained.
    accuracy, log_loss : float
        On the test set; a probability of 0 counts as 1e-15 in the log loss.
    reliability : tuple of tuples
        Per tenth of the confidence (the largest probability): number of test rows, sum of the
        confidences, number of rows guessed right.
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
    """A record from what JSON holds of it."""
    fields["reliability"] = tuple(tuple(row) for row in fields["reliability"])
    return Record(**fields)


class Store:
    """Records of finished tasks as files in a folder, one per task.

    A file's name is a hash of everything its records depend on (the key), so that a changed setting
    or version is never answered with an old result.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: dict) -> Path:
        """Where the records of a task are kept."""
        text = json.dumps(key, sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"

    def load(self, key: dict) -> tuple[list[Record], dict] | None:
        """Records of a task, and about them; None if it is not done, or its file is not whole."""
        try:
            content = json.loads(self.path(key).read_text())
            if content["key"] != json.loads(json.dumps(key)):
                return None
            return [record_of(fields) for fields in content["records"]], dict(content["about"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def save(self, key: dict, records: Sequence[Record], about: dict) -> None:
        """Keep the records of a task, and what is to be known about them.

        A file is there whole or not at all.
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
