"""One look for every figure of the book.

Colours are those of M. Okabe and K. Ito, "Color Universal Design" (2008),
which readers with colour-vision deficiency can tell apart.
"""

import contextlib
from collections.abc import Iterator

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
SKY = "#56B4E9"
GREY = "#6B7280"
BLACK = "#1F2933"
CYCLE = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, GREY)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

WIDTH_IN = 7.2

_RC = {
    "axes.axisbelow": True,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.labelcolor": BLACK,
    "axes.prop_cycle": mpl.cycler(color=CYCLE),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "grid.color": "#E5E7EB",
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "savefig.facecolor": "white",
    "svg.hashsalt": "dataloader-book",
    "text.color": BLACK,
    "xtick.color": BLACK,
    "ytick.color": BLACK,
}


@contextlib.contextmanager
def look() -> Iterator[None]:
    """Draw inside this block to get the book's look; nothing global changes."""
    with mpl.rc_context(_RC):
        yield


def axes(
    rows: int = 1, columns: int = 1, height_in: float = 3.4, **subplots: object
) -> tuple[Figure, Axes]:
    """A figure of the book's width and its axes (an array if more than one).

    The figure is not registered with pyplot, so nothing is shown twice and
    nothing has to be closed.

    Args:
        rows: of axes.
        columns: of axes.
        height_in: of the whole figure, in inches.
        subplots: passed on to ``Figure.subplots``.
    """
    with look():
        figure = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
        return figure, figure.subplots(rows, columns, **subplots)
