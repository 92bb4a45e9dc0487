"""A folder of snapshots of a sharded forest.

A snapshot is a folder `position-N`: the forest after N operations. It has a file per shard, and a
file with what the driver knows besides. The driver's file is written last: a snapshot that has it
is complete. All files are model files, read without trust.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from onlineforest._distributed.errors import SnapshotWarning
from onlineforest._distributed.splitting import State, join_states
from onlineforest._files.atomic import replacing
from onlineforest._files.encoding import from_json, to_json
from onlineforest._files.errors import ModelFileError
from onlineforest._files.reading import Contents, read
from onlineforest._files.writing import write
from onlineforest._models.core import CoreSpec
from onlineforest._models.saving import (
    arrays_of_core,
    contents_beside_core,
    model_of,
    state_from_arrays,
    with_counts,
)

if TYPE_CHECKING:
    from onlineforest._models.base import BaseForest

_N_KEPT = 2  # snapshots; the newest may be on a disk that fails
_NAME = re.compile(r"position-([0-9]{12,})")
_SHARD = "shard"  # metadata key of the place of a shard
_SNAPSHOT = "snapshot"  # metadata key of the driver's summary
_DRIVER_FILE = "driver.safetensors"

Used = TypeVar("Used")


@dataclass(frozen=True)
class ShardPlace:
    """Which shard of which forest a file holds, and after which operation."""

    run: str
    number: int
    n_shards: int
    held: tuple[int, int]
    n_trees: int
    position: int

    def as_dict(self) -> dict[str, Any]:
        """The place as JSON represents it."""
        return {**asdict(self), "held": list(self.held)}


def write_shard(path: str, state: State, place: ShardPlace) -> None:
    """Write a shard, completely or not at all."""
    metadata = {"estimator": _SHARD, _SHARD: to_json(place.as_dict())}
    with replacing(path) as file:
        write(file, arrays_of_core(state), metadata)


def read_shard(path: str, place: ShardPlace, spec: CoreSpec[Any]) -> State:
    """The state of a shard of the forest that `spec` describes."""
    contents = read(path)
    found = from_json(contents.metadata, _SHARD, dict)
    if found != place.as_dict():
        raise ModelFileError(f"{path} holds another shard than {place.as_dict()}.")
    try:
        return state_from_arrays(spec, contents.arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{path} is not a valid shard: {error}") from error


@dataclass(frozen=True)
class Summary:
    """What the driver's file says about a snapshot, besides the estimator."""

    run: str
    position: int
    n_shards: int
    n_seen: int
    seed: int
    n_batches: int
    snapshot_every: int

    @classmethod
    def of(cls, metadata: Mapping[str, str], where: Path) -> Summary:
        """The summary in the metadata of a file, which is checked."""
        match from_json(metadata, _SNAPSHOT, dict):
            case {
                "run": str(run),
                "position": int(position),
                "n_shards": int(n_shards),
                "n_seen": int(n_seen),
                "seed": int(seed),
                "n_batches": int(n_batches),
                "snapshot_every": int(snapshot_every),
            } if min(n_shards, snapshot_every) > 0 and min(n_seen, n_batches) >= 0:
                return cls(run, position, n_shards, n_seen, seed, n_batches, snapshot_every)
        raise ModelFileError(f"{where} is not the driver's file of a snapshot.")


