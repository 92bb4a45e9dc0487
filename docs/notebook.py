"""The five-minute start as a notebook: `python -m docs.notebook` writes it again from the page.

Must not know what the page says, except which section a notebook does not need.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE, NOTEBOOK = HERE / "start.md", HERE / "quick-start.ipynb"
INSTALL = "%pip install onlineforest"
LEFT_OUT = "## Install\n"  # the section on installing a checkout with a compiler


def cells_of(page: str) -> list[tuple[str, str]]:
    """The cells of a page: their types and sources. The first one of code installs the library."""
    title, *sections = re.split(r"^(?=## )", page, flags=re.MULTILINE)
    cells = [("markdown", title.strip()), ("code", INSTALL)]
    for section in sections:
        if section.startswith(LEFT_OUT):
            continue
        # The pieces with odd numbers are what the pattern has caught.
        for number, piece in enumerate(
            re.split(r"```python\n(.*?)```\n", section, flags=re.DOTALL)
        ):
            if piece.strip():
                cells.append(("code" if number % 2 else "markdown", piece.strip()))
    return cells


def notebook_of(page: str) -> str:
    """The notebook of a page, without results, as the text of its file."""
    notebook: dict[str, Any] = {
        "cells": [],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    for number, (kind, source) in enumerate(cells_of(page)):
        cell: dict[str, Any] = {
            "cell_type": kind,
            "id": f"cell-{number}",
            "metadata": {},
            "source": source.splitlines(keepends=True),
        }
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        notebook["cells"].append(cell)
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    NOTEBOOK.write_text(notebook_of(PAGE.read_text()))
