"""A folder of snapshots of a forest that lives in parts.

A snapshot is taken after so many operations. It is a folder of its own, `position-N`, with a file
per part and, written last, what the estimator knows besides: where that is, the snapshot is whole.
All are model files, read without trust.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onlineforest._distributed.shares import State, join_states
from onlineforest._files import container as _container
from onlineforest._files.atomic import replacing
from onlineforest._files.container import Contents, ModelFileError
from onlineforest._files.encoding import from_json, to_json
from onlineforest._models.saving import (
    arrays_of_core,
    contents_beside_core,
    model_of,
    state_of_core,
    with_counts,
)

if TYPE_CHECKING:
    from onlineforest._models.base import BaseMondrianForest

_N_KEPT = 2  # snapshots; the newest may be on a disk that fails
_NAME = re.compile(r"position-([0-9]{12,})")
_PART = "part"  # what the metadata call the place of a part
_FRONT = "front.safetensors"


class SnapshotWarning(UserWarning):
    """A snapshot could not be written, or not be read.

    Examples
    --------
    >>> import warnings
    >>> from onlineforest.ray import SnapshotWarning
    >>> warnings.simplefilter("error", SnapshotWarning)  # rather stop
    >>> warnings.simplefilter("default", SnapshotWarning)
    """


def write_part(path: str, state: State, place: Mapping[str, Any]) -> None:
    """Write a part of a forest, whole or not at all."""
    metadata = {"estimator": _PART, _PART: to_json(place)}
    with replacing(path) as file:
        _container.write(file, arrays_of_core(state, int(state["options.n_features"][0])), metadata)


def read_part(
    path: str,
    place: Mapping[str, Any],
    core: type[Any],
    n_features: int,
    options: Mapping[str, Any],
) -> State:
    """The state of a part of a forest of these options."""
    contents = _container.read(path)
    if from_json(contents.metadata, _PART, dict) != place:
        raise ModelFileError(f"{path} holds another part than {dict(place)}.")
    try:
        return state_of_core(core, n_features, options, contents.arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{path} is not a valid part: {error}") from error


class Snapshots:
    """The snapshots in a folder, which all parts must be able to write to.

    Parameters
    ----------
    folder : str or os.PathLike
        Where they are; made if it is not there.
    run : str
        The forest whose snapshots these are.
    """

    def __init__(self, folder: str | os.PathLike[str], run: str) -> None:
        self.folder = Path(folder).absolute()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            message = "A folder for snapshots was wanted. This is a file"
            raise NotADirectoryError(errno.ENOTDIR, message, str(self.folder)) from error
        self._run = run

    def part_file(self, position: int, number: int) -> str:
        """Where a part is, or is to be."""
        return str(self._at(position) / f"part-{number:05}.safetensors")

    def begin(self, position: int) -> None:
        """Make room for a snapshot."""
        self._at(position).mkdir(parents=True, exist_ok=True)

    def finish(self, position: int, estimator: BaseMondrianForest, plan: Mapping[str, Any]) -> None:
        """Write what the estimator knows: now the snapshot is whole."""
        serials, seed = estimator._forest.serials, plan["seed"]
        arrays, metadata = contents_beside_core(estimator, serials, seed)
        metadata["snapshot"] = to_json({"run": self._run, "position": position, **plan})
        with replacing(self._at(position) / _FRONT) as file:
            _container.write(file, arrays, metadata)

    def drop_old(self) -> None:
        """Remove all but the latest snapshots, and what was not finished."""
        kept = positions_in(self.folder)[-_N_KEPT:]
        for old in _all_positions(self.folder):
            if old not in kept:
                self.drop(old)

    def drop_all(self) -> None:
        """Remove all snapshots."""
        for position in _all_positions(self.folder):
            self.drop(position)

    def drop(self, position: int) -> None:
        """Remove a snapshot, as far as it can be."""
        with suppress(OSError):  # the estimator's first: the rest is then no snapshot
            (self._at(position) / _FRONT).unlink(missing_ok=True)
        shutil.rmtree(self._at(position), ignore_errors=True)

    def _at(self, position: int) -> Path:
        return self.folder / f"position-{position:012}"


def _all_positions(folder: Path) -> list[int]:
    names = [_NAME.fullmatch(entry.name) for entry in folder.iterdir()]
    return sorted(int(name[1]) for name in names if name)


def positions_in(folder: str | os.PathLike[str]) -> list[int]:
    """After how many operations the snapshots in a folder that are whole were taken."""
    path = Path(folder)
    if not path.is_dir():
        return []
    return [n for n in _all_positions(path) if (path / f"position-{n:012}" / _FRONT).exists()]


class Snapshot:
    """A snapshot that is whole, as far as the estimator's file tells.

    Parameters
    ----------
    folder : str or os.PathLike
        The folder of snapshots.
    position : int
        Which of them.
    """

    def __init__(self, folder: str | os.PathLike[str], position: int) -> None:
        self._folder = Path(folder) / f"position-{position:012}"
        self._front = _container.read(self._folder / _FRONT)
        self.plan: dict[str, Any] = from_json(self._front.metadata, "snapshot", dict)
        match self.plan:
            case {
                "run": str(),
                "position": int(n),
                "n_parts": int(n_parts),
                "n_seen": int(n_seen),
                "seed": int(),
                "batches": int(n_batches),
                "snapshot_every": int(n_between),
            }:
                if n == position and min(n_parts, n_between) > 0 and min(n_seen, n_batches) >= 0:
                    return
        raise ModelFileError(f"{self._folder / _FRONT} is not that of a snapshot.")

    def estimator(
        self, kinds: Mapping[str, type[BaseMondrianForest]], max_bytes: int | None = None
    ) -> Any:
        """The forest as a plain estimator of this process."""
        try:
            arrays = join_states([self._part(number) for number in range(self.plan["n_parts"])])
        except (KeyError, IndexError, RuntimeError) as error:
            raise ModelFileError(
                f"{self._folder} holds parts that are not one forest's."
            ) from error
        arrays |= self._front.arrays
        texts = {key: text for key, text in self._front.metadata.items() if key != "snapshot"}
        contents = Contents(with_counts(texts, arrays), self._front.format_version, arrays)
        return model_of(contents, str(self._folder), kinds, max_bytes).forest

    def beside_core(self) -> Contents:
        """What the estimator's file holds."""
        return self._front

    def _part(self, number: int) -> State:
        path = self._folder / f"part-{number:05}.safetensors"
        contents = _container.read(path)
        place = from_json(contents.metadata, _PART, dict)
        wanted = {"run": self.plan["run"], "number": number, "position": self.plan["position"]}
        if {key: place.get(key) for key in wanted} != wanted:
            raise ModelFileError(f"{path} holds another part than {wanted}.")
        return contents.arrays


def newest_snapshot(
    folder: str | os.PathLike[str],
    use: Callable[[Snapshot], Any],
    unreadable: type[Exception] = ModelFileError,
) -> Any:
    """What `use` makes of the newest snapshot it can read; with a warning if others are newer."""
    positions = positions_in(folder)
    if not positions:
        raise FileNotFoundError(f"There is no snapshot in {os.fspath(folder)!r}.")
    for position in reversed(positions):
        try:
            return use(Snapshot(folder, position))
        except (ModelFileError, OSError, unreadable) as error:
            if position == positions[0]:
                raise
            warnings.warn(
                f"The snapshot of position {position} cannot be read, an older one is taken: "
                f"{error}",
                SnapshotWarning,
                stacklevel=3,
            )
    raise AssertionError
