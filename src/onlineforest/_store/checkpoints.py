"""Writes checkpoints of a forest at intervals, and finds the newest valid one.

Must not know what is in a model file, nor how one is replaced safely.
"""

from __future__ import annotations

import math
import os
import re
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from onlineforest._files.atomic import leftovers, sync_folder
from onlineforest._files.errors import ModelFileError, ModelTooLargeError
from onlineforest._forests.base import BaseForest
from onlineforest._forests.saving import write_model
from onlineforest._inputs.parameters import Constraints, check_parameters, instance_of, interval
from onlineforest._store.loading import load_with_position

_PREFIX = "checkpoint-"
_NAME = re.compile(rf"{_PREFIX}([0-9]{{12}}|[1-9][0-9]{{12,}})\.safetensors")
_CONSTRAINTS: Constraints = {
    "folder": [instance_of(str, "a string"), instance_of(os.PathLike, "a path")],
    "every_samples": [interval(Integral, 1, math.inf, "[)"), None],
    "every_seconds": [interval(Real, 0, math.inf, "()"), None],
    "keep": [interval(Integral, 1, math.inf, "[)")],
}


@dataclass(frozen=True)
class Skipped:
    """A checkpoint that could not be used, and the reason, which continues its path."""

    path: Path
    reason: str


@dataclass(frozen=True)
class Checkpoint:
    """The result of `Checkpointer.open`.

    Attributes
    ----------
    forest : estimator of onlineforest
        The forest, identical to the saved one to the last bit.
    position : object
        The position saved with it; if that was None, the number of samples the forest has seen.
    path : pathlib.Path
        The file.
    skipped : tuple of Skipped
        Newer checkpoints that could not be used, each with its `path` and a `reason`.

    Examples
    --------
    >>> from onlineforest import Checkpointer, OnlineForestRegressor
    >>> forest = OnlineForestRegressor(random_state=0).fit([[0.0], [1.0]], [3.0, 7.0])
    >>> path = Checkpointer("sevens").save(forest)
    >>> checkpoint = Checkpointer("sevens").open()
    >>> checkpoint.position, checkpoint.path.name, checkpoint.skipped
    (2, 'checkpoint-000000000001.safetensors', ())
    """

    __module__ = "onlineforest"

    forest: Any
    position: Any
    path: Path
    skipped: tuple[Skipped, ...]


