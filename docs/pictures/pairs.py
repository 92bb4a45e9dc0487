"""Draws the pictures of order-free forests in `how-it-works.md`."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from onlineforest import OnlineForestClassifier, OnlineForestRegressor, plot

from . import law
from .panels import BLUE, CLASS_COLOURS, ORANGE, RED, Floats, Labels, draw_points, ring, tidy

SEED, MISSING_SEED = 6, 3
SHOWN = 14, 1  # proposals that are drawn by themselves: between a pair, over a range


def one_tree(X: Floats, y: Any, seed: int = SEED) -> OnlineForestClassifier:
    """A forest of one tree, whose leaves are pure."""
    return OnlineForestClassifier(1, min_samples_split=2, random_state=seed).fit(X, y)


def samples_of_pictures() -> tuple[Floats, Labels]:
    """150 samples of three classes, of which 64 decide."""
    return draw_points(150, spread=0.13)


def scatter(axes: Any, X: Floats, y: Labels, **style: Any) -> None:
    """Samples in the colours of their classes."""
    axes.scatter(*X.T, c=[CLASS_COLOURS[label] for label in y], **style)


def line(axes: Any, feature: int, threshold: float, **style: Any) -> None:
    """The line of a cut across the whole panel."""
    draw = axes.axvline if feature == 0 else axes.axhline
    draw(threshold, **style)


def deciding_picture() -> Figure:
    """Ranks, the samples of least rank, and the circle of their places."""
    X, y = samples_of_pictures()
    ranked = law.ranked(X, y, SEED)
    decide = [sample.index for sample in ranked[: law.MOST_DECIDING]]
    others = [sample.index for sample in ranked[law.MOST_DECIDING :]]
    figure = Figure(figsize=(10.5, 3.9), layout="constrained")
    ranks, plane, circle = figure.subplots(1, 3)
    for i, sample in enumerate(ranked):
        ranks.plot(
            sample.rank / 2**64,
            i + 1,
            ".",
            ms=5,
            color=CLASS_COLOURS[sample.label],
            alpha=1.0 if i < law.MOST_DECIDING else 0.25,
        )
    ranks.axhline(law.MOST_DECIDING + 0.5, color="0.6", lw=1)
    ranks.text(0.99, law.MOST_DECIDING - 3, "these 64 decide", ha="right", va="bottom")
    ranks.invert_yaxis()
    ranks.set_title("150 samples in the order of their ranks", fontsize="medium")
    ranks.set(xlabel="rank / 2⁶⁴, a hash of the sample", xlim=(0, 1), yticks=[1, 64, 150])
    ranks.spines[["top", "right"]].set_visible(False)
    scatter(plane, X[others], y[others], s=10, alpha=0.25, lw=0)
    scatter(plane, X[decide], y[decide], s=22, lw=0)
    tidy(plane, "they are a random choice")
    for place, label in places(ranked):
        circle.plot(*place, "o", ms=5, color=CLASS_COLOURS[label])
    pair = law.proposals(ranked, SEED)[SHOWN[0]]
    assert pair.pair is not None
    for number, (start, sample) in enumerate(zip(pair.starts, pair.pair, strict=True), 1):
        draw_walk(circle, start, sample.place, str(number))
    circle.set(aspect="equal", xlim=(-1.45, 1.45), ylim=(-1.45, 1.45))
    circle.text(0, 0, "1: any sample\n2: one of\nanother label", ha="center", va="center")
    tidy(circle, "a pair: the first ones that two walks meet")
    circle.set_axis_off()
    return figure


def on_circle(place: int, radius: float = 1.0) -> Floats:
    """A place as a point of the plane; places grow clockwise from the top."""
    angle = 2 * np.pi * place / 2**64
    return radius * np.array([np.sin(angle), np.cos(angle)])


def places(ranked: list[law.Sample]) -> list[tuple[Floats, int]]:
    """Places on the circle and labels of the deciding samples."""
    return [(on_circle(s.place), s.label) for s in ranked[: law.MOST_DECIDING]]


def draw_walk(axes: Any, start: int, end: int, name: str) -> None:
    """A walk on the circle from a start to the sample that it meets."""
    length = (end - start) % 2**64
    steps = [(start + length * k // 20) % 2**64 for k in range(21)]
    axes.plot(*np.array([on_circle(step, 1.13) for step in steps]).T, color=RED, lw=2)
    axes.plot(*on_circle(start, 1.13), "|", ms=9, mew=2, color=RED)
    axes.text(*on_circle(start, 1.32), name, ha="center", va="center", color=RED)
    ring(axes, on_circle(end))


def proposals_picture() -> Figure:
    """A proposal from a pair, one from a range, and the scores of the finalists."""
    X, y = samples_of_pictures()
    ranked = law.ranked(X, y, SEED)
    proposals = law.proposals(ranked, SEED)
    decide = [sample.index for sample in ranked[: law.MOST_DECIDING]]
    figure = Figure(figsize=(11.0, 3.7), layout="constrained")
    between, over, scores = figure.subplots(1, 3)
    for axes, proposal in zip((between, over), (proposals[q] for q in SHOWN), strict=True):
        scatter(axes, X[decide], y[decide], s=20, lw=0, alpha=0.6)
        axes.set(xlim=(-0.2, 1.15), ylim=(-0.2, 1.25))
        line(axes, proposal.feature, proposal.threshold, color="0.2", lw=1.8)
        d = proposal.feature
        by_value = sorted(ranked[: law.MOST_DECIDING], key=lambda sample: sample.x[d])
        ends = proposal.pair or (by_value[0], by_value[-1])
        for sample in ends:
            ring(axes, sample.x)
            edge = [sample.x[0], -0.17] if d == 0 else [-0.17, sample.x[1]]
            axes.plot(*np.array([edge, sample.x]).T, ":", color=RED, lw=1)
        low, high = sorted(sample.x[d] for sample in ends)
        edge = [[low, high], [-0.17, -0.17]] if d == 0 else [[-0.17, -0.17], [low, high]]
        axes.plot(*edge, color=RED, lw=3, solid_capstyle="butt")
    tidy(between, f"proposal {SHOWN[0] + 1}: between two samples")
    tidy(over, f"proposal {SHOWN[1] + 1}: over the range of a feature")
    colours = [BLUE if proposal.pair else ORANGE for proposal in proposals]
    scores.bar(range(1, 17), [proposal.gain for proposal in proposals], color=colours)
    finalists = sorted(range(16), key=lambda q: -proposals[q].gain)[: law.N_FINALISTS]
    for q in finalists:
        height, share = proposals[q].gain, 0.5 * proposals[q].neighbours
        scores.bar(q + 1, share, bottom=height, color=colours[q], alpha=0.4)
    best = law.winner(proposals, len(decide))
    scores.text(best + 0.6, proposals[best].score, "wins", ha="left", va="bottom")
    scores.set(xlabel="proposal", xticks=range(1, 17, 3))
    scores.set_title("gain share, half of the neighbour share", fontsize="medium")
    scores.spines[["top", "right"]].set_visible(False)
    for colour, name in ((BLUE, "between a pair"), (ORANGE, "over a range")):
        scores.bar(0, 0, color=colour, label=name)
    scores.set(xlim=(0.3, 16.7), ylim=(0, 1.3 * proposals[best].score))
    scores.legend(frameon=False, loc="upper right", ncols=2, fontsize="small")
    return figure


def cuts_picture() -> Figure:
    """The cuts of an order-free tree in the plane, and the tree."""
    X, y = samples_of_pictures()
    forest = one_tree(X, y)
    figure = Figure(figsize=(10.5, 4.1), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[2, 3])
    plot.partition(forest, X, y, ax=left)
    tidy(left, "each part is cut again until it has one label")
    plot.tree(forest, ax=right)
    right.set_title("the same cuts as a tree", fontsize="medium")
    return figure


def same_picture() -> Figure:
    """One set of samples learned in three ways: one tree, one digest."""
    X, y = draw_points(40, spread=0.13)
    rows, labels = np.vstack([X, [[0.2, 0.62]]]), np.append(y, 1)
    backwards = OnlineForestClassifier(1, min_samples_split=2, random_state=SEED)
    for i in range(39, -1, -1):
        backwards.partial_fit(X[i : i + 1], y[i : i + 1])
    figure = Figure(figsize=(11.0, 3.3), layout="constrained")
    panels = figure.subplots(1, 4, sharex=True, sharey=True)

    def draw(axes: Any, title: str, forest: OnlineForestClassifier, X: Floats, y: Labels) -> None:
        plot.partition(forest, X, y, ax=axes)
        tidy(axes, f"{title}\ndigest {forest.digest_[:6]}…")

    draw(panels[0], "at once", one_tree(X, y), X, y)
    draw(panels[1], "one by one, backwards", backwards, X, y)
    more = one_tree(rows, labels)
    draw(panels[2], "one more is learned …", more, rows, labels)
    ring(panels[2], rows[-1])
    draw(panels[3], "… and forgotten", more.forget(rows[-1:], labels[-1:]), X, y)
    return figure


def arrival_picture() -> Figure:
    """Samples that come: one does not decide, one does, one changes the first cut."""
    X, y = samples_of_pictures()
    old = one_tree(X, y).trees_[0]
    figure = Figure(figsize=(11.0, 3.6), layout="constrained")
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    titles = {
        "not among the 64: the first cut stays": (False, False),
        "among the 64: the first cut stays": (True, False),
        "among the 64: another cut wins": (True, True),
    }
    for axes, (title, outcome) in zip(panels, titles.items(), strict=True):
        rows, labels = with_new_sample(X, y, outcome)
        plot.partition(one_tree(rows, labels), rows, labels, ax=axes)
        line(axes, old.split_dimension[0], old.split_location[0], color=RED, lw=1.5, ls="--")
        ring(axes, rows[-1])
        tidy(axes, title)
    return figure


def with_new_sample(X: Floats, y: Labels, outcome: tuple[bool, bool]) -> tuple[Floats, Labels]:
    """Samples and a new one, for which it is given whether it decides and changes the first cut."""
    old = one_tree(X, y).trees_[0].split_location[0]
    last = law.ranked(X, y, SEED)[law.MOST_DECIDING - 1]  # the deciding sample of greatest rank
    for x in np.random.default_rng(0).uniform(0.1, 0.9, (2000, 2)):
        label = y[np.hypot(*(X - x).T).argmin()]
        (new,) = law.ranked(x[np.newaxis], np.array([label]), SEED)
        if (new.rank < last.rank) != outcome[0]:
            continue
        rows, labels = np.vstack([X, x]), np.append(y, label)
        distance = abs(one_tree(rows, labels).trees_[0].split_location[0] - old)
        if distance > 0.05 if outcome[1] else distance == 0:
            return rows, labels
    raise ValueError(f"No sample has the outcome {outcome}.")


def numbers_picture() -> Figure:
    """The variance gain of a split, the share of neighbours, and a prediction with its interval."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 1.0, (600, 2))
    y = np.sin(4 * np.pi * X[:, 0]) + rng.normal(0.0, 0.2, 600)
    figure = Figure(figsize=(11.0, 3.5), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    for axes, d, name in zip(panels[:2], (0, 1), ("a wave", "nothing"), strict=True):
        x, values = X[:64, d], y[:64]
        order = np.argsort(x)
        axes.plot(x[order], values[order], "-", color="0.75", lw=1, zorder=1)
        axes.plot(x, values, ".", color=BLUE)
        gain, place = best_gain(x[order], values[order])
        axes.axvline(place, color=RED, lw=1.5, ls="--")
        share = neighbour_share(values[order])
        axes.set_title(
            f"feature {d + 1}, {name}: the best cut\nexplains {gain:.0%}, neighbours {share:.0%}",
            fontsize="medium",
        )
        axes.set(xlabel=f"feature {d + 1}", xticks=[0, 1])
    forest = OnlineForestRegressor(random_state=0).fit(X, y)
    grid = np.column_stack([np.linspace(0.0, 1.0, 301), np.full(301, 0.5)])
    low, high = forest.predict_interval(grid, coverage=0.9).T
    panels[2].fill_between(grid[:, 0], low, high, color=BLUE, alpha=0.2, lw=0)
    panels[2].plot(grid[:, 0], forest.predict(grid), color=BLUE, lw=1.5)
    panels[2].plot(X[:, 0], y, ".", color="0.4", ms=3)
    panels[2].set_title(
        "600 samples: prediction of a forest\nand interval of 90 %", fontsize="medium"
    )
    panels[2].set(xlabel="feature 1", xticks=[0, 1])
    panels[0].set(ylabel="y", yticks=[-1, 0, 1])
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def best_gain(x: Floats, values: Floats) -> tuple[float, float]:
    """The share of the variance that the best single cut explains, and its place. x is sorted."""
    n, deviations = len(x), values - values.mean()
    on_left = np.arange(1, n)
    sums = np.cumsum(deviations)[:-1]
    gains = sums**2 * n / (on_left * (n - on_left)) / (deviations**2).sum()
    best = int(gains.argmax())
    return float(gains[best]), float((x[best] + x[best + 1]) / 2)


def neighbour_share(values: Floats) -> float:
    """The share of the variance that neighbours have in common; values in order of a feature."""
    n, squares = len(values), ((values - values.mean()) ** 2).sum()
    return float(1.0 - n * (np.diff(values) ** 2).sum() / (2 * squares * (n - 1)))


def missing_picture() -> Figure:
    """Where samples go that lack the feature of a cut."""
    rng = np.random.default_rng(1)
    y = np.arange(60) % 2
    along = rng.normal(0.0, 0.16, 60) + np.where(y == 0, 0.3, 0.7)
    X = np.column_stack([along, along + rng.normal(0.0, 0.1, 60)])
    X[rng.random(60) < 0.3, 0] = np.nan
    forest = one_tree(X, y, seed=MISSING_SEED)
    tree = forest.trees_[0]
    assert (tree.split_dimension[0], tree.surrogate_dimension[0, 0]) == (0, 1)
    cut, surrogate = float(tree.split_location[0]), float(tree.surrogate_location[0, 0])
    goes_left = forest.apply(X)[:, 0] < tree.right[0]  # nodes are in preorder
    lacks = np.isnan(X[:, 0])
    figure = Figure(figsize=(7.5, 3.8), layout="constrained")
    strip, plane = figure.subplots(1, 2, width_ratios=[1, 4], sharey=True)
    scatter(plane, X[~lacks], y[~lacks], s=24, lw=0)
    plane.axvline(cut, color="0.2", lw=1.8)
    plane.axhline(surrogate, color=RED, lw=1.5, ls="--")
    strip.axhline(surrogate, color=RED, lw=1.5, ls="--")
    for i in np.flatnonzero(lacks):
        marker, colour = "<" if goes_left[i] else ">", CLASS_COLOURS[y[i]]
        strip.plot(rng.uniform(-0.6, 0.6), X[i, 1], marker, ms=7, color=colour)
    low, high = plane.get_xlim()
    plane.text(cut, 1.02, "cut", ha="center", transform=plane.get_xaxis_transform())
    plane.text(high, surrogate, " surrogate", va="center", color=RED)
    tidy(strip, "lack feature 1")
    tidy(plane, "")
    strip.set(xlim=(-1, 1), ylabel="feature 2")
    plane.set(xlim=(low, high), xlabel="feature 1")
    return figure


PICTURES = {
    "deciding": deciding_picture,
    "proposals": proposals_picture,
    "cuts": cuts_picture,
    "same": same_picture,
    "arrival": arrival_picture,
    "numbers": numbers_picture,
    "missing": missing_picture,
}
