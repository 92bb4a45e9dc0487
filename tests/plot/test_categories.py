"""Pictures name the levels of categorical features."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection

from onlineforest import (
    OnlineForestClassifier,
    OnlineForestRegressor,
    plot,
)
from onlineforest.plot import figures as _plot_figures
from onlineforest.plot import points as _plot_points
from onlineforest.plot import trees as _plot_tree
from onlineforest.plot.figures import class_colours
from support.pictures import (
    grid_of,
    only,
    rendered,
)

CARRIERS = ["AA", "B6", "DL", "UA", "WN", None]
AIRPORTS = [f"K{i:02}" for i in range(40)]


def flights(n=400, seed=0):
    """A table with two categorical and two numeric features, and numbers that depend on all."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "carrier": np.array(CARRIERS, dtype=object)[rng.integers(6, size=n)],
            "distance": rng.integers(100, 3000, size=n).astype(float),
            "origin": np.array(AIRPORTS, dtype=object)[rng.integers(40, size=n)],
            "hour": rng.integers(24, size=n).astype(float),
        }
    )
    late = 10.0 * X.carrier.isin(["AA", "UA"]) + 9.0 * X.origin.isin(AIRPORTS[:15])
    return X, late + 2.0 * (X.hour > 15) + X.distance / 3000


@pytest.fixture(scope="module", params=[OnlineForestClassifier, OnlineForestRegressor])
def delays(request):
    """Each kind of forest that learns categorical features; `apply` goes down to the leaves."""
    X, late = flights()
    return request.param(5, calibrate=False, random_state=0).fit(X, targets_of(request.param, late))


def targets_of(kind, late):
    return late if kind is OnlineForestRegressor else np.where(late > 11, "late", "on time")


def test_what_a_split_says_of_levels_is_true_of_the_samples_that_go_left(delays):
    X, _ = flights()
    said = set()
    for index, tree in enumerate(delays.trees_):
        axes = rendered(plot.tree(delays, tree=index, max_depth=100))
        layout = _plot_tree.TreeLayout.of(tree, 100)
        texts = {text.get_position(): text.get_text() for text in axes.texts}
        below = {j: np.zeros(len(X), bool) for j in range(tree.n_nodes)}
        for row, node in enumerate(delays.apply(X)[:, index]):
            while node >= 0:
                below[node][row] = True
                node = tree.parent[node]
        for j in layout.splits:
            name, *words = texts[layout.x[j], layout.height[j]].split("\n")
            at, goes_left = X[below[j]], below[tree.left[j]][below[j]]
            if not name.endswith(":"):
                assert name in ("distance", "hour") and words[0].startswith("≤")
                continue
            levels = ["missing" if pd.isna(level) else level for level in at[name[:-1]]]
            condition = " ".join(words)
            if condition.endswith("levels"):
                n_left, n = map(int, condition.removesuffix(" levels").split(" of "))
                assert n >= len(set(levels)) and min(n_left, n - n_left) > 3
                assert n_left >= len({level for level, left in zip(levels, goes_left) if left})
            else:
                is_left = not condition.startswith("all but ")
                named = condition.removeprefix("all but ").split(", ")
                assert 1 <= len(named) <= 3 and len(words) <= 2
                assert set(named) <= {*AIRPORTS, *CARRIERS[:5], "missing"}
                assert [(level in named) == is_left for level in levels] == list(goes_left)
            said.add((name, condition.split()[0] == "all", condition.endswith("levels")))
    for name in ("carrier:", "origin:"):
        assert {(name, False, False), (name, True, False)} <= said
    assert ("origin:", False, True) in said


def levels_at_root(levels, y=None):
    """The text at the root of a tree that knows these levels."""
    X = np.array(levels, dtype=object)[:, None]
    forest = OnlineForestRegressor(1, categorical_features=[0], min_samples_split=2, random_state=0)
    forest.fit(X, np.arange(float(len(levels))) if y is None else y)
    axes = rendered(plot.tree(forest, max_depth=1))
    name, *words = axes.texts[0].get_text().split("\n")
    assert name == "feature 0:"
    return words, forest.trees_[0].split_levels[0]