class Checkpointer:
    """Saves a forest at intervals, and finds the newest valid checkpoint.

    A checkpoint holds the forest and its position in the stream in one file, so the two cannot
    disagree. It gets its name only when it is safely on the disk, and older ones are deleted only
    then: even after a kill or a power failure, the newest checkpoint is valid. A consumer that
    continues from its position gets the forest of a consumer that never stopped, to the last bit,
    if it divides the stream into the same batches. (Order-free forests do not need this condition.)

    Parameters
    ----------
    folder : str or os.PathLike
        The folder of the checkpoints: ``checkpoint-000000000001.safetensors`` and so on, files that
        `onlineforest.load` reads, too. Created if missing. Other files in it are not touched. Only
        one process at a time may save into a folder, and only one forest; any number may open it.
    every_samples : int or None, default=None
        `update` saves when the forest has seen this number of new samples (`n_samples_seen_`), or
        has seen fewer samples than before, because `fit` was called again.
    every_seconds : float or None, default=None
        `update` saves when this time has passed. With both, the first of the two counts; with
        neither, only `save` saves, and `update` is an error.
    keep : int, default=3
        Number of checkpoints to keep. Those that `open` skipped do not count.

    Notes
    -----
    Threads may share a checkpointer. A signal handler gets a `RuntimeError` if it interrupts a
    call: let the handler set a flag, and save where the flag is read.

    Examples
    --------
    >>> from onlineforest import Checkpointer, OnlineForestRegressor
    >>> def learn(until):
    ...     checkpointer = Checkpointer("checkpoints", every_samples=20)
    ...     checkpoint = checkpointer.open()
    ...     if checkpoint is None:
    ...         forest, start = OnlineForestRegressor(random_state=0), 0
    ...     else:
    ...         forest, start = checkpoint.forest, checkpoint.position
    ...     for i in range(start, until):
    ...         forest.partial_fit([[i]], [i / 2])
    ...         checkpointer.update(forest, position=i + 1)
    ...     return f"from {start} to {until}"
    >>> learn(until=50), learn(until=100)
    ('from 0 to 50', 'from 40 to 100')
    """

    __module__ = "onlineforest"

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        every_samples: int | None = None,
        every_seconds: float | None = None,
        keep: int = 3,
    ) -> None:
        parameters = {
            "folder": folder,
            "every_samples": every_samples,
            "every_seconds": every_seconds,
            "keep": keep,
        }
        check_parameters("Checkpointer", parameters, _CONSTRAINTS)
        self.folder = Path(folder).absolute()  # independent of later changes of directory
        self.every_samples, self.every_seconds, self.keep = every_samples, every_seconds, keep
        self._lock, self._is_at_work = threading.RLock(), False
        self._count_from(0)
        self._unusable: set[Path] = set()  # checkpoints that `open` skipped

    def update(self, forest: BaseForest[Any], position: Any = None) -> Path | None:
        """Save the forest if a checkpoint is due. Call this after each batch.

        Parameters
        ----------
        forest : estimator of onlineforest
            The forest.
        position : object, default=None
            Where to continue in the stream: any value that JSON can represent, such as an offset or
            a dict of offsets of partitions. None: after the samples that the forest has seen.

        Returns
        -------
        pathlib.Path or None
            The new checkpoint, None if none was due.

        Raises
        ------
        OSError
            If it cannot be written, for example because the disk is full. The older checkpoints and
            the forest are unchanged: a caller that catches the error can continue to learn. The
            next attempt comes when the next checkpoint is due.

        Examples
        --------
        >>> from onlineforest import Checkpointer, OnlineForestRegressor
        >>> forest = OnlineForestRegressor(random_state=0)
        >>> checkpointer = Checkpointer("numbers", every_samples=2)
        >>> for x in range(4):
        ...     path = checkpointer.update(forest.partial_fit([[x]], [x]))
        ...     print(path and path.name)
        None
        checkpoint-000000000001.safetensors
        None
        checkpoint-000000000002.safetensors
        """
        if self.every_samples is None and self.every_seconds is None:
            raise ValueError(
                "update needs a Checkpointer with every_samples or every_seconds, but both are "
                "None: it would never save."
            )
        with self._at_work():
            return self._save(forest, position) if self._is_due(_n_seen(forest)) else None

    def save(self, forest: BaseForest[Any], position: Any = None) -> Path:
        """Save the forest now, as `update` does; intervals are counted from here.

        Examples
        --------
        >>> from onlineforest import Checkpointer, OnlineForestRegressor
        >>> forest = OnlineForestRegressor(random_state=0).fit([[0.0], [1.0]], [3.0, 7.0])
        >>> path = Checkpointer("parts").save(forest, position={"left": 17, "right": 4})
        >>> Checkpointer("parts").open().position["right"]
        4
        """
        with self._at_work():
            return self._save(forest, position)

    def open(self, *, max_bytes: int | None = None) -> Checkpoint | None:
        """Read the newest valid checkpoint; `update` counts from there.

        A checkpoint that is damaged or cannot be read is skipped, with a warning.

        Parameters
        ----------
        max_bytes : int or None, default=None
            Largest memory of the forest in bytes, approximately.

        Returns
        -------
        Checkpoint or None
            None if there is no checkpoint, or no folder.

        Raises
        ------
        ModelFileError
            If there are checkpoints, but none can be used. The message gives the reason for each.
        ModelTooLargeError
            If the newest valid one would take more memory than `max_bytes`.

        Examples
        --------
        >>> from onlineforest import Checkpointer
        >>> print(Checkpointer("a folder yet to be made").open())
        None
        """
        with self._at_work():
            skipped: list[Skipped] = []
            for path in reversed(self._paths()):
                try:
                    model = load_with_position(path, max_bytes=max_bytes)
                except ModelTooLargeError:  # it is valid: do not fall back to an older, smaller one
                    raise
                except (ModelFileError, OSError) as error:
                    skipped.append(Skipped(path, _reason(path, error)))
                    continue
                for each in skipped:
                    warnings.warn(f"Skipped a checkpoint: {each.path} {each.reason}", stacklevel=2)
                self._unusable = {each.path for each in skipped}
                n_seen = model.forest.n_samples_seen_
                self._count_from(n_seen)
                position = n_seen if model.position is None else model.position
                return Checkpoint(model.forest, position, path, tuple(skipped))
        if not skipped:
            return None
        whys = "".join(f"\n{each.path} {each.reason}" for each in skipped)
        raise ModelFileError(f"{self.folder} has checkpoints, but none can be used:{whys}")

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """Admit one thread at a time, and no signal handler that interrupts its call."""
        with self._lock:
            if self._is_at_work:
                raise RuntimeError("This Checkpointer is in the middle of a call.")
            self._is_at_work = True
            try:
                yield
            finally:
                self._is_at_work = False

    def _count_from(self, n_seen: int) -> None:
        self._last_n_seen, self._last_time = n_seen, time.monotonic()

    def _is_due(self, n_seen: int) -> bool:
        n_more, seconds = n_seen - self._last_n_seen, time.monotonic() - self._last_time
        return (self.every_samples is not None and not 0 <= n_more < self.every_samples) or (
            self.every_seconds is not None and seconds >= self.every_seconds
        )

    def _save(self, forest: BaseForest[Any], position: Any) -> Path:
        n_seen, path, others = _n_seen(forest), self.folder, "earlier ones are"
        try:
            earlier = self._paths()
            others = "1 earlier one is" if len(earlier) == 1 else f"{len(earlier)} {others}"
            path /= _name(_number(earlier[-1]) + 1 if earlier else 1)
            self._make_ready()
            # None stays None: n_seen is out of date if another thread has learned since.
            write_model(forest, path, position)
        except OSError as error:
            what = f"{error.strerror or error}; checkpoint not written, {others} intact"
            raise OSError(error.errno, what, str(path)) from error
        finally:
            # Also after a failure, and from its end: a slow disk must not delay every batch.
            self._count_from(n_seen)
        self._delete_old([*earlier, path])
        return path

    def _paths(self) -> list[Path]:
        """All checkpoints, valid or not, the oldest first."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        return sorted((self.folder / name for name in names if _NAME.fullmatch(name)), key=_number)

    def _make_ready(self) -> None:
        """Create the folder durably, and remove temporary files of killed processes."""
        upwards = (self.folder, *self.folder.parents)
        missing = list(takewhile(lambda folder: not folder.exists(), upwards))
        self.folder.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            sync_folder(str(folder.parent))
        for left in leftovers(self.folder, _PREFIX):
            target = Path(left.stem).stem  # left: .checkpoint-000000000001.safetensors.0123abcd.tmp
            if _NAME.fullmatch(target.removeprefix(".")):
                with suppress(OSError):
                    left.unlink()

    def _delete_old(self, paths: list[Path]) -> None:
        """Delete checkpoints older than those to keep. A failed deletion is repeated next time."""
        usable = [path for path in paths if path not in self._unusable]
        oldest_to_keep = usable[-self.keep :][0]
        for path in paths[: paths.index(oldest_to_keep)]:
            with suppress(OSError):
                path.unlink()


def _name(number: int) -> str:
    return f"{_PREFIX}{number:012d}.safetensors"


def _number(path: Path) -> int:
    return int(path.stem.removeprefix(_PREFIX))


def _n_seen(forest: BaseForest[Any]) -> int:
    if not isinstance(forest, BaseForest):
        raise TypeError(f"forest must be an estimator of onlineforest. Got {forest!r} instead.")
    return forest.n_samples_seen_


def _reason(path: Path, error: ModelFileError | OSError) -> str:
    """Why a checkpoint cannot be used; continues its path."""
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or error}"
    return str(error).removeprefix(f"{path} ")
