"""Figures of the reproduction show the numbers of their results and of their trees."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib")

ROOT = Path(__file__).resolve().parents[2]

from experiments.paper import drawings, figures
from experiments.paper.curves import reliability
from experiments.paper.records import Record
from experiments.paper.results import summarise

BATCH = ("Breiman-RF", "ERT-k", "ERT-1")
OTHERS = ("ORF-Saffari", "ORF-Saffari, tuned", "ORF-Denil", "dynamic trees")
METHODS = ("MF", "MF learned", *BATCH, *OTHERS)
FRACTIONS = (0.1, 0.5, 1.0)
N_SAMPLES = {"digits": 1000, "dna": 1400, "dna†": 1400, "letter": 15000}


def made_up(data, methods, n_seeds=2, fractions=FRACTIONS):
    """Records whose accuracy is the fraction times 0.9, and whose time grows as N^1.5."""
    return [
        Record(
            name,
            method,
            seed,
            fraction,
            n_passes,
            n_samples := round(fraction * N_SAMPLES[name]),
            1e-4 * n_passes * n_samples**1.5,
            0.9 * fraction,
            1 - 0.5 * fraction,
            ((0, 0.0, 0),) * 8 + ((10, 8.5, 6), (30, 28.5, 30)),
            1.5 * np.log2(n_samples) + 2 if method.startswith("MF") else None,
        )
        for name in data
        for method in methods
        for seed in range(n_seeds)
        for fraction, n_passes in [
            *((fraction, 1) for fraction in fractions),
            *([(1.0, 2)] if method.startswith("ORF") else []),
        ]
    ]


def texts(legend):
    return [text.get_text() for text in legend.get_texts()]


def legend_of(figure):
    (legend,) = figure.legends
    return texts(legend)


@pytest.mark.parametrize("name", figures.FIGURES)
def test_nothing_to_draw(name):
    _, draw = figures.FIGURES[name]
    assert draw(summarise([])) is None
    assert draw(summarise(made_up(["digits"], ["a method of no figure"]))) is None


@pytest.mark.parametrize(
    ("methods", "drawn"),
    [
        (["MF"], {"3_top", "3_bottom", "depth", "cost", "reliability", "times"}),
        (["Breiman-RF"], {"3_top", "3_bottom", "cost", "reliability", "times"}),
        (["MF learned"], {"learned", "reliability", "times"}),
        (["dynamic trees"], {"4", "times"}),
        (["River AMF, 10 trees"], {"river"}),
    ],
)
def test_a_subset_of_the_methods(methods, drawn):
    results = summarise(made_up(["digits"], methods, n_seeds=1))
    found = {name: draw(results) for name, (_, draw) in figures.FIGURES.items()}
    assert {n for n in found if found[n] is not None} == {f"figure_{name}" for name in drawn}


def test_a_single_fraction_draws_no_fits():
    records = made_up(["digits"], METHODS, fractions=[1.0])
    assert figures.figure_depth(summarise(records)) is None
    assert figures.figure_cost(summarise(records)) is None
    assert figures.figure_3_bottom(summarise(records)) is not None


def test_accuracy_against_the_fraction():
    records = made_up(["dna", "letter"], METHODS) + made_up(["dna†"], ["MF", "ERT-1"])
    figure = figures.figure_3_top(summarise(records))
    letter, dna = figure.axes
    assert (letter.get_title(), dna.get_title()) == ("letter", "dna")
    assert (len(letter.lines), len(dna.lines)) == (7, 9)
    assert legend_of(figure) == [*figures.PAPER, "MF†", "ERT-1†"]
    for line in letter.lines:
        np.testing.assert_allclose(line.get_xdata(), FRACTIONS)
        np.testing.assert_allclose(line.get_ydata(), 0.9 * np.array(FRACTIONS))
    assert len(figures.figure_4(summarise(records)).axes[0].lines) == 8


def test_accuracy_against_time():
    figure = figures.figure_3_bottom(summarise(made_up(["digits"], METHODS)))
    (axes,) = figure.axes
    assert axes.get_xscale() == "log"
    assert legend_of(figure) == [*figures.PAPER, "further passes"]
    by_colour = {line.get_color(): line for line in axes.lines if line.get_linestyle() != "None"}
    online = by_colour[figures.STYLES["MF"].colour].get_xdata()
    retrained = by_colour[figures.STYLES["ERT-1"].colour].get_xdata()
    np.testing.assert_allclose(online[-1], 1e-4 * 1000**1.5)
    assert 30 * online[-1] < retrained[-1] < 100 * online[-1]
    further = [line for line in axes.lines if line.get_linestyle() == "None"]
    assert len(further) == 3  # ORF-Saffari twice, ORF-Denil once
    np.testing.assert_allclose(further[0].get_xdata(), 2e-4 * 1000**1.5)


def test_depth_is_fitted_on_the_logarithm():
    (axes,) = figures.figure_depth(summarise(made_up(["digits", "letter"], ["MF"]))).axes
    assert texts(axes.get_legend()) == [
        f"{data}: 1.50 levels per doubling, $R^2$ = 1.000" for data in ("letter", "digits")
    ]


def test_cost_is_of_the_largest_data_set():
    figure = figures.figure_cost(summarise(made_up(["digits", "letter"], ["MF", "ERT-1"])))
    assert figure.axes[0].get_title() == "letter"
    online, retrained = legend_of(figure)
    assert online == "MF, online: slope 1.50"
    assert retrained.startswith("ERT-1, re-trained: slope 2.")
    assert len(figure.axes[0].lines) == 4  # with two guides


def test_learned_weights_have_two_rows():
    figure = figures.figure_learned(summarise(made_up(["digits", "letter"], METHODS)))
    assert [len(axes.lines) for axes in figure.axes] == [2, 2, 2, 2]
    assert legend_of(figure) == ["MF", "MF learned"]
    np.testing.assert_allclose(figure.axes[2].lines[0].get_ydata(), [0.95, 0.75, 0.5])


def test_reliability_is_pooled_over_the_seeds():
    records = made_up(["digits"], ["MF"], n_seeds=3)
    n_rows, confidence, accuracy = reliability(records, "digits", "MF")
    np.testing.assert_allclose(n_rows, [30, 90])
    np.testing.assert_allclose(confidence, [0.85, 0.95])
    np.testing.assert_allclose(accuracy, [0.6, 1.0])
    figure = figures.figure_reliability(summarise(records))
    assert texts(figure.axes[0].get_legend()) == ["0.100"]  # a quarter of 0.25, the rest of 0.05


def test_reliability_is_of_the_last_point():
    early = made_up(["digits"], ["MF"], n_seeds=1, fractions=[0.5])
    late = [Record(**{**vars(early[0]), "fraction": 1.0, "reliability": ((5, 2.0, 4),)})]
    np.testing.assert_allclose(reliability(early + late, "digits", "MF"), [[5], [0.4], [0.8]])


def test_times_of_everything():
    figure = figures.figure_times(summarise(made_up(["digits", "letter"], METHODS)))
    bars = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert bars == [
        "MF, online",
        "MF learned, online",
        "Breiman-RF, once",
        "ERT-k, once",
        "ERT-1, once",
        "Breiman-RF, 100 times",
        "ERT-k, 100 times",
        "ERT-1, 100 times",
        "ORF-Saffari, one pass",
        "ORF-Saffari, all passes",
        "ORF-Saffari, tuned, one pass",
        "ORF-Saffari, tuned, all passes",
        "ORF-Denil, one pass",
        "ORF-Denil, all passes",
        "dynamic trees",
    ]
    for axes, data in zip(figure.axes, ("letter", "digits")):
        first = axes.patches[0]
        end = first.get_x() + first.get_width()
        assert len(axes.patches) == len(bars)
        assert end == pytest.approx(1e-4 * N_SAMPLES[data] ** 1.5)


def test_time_per_sample():
    figure = figures.figure_river(summarise(made_up(["digits"], figures.TEN_TREES)))
    above, below = figure.axes
    assert len(above.lines) == len(below.lines) == 4
    np.testing.assert_allclose(below.lines[0].get_ydata()[-1], 1e6 * 1e-4 * 1000**0.5)


def test_a_method_looks_the_same_everywhere_and_like_no_other():
    looks = {(style.colour, style.marker) for name, style in figures.STYLES.items()}
    assert len(looks) == len(figures.STYLES) - 2  # our forests of 10 trees look like those of 100


def test_saved_files_are_whole_and_the_same_twice(tmp_path):
    records = made_up(["dna"], ["MF", "ERT-1"])
    for folder in ("one", "two"):
        figures.save(figures.figure_3_top(summarise(records)), tmp_path / folder, "name")
    assert {path.name for path in (tmp_path / "one").iterdir()} == {"name.svg", "name.png"}
    first, second = ((tmp_path / folder / "name.svg").read_bytes() for folder in ("one", "two"))
    assert first == second
    assert b"<dc:date>" not in first
    assert ElementTree.fromstring(first).tag.endswith("svg")
    assert (tmp_path / "one" / "name.png").read_bytes().startswith(b"\x89PNG")


def test_figure_1_shows_boxes_within_blocks():
    tree = drawings.figure_1_tree()
    assert drawings.figure_1_shows(tree)
    lower, upper = drawings.blocks(tree)
    assert (lower <= tree.lower).all() and (tree.upper <= upper).all()
    assert (upper[tree.is_leaf] - lower[tree.is_leaf]).prod(axis=1).sum() == pytest.approx(1)
    points = drawings.leaf_of_point(tree, drawings.FIGURE_1)
    assert sorted(points) == list(np.flatnonzero(tree.is_leaf))
    for leaf, point in points.items():
        np.testing.assert_array_equal(tree.lower[leaf], drawings.FIGURE_1[point].astype("f4"))


def test_figure_2_shows_what_its_captions_say():
    first, second, third = drawings.figure_2_trees()
    a, b, c, d = drawings.FIGURE_2.astype("f4")
    # c: a split above the root, outside the box of a and b.
    assert second.split_time[0] < first.split_time[0] == second.split_time[second.left[0]]
    assert max(a[0], b[0]) < second.split_location[0] < c[0]
    # d: inside the root's box; the split of a and b as before, within a larger box.
    assert (second.lower[0] <= d).all() and (d <= second.upper[0]).all()
    inner = third.left[0]
    assert third.split_time[inner] == first.split_time[0]
    np.testing.assert_array_equal(third.upper[inner], np.maximum(b, d))
    # The leaf of b is split, later.
    leaf = third.right[inner]
    assert third.split_time[leaf] > third.split_time[inner]
    assert b[0] < third.split_location[leaf] < d[0]


def test_figure_2_says_so_when_no_tree_will_do(monkeypatch):
    monkeypatch.setattr(drawings, "N_TREES", 5)
    monkeypatch.setattr(drawings, "shows_iteration_3", lambda *_: False)
    with pytest.raises(RuntimeError, match="None of 5 trees"):
        drawings.figure_2_trees.__wrapped__()


def test_drawings_hold_the_numbers_of_their_trees():
    for name, trees in (
        ("figure_1", [drawings.figure_1_tree()]),
        ("figure_2", drawings.figure_2_trees()),
    ):
        _, draw = drawings.DRAWINGS[name]
        figure = draw()
        words = [text.get_text() for axes in figure.axes for text in axes.texts]
        ticks = {label.get_text() for axes in figure.axes for label in axes.yaxis.get_ticklabels()}
        for tree in trees:
            for j in np.flatnonzero(~tree.is_leaf):
                assert drawings.cut_text(tree, j) in words
                assert f"{tree.split_time[j]:.2f}" in ticks
