"""The committed stub of the core is the one that nanobind generates."""

from __future__ import annotations

import difflib
import runpy
from pathlib import Path

SCRIPT = Path(__file__).with_name("make_stub.py")


def test_the_committed_stub_is_up_to_date():
    script = runpy.run_path(str(SCRIPT))
    generated, committed = script["make_stub"](), script["STUB"].read_text()
    changes = difflib.unified_diff(
        committed.splitlines(), generated.splitlines(), "committed", "generated", lineterm=""
    )
    assert committed == generated, (
        "The stub is out of date. Rewrite it with: python tests/core/make_stub.py\n"
        + "\n".join(changes)
    )
