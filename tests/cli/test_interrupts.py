"""Interrupt and kill commands, and resume them."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

import onlineforest
from onlineforest._cli.forests import FORESTS
from onlineforest._cli.run import Interrupts
from support.commands import CLASSIFY, COMMAND, REGRESS, SMALL, each_kind, fine, of, run, stream
from support.examples import thorough_but


def lines_of_pipe(n, kind):
    return stream(n, kind=kind).to_csv(index=False).encode().splitlines(keepends=True)


def begin(*arguments, **options):
    return subprocess.Popen([*COMMAND, *arguments], stderr=subprocess.PIPE, **options)


def wait_for(condition, process):
    end = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end, "timed out"
        time.sleep(0.02)


def n_lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "task", "kept"),
    thorough_but(
        ("order-free", CLASSIFY, "--window"),
        of=[
            ("mondrian", CLASSIFY, "--window"),
            ("order-free", CLASSIFY, "--window"),
            ("order-free", REGRESS, "--reservoir"),
        ],
    ),
)
def test_a_killed_and_resumed_run_ends_with_the_same_files(folder, kind, task, kept):
    lines = lines_of_pipe(500, kind)
    forest = [*task, *SMALL, *of(kind), kept, "300"]
    options = [*forest, "--checkpoints", "c", "--every-samples", "100", "--resume"]
    options += ["-o", "m.st", "--curve", "curve.csv"]
    # The pipe stalls after some rows. The first process is killed there, the second interrupted.
    for n_rows, number, code in ((371, signal.SIGKILL, -signal.SIGKILL), (420, signal.SIGINT, 130)):
        process = begin("train", "-", *options, stdin=subprocess.PIPE)
        process.stdin.write(b"".join(lines[: n_rows + 1]))
        process.stdin.write(b"s999,0.1,0.")  # the pipe will end here
        process.stdin.flush()
        n_whole = n_rows // 50
        wait_for(lambda n=n_whole: n_lines(folder / "curve.csv") >= n, process)
        process.send_signal(number)
        begun = time.monotonic()
        _, errors = process.communicate()
        assert process.returncode == code, errors
        assert time.monotonic() - begun < 5  # usually below 1 s; the machine may be busy
    assert "Interrupted after 400 samples. Saved m.st" in errors.decode()
    assert onlineforest.load("m.st").n_samples_seen_ == 400
    result = fine("train", "-", *options, input=b"".join(lines))
    assert "after 400 samples" in result.output
    fine("train", "data.csv", *forest, "-o", "whole.st", "--curve", "whole.csv")
    assert (folder / "m.st").read_bytes() == (folder / "whole.st").read_bytes()
    assert (folder / "curve.csv").read_text() == (folder / "whole.csv").read_text()


@pytest.mark.parametrize(("kind", "task"), [("mondrian", CLASSIFY), ("order-free", REGRESS)])
@pytest.mark.parametrize("n_learned", [0, 100])
def test_an_interrupted_run_can_be_resumed(folder, monkeypatch, n_learned, kind, task):
    estimator = FORESTS[kind][task[3]]
    learn = estimator.partial_fit

    def interrupted(forest, X, y, ids=None):
        n_seen = forest.n_samples_seen_ if forest.__sklearn_is_fitted__() else 0
        if n_seen >= n_learned:
            raise KeyboardInterrupt
        return learn(forest, X, y, ids=ids)

    options = [*task, *SMALL, *of(kind), "-o", "m.st", "--resume"]
    monkeypatch.setattr(estimator, "partial_fit", interrupted)
    result = run("train", "data.csv", *options)
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert result.exit_code == 130
    saved = "Interrupted after 100 samples. Saved m.st" if n_learned else "nothing saved"
    assert saved in result.output and (folder / "m.st").exists() == bool(n_learned)
    fine("train", "data.csv", *options)
    fine("train", "data.csv", *task, *SMALL, *of(kind), "-o", "whole.st")
    assert (folder / "m.st").read_bytes() == (folder / "whole.st").read_bytes()


@each_kind
def test_an_interrupted_model_is_not_replaced_without_resume(folder, monkeypatch, kind):
    estimator = FORESTS[kind]["classify"]
    learn = estimator.partial_fit

    def interrupted(forest, X, y, ids=None):
        if forest.__sklearn_is_fitted__():
            raise KeyboardInterrupt
        return learn(forest, X, y, ids=ids)

    options = ["train", "data.csv", *CLASSIFY, *SMALL, *of(kind), "-o", "m.st"]
    with monkeypatch.context() as patch:
        patch.setattr(estimator, "partial_fit", interrupted)
        assert run(*options).exit_code == 130
    before = (folder / "m.st").read_bytes()
    result = run(*options)
    assert result.exit_code == 2 and "Continue from it with --resume" in result.output
    assert "delete it or name another file" in result.output
    assert (folder / "m.st").read_bytes() == before
    assert "over all 500 samples: accuracy" in fine(*options, "--resume").output
    fine(*options)  # a finished model may be replaced


@each_kind
def test_interrupted_commands_exit_with_code_130(models, monkeypatch, kind):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(FORESTS[kind]["classify"], "predict_proba", interrupted)
    evaluate = ["evaluate", "data.csv", *CLASSIFY, *of(kind)]
    for arguments in (["predict", "kinds.st", "data.csv"], evaluate):
        result = run(*arguments)
        assert result.exit_code == 130 and result.output == "Interrupted.\n"


def test_a_signal_raises_after_the_grace_period():
    with Interrupts() as interrupts:
        interrupts.check()
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            time.sleep(10)
        assert time.monotonic() - begun < 5
    with Interrupts() as interrupts:
        os.kill(os.getpid(), signal.SIGINT)
        interrupts.cancel()  # the interrupt is handled: no grace period is left
        time.sleep(0.6)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