class Snapshots:
    """The snapshots of one forest in a folder that all shards can write to.

    Parameters
    ----------
    folder : str or os.PathLike
        The folder; created if it does not exist.
    run : str
        Identifies the forest.
    """

    def __init__(self, folder: str | os.PathLike[str], run: str) -> None:
        self.folder = Path(folder).absolute()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            message = "Snapshots need a folder, but this is a file"
            raise NotADirectoryError(errno.ENOTDIR, message, str(self.folder)) from error
        self.run = run

    def shard_file(self, position: int, number: int) -> str:
        """The path of a shard's file."""
        return str(_shard_file(_folder_of(self.folder, position), number))

    def begin(self, position: int) -> None:
        """Create the folder of a snapshot."""
        _folder_of(self.folder, position).mkdir(parents=True, exist_ok=True)

    def finish(self, estimator: BaseForest, summary: Summary) -> None:
        """Write the driver's file: now the snapshot is complete."""
        arrays, metadata = contents_beside_core(estimator, estimator._forest.serials, summary.seed)
        metadata[_SNAPSHOT] = to_json(asdict(summary))
        with replacing(_folder_of(self.folder, summary.position) / _DRIVER_FILE) as file:
            write(file, arrays, metadata)

    def drop_old(self) -> None:
        """Remove all but the latest complete snapshots."""
        kept = positions_in(self.folder)[-_N_KEPT:]
        for position in _all_positions(self.folder):
            if position not in kept:
                self.drop(position)

    def drop_all(self) -> None:
        """Remove all snapshots."""
        for position in _all_positions(self.folder):
            self.drop(position)

    def drop(self, position: int) -> None:
        """Remove a snapshot, as far as the system permits."""
        folder = _folder_of(self.folder, position)
        with suppress(OSError):  # first, so that a rest does not count as complete
            (folder / _DRIVER_FILE).unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def _folder_of(folder: Path, position: int) -> Path:
    return folder / f"position-{position:012}"


def _shard_file(folder: Path, number: int) -> Path:
    return folder / f"shard-{number:05}.safetensors"


def _all_positions(folder: Path) -> list[int]:
    names = [_NAME.fullmatch(entry.name) for entry in folder.iterdir()]
    return sorted(int(name[1]) for name in names if name)


def positions_in(folder: str | os.PathLike[str]) -> list[int]:
    """The positions of the complete snapshots in a folder, in order."""
    path = Path(folder)
    if not path.is_dir():
        return []
    return [n for n in _all_positions(path) if (_folder_of(path, n) / _DRIVER_FILE).exists()]


class Snapshot:
    """A complete snapshot. Reads the driver's file; shards' files only on demand.

    Parameters
    ----------
    folder : str or os.PathLike
        The folder of snapshots.
    position : int
        The position of the snapshot.
    """

    def __init__(self, folder: str | os.PathLike[str], position: int) -> None:
        self._folder = _folder_of(Path(folder), position)
        path = self._folder / _DRIVER_FILE
        self.contents = read(path)
        self.summary = Summary.of(self.contents.metadata, path)
        if self.summary.position != position:
            raise ModelFileError(
                f"{path} belongs to position {self.summary.position}, not {position}."
            )

    def estimator(self, kinds: Mapping[str, type[BaseForest]], max_bytes: int | None = None) -> Any:
        """The forest as an estimator of this process."""
        try:
            arrays = join_states([self._state_of(i) for i in range(self.summary.n_shards)])
        except (KeyError, IndexError, RuntimeError) as error:
            raise ModelFileError(
                f"The shards in {self._folder} do not belong to one forest."
            ) from error
        arrays |= self.contents.arrays
        texts = {key: text for key, text in self.contents.metadata.items() if key != _SNAPSHOT}
        contents = Contents(with_counts(texts, arrays), self.contents.format_version, arrays)
        return model_of(contents, str(self._folder), kinds, max_bytes).forest

    def _state_of(self, number: int) -> State:
        path = _shard_file(self._folder, number)
        contents = read(path)
        place = from_json(contents.metadata, _SHARD, dict)
        wanted = {
            "run": self.summary.run, "number": number, "position": self.summary.position
        }  # fmt: skip
        if {key: place.get(key) for key in wanted} != wanted:
            raise ModelFileError(f"{path} holds another shard than {wanted}.")
        return contents.arrays


def newest_snapshot(
    folder: str | os.PathLike[str],
    use: Callable[[Snapshot], Used],
    unreadable: type[Exception] = ModelFileError,
) -> Used:
    """The result of `use` for the newest snapshot it can read; warns about each newer one.

    `use` raises `ModelFileError`, `OSError` or `unreadable` for a snapshot it cannot read.
    """
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
                f"The snapshot at position {position} cannot be read, an older one is used: "
                f"{error}",
                SnapshotWarning,
                stacklevel=3,
            )
    raise AssertionError
