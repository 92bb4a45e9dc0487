"""Measure model files: their size, and the rates of saving and loading.

The peer is the disk: a plain file of as many bytes, written and synced, or read. Files are smaller
than forests, because boxes and label sets are computed when a file is loaded. So the rate is in
bytes of the forest in memory; the column of our side also gives the rate in bytes of the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onlineforest
from benchmarks.formats import duration, megabytes, number
from benchmarks.ours import mondrian
from benchmarks.results import Row
from benchmarks.settings import Case, Settings
from benchmarks.timing import Job, Pairs, alternate

LARGEST_SHARE = 1.1  # size of the file relative to the memory of the forest


def model_file(case: Case, settings: Settings) -> list[Row]:
    """Size of the file relative to the forest, and the rates of saving and loading it."""
    data = settings.load(case.data)
    forest = mondrian(settings.n_trees, 0).fit(data.X, data.y)
    with TemporaryDirectory(dir=Path.cwd()) as folder:  # on the disk of the working directory
        path, plain = Path(folder) / "forest.safetensors", Path(folder) / "plain"
        forest.save(path)
        content = path.read_bytes()

        def pairs_of(ours: Callable[[], Any], peer: Callable[[], Any]) -> Pairs:
            return alternate(_always(ours), _always(peer), case.runs(settings))

        saving = pairs_of(lambda: forest.save(path), lambda: _write_and_sync(plain, content))
        loading = pairs_of(lambda: onlineforest.load(path), plain.read_bytes)
    in_memory = forest.nbytes_
    size = case.row(
        settings,
        case=f"{case.name}, size / memory",
        ours=f"file {megabytes(len(content))}, memory {megabytes(in_memory)}",
        values=[len(content) / in_memory],
        target=LARGEST_SHARE,
    )
    return [
        size,
        _rate_row(case, settings, "save", saving, len(content), in_memory),
        _rate_row(case, settings, "load", loading, len(content), in_memory),
    ]


def _rate_row(
    case: Case, settings: Settings, what: str, pairs: Pairs, in_file: int, in_memory: int
) -> Row:
    ours, disk = pairs.medians()
    return case.row(
        settings,
        case=f"{case.name}, {what}",
        ours=f"{duration(ours)}, {number(in_file / ours / 1e6)} MB/s of the file",
        peer=f"the disk {number(in_file / disk / 1e6)} MB/s",
        values=[in_memory / seconds / 1e6 for seconds in pairs.ours],
        unit="MB/s",
        better="higher",
        seconds=pairs.seconds(),
    )


def _always(job: Job) -> Callable[[int], Job]:
    return lambda _: job


def _write_and_sync(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
