"""The command line. Needs the extra `cli`; `demo` needs `plot` as well."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from onlineforest._container import ModelFileError
from onlineforest._extras import MissingExtraError, require

if TYPE_CHECKING:
    import click
    from rich.table import Table

    from onlineforest._demo import Demo


def main() -> None:
    """Entry point of the `onlineforest` command."""
    try:
        require("click", "cli")
        require("rich", "cli")
        build_command()(prog_name="onlineforest")
    except MissingExtraError as error:
        print(f"onlineforest: {error}", file=sys.stderr)
        sys.exit(1)


def build_command() -> click.Group:
    """The command with all its subcommands."""
    import click

    @click.group(context_settings={"help_option_names": ["-h", "--help"]})
    @click.version_option(package_name="onlineforest")
    def onlineforest() -> None:
        """Random forests that learn online."""

    @onlineforest.command()
    @click.option(
        "--output",
        default="onlineforest-demo",
        show_default=True,
        type=click.Path(file_okay=False, path_type=Path),
        help="Folder for the pictures.",
    )
    @click.option(
        "--trees",
        default=100,
        show_default=True,
        type=click.IntRange(1, 10_000),
        help="Trees of each forest.",
    )
    @click.option(
        "--seed",
        default=0,
        show_default=True,
        type=click.IntRange(0, 2**31 - 1),
        help="Seed of the order of the digits and of the trees.",
    )
    def demo(output: Path, trees: int, seed: int) -> None:
        """Learn a stream of handwritten digits and predict it as it comes.

        Each batch of 50 digits is predicted first and then learned, beside a batch forest
        (scikit-learn's ExtraTrees) that is trained afresh on all digits so far. Takes some seconds;
        needs no data but scikit-learn's.
        """
        require("matplotlib", "plot")
        from onlineforest._demo import Demo

        try:
            output.mkdir(parents=True, exist_ok=True)
            show_demo(Demo(n_estimators=trees, seed=seed), output)
        except OSError as error:
            raise click.ClickException(f"cannot write to {output}: {error.strerror}") from error

    @onlineforest.command()
    @click.argument("file", type=click.Path(path_type=Path))
    @click.option("--json", "as_json", is_flag=True, help="All of it, as JSON.")
    @click.option("--arrays", is_flag=True, help="List the arrays, too.")
    def inspect(file: Path, as_json: bool, arrays: bool) -> None:
        """Tell what a model file holds.

        Reads what the file says of itself, not the trees: quick, but nothing is checked. `verify`
        does.
        """
        from onlineforest._inspection import describe, lines_about

        with readable_errors():
            if as_json:
                click.echo(json.dumps(describe(file), indent=2))
            else:
                click.echo("\n".join(lines_about(file, arrays)))

    @onlineforest.command()
    @click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
    @click.option(
        "--max-bytes", type=click.IntRange(0), help="Refuse forests that take more memory."
    )
    def verify(files: tuple[Path, ...], max_bytes: int | None) -> None:
        """Check model files: their digests, and every node of every tree.

        Exits with 1 if one of them is not sound. Takes the memory of the largest forest.
        """
        from onlineforest._inspection import verify_file

        n_bad = 0
        for file in files:
            try:
                with readable_errors():
                    click.echo(f"{file}: sound, {verify_file(file, max_bytes)}")
            except click.ClickException as error:
                error.show()
                n_bad += 1
        if n_bad:
            sys.exit(1)

    return onlineforest


@contextmanager
def readable_errors() -> Iterator[None]:
    """Errors about a file as one line for the user, without a traceback."""
    import click

    try:
        yield
    except ModelFileError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"cannot read {error.filename}: {error.strerror}") from error


def show_demo(demo: Demo, output: Path) -> None:
    """Run the demo with a progress bar, a table and two pictures."""
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console()
    table = new_table()
    progress = Progress(
        TextColumn("learning digits"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    )
    task = progress.add_task("", total=demo.n_samples)
    next_row = 300
    with Live(Group(table, progress), console=console):  # rows appear as the stream goes
        for n_learned in demo.run():
            progress.update(task, completed=n_learned)
            if n_learned >= next_row or n_learned == demo.n_samples:
                add_row(table, demo, n_learned)
                next_row += 300
    if not console.is_terminal:
        console.print()  # elsewhere the live display ends without a line break
    online, batch = demo.online, demo.batch
    console.print(
        f"Learning took {online.seconds:.2f} s online, {batch.seconds:.2f} s re-training (one "
        f"thread each): {batch.seconds / online.seconds:.0f} times as long."
    )
    for path in save_pictures(demo, output):
        console.print(f"Saved {path}", soft_wrap=True)


def new_table() -> Table:
    """The empty table of the demo."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        title="Handwritten digits: online Mondrian forest, batch ExtraTrees re-trained",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        caption=(
            "Accuracy and log loss of the last 300 digits, each predicted before it is learned "
            "(probabilities below 0.001 count as 0.001); times since the start."
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
    """Where both methods stand."""
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
    """The learning curve, and a partition of the plane."""
    import numpy as np

    from onlineforest import plot
    from onlineforest._demo import demo_partition
    from onlineforest._plot_base import new_figure

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
    plot.partition(*demo_partition(demo.seed), ax=axes)
    axes.set(
        xlabel="first principal component",
        ylabel="second principal component",
        title="One Mondrian tree on 60 digits: each cut ends at the box of its points",
    )
    partition_path = output / "partition.png"
    figure.savefig(partition_path, dpi=150)
    return [curve_path, partition_path]
