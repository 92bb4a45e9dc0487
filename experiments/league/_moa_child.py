"""Runs one of MOA's classifiers over a stream, in the environment of CapyMOA: prints JSON.

Its argument is JSON as well, see `experiments.league.moa`. It must not import this library, nor
CapyMOA's Python: it calls Java itself.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
from importlib.metadata import files, version
from typing import Any

import jpype
import numpy as np

from benchmarks.memory import forget_the_past, resident_and_peak

# One thread for the program and for the collector of garbage.
OPTIONS = ("-XX:+UseSerialGC", "-XX:ActiveProcessorCount=1")


def end_with_parent() -> None:
    """End this process when its parent has closed the input, or has ended."""
    sys.stdin.read()
    os._exit(1)


def jar() -> str:
    """The file of MOA's classes in CapyMOA's package."""
    return str(next(file.locate() for file in files("capymoa") or [] if file.name == "moa.jar"))


def header_of(n_levels: list[int], n_classes: int) -> Any:
    """The names of columns, and the values that text and labels may have."""
    samoa = jpype.JPackage("com").yahoo.labs.samoa.instances
    array_list = jpype.JClass("java.util.ArrayList")

    def codes(n: int) -> Any:
        return array_list([str(code) for code in range(n)])

    columns = array_list()
    for j, n in enumerate(n_levels):
        columns.add(samoa.Attribute(f"x{j}", codes(n)) if n else samoa.Attribute(f"x{j}"))
    columns.add(samoa.Attribute("label", codes(n_classes)))
    header = samoa.InstancesHeader(samoa.Instances("stream", columns, 0))
    header.setClassIndex(len(n_levels))
    return header


def instances_of(header: Any, file: str) -> tuple[list[Any], list[int]]:
    """The samples as MOA's instances, and their labels."""
    with np.load(file) as data:
        table = np.column_stack([data["X"], data["y"].astype(np.float64)])
        labels = data["y"].tolist()
    dense = jpype.JClass("com.yahoo.labs.samoa.instances.DenseInstance")
    numbers = jpype.JArray(jpype.JDouble)
    instances = []
    for row in table:
        instance = dense(1.0, numbers(row))
        instance.setDataset(header)
        instances.append(instance)
    return instances, labels


def answer_of(votes: list[float], label: int) -> tuple[float, float]:
    """The probability of the label, and whether it has most votes; NaN: there are no votes."""
    total = sum(votes)
    if not 0 < total < float("inf"):
        return math.nan, math.nan
    of_label = votes[label] / total if label < len(votes) else 0.0
    return of_label, float(max(range(len(votes)), key=votes.__getitem__) == label)


def go(task: dict[str, Any]) -> dict[str, Any]:
    """Predict and learn all samples."""
    header = header_of(task["n_levels"], task["n_classes"])
    instances, labels = instances_of(header, task["file"])
    model = jpype.JClass(f"moa.classifiers.meta.{task['name']}")()
    model.getOptions().setViaCLIString(f"-s {task['n_trees']}")
    model.setRandomSeed(task["seed"])
    model.prepareForUse()
    model.setModelContext(header)
    forget_the_past()
    before, _ = resident_and_peak()
    start = time.process_time()
    answers = []
    for instance, label in zip(instances, labels, strict=True):
        answers.append(answer_of(list(model.getVotesForInstance(instance)), label))
        model.trainOnInstance(instance)
    seconds = time.process_time() - start
    after, peak = resident_and_peak()
    java = str(jpype.JClass("java.lang.System").getProperty("java.version"))
    return {
        "answers": answers,
        "seconds": seconds,
        "n_bytes": max(after, peak) - before,
        "versions": {"capymoa": version("capymoa"), "java": java},
    }


if __name__ == "__main__":
    threading.Thread(target=end_with_parent, daemon=True).start()
    jpype.startJVM(*OPTIONS, classpath=[jar()])
    print(json.dumps(go(json.loads(sys.argv[1]))))
