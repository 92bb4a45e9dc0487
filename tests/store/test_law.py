"""A forest whose trees are not saved comes back under its own law alone."""

from __future__ import annotations

import copy
import io
import pickle
import re

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.base import is_regressor

import onlineforest
from onlineforest import (
    Checkpointer,
    ModelFileError,
    MondrianForestClassifier,
    OnlineForestClassifier,
    OnlineForestRegressor,
    load,
)
from onlineforest._cli import build_command
from onlineforest._core import LAW
from onlineforest._files import container as _container
from onlineforest._forests import law as _law
from onlineforest._forests.orderfree import digests as _digests
from support.model_files import changed, saved

X = np.random.default_rng(0).normal(size=(60, 3))
each_order_free = pytest.mark.parametrize("kind", [OnlineForestClassifier, OnlineForestRegressor])
OTHER_LAWS = [
    (LAW + 1, f"law {LAW + 1}"),
    (0, "law 0"),
    (str(LAW), f"law '{LAW}'"),
    (True, "law T"),
]
OTHER_LAWS += [(None, "no law"), ([[1] * 99], r"law \[\[1")]
OURS = rf".*, but this version of onlineforest \({onlineforest.__version__}\) has law {LAW}:"


def fitted(kind):
    return kind(3, random_state=0).fit(X, X[:, 1] if is_regressor(kind()) else X[:, 0] > 0)


@each_order_free
def test_files_have_the_law(kind):
    metadata = _container.read_header(io.BytesIO(saved(fitted(kind)))).metadata
    assert metadata["law"] == str(LAW)


@pytest.mark.parametrize(("law", "shown"), OTHER_LAWS)
@each_order_free
def test_a_file_of_another_law_is_refused(kind, law, shown):
    message = f"^the file is not a valid model file: it has {shown}{OURS}"
    data = changed(saved(fitted(kind)), {"law": law})
    with pytest.raises(ModelFileError, match=message):
        load(io.BytesIO(data))


@each_order_free
def test_another_law_is_named_before_whatever_else_differs(kind):
    """Another law may come with other parameters and other arrays."""
    changes = {"law": LAW + 1, "parameters": {"unknown": 1}, "features": None, "counts": {}}
    with pytest.raises(ModelFileError, match=f"it has law {LAW + 1}{OURS}"):
        load(io.BytesIO(changed(saved(fitted(kind)), changes, {"rows": None})))


@pytest.mark.parametrize(("law", "shown"), OTHER_LAWS)
@each_order_free
def test_a_pickle_of_another_law_is_refused(kind, law, shown):
    state = fitted(kind).__getstate__()
    assert state.pop("law") == LAW
    forest = kind.__new__(kind)
    with pytest.raises(ValueError, match=f"^The pickled {kind.__name__} has {shown}{OURS}"):
        forest.__setstate__(state if law is None else state | {"law": law})
    assert not hasattr(forest, "_forest")


@each_order_free
def test_a_version_of_another_law_refuses_what_this_one_has_saved(kind, monkeypatch, tmp_path):
    forest = fitted(kind)
    pickled, data = pickle.dumps(forest), saved(forest)
    Checkpointer(tmp_path).save(forest)
    monkeypatch.setattr(_law, "LAW", LAW + 1)
    theirs = re.escape(f"has law {LAW}, but this version of onlineforest")
    with pytest.raises(ValueError, match=theirs):
        pickle.loads(pickled)
    with pytest.raises(ModelFileError, match=theirs):
        load(io.BytesIO(data))
    with pytest.raises(ModelFileError, match=theirs):
        Checkpointer(tmp_path).open()
    assert copy.deepcopy(forest).digest_ == forest.digest_
    assert pickle.loads(pickle.dumps(kind())).get_params() == kind().get_params()


def test_a_checkpoint_of_another_law_is_skipped(tmp_path):
    forest, checkpoints = fitted(OnlineForestRegressor), Checkpointer(tmp_path)
    checkpoints.save(forest, 1)
    path = checkpoints.save(forest, 2)
    path.write_bytes(changed(path.read_bytes(), {"law": LAW + 1}))
    with pytest.warns(UserWarning, match=f"it has law {LAW + 1}{OURS}"):
        assert Checkpointer(tmp_path).open().position == 1


@pytest.mark.parametrize("option", ["--resume", "--from"])
def test_a_run_does_not_go_on_with_a_model_of_another_law(tmp_path, option):
    table, model = tmp_path / "table.csv", tmp_path / "model.safetensors"
    table.write_text("x,y\n" + "".join(f"{i},{i % 2}\n" for i in range(40)))
    data = changed(saved(fitted(OnlineForestClassifier)), {"law": LAW + 1})
    model.write_bytes(data)
    arguments = ["train", str(table), "--target", "y", "-o", str(model), option]
    result = CliRunner().invoke(
        build_command(), arguments if option == "--resume" else [*arguments, str(model)]
    )
    assert result.exit_code == 1 and model.read_bytes() == data
    assert re.search(f"it has law {LAW + 1}{OURS}", " ".join(result.output.split()))


def test_forests_whose_trees_are_saved_have_no_law(monkeypatch):
    forest = fitted(MondrianForestClassifier)
    assert "law" not in _container.read_header(io.BytesIO(saved(forest))).metadata
    assert "law" not in forest.__getstate__()
    pickled, data = pickle.dumps(forest), saved(forest)
    monkeypatch.setattr(_law, "LAW", LAW + 1)
    for other in (pickle.loads(pickled), load(io.BytesIO(data))):
        assert np.array_equal(other.predict_proba(X), forest.predict_proba(X))


@each_order_free
def test_forests_of_different_laws_have_different_digests(kind, monkeypatch):
    forest = fitted(kind)
    ours = forest.digest_
    monkeypatch.setattr(_digests, "LAW", LAW + 1)
    assert forest.digest_ != ours
