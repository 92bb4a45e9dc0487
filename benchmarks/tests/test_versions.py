"""The comparison of two versions of the package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import onlineforest
from benchmarks import _versions_child, versions
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


def test_large_tasks_measure_seconds_and_bytes(monkeypatch):
    monkeypatch.setattr(_versions_child, "NOISY_ROWS", 2000)
    monkeypatch.setattr(_versions_child, "NOISY_TREES", 20)
    found = {name: measure() for name, measure in _versions_child.large_tasks().items()}
    fit, first_answer, memory = found.values()
    assert 0 < fit < 60 and 0 < first_answer < 60
    assert memory >= 100_000  # 20 trees of 2,000 rows


@pytest.mark.parametrize(
    ("only", "expected"),
    [("", {"fit": 42}), ("fit", {"fit": 42}), ("large", {"large fit": 4})],
)
def test_large_tasks_run_only_if_they_are_named(only, expected, monkeypatch, capsys):
    runs = {}

    class Counting:
        tasks = ("fit", "large fit")

        def __init__(self, folder):
            self.folder = str(folder)

        def seconds(self, task):
            runs[task] = runs.get(task, 0) + (self.folder == "old")
            return 2.0 if self.folder == "old" else 1.0

        def close(self):
            pass

    monkeypatch.setattr(versions, "Side", Counting)
    assert main(["old", "new", "--only", only]) == 0
    assert runs == expected
    assert " 0.500 " in capsys.readouterr().out


def test_a_folder_without_the_package_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="holds no folder onlineforest"):
        Side(tmp_path)


def test_too_few_repeats_are_refused(capsys):
    with pytest.raises(SystemExit):
        main([HERE, HERE, "--repeats", "1"])
    assert "--repeats must be at least 2, got 1" in capsys.readouterr().err
