"""Figures, axes, legends, colours and names for all pictures.

Imports matplotlib only when something is drawn. Knows nothing of forests.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onlineforest._extras import require

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The palette of Okabe and Ito, which colour-blind readers can distinguish. Its yellow is omitted
# because it is hard to see on white.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")
MAX_LINES_INSIDE = 6  # lines of a legend; a longer one would cover the curves
COLOUR_MAP = "viridis"  # colours for numbers
DARK, MIDDLE, LIGHT = "0.2", "0.55", "0.85"
BLUE, ORANGE = COLOURS[0], COLOURS[3]
LINE_STYLES = ("-", "--", ":", "-.")


def new_figure(size: tuple[float, float] = (7.0, 5.0)) -> tuple[Figure, Axes]:
    """A figure with one pair of axes.

    In a notebook, or if pyplot is already imported, it is a figure of pyplot, which notebooks and
    `plt.show()` display. Otherwise it has no window, and nothing else refers to it: a server can
    draw any number of figures, in any thread, without a display.
    """
    require("matplotlib", "plot")
    if "matplotlib.pyplot" in sys.modules or _in_ipython():
        from matplotlib import pyplot

        figure = pyplot.figure(figsize=size, layout="constrained")
    else:
        from matplotlib.figure import Figure

        figure = Figure(figsize=size, layout="constrained")
    return figure, figure.add_subplot()


def _in_ipython() -> bool:
    """Whether this runs in a notebook or an IPython prompt."""
    module = sys.modules.get("IPython")
    return module is not None and module.get_ipython() is not None


def axes_or_new(ax: Axes | None, size: tuple[float, float] = (7.0, 5.0)) -> Axes:
    """The given axes, or new ones if `ax` is None."""
    require("matplotlib", "plot")
    from matplotlib.axes import Axes

    if ax is None:
        return new_figure(size)[1]
    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be a matplotlib Axes or None. Got {type(ax).__name__} instead.")
    return ax


def legend_beside(
    axes: Axes, handles: Sequence[Artist], labels: Sequence[str], title: str | None = None
) -> None:
    """Add a legend at the right of the axes, where it covers nothing."""
    _legend(
        axes,
        handles,
        labels,
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0.0,
        frameon=False,
        title=title,
    )


def legend_inside(axes: Axes, handles: Sequence[Artist], labels: Sequence[str]) -> None:
    """Add a legend inside the axes, or beside them if it is long."""
    if len(handles) > MAX_LINES_INSIDE:
        legend_beside(axes, handles, labels)
    else:
        _legend(axes, handles, labels, loc="best", framealpha=0.8, edgecolor="none")


def _legend(axes: Axes, handles: Sequence[Artist], labels: Sequence[str], **place: Any) -> None:
    legend = axes.legend(
        handles=list(handles), labels=[" "] * len(handles), alignment="left", **place
    )
    # Set afterwards: `Axes.legend` ignores labels that begin with an underscore.
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set_text(label)


def class_colours(n_classes: int) -> NDArray[np.float64]:
    """A colour (RGB) per class: the palette, then darker and lighter versions of it."""
    from matplotlib.colors import to_rgb

    palette = np.array([to_rgb(colour) for colour in COLOURS])
    if n_classes > len(COLOURS):
        palette = palette[:-1]  # black has no darker version
        palette = np.concatenate([palette, palette * 0.55, 1.0 - 0.5 * (1.0 - palette)])
    return palette[np.arange(n_classes) % len(palette)]


def shortened(value: object, longest: int = 28) -> str:
    """A name on one line; the middle of a long name is omitted, its ends distinguish it."""
    text = "".join(c if c.isprintable() else " " for c in str(value))
    if len(text) <= longest:
        return text
    n_tail = (longest - 1) // 2
    return f"{text[: longest - 1 - n_tail]}…{text[-n_tail:]}"


def level_name(level: str | int | None, longest: int) -> str:
    """A short name of a level, in quotation marks if the text could be mistaken for another."""
    if level is None:
        return "missing"
    if isinstance(level, int):
        return shortened(level, longest)
    is_plain = re.fullmatch(r"\w(?:[\w .+&/-]*\w)?", level) and not level.isnumeric()
    if is_plain and level != "missing" and not level.startswith("all but"):
        return shortened(level, longest)
    return f'"{shortened(level, longest - 2)}"'


def printable(value: object, longest: int = 28) -> str:
    """A short name in which matplotlib finds no formula, and no character that its fonts lack."""
    return _in_glyphs(shortened(value, longest)).replace("$", r"\$")


def _in_glyphs(text: str) -> str:
    """The text with a question mark for each character that the fonts of matplotlib lack.

    Matplotlib draws an empty box for these, and warns when the picture is saved.
    """
    if text.isascii():
        return text
    require("matplotlib", "plot")
    from matplotlib.font_manager import FontProperties, findfont, get_font

    fonts = []
    for family in FontProperties().get_family():
        try:
            path = findfont(FontProperties(family=family), fallback_to_default=False)
        except ValueError:  # the font is not installed
            continue
        fonts.append(get_font(path))
    if not fonts:
        fonts.append(get_font(findfont(FontProperties())))
    return "".join(c if any(font.get_char_index(ord(c)) for font in fonts) else "?" for c in text)


def line_style(i: int) -> dict[str, Any]:
    """Colour and dashes of the i-th line of a picture."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "ls": LINE_STYLES[i // len(COLOURS) % len(LINE_STYLES)],
    }
