"""Configuration of Sphinx. A build needs the extra `docs` and no network."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onlineforest

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import benchmark_page  # noqa: E402 - in this folder
import pictures  # noqa: E402 - in this folder

project = "onlineforest"
author = "The onlineforest developers"
version = release = onlineforest.__version__
html_title = f"{project} {release}"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_templates", "generated"]
suppress_warnings = ["config.cache"]  # the settings of the gallery hold functions

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

# In docstrings, `name` is code.
default_role = "literal"
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc shows the types
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "start": [], "which-forest": [], "comparison": [], "faq": []}
html_theme_options: dict[str, Any] = {
    "logo": {"text": project},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
copyright = f"{author}, BSD-3-Clause"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 600,
    "remove_config_comments": True,
    "abort_on_example_error": False,
    "only_warn_on_example_error": True,
}

# The gallery draws without a screen.
os.environ.setdefault("MPLBACKEND", "agg")


def is_not_ours(
    app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object
) -> bool | None:
    """Leave methods that are inherited from scikit-learn and River out of the reference."""
    function = obj.fget if isinstance(obj, property) else getattr(obj, "__func__", obj)
    module = getattr(function, "__module__", None) or "onlineforest"
    return None if module.startswith("onlineforest") else True


# Files outside this folder that are pages of the documentation.
SHOWN = {
    "benchmarks/NOTES.md": "benchmarks.md",
    "SECURITY.md": "security.md",
    "examples": "gallery/index.rst",
    **{f"examples/{e.name}": f"gallery/{e.stem}.rst" for e in HERE.glob("../examples/*.py")},
}
LINK = re.compile(r"(?<=\]\()(?:\.\./)+([^)#]+)")


def lead_to_pages(app: Sphinx, name: str, text: list[str]) -> None:
    """Turn links to files in `SHOWN` into links to their pages; GitHub shows the files."""
    up = "../" * name.count("/")

    def page(match: re.Match[str]) -> str:
        shown = SHOWN.get(match[1])
        return match[0] if shown is None else up + shown

    text[0] = LINK.sub(page, text[0])


def draw(app: Sphinx) -> None:
    """Draw what the pages show, before Sphinx reads them."""
    benchmark_page.write(HERE / "generated")
    pictures.draw_outdated()


def setup(app: Sphinx) -> None:
    """Connect the functions of this file to Sphinx."""
    app.connect("builder-inited", draw)
    app.connect("autodoc-skip-member", is_not_ours)
    app.connect("source-read", lead_to_pages)
