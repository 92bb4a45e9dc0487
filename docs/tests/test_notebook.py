"""The notebook is the page of the five-minute start, cell by cell."""

from __future__ import annotations

import json
import re

from docs import notebook

PAGE = notebook.PAGE.read_text()


def test_the_notebook_is_that_of_the_page():
    # If this fails, `python -m docs.notebook` writes the notebook again.
    assert notebook.NOTEBOOK.read_text() == notebook.notebook_of(PAGE)


def test_the_cells_of_code_are_the_examples_of_the_page():
    """Which run: `test_the_examples_of_a_page_run`."""
    cells = json.loads(notebook.NOTEBOOK.read_text())["cells"]
    codes = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    examples = re.findall(r"```python\n(.*?)\n```", PAGE, re.DOTALL)
    assert codes == [notebook.INSTALL, *examples] and len(examples) > 5
    assert all(not cell["outputs"] for cell in cells if cell["cell_type"] == "code")


def test_the_text_of_the_page_is_in_the_notebook_except_how_to_install():
    cells = [source for kind, source in notebook.cells_of(PAGE) if kind == "markdown"]
    text = re.sub(r"```python\n.*?```\n", "", PAGE, flags=re.DOTALL)
    before, after = text.split("## Install\n")
    after = after[after.index("\n## ") :]
    assert "\n".join(cells).split() == (before + after).split()
    assert not any("```" in cell or "quick-start.ipynb" in cell for cell in cells)


def test_a_section_may_begin_or_end_with_code():
    page = "# T\n\nText\n\n## A\n```python\n1\n```\n## Install\n\nno\n\n"
    page += "## B\n\nb\n\n```python\n2\n```\n"
    assert notebook.cells_of(page) == [
        ("markdown", "# T\n\nText"),
        ("code", notebook.INSTALL),
        ("markdown", "## A"),
        ("code", "1"),
        ("markdown", "## B\n\nb"),
        ("code", "2"),
    ]
