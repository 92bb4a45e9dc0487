"""The commands: in which file each one is, and what the help says about it.

Imports none of them: scikit-learn takes longer to import than the help to print.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click


@dataclass(frozen=True)
class Entry:
    """A command in the list of all commands."""

    file: str
    summary: str


SECTIONS = {
    "Learn and predict": {
        "train": Entry("train", "Learn a forest from a CSV or Parquet file."),
        "predict": Entry("predict", "Predict the rows of a CSV or Parquet file."),
        "evaluate": Entry("evaluate", "Measure how well a file is predicted while it is learned."),
    },
    "Inspect a model": {
        "inspect": Entry("files", "Describe a model file."),
        "verify": Entry("files", "Check every byte and node of model files."),
        "plot": Entry("plot", "Draw a model or a learning curve."),
    },
    "Try it": {
        "demo": Entry("demo", "Learn a stream of handwritten digits and draw two pictures."),
        "example-data": Entry("demo", "Write small CSV files to try the other commands on."),
    },
}
ENTRIES = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


def load_command(name: str) -> click.Command:
    """Import a command."""
    module = import_module(f"onlineforest._cli.{ENTRIES[name].file}")
    command: click.Command = getattr(module, name.replace("-", "_"))
    return command
