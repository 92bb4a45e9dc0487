"""Files of every format load, and predict what they did when they were made."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import onlineforest
from onlineforest._files.container import FORMAT_VERSION
from saved.make import predictions

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("format-*/*.safetensors"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_file_predicts_as_when_it_was_made(path):
    expected = json.loads(path.with_suffix(".json").read_text())
    forest = onlineforest.load(path)
    forest._check_trees()
    assert forest.n_samples_seen_ == expected["n_samples_seen"]
    assert sorted(map(str, forest.ids_)) == expected["ids"]
    now = predictions(forest, np.array(expected["queries"]))
    assert now.keys() == expected["predictions"].keys()
    for name, answer in expected["predictions"].items():
        if name in ("classes", "digest"):
            assert now[name] == answer
        else:  # exp and log differ between systems in the last bit
            np.testing.assert_allclose(now[name], answer, rtol=1e-12, atol=1e-300)


def test_every_format_has_files():
    formats = {path.parent.name for path in FILES}
    assert formats == {f"format-{version}" for version in range(1, FORMAT_VERSION + 1)}
    assert len(FILES) >= 6 * FORMAT_VERSION
