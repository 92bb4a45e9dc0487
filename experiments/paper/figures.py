"""Figures drawn from results: the paper's figures 3 and 4, and those that test its claims.

Runs no experiment: it needs only the numbers of `results.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import (
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)
from numpy.typing import NDArray

from experiments.paper.curves import (
    N_BATCHES,
    Curve,
    calibration_error,
    depth_fit,
    exponent,
    retrained_seconds,
)
from experiments.paper.names import (
    AMF_10,
    ARF_10,
    BREIMAN,
    DENIL,
    DYNAMIC_TREES,
    ERT_1,
    ERT_K,
    LEARNED,
    LEARNED_10,
    MF,
    MF_10,
    RETRAINED,
    SAFFARI,
    SAFFARI_TUNED,
)
from experiments.paper.results import Results

# The order of the panels; other data sets follow.
DATA = ("usps", "satimages", "letter", "dna", "digits")
REDUCED = "†"  # marks a data set reduced to its relevant columns; shares the full set's panel

PAPER = (MF, *RETRAINED, SAFFARI, SAFFARI_TUNED, DENIL)
OTHERS_ONLINE = (SAFFARI, SAFFARI_TUNED, DENIL, DYNAMIC_TREES)
TEN_TREES = (MF_10, LEARNED_10, AMF_10, ARF_10)
ON_REDUCED = (MF, ERT_1)


@dataclass(frozen=True)
class Style:
    """The look of a method in every figure."""

    colour: str
    marker: str
    line: str | tuple = "-"
    width: float = 1.3
    size: float = 4.0
    order: float = 2.0

    def of_line(self) -> dict:
        """Options of a line with markers."""
        return {
            "color": self.colour,
            "marker": self.marker,
            "ls": self.line,
            "lw": self.width,
            "ms": self.size,
            "zorder": self.order,
            "markeredgewidth": 0,
        }


# Colours of Okabe and Ito and of Tol, which colour-blind readers can distinguish; markers help in
# print without colour. MF is thick and below the others, so that coinciding curves stay visible.
STYLES = {
    MF: Style("#D55E00", "o", width=3.2, size=6.0, order=1.9),
    LEARNED: Style("#882255", "h", width=1.8, size=5.0),
    BREIMAN: Style("#0072B2", "s"),
    ERT_K: Style("#009E73", "^", size=4.8),
    ERT_1: Style("#56B4E9", "v", size=4.8),
    SAFFARI: Style("#B8860B", "D", line=(0, (5, 1.2, 1.2, 1.2))),
    SAFFARI_TUNED: Style("#B8860B", "d", line=(0, (2.5, 1.5)), size=5.0),
    DENIL: Style("#444444", "X", line=(0, (5, 1.2, 1.2, 1.2)), size=5.0),
    DYNAMIC_TREES: Style("#7B3FA0", "P", line=(0, (5, 1.2, 1.2, 1.2)), size=5.2),
    MF_10: Style("#D55E00", "o", width=3.2, size=6.0, order=1.9),
    LEARNED_10: Style("#882255", "h", width=1.8, size=5.0),
    AMF_10: Style("#332288", "*", line=(0, (5, 1.2, 1.2, 1.2)), size=6.5),
    ARF_10: Style("#117733", "p", line=(0, (5, 1.2, 1.2, 1.2)), size=5.0),
}
DATA_STYLES = {
    "usps": Style("#0072B2", "o"),
    "satimages": Style("#D55E00", "s"),
    "letter": Style("#009E73", "^"),
    "dna": Style("#882255", "D"),
    "digits": Style("#E69F00", "v"),
}
OTHER = Style("#777777", "x")
DASHED = (0, (2.5, 1.5))


# Selection


def data_sets(results: Results, methods: Iterable[str]) -> list[str]:
    """Data sets with results of any of the methods, in the order of their panels."""
    wanted = set(methods)
    found = {
        data for data, method in results.curves if method in wanted and not data.endswith(REDUCED)
    }
    return [data for data in DATA if data in found] + sorted(found - set(DATA))


def curves_of(results: Results, data: str, methods: Iterable[str]) -> list[Curve]:
    """The curves of the methods that have results on a data set."""
    found = [results.curve(data, method) for method in methods]
    return [each for each in found if each is not None]


def spent(of: Curve) -> NDArray:
    """Time of learning up to each point; batch forests are retrained after every mini-batch."""
    return retrained_seconds(of) if of.method in RETRAINED else of.seconds


# Layout


def panels_for(names: Sequence[str], rows: int = 1, height: float = 2.9) -> tuple[Figure, NDArray]:
    """A figure with a column of panels per name, and its axes as an array (rows, names).

    A single row of more than four is wrapped.
    """
    n = len(names)
    columns = n if n <= 4 or rows > 1 else (n + 1) // 2
    width = {1: 6.0, 2: 8.0}.get(columns, 10.0)
    lines = rows if columns == n else -(-n // columns)
    figure = Figure(figsize=(width, height * lines + 0.6), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.06, h_pad=0.06)
    grid = figure.subplots(lines, columns, squeeze=False)
    if columns != n:
        for unused in grid.flat[n:]:
            unused.remove()
        grid = grid.reshape(1, -1)[:, :n]
    for axes, name in zip(grid[0], names, strict=True):
        axes.set_title(name, fontsize=11)
    for axes in grid.flat:
        tidy(axes)
    return figure, grid


def tidy(axes: Axes) -> None:
    """Give axes a light grid and no frame at the top and right."""
    axes.grid(color="0.88", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=9)


def is_first_of_row(axes: Axes) -> bool:
    """Whether axes are in the first column, which has the label of the row."""
    return bool(axes.get_subplotspec().is_first_col())


def label_rows(grid: NDArray, labels: Sequence[str]) -> None:
    """Label the vertical axes in the first column only."""
    for row, label in zip(grid, labels, strict=True):
        for axes in row:
            if is_first_of_row(axes):
                axes.set_ylabel(label)


def add_legend(figure: Figure, handles: dict[str, Line2D], columns: int | None = None) -> None:
    """Add one legend for all panels, below them."""
    per_line = columns or max(1, int(figure.get_figwidth() // 1.25))
    n_lines = -(-len(handles) // per_line)
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=-(-len(handles) // n_lines),
        frameon=False,
        fontsize=10,
        handlelength=2.6,
    )


def legend_line(style: Style, **changed: object) -> Line2D:
    """An entry of a legend."""
    return Line2D([], [], **{**style.of_line(), **changed})


def log_samples(axes: Axes, base: int) -> None:
    """Make the x axis logarithmic, with numbers of samples in full."""
    axes.set_xscale("log", base=base)
    axes.xaxis.set_major_locator(LogLocator(base, numticks=20))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    if base == 2:
        axes.xaxis.set_minor_locator(NullLocator())


# The paper's figures


def dagger_style(method: str) -> dict:
    """Options of the line of a method on a reduced data set: dashed, with open markers."""
    style = STYLES[method]
    return {
        **style.of_line(),
        "ls": DASHED,
        "lw": 0.5 + 0.5 * style.width,
        "markerfacecolor": "white",
        "markeredgewidth": 1.0,
        "markeredgecolor": style.colour,
    }


def accuracy_panels(results: Results, methods: Sequence[str], over_time: bool) -> Figure | None:
    """Accuracy against the fraction of the data, or against the time of learning it."""
    names = data_sets(results, methods)
    if not names:
        return None
    figure, grid = panels_for(names)
    handles: dict[str, Line2D] = {}
    extra: dict[str, Line2D] = {}
    more_passes = False
    for axes, data in zip(grid[0], names, strict=True):
        drawn = [(of, "") for of in curves_of(results, data, methods)]
        on_reduced = [method for method in ON_REDUCED if method in methods]
        drawn += [(of, REDUCED) for of in curves_of(results, data + REDUCED, on_reduced)]
        for of, mark in drawn:
            style = dagger_style(of.method) if mark else STYLES[of.method].of_line()
            places = spent(of) if over_time else of.fraction
            # A logarithmic axis has no time 0, as before the first mini-batch.
            shown = of.first_pass() & (places > 0)
            (line,) = axes.plot(places[shown], of.accuracy[shown], **style)
            if of.n_seeds > 1:
                low, high = of.accuracy - of.deviation, of.accuracy + of.deviation
                axes.fill_between(
                    places[shown], low[shown], high[shown], color=line.get_color(), alpha=0.13, lw=0
                )
            again = ~of.first_pass()
            if over_time and again.any():
                more_passes = True
                open_marker = {**style, "ls": "none", "mfc": "white", "markeredgewidth": 1.1}
                axes.plot(places[again], of.accuracy[again], **open_marker)
            (extra if mark else handles)[of.method + mark] = legend_line(
                STYLES[of.method], **{k: v for k, v in style.items() if mark}
            )
        if over_time:
            axes.set_xscale("log")
            axes.set_xlabel("training time (s)")
        else:
            axes.set(xlim=(0, 1.02), xlabel="fraction of training data")
            axes.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1], ["0", "0.2", "0.4", "0.6", "0.8", "1"])
    label_rows(grid, ["test accuracy"])
    ordered = {method: handles[method] for method in methods if method in handles} | extra
    if more_passes:
        open_marker = {"ls": "none", "mfc": "white", "mec": "0.3", "color": "0.3", "mew": 1.1}
        ordered["further passes"] = Line2D([], [], marker="D", ms=4, **open_marker)
    add_legend(figure, ordered)
    return figure


def figure_3_top(results: Results) -> Figure | None:
    """Accuracy against the fraction of the training data."""
    return accuracy_panels(results, PAPER, over_time=False)


def figure_3_bottom(results: Results) -> Figure | None:
    """Accuracy against training time, where batch forests are retrained after every mini-batch."""
    return accuracy_panels(results, PAPER, over_time=True)


def figure_4(results: Results) -> Figure | None:
    """Accuracy against the fraction of the training data, with dynamic trees."""
    if not any(method == DYNAMIC_TREES for _, method in results.curves):
        return None
    return accuracy_panels(results, (*PAPER, DYNAMIC_TREES), over_time=False)


# Claims of the text


def figure_depth(results: Results) -> Figure | None:
    """Mean depth of a Mondrian forest against the logarithm of the number of samples."""
    found = [of for data in data_sets(results, [MF]) for of in curves_of(results, data, [MF])]
    found = [of for of in found if np.isfinite(of.depth).sum() >= 2]
    if not found:
        return None
    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    axes = figure.subplots()
    tidy(axes)
    for of in found:
        style = DATA_STYLES.get(of.data, OTHER)
        slope, intercept, explained = depth_fit(of)
        label = f"{of.data}: {slope:.2f} levels per doubling, $R^2$ = {explained:.3f}"
        points = {**style.of_line(), "ls": "none", "ms": 5.5}
        axes.plot(of.n_samples, of.depth, **points, label=label)
        ends = np.array([of.n_samples.min(), of.n_samples.max()])
        axes.plot(ends, slope * np.log2(ends) + intercept, color=style.colour, lw=1.2)
    log_samples(axes, 2)
    axes.tick_params(axis="x", labelsize=8)
    axes.set(xlabel="samples learned", ylabel="mean depth of a leaf, over points")
    axes.legend(frameon=False, fontsize=10, loc="upper left")
    return figure


def figure_cost(results: Results) -> Figure | None:
    """Time of learning against the number of samples, for the largest data set."""
    methods = (MF, *RETRAINED)
    sizes: dict[str, float] = {}
    for data in data_sets(results, methods):
        sizes[data] = max(of.n_samples.max() for of in curves_of(results, data, methods))
    if not sizes:
        return None
    data = max(sizes, key=lambda name: sizes[name])
    drawn = []
    for of in curves_of(results, data, methods):
        times = spent(of)
        shown = of.first_pass() & (times > 0)
        if shown.sum() >= 2:
            drawn.append((of.method, of.n_samples[shown], times[shown]))
    if not drawn:
        return None
    figure = Figure(figsize=(8.0, 5.4), layout="constrained")
    axes = figure.subplots()
    tidy(axes)
    handles = {}
    for method, n_samples, times in drawn:
        how = "re-trained" if method in RETRAINED else "online"
        label = f"{method}, {how}"
        if (n_samples >= 0.1 * n_samples.max()).sum() >= 2:
            label += f": slope {exponent(n_samples, times):.2f}"
        (handles[label],) = axes.plot(n_samples, times, **STYLES[method].of_line())
    # The guides end below the online curve and above the slowest batch forest.
    online = [(n, times) for method, n, times in drawn if method not in RETRAINED]
    retrained = [(n, times) for method, n, times in drawn if method in RETRAINED]
    if online:
        n_samples, times = online[0]
        draw_guide(axes, n_samples, times[-1] * 0.4, 1, r"$N\,\log N$")
    if retrained:
        n_samples, times = max(retrained, key=lambda one: one[1][-1])
        draw_guide(axes, n_samples, times[-1] * 2.5, 2, r"$N^2\,\log N$")
    axes.set_yscale("log")
    log_samples(axes, 10)
    axes.set(xlabel="samples learned", ylabel="training time (s)")
    axes.set_title(data, fontsize=11)
    add_legend(figure, handles, 2)
    return figure


def draw_guide(axes: Axes, n_samples: NDArray, end: float, power: int, text: str) -> None:
    """Draw a thin line of N^power log N with the value `end` at the last number of samples."""
    large = n_samples[n_samples >= 0.02 * n_samples.max()]
    if len(large) < 2:
        return
    growth = large**power * np.log(large)
    axes.plot(large, end * growth / growth[-1], color="0.55", lw=0.9, zorder=1)
    axes.annotate(
        text,
        (large[-1], end),
        (4, 0),
        textcoords="offset points",
        va="center",
        fontsize=9,
        color="0.4",
        annotation_clip=False,
    )


def figure_learned(results: Results) -> Figure | None:
    """Accuracy and log loss with the paper's settings and with learned feature weights."""
    methods = (MF, LEARNED)
    names = data_sets(results, [LEARNED])
    if not names:
        return None
    figure, grid = panels_for(names, rows=2, height=2.5)
    handles = {}
    for column, data in enumerate(names):
        for of in curves_of(results, data, methods):
            style, shown = STYLES[of.method], of.first_pass()
            handles[of.method] = legend_line(style)
            grid[0, column].plot(of.fraction[shown], of.accuracy[shown], **style.of_line())
            grid[1, column].plot(of.fraction[shown], of.log_loss[shown], **style.of_line())
        grid[1, column].set_xlabel("fraction of training data", fontsize=9)
        grid[1, column].set_ylim(bottom=0)
    for axes in grid.flat:
        axes.set_xlim(0, 1.03)
    label_rows(grid, ["test accuracy", "test log loss"])
    add_legend(figure, {method: handles[method] for method in methods if method in handles})
    return figure