def test_levels_at_a_split_are_named_if_few_and_short():
    lines = _plot_tree._level_lines
    few, many = frozenset(["AA", "UA"]), frozenset("abcdefg")
    assert lines(few, many) == ["AA, UA"]
    assert lines(many, few) == ["all but AA, UA"]
    assert lines(few, frozenset(["B6", None])) == ["AA, UA"]
    assert lines(frozenset(["B6", None]), many) == ["B6, missing"]
    assert lines(frozenset(["New York", "San Jose"]), many) == ["New York,", "San Jose"]
    assert lines(many, frozenset(["New York", "San Jose"])) == ["7 of 9 levels"]
    assert lines(many, frozenset(["x" * 99])) == ["all but", "xxxxxx…xxxxx"]
    assert lines(frozenset("hijk"), many) == ["4 of 11 levels"]
    thousands = frozenset(range(5000)), frozenset(range(-70000, 0))
    assert lines(*thousands) == ["5,000 of 75,000", "levels"]
    assert lines(frozenset(), many) == ["0 of 7 levels"]
    words, left = levels_at_root([None, 7])
    assert words == [{None: "missing", 7: "7"}[left[0]]]


HOSTILE = {
    "": '""',
    " ": '" "',
    "missing": '"missing"',
    "7": '"7"',
    "all but 7": '"all but 7"',
    "a, b": '"a, b"',
    "two\nlines": '"two lines"',
    "$x^{$": r'"\$x^{\$"',
    r"\$\frac": r'"\\$\frac"',
    "$" * 50: f'"{chr(92)}$' + r"\$" * 4 + "…" + r"\$" * 4 + '"',
    "\\": r'"\"',
    "\U0001f333": '"?"',
    "\u4e0a\u6d77": "??",
    "\u202eabc": '" abc"',
    "\ud800": '" "',
    "Zürich": "Zürich",
    "A" * 5000: "AAAAAA…AAAAA",
    -(2**64) + 1: "-18446…51615",
}


@pytest.mark.parametrize("level", HOSTILE)
def test_levels_with_any_name_are_drawn(level):
    words, left = levels_at_root([level, "other"])
    assert words == [HOSTILE[level] if left == (level,) else "other"]
    assert _plot_figures.printable(_plot_figures.level_name(level, 12)) == HOSTILE[level]


def as_array(X):
    return X.to_numpy(dtype=object)


def colours_at(delays, rows):
    """The colours of classes, or the means, that a surface shows at these rows."""
    if isinstance(delays, OnlineForestRegressor):
        return delays.predict(rows)[:, None]
    probabilities = delays.predict_proba(rows)
    sure = 2 * probabilities.max(axis=1)[:, None] - 1
    return 1 - 0.7 * sure * (1 - class_colours(2)[probabilities.argmax(axis=1)])


def test_a_surface_holds_categorical_features_at_their_most_frequent_level(delays):
    X, late = flights()
    y = targets_of(type(delays), late)
    plain = type(delays)(5, calibrate=False, categorical_features=[0, 2], random_state=0).fit(
        as_array(X), y
    )
    most, pictures = X.origin.mode()[0], []
    for carrier, chosen in [("UA", X.carrier == "UA"), (None, X.carrier.isna())]:
        given = X[chosen]
        origin = given.origin.mode()[0]
        assert carrier != "UA" or origin != most  # the mode of the given rows, not of all
        for axes in (
            plot.decision_surface(delays, given, y[chosen], resolution=20),
            plot.decision_surface(delays, given, resolution=20, features=("distance", 3)),
            plot.decision_surface(plain, as_array(given), resolution=20),
        ):
            (image,) = rendered(axes).images
            x, y_axis = grid_of(image, 20).T
            rows = pd.DataFrame(
                {"carrier": carrier, "distance": x, "origin": origin, "hour": y_axis}
            ).astype({"carrier": object})
            shown = np.asarray(image.get_array()).reshape(400, -1)
            right = np.abs(shown - colours_at(delays, rows)).max(axis=1) < 1e-3
            assert right.mean() > 0.95
            pictures.append(shown)
            np.testing.assert_array_equal(
                only(PathCollection, axes).get_offsets(), given[["distance", "hour"]]
            )
            names = X.columns if axes.get_xlabel() == "distance" else ["feature 0", "", "feature 2"]
            held = f"{names[0]}: {carrier or 'missing'}, {names[2]}: {origin}"
            assert axes.get_title(loc="left") == held
    assert len(np.unique(pictures[0], axis=0)) > 5
    assert (pictures[0] != pictures[-1]).mean() > 0.5
    swapped = rendered(plot.decision_surface(delays, X, features=("hour", 1), resolution=5))
    assert swapped.get_xlabel() == "hour" and swapped.get_ylabel() == "distance"


