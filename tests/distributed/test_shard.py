"""One shard of a forest: operations once and in order, snapshots, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from onlineforest._core import LabelForest, Quantity
from onlineforest._distributed import messages
from onlineforest._distributed import shard as module
from onlineforest._distributed.errors import GapError
from onlineforest._distributed.messages import LearnLabels, LearnNumbers
from onlineforest._distributed.shard import Shard, Start, fingerprint
from onlineforest._files.reading import read
from onlineforest._files.writing import write
from support.bits import assert_same
from support.crews import GAUSSIAN_OPTIONS, LABEL_OPTIONS, plans_of

X = np.random.default_rng(0).normal(size=(90, 3)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int32)


def new_shard(number=0, start=None):
    return Shard(plans_of("LabelForest", 5, 3, LABEL_OPTIONS, 2)[number], start or Start())


def learn(shard, number, rows=slice(0, 30)):
    return shard.carry_out(number, LearnLabels(X[rows], Y[rows], 2))


def state_of(shard):
    return shard.ask(messages.WholeState()).answer


def test_a_repeat_changes_nothing_and_a_gap_is_an_error():
    shard, once = new_shard(), new_shard()
    learn(once, 1)
    first = learn(shard, 1)
    assert learn(shard, 1) == first  # the answer may not have arrived
    assert_same(state_of(shard), state_of(once))
    with pytest.raises(
        GapError, match="shard 0 of 2 has carried out 1 operations, but received operation 3"
    ):
        learn(shard, 3)
    assert_same(state_of(shard), state_of(once))
    assert shard.hello().position == 1


def test_a_repeat_of_an_older_operation_changes_nothing():
    shard = new_shard()
    learn(shard, 1)
    learn(shard, 2, slice(30, 60))
    before = state_of(shard)
    assert learn(shard, 1).status is None
    assert_same(state_of(shard), before)
    assert shard.hello().position == 2


def test_a_shard_file_with_wrong_arrays_is_refused(tmp_path):
    shard, path = new_shard(), tmp_path / "shard.safetensors"
    learn(shard, 1)
    shard.snapshot(str(path))
    contents = read(path)
    rows = contents.arrays["rows"]
    for changed, message in [
        ({"more": rows}, "unexpected array 'more'"),
        ({"rows": rows.reshape(-1, 1)}, "its 'rows' has shape"),
    ]:
        with open(path, "wb") as file:
            own = {
                key: text
                for key, text in contents.metadata.items()
                if key in ("estimator", "shard")
            }
            write(file, contents.arrays | changed, own)
        assert message in new_shard(0, Start(1, snapshot=str(path))).hello().refusal


def test_a_question_about_another_position_is_an_error(tmp_path):
    shard = new_shard()
    learn(shard, 1)
    assert shard.ask(messages.Predict(X), 1).answer is not None
    with pytest.raises(GapError, match="has carried out 1 operations, not 2"):
        shard.ask(messages.Predict(X), 2)
    with pytest.raises(GapError, match="has carried out 1 operations, not 0"):
        shard.snapshot(str(tmp_path / "shard"), 0)


def test_a_refused_operation_counts_but_changes_nothing():
    shard = new_shard()
    learn(shard, 1)
    before = state_of(shard)
    outcome = shard.carry_out(2, messages.Forget(np.array([99])))
    assert "not stored" in outcome.refusal
    assert_same(state_of(shard), before)
    assert shard.hello().position == 2
    assert shard.ask(messages.Finish(Quantity.PREDICTION, X, np.zeros(3), 1)).refusal


QUESTIONS = [messages.WholeState(), messages.Predict(X), messages.Serials()]
OPERATIONS = [LearnLabels(X, Y, 2), messages.Forget(np.arange(3)), messages.Refresh()]


@pytest.mark.parametrize("message", [*QUESTIONS, "learn", "__class__", None])
def test_only_operations_are_carried_out(message):
    shard = new_shard()
    with pytest.raises(TypeError, match="is not an operation"):
        shard.carry_out(1, message)
    assert shard.hello().position == 0


@pytest.mark.parametrize("message", [*OPERATIONS, "learn", "__class__", None])
def test_only_questions_are_answered(message):
    shard = new_shard()
    before = state_of(shard)
    with pytest.raises(TypeError, match="is not a question"):
        shard.ask(message)
    assert_same(state_of(shard), before)


def test_a_shard_has_trees_of_the_whole_forest():
    whole = LabelForest(5, 3, **LABEL_OPTIONS)
    whole.learn(X, Y, 2)
    for number, (begin, end) in enumerate([(0, 2), (2, 5)]):
        shard = new_shard(number)
        shard.carry_out(1, LearnLabels(X, Y, 2))
        for i in range(begin, end):
            tree = shard.ask(messages.TreeArrays(i - begin)).answer
            assert tree["split_time"].tobytes() == whole.tree(i)["split_time"].tobytes()


def test_a_shard_is_restored_from_its_snapshot(tmp_path):
    shard, path = new_shard(1), str(tmp_path / "shard.safetensors")
    learn(shard, 1)
    assert shard.snapshot(path).answer == 1
    again = new_shard(1, Start(1, snapshot=path))
    assert_same(state_of(again), state_of(shard))
    for number in (2, 3):
        learn(shard, number, slice(number * 25, number * 25 + 20))
        learn(again, number, slice(number * 25, number * 25 + 20))
    assert_same(state_of(again), state_of(shard))


def test_a_snapshot_of_another_shard_is_refused(tmp_path):
    shard, path = new_shard(1), str(tmp_path / "shard.safetensors")
    learn(shard, 1)
    shard.snapshot(path)
    for number, position in [(0, 1), (1, 2)]:
        refusal = new_shard(number, Start(position, snapshot=path)).hello().refusal
        assert "holds another shard" in refusal
    other = plans_of("LabelForest", 5, 3, LABEL_OPTIONS, 2, run="another run")[1]
    assert "holds another shard" in Shard(other, Start(1, snapshot=path)).hello().refusal
    assert "No such file" in new_shard(1, Start(1, snapshot=f"{path}.gone")).hello().refusal


def test_a_snapshot_that_cannot_be_written_is_a_refusal(tmp_path):
    shard = new_shard()
    learn(shard, 1)
    assert "No such file" in shard.snapshot(str(tmp_path / "no folder" / "shard")).refusal


def test_left_out_predictions_are_sent_once():
    plan = plans_of("GaussianForest", 5, 3, GAUSSIAN_OPTIONS, 2)[0]
    shard = Shard(plan, Start())
    values = X[:, 0].astype(np.float64)
    outcome = shard.carry_out(1, LearnNumbers(X, values))
    assert len(outcome.left_out["residuals"]) == len(X)
    assert shard.carry_out(2, LearnNumbers(X[:1], values[:1])).left_out is None


def test_the_fingerprint_depends_on_the_forests(monkeypatch):
    own = fingerprint()
    assert fingerprint.__wrapped__() == own
    rows = np.nextafter(module._fixed_rows(), np.float32(9))
    monkeypatch.setattr(module, "_fixed_rows", lambda: rows)
    assert fingerprint.__wrapped__() != own