# Probabilities


def figure_reliability(results: Results) -> Figure | None:
    """Accuracy against confidence, per tenth of the confidence."""
    methods = (MF, LEARNED, BREIMAN, ERT_K)
    found = {}
    for data in data_sets(results, methods):
        bins = {method: results.reliability(data, method) for method in methods}
        bins = {method: value for method, value in bins.items() if value is not None}
        if bins:
            found[data] = bins
    if not found:
        return None
    figure, grid = panels_for(list(found), height=2.6 if len(found) == 4 else 3.1)
    handles = {}
    for axes, (data, bins) in zip(grid[0], found.items(), strict=True):
        axes.plot([0, 1], [0, 1], color="0.6", lw=0.9, zorder=1)
        errors = []
        for method, (n_rows, confidence, accuracy) in bins.items():
            style = STYLES[method]
            handles[method] = legend_line(style)
            line = {**style.of_line(), "marker": "", "lw": 0.6 * style.width}
            axes.plot(confidence, accuracy, **line)
            axes.scatter(
                confidence,
                accuracy,
                s=4 + 180 * n_rows / n_rows.sum(),
                c=style.colour,
                marker=style.marker,
                alpha=0.75,
                lw=0,
                zorder=style.order,
            )
            error = calibration_error(found[data][method])
            errors.append(legend_line(style, ls="none", label=f"{error:.3f}"))
        # The errors differ between panels, so each panel has its own legend for them.
        axes.legend(
            handles=errors,
            title="ECE",
            loc="lower right",
            frameon=False,
            fontsize=9,
            title_fontsize=9,
            handlelength=0.8,
            handletextpad=0.5,
            labelspacing=0.25,
            borderaxespad=0.1,
        )
        axes.set(xlim=(0, 1.03), ylim=(0, 1.03), xlabel="confidence", aspect="equal")
        axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    label_rows(grid, ["test accuracy"])
    add_legend(figure, {method: handles[method] for method in methods if method in handles})
    return figure