def test_a_surface_says_how_many_features_it_holds():
    X, y = flights(60)
    X = X.assign(day=np.arange(60.0), plane=list("ab") * 30, is_full=[True, False, True] * 20)
    forest = OnlineForestRegressor(2, random_state=0).fit(X, y)
    axes = rendered(plot.decision_surface(forest, X, features=("hour", "distance"), resolution=5))
    assert axes.get_title(loc="left") == (
        "the other numeric feature at the median\n"
        "the 4 categorical features at the most frequent level"
    )
    names = ["hour", "distance", "is_full"]
    forest = OnlineForestRegressor(2, random_state=0).fit(X[names], y)
    axes = rendered(plot.decision_surface(forest, X[names].assign(is_full="never seen$")))
    assert axes.get_title(loc="left") == r'is_full: "never seen\$"'


def test_typical_levels_are_the_most_frequent_whatever_their_type():
    levels = _plot_points.typical_levels
    for values, level in [
        (["b", "a", "b", "a", "c"], "a"),
        ([None, np.nan, float("nan"), "a", "a"], None),
        ([1.0, True, np.int64(1), "1", "1"], 1),
        (["a", None], "a"),
    ]:
        assert levels(np.array(values, dtype=object)[:, None], [0]) == {0: level}


def test_a_categorical_feature_is_no_axis(delays):
    X, _ = flights()
    message = (
        r"^Feature 'carrier' is categorical and cannot be an axis: its levels have no order. Name "
        r"two of the 2 numeric features.$"
    )
    for features in (["hour", "carrier"], (0, 1), (-4, 1)):
        with pytest.raises(ValueError, match=message):
            plot.decision_surface(delays, X, features=features)
    with pytest.raises(
        ValueError, match=r"X is required: this forest has 4 features.* or their most frequent lev"
    ):
        plot.decision_surface(delays)
    with pytest.raises(
        ValueError,
        match=r"^A partition can be drawn for 2 numeric features. This forest has 4, of which "
        r"these are categorical: 'carrier', 'origin'.$",
    ):
        plot.partition(delays, X)


def test_a_forest_without_two_numeric_features_has_no_plane():
    X, y = flights(60)
    three = X.assign(day=1.0)
    forest = OnlineForestRegressor(2, random_state=0).fit(three, y)
    with pytest.raises(
        ValueError, match=r"forest has 3 numeric features: name two .* features=\(1, 3\)"
    ):
        plot.decision_surface(forest, three)
    for names, n, listed in [
        (["hour", "carrier"], 1, "'carrier'"),
        (["carrier", "origin"], 0, "'carrier', 'origin'"),
    ]:
        forest = OnlineForestRegressor(2, random_state=0).fit(X[names], y)
        for features in (None, names):
            with pytest.raises(
                ValueError,
                match=rf"^A plane needs 2 numeric features. This forest has {n}: these are "
                rf"categorical: {listed}.$",
            ):
                plot.decision_surface(forest, X[names], features=features)
        with pytest.raises(ValueError, match=rf"has 2, of which these are categorical: {listed}"):
            plot.partition(forest, X[names])
        rendered(plot.tree(forest))
    many = pd.DataFrame([list("abcdefghijklm")] * 2, columns=list("abcdefghijklm"))
    forest = OnlineForestRegressor(2, random_state=0).fit(many, [0, 1])
    with pytest.raises(ValueError, match=r"categorical: 'a', .*, 'j', and 3 more\.$"):
        plot.partition(forest)


def test_importances_of_categorical_features_have_their_names(delays):
    axes = rendered(plot.importances(delays))
    order = np.argsort(-delays.feature_importances_, kind="stable")
    assert {0, 2} & set(order[:2].tolist())  # a categorical one
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels == [delays.feature_names_in_[i] for i in order]


@pytest.mark.parametrize("names", [["carrier"], ["hour"], ["carrier", "hour", "origin"]])
def test_intervals_of_categorical_features_are_drawn(names):
    X, y = flights()
    X = X[names]
    forest = OnlineForestRegressor(5, random_state=0).fit(X[:300], y[:300])
    axes = rendered(plot.intervals(forest, X[300:], y[300:]))
    assert axes.get_xlabel() == ("hour" if names == ["hour"] else "samples, by predicted mean")
    mean = forest.predict(X[300:])
    np.testing.assert_array_equal(np.sort(axes.lines[0].get_ydata()), np.sort(mean))
