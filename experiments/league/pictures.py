"""Pictures of the report, as SVG. Needs matplotlib."""

from __future__ import annotations

import io
from collections.abc import Mapping

from matplotlib.figure import Figure

from experiments.league.models import OURS
from experiments.league.ranks import groups

OUR_COLOUR = "#0072B2"


def ranks_picture(ranks: Mapping[str, float], difference: float) -> str:
    """Models at their mean ranks; bars join those that chance may explain. `ranks` are sorted."""
    names, places = list(ranks), list(ranks.values())
    n_left = (len(names) + 1) // 2
    bars = groups(places, difference)
    top = 0.5 * len(bars) + 0.5  # above the first name
    figure = Figure(figsize=(8, 0.28 * (n_left + top + 2)))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-1.2, len(names) + 2.2), ylim=(-n_left - top, 1.8))
    axes.axis("off")
    ink = {"color": "black", "linewidth": 0.8}
    axes.plot([1, len(names)], [0, 0], **ink)
    for rank in range(1, len(names) + 1):
        axes.plot([rank, rank], [0, 0.2], **ink)
        axes.text(rank, 0.3, str(rank), ha="center", va="bottom", fontsize=8)
    axes.plot([1, 1 + difference], [1.3, 1.3], color="black", linewidth=2)
    axes.text(1 + difference + 0.1, 1.3, f"critical difference {difference:.2f}", va="center")
    for i, (name, rank) in enumerate(ranks.items()):
        left = i < n_left
        y = -top - (i if left else len(names) - 1 - i)
        edge = 0.8 if left else len(names) + 0.2
        colour = OUR_COLOUR if name in OURS else "black"
        axes.plot([rank, rank, edge], [0, y, y], color=colour, linewidth=0.8)
        text = f"{name} {rank:.2f}" if left else f"{rank:.2f} {name}"
        align = "right" if left else "left"
        axes.text(edge + (-0.1 if left else 0.1), y, text, ha=align, va="center", color=colour)
    for i, (first, last) in enumerate(bars):
        y = -0.4 - 0.5 * i
        axes.plot([places[first] - 0.05, places[last] + 0.05], [y, y], color="#666", linewidth=3)
    return svg(figure)


def svg(figure: Figure) -> str:
    """A picture as an element of HTML."""
    file = io.StringIO()
    figure.savefig(file, format="svg", bbox_inches="tight")
    text = file.getvalue()
    return text[text.index("<svg") :]