# Times


def learning_times(results: Results, data: str) -> dict[str, tuple[str, float]]:
    """Method and time of each bar, by the label of the bar."""
    found: dict[str, tuple[str, float]] = {}
    again: dict[str, tuple[str, float]] = {}
    for method in (MF, LEARNED):
        for of in curves_of(results, data, [method]):
            found[f"{method}, online"] = method, float(of.seconds[of.first_pass()][-1])
    for of in curves_of(results, data, RETRAINED):
        found[f"{of.method}, once"] = of.method, float(of.seconds[-1])
        again[f"{of.method}, {N_BATCHES} times"] = of.method, float(retrained_seconds(of)[-1])
    found |= again
    for of in curves_of(results, data, OTHERS_ONLINE):
        first = of.first_pass()
        several = not first.all()
        name = f"{of.method}, one pass" if several else of.method
        found[name] = of.method, float(of.seconds[first][-1])
        if several:
            found[f"{of.method}, all passes"] = of.method, float(of.seconds[-1])
    return {name: value for name, value in found.items() if value[1] > 0}


BARS = (
    "MF, online",
    "MF learned, online",
    *(f"{method}, once" for method in RETRAINED),
    *(f"{method}, {N_BATCHES} times" for method in RETRAINED),
    *(
        f"{method}{passes}"
        for method in OTHERS_ONLINE
        for passes in ("", ", one pass", ", all passes")
    ),
)


