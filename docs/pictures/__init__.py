"""Draws the pictures of the documentation into `docs/_pictures`, a folder that git ignores.

`conf.py` calls `draw_outdated` at the start of a build. ``python -m docs.pictures`` draws all of
them, for instance after a change of the library. Each module draws the pictures of one page. Equal
code and data give equal files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from . import how, paper

FOLDER = Path(__file__).resolve().parents[1] / "_pictures"
PAGES = (how, paper)


@dataclass(frozen=True)
class Picture:
    """One picture: its file, the function that draws it, and the files that the function uses."""

    path: Path
    draw: Callable[[], Figure]
    sources: tuple[Path, ...]

    def is_outdated(self) -> bool:
        """Whether the file is missing or older than a source."""
        if not self.path.exists():
            return True
        drawn = self.path.stat().st_mtime
        return any(source.stat().st_mtime > drawn for source in self.sources)

    def save(self) -> None:
        """Draw the picture and write its file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        figure = self.draw()
        # Letters become paths: the file looks alike everywhere and needs no fonts. The salt and the
        # missing date make equal figures equal files.
        with mpl.rc_context({"svg.fonttype": "path", "svg.hashsalt": self.path.stem}):
            figure.savefig(self.path, metadata={"Date": None, "Creator": None})


def pictures(folder: Path = FOLDER) -> Iterator[Picture]:
    """All pictures; the files of a page are in a folder with the name of its module."""
    for page in PAGES:
        name = page.__name__.rpartition(".")[2]
        sources = (Path(__file__), Path(page.__file__), *page.SOURCES)
        for stem, draw in page.PICTURES.items():
            yield Picture(folder / name / f"{stem}.svg", draw, sources)


def draw_outdated(folder: Path = FOLDER) -> list[Path]:
    """Draw the pictures that are missing or older than their sources; returns their files."""
    outdated = [picture for picture in pictures(folder) if picture.is_outdated()]
    for picture in outdated:
        picture.save()
    return [picture.path for picture in outdated]
