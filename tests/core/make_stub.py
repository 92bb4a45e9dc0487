"""Writes the stub of the compiled core, src/onlineforest/_core.pyi, from the built extension.

    python tests/core/make_stub.py

nanobind derives the signatures from the C++ types. This script makes them readable (array types
without their memory layout) and names the element types that the C++ types leave open.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

STUB = Path(__file__).parents[2] / "src/onlineforest/_core.pyi"

_ARRAYS = "dict[str, NDArray[Any]]"
# Pattern, replacement. Every rule must match, so that one the bindings no longer need is noticed.
_RULES = [
    (r"import numpy\n", "import numpy as np\n"),
    (r"from typing import Annotated", "from typing import Any"),
    # An array's shape, order and device are checked at run time; for a type checker it is an array.
    (r"Annotated\[NDArray\[numpy\.(\w+)\], dict\((?:[^()]|\([^()]*\))*\)\]", r"NDArray[np.\1]"),
    (r"from numpy.typing import NDArray", "from numpy.typing import ArrayLike, NDArray"),
    (r"row: object", "row: ArrayLike"),
    (r"\bdict(?=[,)]| =|: \.\.\.| \| None)", _ARRAYS),
    # The largest size differs between platforms.
    (r"max_bytes: int = \d+", "max_bytes: int = ..."),
]
_HEADER = "# Written by tests/core/make_stub.py from the built extension.\n"


def make_stub() -> str:
    """Return the stub of the extension that Python imports."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "_core.pyi"
        _run("nanobind.stubgen", "-q", "-m", "onlineforest._core", "-o", str(path))
        text = path.read_text()
    for pattern, replacement in _RULES:
        text, n_matches = re.subn(pattern, replacement, text)
        if n_matches == 0:
            raise ValueError(
                f"the rule {pattern!r} of {Path(__file__).name} matches nothing: drop it"
            )
    name = ("--stdin-filename", str(STUB), "-")
    text = _run("ruff", "check", "--quiet", "--select", "I", "--fix", *name, given=_HEADER + text)
    return _run("ruff", "format", *name, given=text)


def _run(module: str, *arguments: str, given: str = "") -> str:
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    STUB.write_text(make_stub())
