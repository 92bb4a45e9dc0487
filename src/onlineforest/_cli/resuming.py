"""Start a run with a new forest, with one from a model file, or at an interrupted run's position.

Knows nothing of terminals; contradictory options raise `OptionError`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from onlineforest._cli.defaults import DEFAULT_BATCH_SIZE, DEFAULT_KIND
from onlineforest._cli.errors import OptionError
from onlineforest._cli.forests import FORESTS, Forest, is_of, kind_of
from onlineforest._cli.schema import TrainingError
from onlineforest._cli.training import Position, finish_last_batch
from onlineforest._files.container import parse_json, read_header
from onlineforest._store.checkpoints import Checkpointer
from onlineforest._store.loading import load, load_with_position


@dataclass(frozen=True)
class TrainingOptions:
    """Options of a run; None for those not given."""

    task: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)  # only those given
    n_jobs: int | None = None
    batch_size: int | None = None
    learn: bool = True
    kind: str | None = None  # of forest


@dataclass(frozen=True)
class PreviousForest:
    """A forest to continue with, and the position stored in its file if the run is resumed."""

    forest: Forest
    path: Path
    is_resumed: bool
    stored: Any = None


@dataclass(frozen=True)
class ModelStore:
    """The model file and the checkpoints that a run writes."""

    model: Path
    checkpointer: Checkpointer | None = None

    def newest(self) -> PreviousForest | None:
        """The checkpoint or the model of an earlier run, whichever has learned more rows.

        A damaged checkpoint is skipped in favour of the one before it.
        """
        checkpoint = model = None
        if self.checkpointer is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # `RunStart.message` names the checkpoint used
                opened = self.checkpointer.open()
            if opened is not None:
                checkpoint = PreviousForest(opened.forest, opened.path, True, opened.position)
        if self.model.exists():
            read = load_with_position(self.model)
            model = PreviousForest(read.forest, self.model, True, read.position)
        if checkpoint is None or model is None:
            return checkpoint or model
        return model if _n_rows(model.stored) > _n_rows(checkpoint.stored) else checkpoint

    def check_is_new(self, from_: Path | None = None) -> None:
        """Raise if this run would overwrite an unfinished run or mix checkpoints of two runs."""
        if self.checkpointer is not None and any(self.checkpointer.folder.glob("checkpoint-*")):
            raise OptionError(
                f"{self.checkpointer.folder} already has checkpoints. Continue from them with "
                "--resume, or name another folder."
            )
        if self.model != from_ and self.model.is_file() and _is_unfinished(self.model):
            raise OptionError(
                f"{self.model} is the model of an interrupted run. Continue from it with --resume. "
                "To start over, delete it or name another file."
            )


@dataclass(frozen=True)
class RunStart:
    """Forest and position at the start of a run, and a message about them."""

    forest: Forest
    position: Position
    message: str = ""


def load_previous(
    store: ModelStore | None, resume: bool, path: Path | None
) -> PreviousForest | None:
    """Load the forest to continue with: of an earlier run if `resume`, otherwise of `path`."""
    previous = store.newest() if store is not None and resume else None
    if previous is None and path is not None:
        previous = PreviousForest(load(path), path, is_resumed=False)
    return previous


def check_task(options: TrainingOptions, previous: PreviousForest | None) -> None:
    """Raise if a new forest is to be learned and it is not said for which task."""
    if previous is None and options.task is None:
        raise OptionError(
            "Missing option '--task': classify if the target is a class, regress if it is a number."
        )


def start_run(options: TrainingOptions, previous: PreviousForest | None, source: str) -> RunStart:
    """Start with a previous forest or a new one, on the table with the fingerprint `source`."""
    batch_size = options.batch_size or DEFAULT_BATCH_SIZE
    if previous is None:
        return RunStart(_new_forest(options), Position(0, batch_size, source))
    _check_same_forest(options, previous)
    if options.n_jobs is not None:
        previous.forest.set_params(n_jobs=options.n_jobs)
    if not previous.is_resumed:
        action = "Continuing with" if options.learn else "Predicting with"
        n_seen = previous.forest.n_samples_seen_
        message = f"{action} {previous.path}, which has learned {n_seen:,} samples."
        return RunStart(previous.forest, Position(0, batch_size, source), message)
    position = _check_position(options, previous, source)
    finish_last_batch(previous.forest)
    message = f"Continuing from {previous.path}, after {position.rows:,} samples."
    return RunStart(previous.forest, position, message)


def _is_unfinished(model: Path) -> bool:
    try:
        position = Position.from_json(parse_json(read_header(model).metadata["position"], "it"))
    except (ValueError, KeyError, OSError):  # not the model of a run: it may be replaced
        return False
    return position is not None and not position.is_finished


def _n_rows(stored: Any) -> int:
    position = Position.from_json(stored)
    return -1 if position is None else position.rows


def _new_forest(options: TrainingOptions) -> Forest:
    assert options.task is not None  # `check_task` was called
    parameters = {"random_state": 0, **options.parameters}
    if "offsets" in parameters and options.kind == "mondrian":
        raise OptionError("--offset is for order-free forests: subtract the number from the data.")
    estimators = FORESTS[options.kind or DEFAULT_KIND]
    if options.task not in estimators:
        raise OptionError(
            f"--task {options.task} needs --forest order-free: --forest {options.kind} learns "
            "classes only."
        )
    forest = estimators[options.task](n_jobs=options.n_jobs, **parameters)
    if forest.window is not None and forest.reservoir is not None:
        raise OptionError("--window and --reservoir exclude each other.")
    if forest.half_life is not None and forest.reservoir is None:
        raise OptionError("--half-life is for a reservoir: give --reservoir, too.")
    return forest


def _check_same_forest(options: TrainingOptions, previous: PreviousForest) -> None:
    forest, name = previous.forest, type(previous.forest).__name__
    if options.task is not None and not is_of(forest, options.task):
        raise OptionError(
            f"--task is {options.task}, but the forest in {previous.path} is of the class {name}."
        )
    if options.kind not in (None, kind_of(forest)):
        raise OptionError(
            f"--forest is {options.kind}, but the forest in {previous.path} is "
            f"{kind_of(forest)} ({name}). Omit --forest, or learn a new model."
        )
    parameters = forest.get_params()
    for name, value in options.parameters.items():
        known = parameters.get(name)  # a Mondrian forest has no offsets
        if not np.array_equal(np.asarray(known, object), np.asarray(value, object)):
            raise OptionError(
                f"{name} is {value}, but the forest in {previous.path} has {name} = {known}, which "
                "cannot be changed."
            )


def _check_position(options: TrainingOptions, previous: PreviousForest, source: str) -> Position:
    position = Position.from_json(previous.stored)
    if position is None:
        raise TrainingError(
            f"{previous.path} does not say which rows it has learned, so --resume cannot skip "
            "them. To learn all of the data in addition, use --from."
        )
    if position.source != source:
        raise TrainingError(
            f"{previous.path} was learned from other data: the header, first row or target "
            "differs. To learn these data in addition, use --from in place of --resume."
        )
    if options.batch_size not in (None, position.batch_size):
        raise OptionError(
            f"--batch-size is {options.batch_size}, but {previous.path} was started with "
            f"{position.batch_size}. Omit it: metrics and Mondrian forests depend on it."
        )
    return position
