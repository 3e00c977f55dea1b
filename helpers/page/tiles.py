"""Tables of tiles or pictures that show at a glance what is equal and what is not.

Each returns ``(figure, alt)`` for :func:`helpers.page.show.figure`.
"""

import string
import textwrap
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from helpers.page import style

# What fits into the width of a figure in bold type.
_TITLE_CHARACTERS = 72
_PALE = "#EEF1F4"
_GAP = 0.35


def letters(values: Iterable[Hashable]) -> list[str]:
    """A letter for each value, A for the first; equal values get equal letters.

    >>> letters([7, 3, 7, 0])
    ['A', 'B', 'A', 'C']

    Raises:
        ValueError: more than 52 different values.
    """
    names: dict[Hashable, str] = {}
    for value in (values := list(values)):
        if value not in names:
            if len(names) == len(string.ascii_letters):
                raise ValueError("letters are for at most 52 different values")
            upper_first = string.ascii_uppercase + string.ascii_lowercase
            names[value] = upper_first[len(names)]
    return [names[value] for value in values]


def repeats(
    rows: Mapping[str, Sequence[Hashable]],
    groups: Mapping[str, Sequence[str]],
    title: str,
    across: bool = False,
) -> tuple[Figure, str]:
    """Which values of a row are equal: equal values bear the same letter.

    A value that occurs more than once is coloured, one that is alone is pale.

    Args:
        rows: name -> its values, one per column.
        groups: headings of the columns, in groups: heading -> its columns.
        title: the finding, a sentence.
        across: compare the values of all rows, not only of each row.

    Raises:
        ValueError: a row has not one value per column.
    """
    columns = [name for names in groups.values() for name in names]
    _require_columns(rows, columns)
    if across:
        flat = letters(value for values in rows.values() for value in values)
        marked = [
            flat[start : start + len(columns)]
            for start in range(0, len(flat), len(columns))
        ]
        colours = [_colours(flat)] * len(rows)
    else:
        marked = [letters(values) for values in rows.values()]
        colours = [_colours(marks) for marks in marked]
    places = _places(groups)
    figure, axes = _canvas(list(rows), places, title, header=0.55)
    with style.look():
        for height, (marks, colour) in enumerate(zip(marked, colours, strict=True)):
            for place, mark in zip(places, marks, strict=True):
                _tile(axes, place, height, mark, colour[mark])
        _headings(axes, groups, places)
    return figure, f"{title}. {_in_words(dict(zip(rows, marked, strict=True)), groups)}"


def orders(rows: Mapping[str, Sequence[int]], title: str) -> tuple[Figure, str]:
    """Orders of indices below each other: every index has its own shade.

    Args:
        rows: name -> indices in the order in which they came.
        title: the finding, a sentence.
    """
    longest = max(len(order) for order in rows.values())
    most = max(index for order in rows.values() for index in order)
    shades = mpl.colormaps["cividis"].resampled(most + 1)
    figure, axes = _canvas(list(rows), range(longest), title, header=0.1)
    with style.look():
        for height, order in enumerate(rows.values()):
            for place, index in enumerate(order):
                _tile(axes, place, height, str(index), shades(index))
    words = "; ".join(
        f"{name}: {' '.join(map(str, order))}" for name, order in rows.items()
    )
    return figure, f"{title}. {words}."


def pictures(
    rows: Mapping[str, Sequence[ArrayLike]], columns: Sequence[str], title: str
) -> tuple[Figure, str]:
    """Small pictures in rows and columns; the alternative text says which are equal.

    Args:
        rows: name -> pictures, uint8 [height, width, 3], one per column.
        columns: headings.
        title: the finding, a sentence.

    Raises:
        ValueError: a row has not one picture per column.
    """
    _require_columns(rows, columns)
    lines = textwrap.fill(title, _TITLE_CHARACTERS)
    side = style.WIDTH_IN / len(columns)
    height = 0.5 + 0.2 * lines.count("\n") + 0.95 * side * len(rows)
    figure, axes = style.axes(len(rows), len(columns), height_in=height, squeeze=False)
    with style.look():
        figure.suptitle(lines, x=0.01, ha="left", fontsize=11, fontweight="bold")
        for line, (name, row) in zip(axes, rows.items(), strict=True):
            line[0].set_ylabel(name)
            for axis, picture in zip(line, row, strict=True):
                axis.imshow(picture)
                axis.set(xticks=[], yticks=[])
        for axis, name in zip(axes[0], columns, strict=True):
            axis.set_title(name, fontsize=8, fontweight="normal", loc="center", pad=3)
    contents = [np.asarray(one).tobytes() for row in rows.values() for one in row]
    marks = iter(letters(contents))
    marked = {name: [next(marks) for _ in row] for name, row in rows.items()}
    return figure, f"{title}. {_in_words(marked, {'Pictures': columns})}"


