"""Where learning begins: with a new forest, with one from a file, or where a run was stopped.

Knows nothing of terminals; what contradicts itself is a `ChoiceError`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onlineforest._cli.training import (
    DEFAULT_BATCH,
    Forest,
    Position,
    TrainingError,
    finish_last_batch,
)
from onlineforest._files.container import parse_json, read_header
from onlineforest._models.checkpoints import Checkpointer
from onlineforest._models.classifier import MondrianForestClassifier
from onlineforest._models.loading import load, load_with_position
from onlineforest._models.regressor import MondrianForestRegressor

TASKS: Mapping[str, type[Forest]] = {
    "classify": MondrianForestClassifier,
    "regress": MondrianForestRegressor,
}


class ChoiceError(ValueError):
    """What was asked for contradicts itself, or what a forest was begun with."""


@dataclass(frozen=True)
class Choices:
    """What was chosen; None where nothing was said."""

    task: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)  # those that were given
    n_jobs: int | None = None
    batch_size: int | None = None
    learn: bool = True


@dataclass(frozen=True)
class Found:
    """A forest that is gone on with; what its file says of its position, if that matters."""

    forest: Forest
    path: Path
    is_resumed: bool
    stored: Any = None


@dataclass(frozen=True)
class Store:
    """Where a run leaves its forest."""

    model: Path
    checkpointer: Checkpointer | None = None

    def newest(self) -> Found | None:
        """What a run that was stopped has left: the checkpoint or the model, whichever is further.

        A damaged checkpoint is passed over for the one before.
        """
        checkpoint = model = None
        if self.checkpointer is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # `Start.words` tell where it goes on
                opened = self.checkpointer.open()
            if opened is not None:
                checkpoint = Found(opened.forest, opened.path, True, opened.position)
        if self.model.exists():
            read = load_with_position(self.model)
            model = Found(read.forest, self.model, True, read.position)
        if checkpoint is None or model is None:
            return checkpoint or model
        return model if _rows(model.stored) > _rows(checkpoint.stored) else checkpoint

    def check_is_new(self, from_: Path | None = None) -> None:
        """Raise if an unfinished run would be lost, or its checkpoints mixed with those of this."""
        if self.checkpointer is not None and any(self.checkpointer.folder.glob("checkpoint-*")):
            raise ChoiceError(
                f"{self.checkpointer.folder} has checkpoints already. Go on from them with "
                "--resume, or name another folder."
            )
        if self.model != from_ and self.model.is_file() and _is_unfinished(self.model):
            raise ChoiceError(
                f"{self.model} is the model of a run that was interrupted. Go on from it with "
                "--resume; to start anew, delete it or name another file."
            )


@dataclass(frozen=True)
class Start:
    """Where it begins."""

    forest: Forest
    position: Position
    words: str = ""


def found_forest(store: Store | None, resume: bool, path: Path | None) -> Found | None:
    """The forest to go on with, if there is one."""
    found = store.newest() if store is not None and resume else None
    if found is None and path is not None:
        found = Found(load(path), path, is_resumed=False)
    return found


def started(choices: Choices, found: Found | None, source: str) -> Start:
    """Begin, with a forest that was found or with a new one, on the table of this fingerprint."""
    batch_size = choices.batch_size or DEFAULT_BATCH
    if found is None:
        return Start(_new_forest(choices), Position(0, batch_size, source))
    _check_same_forest(choices, found)
    if choices.n_jobs is not None:
        found.forest.set_params(n_jobs=choices.n_jobs)
    if not found.is_resumed:
        doing = "Going on with" if choices.learn else "Predicting with"
        words = f"{doing} {found.path}, of {found.forest.n_samples_seen_:,} samples."
        return Start(found.forest, Position(0, batch_size, source), words)
    position = _checked_position(choices, found, source)
    finish_last_batch(found.forest)
    words = f"Going on from {found.path}, after {position.rows:,} samples."
    return Start(found.forest, position, words)


def _is_unfinished(model: Path) -> bool:
    try:
        position = Position.from_json(parse_json(read_header(model).metadata["position"], "it"))
    except (ValueError, KeyError, OSError):  # no model of a run: it is replaced, as the help says
        return False
    return position is not None and not position.is_finished


def _rows(stored: Any) -> int:
    position = Position.from_json(stored)
    return -1 if position is None else position.rows


def _new_forest(choices: Choices) -> Forest:
    if choices.task is None:
        raise ChoiceError(
            "Missing option '--task': classify if the target is a class, regress if it is a number."
        )
    parameters = {"random_state": 0, **choices.parameters}
    forest = TASKS[choices.task](n_jobs=choices.n_jobs, **parameters)
    if forest.window is not None and forest.reservoir is not None:
        raise ChoiceError("--window and --reservoir exclude each other.")
    if forest.half_life is not None and forest.reservoir is None:
        raise ChoiceError("--half-life is that of a reservoir: give --reservoir, too.")
    return forest


def _check_same_forest(choices: Choices, found: Found) -> None:
    if choices.task is not None and not isinstance(found.forest, TASKS[choices.task]):
        raise ChoiceError(f"{found.path} holds a forest of the other kind: --task is wrong.")
    now = found.forest.get_params()
    for name, value in choices.parameters.items():
        if now[name] != value:
            raise ChoiceError(
                f"{name} is to be {value}, but the forest in {found.path} was begun with "
                f"{now[name]}, and that cannot be changed."
            )


def _checked_position(choices: Choices, found: Found, source: str) -> Position:
    position = Position.from_json(found.stored)
    if position is None:
        raise TrainingError(
            f"{found.path} does not say which rows it has learned, so --resume cannot skip them. "
            "To learn all of the data on top of it, use --from."
        )
    if position.source != source:
        raise TrainingError(
            f"{found.path} comes from other data: another header, first row or target. To learn "
            "these on top of it, use --from in place of --resume."
        )
    if choices.batch_size not in (None, position.batch_size):
        raise ChoiceError(
            f"--batch-size is {choices.batch_size}, but {found.path} was begun with "
            f"{position.batch_size}: leave it out, or the forest would become another."
        )
    return position
