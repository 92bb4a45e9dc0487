"""Public names of onlineforest.ray: their module and their examples."""

from __future__ import annotations

import doctest
import pickle

import pytest

import onlineforest.ray
from support.examples import thorough_but
from support.rays import RAY

pytestmark = [RAY, pytest.mark.usefixtures("ray_here")]

NAMES = onlineforest.ray.__all__


@pytest.mark.parametrize("name", NAMES)
def test_public_names_say_that_they_are_of_onlineforest_ray(name):
    thing = getattr(onlineforest.ray, name)
    assert thing.__module__ == "onlineforest.ray" and thing.__qualname__ == name
    assert pickle.loads(pickle.dumps(thing)) is thing


@pytest.mark.parametrize("name", thorough_but("ShardLostError", "StreamReport", of=NAMES))
def test_docstring_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some of them write files
    runner, thing = doctest.DocTestRunner(), getattr(onlineforest.ray, name)
    for test in doctest.DocTestFinder().find(thing, name, module=False, globs={}):
        runner.run(test)
    assert runner.summarize().failed == 0 and runner.tries > 0