def seconds_text(seconds: float) -> str:
    """A time as the text beside its bar: two digits, or whole seconds."""
    if seconds >= 9.95:
        return f"{seconds:,.0f}"
    return f"{seconds:.2g}" if seconds < 0.995 else f"{seconds:.1f}"


def figure_times(results: Results) -> Figure | None:
    """Times of learning all the training data, one bar per method and schedule."""
    methods = (MF, LEARNED, *RETRAINED, *OTHERS_ONLINE)
    times = {data: learning_times(results, data) for data in data_sets(results, methods)}
    times = {data: value for data, value in times.items() if value}
    if not times:
        return None
    bars = [name for name in BARS if any(name in value for value in times.values())]
    n = len(times)
    figure = Figure(figsize=(min(10.0, 4.0 + 2.0 * n), 0.8 + 0.3 * len(bars)), layout="constrained")
    all_axes = figure.subplots(1, n, sharey=True, squeeze=False)[0]
    for axes, (data, value) in zip(all_axes, times.items(), strict=True):
        tidy(axes)
        axes.grid(visible=False, axis="y")
        smallest = min(seconds for _, seconds in value.values())
        largest = max(seconds for _, seconds in value.values())
        start = 10.0 ** np.floor(np.log10(smallest / 1.5))
        for place, name in enumerate(bars):
            if name not in value:
                continue
            method, seconds = value[name]
            several = name.endswith((" times", "all passes"))
            look = {"hatch": "////", "fc": "white"} if several else {"fc": STYLES[method].colour}
            axes.barh(
                place, seconds - start, left=start, height=0.68, **look, ec=STYLES[method].colour
            )
            axes.annotate(
                seconds_text(seconds),
                (seconds, place),
                (3, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )
        axes.set_xscale("log")
        # Room for the text beside the longest bar.
        axes.set_xlim(start, largest * (largest / start) ** (0.45 if n > 2 else 0.2))
        axes.xaxis.set_major_locator(LogLocator(10, numticks=5))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_title(data, fontsize=11)
        axes.set_xlabel("training time (s)", fontsize=9)
        axes.tick_params(labelsize=8)
        axes.tick_params(axis="y", length=0, labelsize=9)
    all_axes[0].set_yticks(range(len(bars)), bars)
    all_axes[0].set_ylim(len(bars) - 0.4, -0.6)
    return figure


def figure_river(results: Results) -> Figure | None:
    """Accuracy and time per sample of forests of ten trees that learn online."""
    names = data_sets(results, TEN_TREES)
    if not names:
        return None
    figure, grid = panels_for(names, rows=2, height=2.5)
    handles = {}
    for column, data in enumerate(names):
        above, below = grid[:, column]
        for of in curves_of(results, data, TEN_TREES):
            style, shown = STYLES[of.method], of.first_pass()
            handles[of.method] = legend_line(style)
            n_samples = of.n_samples[shown]
            above.plot(n_samples, of.accuracy[shown], **style.of_line())
            below.plot(n_samples, 1e6 * of.seconds[shown] / n_samples, **style.of_line())
        for axes in (above, below):
            axes.set_xlim(left=0)
            axes.xaxis.set_major_locator(MaxNLocator(3))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:,.0f}"))
        below.set_yscale("log")
        low, high = np.log10(below.get_ylim())
        below.set_ylim(10.0 ** np.floor(low), 10.0 ** np.ceil(high))
        below.yaxis.set_major_locator(LogLocator(10, numticks=10))
        below.yaxis.set_major_formatter(
            FuncFormatter(lambda t, _: f"{t:,.0f}" if t >= 1 else f"{t:g}")
        )
        below.yaxis.set_minor_formatter(NullFormatter())
        below.set_xlabel("samples learned", fontsize=9)
    label_rows(grid, ["test accuracy", "time per sample (µs)"])
    add_legend(figure, {method: handles[method] for method in TEN_TREES if method in handles}, 3)
    return figure


