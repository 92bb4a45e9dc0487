"""Public names of onlineforest.river: their module, their pickles and their examples."""

from __future__ import annotations

import doctest
import inspect
import pickle

import pytest

from support.river_checks import MODELS


@pytest.mark.parametrize("kind", MODELS)
def test_a_pickled_model_names_only_public_modules(kind):
    model = kind(3, seed=0)
    for i in range(50):
        model.learn_one({"a": i % 7, "b": i % 5, "c": None if i % 3 else i}, i % 2)
    data = pickle.dumps(model)
    assert kind.__module__ == "onlineforest.river" and b"onlineforest.river" in data
    for private in (b"onlineforest._", b"onlineforest.river."):
        assert private not in data
    twin = pickle.loads(data)
    assert twin.features == model.features == ["a", "b", "c"]
    query = {"a": 3, "b": 1}
    assert twin.predict_one(query) == model.predict_one(query)
    assert pickle.loads(pickle.dumps(kind())).features == []


@pytest.mark.parametrize("kind", MODELS)
def test_docstring_examples_run(kind):
    """Examples of the class and of all its methods, inherited ones included."""
    runner, parser = doctest.DocTestRunner(), doctest.DocTestParser()
    for name, thing in [("", kind), *inspect.getmembers(kind, inspect.isfunction)]:
        if thing.__module__.startswith("onlineforest.river") and thing.__doc__:
            runner.run(parser.get_doctest(thing.__doc__, {}, f"{kind.__name__} {name}", None, None))
    assert runner.summarize().failed == 0 and runner.tries > 20
