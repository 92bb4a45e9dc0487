"""Notebooks show a diagram and what a forest holds, which is cheap and changes nothing."""

from __future__ import annotations

import pickle
import re
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onlineforest import (
    MondrianForestClassifier,
    OnlineForestClassifier,
    OnlineForestRegressor,
)
from onlineforest._forests.display import size_of, some_of, table_of
from onlineforest._forests.locking import guard_of

FORESTS = [
    OnlineForestClassifier,
    OnlineForestRegressor,
    MondrianForestClassifier,
]
CLASSIFIERS = [OnlineForestClassifier, MondrianForestClassifier]
X = np.random.default_rng(0).normal(size=(300, 4))
Y = (X[:, 0] > 0).astype(int)


def facts_in(html):
    """The rows of the table that notebooks show, after a check that there is one table at most."""
    assert html.count("onlineforest-facts") <= 1
    cell = r"<tr><th[^>]*>([^<]*)</th><td[^>]*>([^<]*)</td></tr>"
    return dict(re.findall(cell, html))


def shown(forest):
    """The facts that a notebook shows, whichever way it asks."""
    html = forest._repr_html_()
    in_bundle = forest._repr_mimebundle_()["text/html"]
    assert type(forest).__name__ in html and "n_estimators" in html  # scikit-learn's diagram
    assert facts_in(html) == facts_in(in_bundle)
    return facts_in(html)


@pytest.mark.parametrize("kind", FORESTS)
def test_a_notebook_shows_what_a_forest_holds(kind):
    forest = kind(n_estimators=7, window=200, random_state=0).partial_fit(X, Y)
    facts = shown(forest)
    assert facts["samples"] == "200 held, 300 seen"
    assert facts["features"] == "4"
    assert facts["trees"] == "7"
    assert facts["memory"] == size_of(forest.nbytes_)
    assert facts.get("classes") == ("2: 0, 1" if kind in CLASSIFIERS else None)


@pytest.mark.parametrize("kind", FORESTS)
def test_a_forest_without_samples_can_be_shown(kind):
    assert shown(kind(n_estimators=3)) == {}
    forest = kind(n_estimators=3, random_state=0).fit(X, Y).keep_latest(0)
    assert shown(forest)["samples"] == "0 held, 300 seen"


def test_categorical_features_are_counted():
    table = pd.DataFrame({"size": [1.0, 2.0], "colour": ["red", "blue"], "shape": ["o", "x"]})
    forest = OnlineForestRegressor(categorical_features="from_dtype").fit(table, [1.0, 2.0])
    assert shown(forest)["features"] == "3, 2 of them categorical"


@pytest.mark.parametrize("kind", FORESTS)
def test_the_display_can_be_switched_off(kind):
    forest = kind(n_estimators=3).fit(X, Y)
    with config_context(display="text"):
        assert not hasattr(forest, "_repr_html_")
        assert forest._repr_mimebundle_() == {"text/plain": repr(forest)}


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_names_of_classes_and_features_are_text_not_html(kind):
    evil = "<script>alert('x')</script>"
    table = pd.DataFrame(X, columns=[evil, '"><b>', "&amp;", "plain"])
    forest = kind(n_estimators=3).fit(table, np.where(Y, evil, "<i>no"))
    html = forest._repr_html_() + forest._repr_mimebundle_()["text/html"]
    assert evil not in html and '"><b>' not in html and "<i>no" not in html
    assert facts_in(forest._repr_html_())["classes"] == (
        "2: &lt;i&gt;no, &lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;"
    )


@pytest.mark.parametrize("kind", FORESTS)
def test_a_display_computes_nothing_and_changes_nothing(kind, monkeypatch):
    def unwanted(self):
        raise AssertionError("a display must not compute this")

    names = ["digest_", "oob_score_", "oob_decision_function_", "oob_prediction_", "ids_"]
    for name in [*names, "feature_importances_", "feature_weights_", "levels_", "trees_"]:
        if hasattr(kind, name):
            monkeypatch.setattr(kind, name, property(unwanted))
    forest = kind(n_estimators=5, random_state=0).fit(X, Y)
    before, size = pickle.dumps(forest), forest.nbytes_
    shown(forest)
    make_pipeline(StandardScaler(), forest)._repr_html_()
    assert forest.nbytes_ == size, "the display has grown trees"
    assert pickle.dumps(forest) == before


@pytest.mark.parametrize("kind", FORESTS)
def test_a_display_does_not_wait_for_another_thread_that_learns(kind):
    forest = kind(n_estimators=3).fit(X, Y)
    has_lock, is_shown = threading.Event(), threading.Event()

    def learn():
        with guard_of(forest):
            has_lock.set()
            assert is_shown.wait(60)

    thread = threading.Thread(target=learn)
    thread.start()
    assert has_lock.wait(60)
    facts = shown(forest)
    is_shown.set()
    thread.join()
    assert facts == {"now": "learning in another thread"}
    assert shown(forest)["samples"] == "300 held, 300 seen"


def test_facts_are_escaped_and_an_empty_table_is_no_table():
    assert table_of({}) == ""
    assert "<td" in table_of({"a": "<td>"}) and "&lt;td&gt;" in table_of({"a": "<td>"})


def test_few_names_are_shown_and_long_ones_are_shortened():
    assert some_of(["a", 1]) == "a, 1"
    assert some_of(range(10)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
    assert some_of(range(11)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …"
    assert some_of(["x" * 30, "y" * 31]) == f"{'x' * 30}, {'y' * 29}…"


def test_sizes_have_three_digits():
    sizes = [0, 999, 1000, 12_345, 999_600, 3_210_000, 10**9, 10**12]
    assert [size_of(size) for size in sizes] == [
        "0 bytes",
        "999 bytes",
        "1 kB",
        "12.3 kB",
        "1 MB",
        "3.21 MB",
        "1 GB",
        "1 TB",
    ]
