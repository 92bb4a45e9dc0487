"""The commands `demo`, which also needs the extra `plot`, and `example-data`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesClassifier

from onlineforest import plot
from onlineforest._cli.commands import command, option
from onlineforest._cli.forests import FORESTS
from onlineforest._cli.metrics import class_metrics
from onlineforest._cli.options import DEFAULT_KIND, kind_option
from onlineforest._cli.parameters import NAMES
from onlineforest._extras import require
from onlineforest.plot.figures import new_figure

_SECTION = "The run"


@command("demo", "onlineforest demo", "onlineforest demo --trees 20 --output pictures")
@option(
    "--output",
    default="onlineforest-demo",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    section=_SECTION,
    help="Folder for the pictures.",
)
@option(
    "--trees",
    default=100,
    show_default=True,
    type=click.IntRange(1, 10_000),
    section=_SECTION,
    help="Number of trees of each forest.",
)
@kind_option(
    "Kind of the online forest.", default=DEFAULT_KIND, show_default=True, section=_SECTION
)
@option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(0, 2**31 - 1),
    section=_SECTION,
    help="Seed for the order of the digits and for the trees.",
)
def demo(output: Path, trees: int, forest: str, seed: int) -> None:
    """Predict and learn a stream of handwritten digits.

    Each batch of 60 digits is predicted first and then learned. For comparison, a batch forest
    (scikit-learn's ExtraTrees) is trained again on all digits so far. Takes a few seconds; the
    data come with scikit-learn.
    """
    require("matplotlib", "plot")
    try:
        output.mkdir(parents=True, exist_ok=True)
        _show(Demo(n_estimators=trees, seed=seed, kind=forest), output)
    except OSError as error:
        raise click.ClickException(f"cannot write to {output}: {error.strerror}") from error


@dataclass
class Score:
    """Scores of one method so far."""

    name: str
    correct: list[float] = field(default_factory=list)  # accuracy per batch
    loss: list[float] = field(default_factory=list)  # mean log loss per batch
    seconds: float = 0.0  # spent on predicting and learning

    def add(self, model: Any, X: NDArray[Any], y: NDArray[Any]) -> None:
        """Score the predictions of a batch."""
        with self.timed():
            probabilities = model.predict_proba(X)
        means = class_metrics(model.classes_, probabilities, y).means()
        self.correct.append(means["accuracy"])
        self.loss.append(means["log_loss"])

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Add the time of a block to the seconds."""
        clock = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - clock


@dataclass
class Demo:
    """A test-then-train run over scikit-learn's bundled digits.

    Each batch is first predicted, then learned. The online forest learns only the batch; a batch
    forest (extremely randomised trees) is trained again on all samples so far. Times include the
    predictions, because an order-free forest makes some of its splits when it predicts.
    """

    batch_size: int = 60
    n_estimators: int = 100
    seed: int = 0
    kind: str = DEFAULT_KIND

    def __post_init__(self) -> None:
        X, y = load_digits(return_X_y=True)
        order = np.random.default_rng(self.seed).permutation(len(y))
        self.X, self.y = X[order], y[order]
        self.n_samples = len(y)
        self.online = Score(f"{NAMES[self.kind]} forest, online")
        self.retrained = Score("ExtraTrees, re-trained")
        self.learned: list[int] = []

    def run(self) -> Iterator[int]:
        """Process the stream; yields the number of samples learned after each batch."""
        forest = FORESTS[self.kind]["classify"](self.n_estimators, random_state=self.seed)
        extra_trees: ExtraTreesClassifier | None = None
        for start in range(0, self.n_samples, self.batch_size):
            stop = min(start + self.batch_size, self.n_samples)
            X, y = self.X[start:stop], self.y[start:stop]
            if extra_trees is not None:
                self.online.add(forest, X, y)
                self.retrained.add(extra_trees, X, y)
                self.learned.append(start)
            with self.online.timed():
                forest.partial_fit(X, y)
            with self.retrained.timed():
                extra_trees = ExtraTreesClassifier(self.n_estimators, random_state=self.seed)
                extra_trees.fit(self.X[:stop], self.y[:stop])
            yield stop

    def recent(self, values: list[float], n_batches: int = 5) -> float:
        """Mean over the last batches."""
        return float(np.mean(values[-n_batches:]))


def _show(demo: Demo, output: Path) -> None:
    """Run the demo with a progress bar, a table and two pictures."""
    console = Console()
    table = _new_table(demo.kind)
    progress = Progress(
        TextColumn("learning digits"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    )
    task = progress.add_task("", total=demo.n_samples)
    next_row = 300
    with Live(Group(table, progress), console=console):  # rows appear while the stream is learned
        for n_learned in demo.run():
            progress.update(task, completed=n_learned)
            if n_learned >= next_row or n_learned == demo.n_samples:
                table.add_row(*_cells(demo, n_learned))
                next_row += 300
    if not console.is_terminal:
        console.print()  # the live display ends with a line break in a terminal only
    online, retrained = demo.online, demo.retrained
    console.print(
        f"Predicting and learning took {online.seconds:.2f} s online, {retrained.seconds:.2f} s "
        f"with re-training (one thread each): {retrained.seconds / online.seconds:.0f} times as "
        "long."
    )
    for path in _save_pictures(demo, output):
        console.print(f"Saved {path}", soft_wrap=True)


def _new_table(kind: str) -> Table:
    """The table of the demo, without rows."""
    table = Table(
        title=f"Handwritten digits: {NAMES[kind]} forest online, batch ExtraTrees re-trained",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        caption=(
            "Accuracy and log loss of the last 300 digits, each predicted before it is learned "
            "(probabilities below 0.001 count as 0.001); times are totals."
        ),
    )
    for column in (
        "samples",
        "online\naccuracy",
        "online\nlog loss",
        "online\nsamples/s",
        "online\ns",
        "batch\naccuracy",
        "batch\nlog loss",
        "batch\ns",
    ):
        table.add_column(column, justify="right")
    return table


def _cells(demo: Demo, n_learned: int) -> list[str]:
    """A row of the table: the scores of both methods."""
    online, retrained = demo.online, demo.retrained
    return [
        f"{n_learned}",
        f"{demo.recent(online.correct):.3f}",
        f"{demo.recent(online.loss):.3f}",
        f"{n_learned / online.seconds:,.0f}",
        f"{online.seconds:.2f}",
        f"{demo.recent(retrained.correct):.3f}",
        f"{demo.recent(retrained.loss):.3f}",
        f"{retrained.seconds:.2f}",
    ]


def _save_pictures(demo: Demo, output: Path) -> Iterator[Path]:
    """Save the learning curve and a partition of the plane; yields their paths."""
    figure, axes = new_figure()
    curves = {
        score.name: list(np.cumsum(score.correct) / np.arange(1, len(score.correct) + 1))
        for score in (demo.online, demo.retrained)
    }
    plot.learning_curve(demo.learned, curves, ylabel="accuracy over all digits so far", ax=axes)
    axes.set_title("Handwritten digits, each predicted before it is learned")
    figure.savefig(output / "learning-curve.png", dpi=150)
    yield output / "learning-curve.png"

    X, y = load_digits(n_class=3, return_X_y=True)
    plane = PCA(2, random_state=demo.seed).fit_transform(X)[:60].astype(np.float32)
    forest = FORESTS[demo.kind]["classify"](1, random_state=demo.seed).fit(plane, y[:60])
    figure, axes = new_figure()
    plot.partition(forest, plane, y[:60], ax=axes)
    end = "box of its points" if demo.kind == "mondrian" else "splits above it"
    axes.set(
        xlabel="first principal component",
        ylabel="second principal component",
        title=f"One {NAMES[demo.kind]} tree on 60 digits: each split ends at the {end}",
    )
    figure.savefig(output / "partition.png", dpi=150)
    yield output / "partition.png"


@command("example-data")
@click.argument("folder", default=".", type=click.Path(file_okay=False, path_type=Path))
def example_data(folder: Path) -> None:
    """Write flowers.csv, new-flowers.csv and patients.csv to FOLDER (default: here).

    The first two are Fisher's irises (new-flowers.csv has the last 30), the third 442 patients
    with diabetes; all are from scikit-learn, in random order. The examples in the help of the
    other commands use them. Existing files are not replaced.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in _example_files().items():
        with open(folder / name, "x", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)
        click.echo(f"Wrote {folder / name}", err=True)


def _example_files() -> dict[str, list[str]]:
    """Small data sets of scikit-learn as lines of CSV, in random order."""
    irises, diabetes = load_iris(), load_diabetes(scaled=False)
    flowers = [
        [*map(str, row), str(irises.target_names[species])]
        for row, species in zip(irises.data, irises.target, strict=True)
    ]
    patients = [
        [f"P{i:03d}", *map(str, row), str(value)]
        for i, (row, value) in enumerate(zip(diabetes.data, diabetes.target, strict=True))
    ]
    parts = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
    flower_lines = _csv_lines([*parts, "species"], flowers)
    patient_lines = _csv_lines(["patient", *diabetes.feature_names, "progression"], patients)
    return {
        "flowers.csv": flower_lines[:-30],
        "new-flowers.csv": [flower_lines[0], *flower_lines[-30:]],
        "patients.csv": patient_lines,
    }


def _csv_lines(names: list[str], rows: list[list[str]]) -> list[str]:
    order = np.random.default_rng(0).permutation(len(rows))
    return [",".join(row) + "\n" for row in [names, *(rows[i] for i in order)]]
