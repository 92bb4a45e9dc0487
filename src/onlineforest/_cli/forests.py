"""The forests that commands learn: their kinds, new ones, and those of earlier runs.

A run starts with a new forest, with one from a model file, or at the position of an interrupted
run. The position that is stored with a forest says which table it has learned, how many rows, and
in which batches. Knows nothing of tables and terminals.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import onlineforest
from onlineforest._cli.commands import OptionError
from onlineforest._cli.metrics import Metrics
from onlineforest._cli.options import DEFAULT_KIND
from onlineforest._cli.parameters import DEFAULT_SEED, ESTIMATORS, all_parameters
from onlineforest._files.container import parse_json, read_header
from onlineforest._forests.orderfree.classifier import OnlineForestClassifier
from onlineforest._forests.orderfree.regressor import OnlineForestRegressor
from onlineforest._inputs.parameters import InvalidParameterError, check_parameters
from onlineforest._store.checkpoints import Checkpointer
from onlineforest._store.loading import AnyForest, load, load_with_position

Forest = AnyForest
FORESTS: Mapping[str, Mapping[str, type[Forest]]] = {  # kind, task and estimator
    kind: {task: getattr(onlineforest, name) for task, name in tasks.items()}
    for kind, tasks in ESTIMATORS.items()
}


class TrainingError(ValueError):
    """The forest rejects rows, or does not match the table."""


def rejection(samples: str, first: int, n: int, error: ValueError) -> TrainingError:
    """The error for `n` rejected samples or rows; its message begins with their numbers."""
    reason = str(error).splitlines()[0] if str(error) else repr(error)
    return TrainingError(f"{samples} {first:,} to {first + n - 1:,}: {reason}")


def kind_of(forest: Forest) -> str:
    """The kind of a forest."""
    return next(kind for kind, tasks in FORESTS.items() if type(forest) in tasks.values())


def learns_categories(forest: Forest) -> bool:
    """Whether a forest has categorical features and missing values, not numbers alone."""
    return kind_of(forest) == "order-free"


def is_fitted(forest: Forest) -> bool:
    """Whether the forest has learned anything."""
    return bool(forest.__sklearn_is_fitted__())


class HeldSamples:
    """The samples that an order-free forest holds now, to count rows that are equal to them."""

    def __init__(self, forest: OnlineForestClassifier | OnlineForestRegressor) -> None:
        self._forest, self.n_equal = forest, 0
        self._targets = copy(forest._targets)  # learning may give their codes to other labels
        state = forest._forest.get_state()
        width = forest._spec_of_state(state).width
        self._keys = np.unique(_keys_of(state["rows"].reshape(-1, width), state["values"]))

    def count(self, X: Any, y: NDArray[Any]) -> None:
        """Add the number of rows whose features and target are those of a held sample."""
        values, _ = self._targets.values_of(y)  # -1 for a label of no sample
        keys = _keys_of(self._forest._rows.queries(self._forest, X), values)
        self.n_equal += int(np.isin(keys, self._keys).sum())


def _keys_of(rows: NDArray[np.float32], values: NDArray[Any]) -> NDArray[np.void]:
    """The bytes of each row with its value: the same for all zeros, and for all NaN."""
    cells = np.where(np.isnan(rows), np.float32(np.nan), rows + np.float32(0.0))
    targets = (values.astype(np.float64) + 0.0)[:, np.newaxis].view(np.float32)
    joined = np.ascontiguousarray(np.hstack([cells, targets]))
    return joined.view(np.dtype((np.void, joined.shape[1] * 4)))[:, 0]


@dataclass(frozen=True)
class Position:
    """How much of a table a forest has learned."""

    rows: int
    batch_size: int | None  # None: batches that grow
    source: str  # the table's fingerprint
    metrics: Metrics = field(default_factory=Metrics)
    is_finished: bool = True  # False if the run was interrupted

    def as_json(self) -> dict[str, Any]:
        """JSON values to store with the forest."""
        return {
            "rows": self.rows,
            "batch_size": self.batch_size,
            "source": self.source,
            "measures": self.metrics.as_json(),  # the key of the file format
            **({} if self.is_finished else {"is_finished": False}),
        }

    @classmethod
    def from_json(cls, stored: Any) -> Position | None:
        """Position from the result of `as_json`; None for any other value."""
        match stored:
            case {
                "rows": int(rows),
                "batch_size": int() | None as size,
                "source": str(source),
                **others,
            }:
                try:
                    metrics = Metrics.from_json(others.get("measures"))
                except ValueError:
                    return None
                is_finished = others.get("is_finished") is not False
                is_valid = rows >= 0 and (size is None or size > 0)
                return cls(rows, size, source, metrics, is_finished) if is_valid else None
        return None


@dataclass(frozen=True)
class TrainingOptions:
    """Options of a run; None for those not given."""

    task: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)  # only those given
    n_jobs: int | None = None
    batch_size: int | None = None
    learn: bool = True
    kind: str | None = None  # kind of the forest


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


def _n_rows(stored: Any) -> int:
    position = Position.from_json(stored)
    return -1 if position is None else position.rows


def _is_unfinished(model: Path) -> bool:
    try:
        stored = parse_json(read_header(model).metadata["position"], "it")
    except (ValueError, KeyError, OSError):  # not the model of a run: it may be replaced
        return False
    position = Position.from_json(stored)
    return position is not None and not position.is_finished


@dataclass(frozen=True)
class RunStart:
    """Forest and position at the start of a run, and a message about them."""

    forest: Forest
    position: Position
    message: str = ""


def load_previous(
    path: Path | None, resumed_store: ModelStore | None = None
) -> PreviousForest | None:
    """Load the forest to continue with: of an earlier run if there is one, otherwise of `path`."""
    previous = None if resumed_store is None else resumed_store.newest()
    if previous is None and path is not None:
        previous = PreviousForest(load(path), path, is_resumed=False)
    return previous


def check_task(options: TrainingOptions, previous: PreviousForest | None) -> None:
    """Raise if neither the options nor a previous forest say which task to learn."""
    if previous is None and options.task is None:
        raise OptionError(
            "Missing option '--task': classify if the target is a class, regress if it is a number."
        )


def start_run(options: TrainingOptions, previous: PreviousForest | None, source: str) -> RunStart:
    """Start with a previous forest or a new one, on the table with the fingerprint `source`."""
    if previous is None:
        return RunStart(_new_forest(options), Position(0, options.batch_size, source))
    _check_same_forest(options, previous)
    forest, path = previous.forest, previous.path
    if options.n_jobs is not None:
        forest.set_params(n_jobs=options.n_jobs)
    if not previous.is_resumed:
        action = "Continuing with" if options.learn else "Predicting with"
        message = f"{action} {path}, which has learned {forest.n_samples_seen_:,} samples."
        return RunStart(forest, Position(0, options.batch_size, source), message)
    position = _resumed_position(options, previous, source)
    if kind_of(forest) == "mondrian":
        # Finishes the batch that was interrupted when the forest was saved, and learns nothing
        # else. An order-free forest does so by itself, and would calibrate here.
        forest.keep_latest(forest.n_samples_stored_)
    return RunStart(forest, position, f"Continuing from {path}, after {position.rows:,} samples.")


def _new_forest(options: TrainingOptions) -> Forest:
    assert options.task is not None  # `check_task` was called
    estimators = FORESTS[options.kind or DEFAULT_KIND]
    if options.task not in estimators:
        raise OptionError(
            f"--task {options.task} needs --forest order-free: --forest {options.kind} learns "
            "classes only."
        )
    estimator = estimators[options.task]
    _check_parameters(estimator, options.parameters)
    parameters = {"random_state": DEFAULT_SEED, **options.parameters}
    forest = estimator(n_jobs=options.n_jobs, **parameters)
    if forest.window is not None and forest.reservoir is not None:
        raise OptionError(
            f"--window {forest.window} and --reservoir {forest.reservoir} exclude each other."
        )
    if forest.half_life is not None and forest.reservoir is None:
        raise OptionError(
            f"--half-life {forest.half_life:g} is for a reservoir: give --reservoir, too."
        )
    return forest


def _check_parameters(estimator: type[Forest], parameters: Mapping[str, Any]) -> None:
    """Raise if the estimator does not have one of the parameters, or not with this value."""
    for name, value in parameters.items():
        parameter = all_parameters()[name]
        if estimator.__name__ not in parameter.defaults:
            raise OptionError(
                f"--{parameter.flag} is for {parameter.audience}, and {estimator.__name__} has no "
                f"parameter {name}."
            )
        try:
            check_parameters(estimator.__name__, {name: value}, estimator._constraints)
        except InvalidParameterError as error:
            raise OptionError(f"Invalid value for '--{parameter.flag}': {error}") from error


def _check_same_forest(options: TrainingOptions, previous: PreviousForest) -> None:
    forest, kind = previous.forest, kind_of(previous.forest)
    class_name = type(forest).__name__
    if options.task is not None and type(forest) is not FORESTS[kind].get(options.task):
        raise OptionError(
            f"--task is {options.task}, but the forest in {previous.path} is of the class "
            f"{class_name}."
        )
    if options.kind not in (None, kind):
        raise OptionError(
            f"--forest is {options.kind}, but the forest in {previous.path} is {kind} "
            f"({class_name}). Omit --forest, or learn a new model."
        )
    parameters = forest.get_params()
    for name, value in options.parameters.items():
        known = parameters.get(name)  # a Mondrian forest has no offsets
        if isinstance(known, Mapping):
            known = {str(key): number for key, number in known.items()}
        if not np.array_equal(np.asarray(known, object), np.asarray(value, object)):
            raise OptionError(
                f"--{all_parameters()[name].flag} is {value}, but the forest in {previous.path} "
                f"has {name} = {known}, which cannot be changed."
            )


def _resumed_position(options: TrainingOptions, previous: PreviousForest, source: str) -> Position:
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
        size = "batches that grow" if position.batch_size is None else position.batch_size
        raise OptionError(
            f"--batch-size is {options.batch_size}, but {previous.path} was started with {size}. "
            "Omit it: metrics and Mondrian forests depend on it."
        )
    return position
