"""Files of the format load, and predict what they did when they were made."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

import onlineforest
from onlineforest._files.container import FORMAT_VERSION
from onlineforest._store.loading import ESTIMATORS
from saved.make import predictions
from support.model_files import signed

FILES = sorted(Path(__file__).parent.glob("format-*/*.safetensors"))


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


def test_there_are_files_of_each_kind_of_forest_in_the_format_alone():
    assert {path.parent.name for path in FILES} == {f"format-{FORMAT_VERSION}"}
    kinds = [type(onlineforest.load(path)).__name__ for path in FILES]
    assert len(kinds) >= 17 and all(kinds.count(name) >= 4 for name in ESTIMATORS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_same_file_is_refused_if_it_says_another_format(path):
    ours = f'"format_version":"{FORMAT_VERSION}"'.encode()
    for other in (FORMAT_VERSION - 1, FORMAT_VERSION + 1):
        theirs = f'"format_version":"{other}"'.encode()
        data = signed(path.read_bytes().replace(ours, theirs, 1))
        with pytest.raises(
            onlineforest.ModelFileError,
            match=rf"has format {other}, but .* reads format {FORMAT_VERSION} alone",
        ):
            onlineforest.load(io.BytesIO(data))