def _require_columns(
    rows: Mapping[str, Sequence[object]], columns: Sequence[str]
) -> None:
    for name, values in rows.items():
        if len(values) != len(columns):
            raise ValueError(
                f"row {name!r} has {len(values)} values for {len(columns)} columns"
            )


def _colours(marks: Sequence[str]) -> dict[str, str]:
    """Letters that occur more than once get a colour, in turn."""
    counts = Counter(marks)
    repeated = [mark for mark in counts if counts[mark] > 1]
    cycle = style.CYCLE
    colours = {m: cycle[n % len(cycle)] for n, m in enumerate(repeated)}
    return {mark: colours.get(mark, _PALE) for mark in counts}


def _places(groups: Mapping[str, Sequence[str]]) -> list[float]:
    """Where the columns stand, with a gap between groups."""
    places, place = [], 0.0
    for names in groups.values():
        for _ in names:
            places.append(place)
            place += 1
        place += _GAP
    return places


def _canvas(
    names: Sequence[str], places: Sequence[float], title: str, header: float
) -> tuple[Figure, Axes]:
    lines = textwrap.fill(title, _TITLE_CHARACTERS)
    height = 0.35 + 0.2 * (1 + lines.count("\n")) + header + 0.34 * len(names)
    figure, axes = style.axes(height_in=height)
    with style.look():
        figure.suptitle(lines, x=0.01, ha="left", fontsize=11, fontweight="bold")
        axes.set_xlim(-0.5, max(places) + 0.5)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_yticks(range(len(names)), names)
        axes.set_xticks([])
        axes.tick_params(length=0)
        axes.grid(False)
        for spine in axes.spines.values():
            spine.set_visible(False)
    return figure, axes


def _tile(axes: Axes, place: float, height: int, text: str, colour: object) -> None:
    corner = (place - 0.46, height - 0.42)
    axes.add_patch(Rectangle(corner, 0.92, 0.84, facecolor=colour, edgecolor="none"))
    axes.text(
        place,
        height,
        text,
        ha="center",
        va="center",
        fontsize=9,
        color=_readable_on(colour),
    )


def _readable_on(colour: object) -> str:
    """Black or white, whichever has more contrast (WCAG 2 relative luminance)."""
    channels = [
        value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4
        for value in mpl.colors.to_rgb(colour)
    ]
    weights = (0.2126, 0.7152, 0.0722)
    luminance = sum(w * c for w, c in zip(weights, channels, strict=True))
    return "white" if luminance < 0.179 else "black"


def _headings(
    axes: Axes, groups: Mapping[str, Sequence[str]], places: Sequence[float]
) -> None:
    columns = [name for names in groups.values() for name in names]
    axes.set_xticks(places, columns, fontsize=8)
    axes.xaxis.tick_top()
    start = 0
    for heading, names in groups.items():
        own = places[start : start + len(names)]
        start += len(names)
        axes.annotate(
            heading,
            ((own[0] + own[-1]) / 2, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 18),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=8.5,
        )


def _in_words(
    marked: Mapping[str, Sequence[str]], groups: Mapping[str, Sequence[str]]
) -> str:
    heads = [
        f"{heading}, {name}".replace("\n", " ")
        for heading, names in groups.items()
        for name in names
    ]
    rows = "; ".join(f"{name}: {' '.join(marks)}" for name, marks in marked.items())
    return f"Equal letters are equal values. Columns: {'; '.join(heads)}. Rows: {rows}."