FIGURES: dict[str, tuple[str, Callable[[Results], Figure | None]]] = {
    "figure_3_top": (
        "Test accuracy against the fraction of the training data (the paper's figure 3, upper "
        "row). Bands are a standard deviation over the seeds. † is the data set reduced to its "
        "relevant columns.",
        figure_3_top,
    ),
    "figure_3_bottom": (
        "Test accuracy against training time in seconds of processor time (the paper's figure 3, "
        "lower row). Batch forests are retrained after each of the 100 mini-batches. Open "
        "markers are further passes over all the data.",
        figure_3_bottom,
    ),
    "figure_4": (
        "Test accuracy against the fraction of the training data, with dynamic trees (the paper's "
        "figure 4). Bands are a standard deviation over the seeds. † is the data set reduced to "
        "its relevant columns.",
        figure_4,
    ),
    "figure_depth": (
        "Mean depth of the leaves of a Mondrian forest against the number of samples, with a "
        "straight line fitted to the depth over the logarithm of that number.",
        figure_depth,
    ),
    "figure_cost": (
        "Training time up to a number of samples, for the largest data set: a Mondrian forest that "
        "learns online, and batch forests retrained after every mini-batch. The slopes are "
        "fitted from a tenth of the samples on; thin lines grow as N log N and N² log N.",
        figure_cost,
    ),
    "figure_learned": (
        "Test accuracy and log loss of Mondrian forests with the paper's settings (MF) and with "
        "learned feature weights (MF learned).",
        figure_learned,
    ),
    "figure_reliability": (
        "Accuracy against confidence (the largest probability) in each tenth of the confidence, "
        "after all the training data, over all seeds. The area of a marker is the share of the "
        "test rows; ECE is the expected calibration error. On the diagonal, accuracy equals "
        "confidence.",
        figure_reliability,
    ),
    "figure_times": (
        "Training time for all the training data, in processor time. Solid bars learn the data "
        "once; hatched bars retrain after each of 100 mini-batches or make further passes over the "
        "data.",
        figure_times,
    ),
    "figure_river": (
        "Test accuracy and mean time of learning per sample for forests of ten trees that learn "
        "online: Mondrian forests, and River's aggregated Mondrian and adaptive random forests.",
        figure_river,
    ),
}


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as `<name>.svg` and `<name>.png`.

    Equal figures give equal SVG files. Letters become paths: the file needs no fonts and looks
    alike everywhere.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "onlineforest"}):
        figure.savefig(
            folder / f"{name}.svg",
            metadata={"Date": None, "Creator": None},
            facecolor="white",
        )
    figure.savefig(folder / f"{name}.png", dpi=120, facecolor="white")
