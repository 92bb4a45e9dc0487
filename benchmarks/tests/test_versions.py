"""The comparison of two versions of the package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import onlineforest
from benchmarks.versions import Side, main, ratios

HERE = str(Path(onlineforest.__file__).parents[1])


class Fixed:
    """A side that takes given numbers of seconds."""

    def __init__(self, seconds: list[float]) -> None:
        self._seconds = iter(seconds)

    def seconds(self, task: str) -> float:
        assert task == "fit"
        return next(self._seconds)


def test_ratios_are_new_to_old_without_the_first_pair():
    assert ratios(Fixed([9.0, 2.0, 4.0]), Fixed([1.0, 3.0, 2.0]), "fit", 2) == [1.5, 0.5]


def test_each_side_is_first_in_turn():
    order = []

    class Noting(Fixed):
        def seconds(self, task: str) -> float:
            order.append(self)
            return 1.0

    old, new = Noting([]), Noting([])
    ratios(old, new, "fit", 2)
    assert order == [new, old, old, new, new, old]


def test_a_version_is_compared_with_itself(capsys):
    assert main([HERE, HERE, "--only", "predict numbers", "--repeats", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"predict numbers +\d+\.\d{3}  \[\d+\.\d{3}, \d+\.\d{3}\]", lines[0])
    assert re.fullmatch(r"geometric mean +\d+\.\d{3}", lines[1])


def test_a_folder_without_the_package_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="holds no folder onlineforest"):
        Side(tmp_path)


def test_too_few_repeats_are_refused(capsys):
    with pytest.raises(SystemExit):
        main([HERE, HERE, "--repeats", "1"])
    assert "--repeats must be at least 2, got 1" in capsys.readouterr().err
