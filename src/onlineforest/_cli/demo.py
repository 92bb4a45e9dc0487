"""The commands `demo` and `example-data`. `demo` also needs the extra `plot`."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from onlineforest import plot
from onlineforest._cli.base import Command, examples, option
from onlineforest._cli.commands import ENTRIES
from onlineforest._cli.defaults import DEFAULT_KIND, NAMES
from onlineforest._cli.demo_stream import Demo, demo_partition, example_files
from onlineforest._cli.table_options import kind_option
from onlineforest._extras import require
from onlineforest.plot.figures import new_figure

_SECTION = "The run"


@click.command(
    "demo",
    cls=Command,
    short_help=ENTRIES["demo"].summary,
    epilog=examples("onlineforest demo", "onlineforest demo --trees 20 --output pictures"),
)
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
        show_demo(Demo(n_estimators=trees, seed=seed, kind=forest), output)
    except OSError as error:
        raise click.ClickException(f"cannot write to {output}: {error.strerror}") from error


@click.command("example-data", cls=Command, short_help=ENTRIES["example-data"].summary)
@click.argument("folder", default=".", type=click.Path(file_okay=False, path_type=Path))
def example_data(folder: Path) -> None:
    """Write flowers.csv, new-flowers.csv and patients.csv to FOLDER (default: here).

    The first two are Fisher's irises (new-flowers.csv has the last 30), the third 442 patients
    with diabetes; all are from scikit-learn, in random order. The examples in the help of the
    other commands use them. Existing files are not replaced.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in example_files().items():
        with open(folder / name, "x", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)
        click.echo(f"Wrote {folder / name}", err=True)


def show_demo(demo: Demo, output: Path) -> None:
    """Run the demo with a progress bar, a table and two pictures."""
    console = Console()
    table = new_table(demo.kind)
    progress = Progress(
        TextColumn("learning digits"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    )
    task = progress.add_task("", total=demo.n_samples)
    next_row = 300
    with Live(Group(table, progress), console=console):  # rows appear while the stream is learned
        for n_learned in demo.run():
            progress.update(task, completed=n_learned)
            if n_learned >= next_row or n_learned == demo.n_samples:
                add_row(table, demo, n_learned)
                next_row += 300
    if not console.is_terminal:
        console.print()  # without a terminal, the live display ends without a line break
    online, batch = demo.online, demo.batch
    console.print(
        f"Predicting and learning took {online.seconds:.2f} s online, {batch.seconds:.2f} s with "
        f"re-training (one thread each): {batch.seconds / online.seconds:.0f} times as long."
    )
    for path in save_pictures(demo, output):
        console.print(f"Saved {path}", soft_wrap=True)


def new_table(kind: str) -> Table:
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


def add_row(table: Table, demo: Demo, n_learned: int) -> None:
    """Add the scores of both methods."""
    online, batch = demo.online, demo.batch
    table.add_row(
        f"{n_learned}",
        f"{demo.recent(online.correct):.3f}",
        f"{demo.recent(online.loss):.3f}",
        f"{n_learned / online.seconds:,.0f}",
        f"{online.seconds:.2f}",
        f"{demo.recent(batch.correct):.3f}",
        f"{demo.recent(batch.loss):.3f}",
        f"{batch.seconds:.2f}",
    )


def save_pictures(demo: Demo, output: Path) -> list[Path]:
    """Save the learning curve and a partition of the plane."""
    figure, axes = new_figure()
    curves = {
        score.name: list(np.cumsum(score.correct) / np.arange(1, len(score.correct) + 1))
        for score in (demo.online, demo.batch)
    }
    plot.learning_curve(demo.learned, curves, ylabel="accuracy over all digits so far", ax=axes)
    axes.set_title("Handwritten digits, each predicted before it is learned")
    curve_path = output / "learning-curve.png"
    figure.savefig(curve_path, dpi=150)

    figure, axes = new_figure()
    plot.partition(*demo_partition(demo.kind, demo.seed), ax=axes)
    end = "box of its points" if demo.kind == "mondrian" else "cuts above it"
    axes.set(
        xlabel="first principal component",
        ylabel="second principal component",
        title=f"One {NAMES[demo.kind]} tree on 60 digits: each cut ends at the {end}",
    )
    partition_path = output / "partition.png"
    figure.savefig(partition_path, dpi=150)
    return [curve_path, partition_path]
