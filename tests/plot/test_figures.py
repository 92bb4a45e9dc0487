"""Figures, errors and units that all pictures have in common."""

from __future__ import annotations

import inspect
import subprocess
import sys
import types

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from onlineforest import (
    MondrianForestClassifier,
    OnlineForestClassifier,
    OnlineForestRegressor,
    _extras,
    plot,
)
from onlineforest.plot import figures as _plot_figures
from support.pictures import (
    NAMES,
    PETALS,
    rendered,
)

DRAW_ONE = """
import sys
from onlineforest import MondrianForestClassifier, plot
assert not any(name.startswith("matplotlib") for name in sys.modules)
forest = MondrianForestClassifier(1).fit([[0.0, 1.0], [2.0, 3.0]], [0, 1])
axes = plot.partition(forest)
assert axes.figure.canvas.manager is None
assert "matplotlib.pyplot" not in sys.modules
import matplotlib.pyplot as plt
axes = plot.partition(forest)
assert plt.gcf() is axes.figure and plt.gca() is axes
"""


def test_a_new_figure_belongs_to_pyplot_only_if_pyplot_is_imported():
    result = subprocess.run([sys.executable, "-c", DRAW_ONE], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_a_notebook_is_detected_by_its_shell(monkeypatch):
    for shell, expected in [(None, False), (object(), True)]:
        module = types.SimpleNamespace(get_ipython=lambda shell=shell: shell)
        monkeypatch.setitem(sys.modules, "IPython", module)
        assert _plot_figures._in_ipython() is expected
    monkeypatch.delitem(sys.modules, "IPython")
    assert _plot_figures._in_ipython() is False


def test_a_notebook_gets_a_figure_of_pyplot(monkeypatch):
    from matplotlib import pyplot

    monkeypatch.delitem(sys.modules, "matplotlib.pyplot")
    monkeypatch.setattr(_plot_figures, "_in_ipython", lambda: False)
    figure, _ = _plot_figures.new_figure()
    assert figure.canvas.manager is None
    monkeypatch.setattr(_plot_figures, "_in_ipython", lambda: True)
    figure, _ = _plot_figures.new_figure()
    assert figure.number in pyplot.get_fignums()
    pyplot.close(figure)


PICTURES = {
    "partition": lambda f, **o: plot.partition(f, PETALS, NAMES, **o),
    "tree": lambda f, **o: plot.tree(f, **o),
    "decision_surface": lambda f, **o: plot.decision_surface(f, resolution=5, **o),
    "novelty_map": lambda f, **o: plot.novelty_map(f, resolution=5, **o),
    "importances": lambda f, **o: plot.importances(f, **o),
    "learning_curve": lambda f, **o: plot.learning_curve([1, 2], {"a": [0, 1]}, **o),
    "reliability": lambda f, **o: plot.reliability(NAMES, f.predict_proba(PETALS), **o),
}


WITHOUT_NOVELTY = [name for name in PICTURES if name != "novelty_map"]
PICTURES_OF = [
    *((MondrianForestClassifier, name) for name in PICTURES),
    *((OnlineForestClassifier, name) for name in WITHOUT_NOVELTY),
]


@pytest.mark.parametrize(("kind", "name"), PICTURES_OF)
def test_pictures_are_drawn_into_the_given_axes(kind, name):
    petals = kind(5, random_state=0).fit(PETALS, NAMES)
    axes = Figure(dpi=30).add_subplot()
    assert PICTURES[name](petals, ax=axes) is axes
    assert rendered(axes).has_data() or axes.collections or axes.texts
    with pytest.raises(TypeError, match=r"ax must be a matplotlib Axes or None. Got Figure inst"):
        PICTURES[name](petals, ax=Figure())


@pytest.mark.parametrize("name", PICTURES)
def test_the_error_without_matplotlib_names_the_extra(mondrian_petals, name, monkeypatch):
    monkeypatch.setattr(_extras, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"needs matplotlib.*onlineforest\[plot\]"):
        PICTURES[name](mondrian_petals)


def test_all_pictures_are_documented_with_an_example():
    assert {*PICTURES, "intervals"} == set(plot.__all__)
    for name in plot.__all__:
        document = inspect.getdoc(getattr(plot, name))
        for section in ("Parameters", "Returns", "Examples"):
            assert f"\n{section}\n---" in document, name


FORESTS_NEEDED = [name for name in PICTURES if name not in ("learning_curve", "reliability")]


@pytest.mark.parametrize("name", FORESTS_NEEDED)
def test_anything_but_a_forest_with_samples_is_an_error(kind, name):
    draw = PICTURES[name]
    with pytest.raises(
        TypeError, match=r"must be a forest of this library, such as an OnlineForest.* Got st"
    ):
        draw("forest")
    with pytest.raises(TypeError, match=rf"Got the class {kind.__name__} instead"):
        draw(kind)
    with pytest.raises(NotFittedError):
        draw(kind())
    empty = kind(2).fit(PETALS[:5], NAMES[:5]).keep_latest(0)
    with pytest.raises(ValueError, match=r"has forgotten all its samples"):
        draw(empty)


def test_pictures_of_a_forest_with_offsets_are_in_the_units_of_users():
    """Moved by the offset, everything that is drawn is that of the forest without it."""
    start, y = 1_700_000_000, np.arange(300) % 7
    near = np.column_stack([np.random.default_rng(1).integers(0, 3600, 300), np.arange(300) % 50])
    X = near + [start, 0.0]  # noqa: RUF005
    forest = OnlineForestRegressor(2, random_state=0, offsets={0: start}).fit(X, y)
    plain = OnlineForestRegressor(2, random_state=0).fit(near, y)
    for draw in (
        lambda forest, rows: plot.partition(forest, rows, y),
        lambda forest, rows: plot.partition(forest),
        lambda forest, rows: plot.decision_surface(forest, rows, y, resolution=30),
        lambda forest, rows: plot.decision_surface(forest, resolution=30),
    ):
        axes, other = draw(forest, X), draw(plain, near.astype(float))
        assert np.allclose(np.array(axes.get_xlim()) - start, other.get_xlim(), atol=0.01)
        assert np.allclose(axes.get_ylim(), other.get_ylim())
        for one, two in zip(axes.collections, other.collections, strict=True):
            if isinstance(one, PathCollection):
                assert np.array_equal(one.get_offsets() - [start, 0.0], two.get_offsets())
            if isinstance(one, LineCollection):
                lines = np.array(one.get_segments()) - [start, 0.0]
                assert np.allclose(lines, np.array(two.get_segments()), atol=0.01)
        for one, two in zip(axes.images, other.images, strict=True):
            assert (np.asarray(one.get_array()) == np.asarray(two.get_array())).mean() > 0.98
    labels = [text.get_text() for text in plot.tree(forest).texts if "≤" in text.get_text()]
    times = {text.split("≤ ")[1] for text in labels if text.startswith("feature 0")}
    splits = forest.trees_[0]
    known = splits.split_location[splits.split_dimension == 0]
    assert len(times) > 1, "splits of one feature have labels that differ"
    for text in times:
        assert np.abs(known - float(text.replace(",", ""))).min() < 1
