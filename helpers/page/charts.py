"""The charts that most chapters need, each with its words.

Each returns ``(figure, alt)`` for
:func:`helpers.page.show.figure`.
"""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Protocol

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from helpers.page import style

# What fits into the width of a figure in bold type.
_TITLE_CHARACTERS = 72


class EstimateLike(Protocol):
    """A value with an interval, such as
    :class:`helpers.measure.intervals.Estimate`."""

    value: float
    low: float
    high: float


Points = tuple[Sequence[float], Sequence[EstimateLike]]


def sweep(
    panels: Mapping[str, Points],
    title: str,
    x_label: str,
    y_label: str,
    limits: Mapping[str, tuple[float, str]] | None = None,
    curves: Mapping[str, Sequence[float]] | None = None,
) -> tuple[Figure, str]:
    """One panel per workload: a value against a setting, with its interval.

    Args:
        panels: workload -> (settings, values).
        title: the finding, a sentence.
        x_label: name of the setting, with its unit.
        y_label: name of the value, with its unit.
        limits: workload -> (height, label) of a dashed line.
        curves: workload -> predicted values, one per setting, drawn beside the
            measured ones.
    """
    limits, curves = limits or {}, curves or {}
    figure, axes = style.axes(1, len(panels), height_in=3.2, squeeze=False)
    with style.look():
        figure.suptitle(
            textwrap.fill(title, _TITLE_CHARACTERS),
            x=0.01,
            ha="left",
            fontsize=11,
            fontweight="bold",
        )
        for number, (name, (settings, values)) in enumerate(panels.items()):
            panel = axes[0][number]
            _points(panel, settings, values, number)
            panel.set_title(name, fontsize=10, fontweight="normal")
            panel.set_xlabel(x_label)
            panel.set_xticks(settings, [f"{setting:g}" for setting in settings])
            if name in limits:
                _limit(panel, settings[0], *limits[name])
            if name in curves:
                _curve(panel, settings, curves[name])
            panel.set_ylim(0, 1.15 * panel.get_ylim()[1])
            panel.yaxis.set_major_formatter(EngFormatter(sep=" "))
        axes[0][0].set_ylabel(y_label)
    words = [f"{name}: {_in_words(x, y)}" for name, (x, y) in panels.items()]
    words += [
        f"{name}: {label} {height:.3g}" for name, (height, label) in limits.items()
    ]
    words += [f"{name} predicted: {_plain(curve)}" for name, curve in curves.items()]
    return figure, f"{title}. {y_label} by {x_label}. {'; '.join(words)}."


def bars(
    names: Sequence[str],
    values: Sequence[EstimateLike],
    title: str,
    x_label: str,
) -> tuple[Figure, str]:
    """Horizontal bars with their interval, the first on top.

    Args:
        names: of the bars.
        values: their lengths.
        title: the finding, a sentence.
        x_label: what is measured, with its unit.
    """
    figure, axes = style.axes(height_in=0.9 + 0.42 * len(names))
    with style.look():
        middles = [value.value for value in values]
        axes.barh(range(len(names)), middles, color=style.SKY, height=0.62)
        if any(value.low < value.high for value in values):
            axes.errorbar(
                middles,
                range(len(names)),
                xerr=_spread(values),
                fmt="none",
                ecolor=style.BLACK,
                capsize=3,
            )
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.grid(False, axis="y")
        axes.set_xlabel(x_label)
        axes.set_title(textwrap.fill(title, _TITLE_CHARACTERS))
    return figure, f"{title}. {x_label}: {_in_words(names, values)}."


def columns(
    positions: Sequence[float],
    heights: Sequence[float],
    title: str,
    x_label: str,
    y_label: str,
) -> tuple[Figure, str]:
    """Upright bars of single readings in their order, without an interval.

    Args:
        positions: where the bars stand.
        heights: one per position.
        title: the finding, a sentence.
        x_label: what is counted along the axis.
        y_label: what is measured, with its unit.
    """
    figure, axes = style.axes(height_in=2.6)
    with style.look():
        axes.bar(positions, heights, color=style.SKY)
        axes.grid(False, axis="x")
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.set_title(textwrap.fill(title, _TITLE_CHARACTERS))
    return figure, f"{title}. {y_label} by {x_label}: {_plain(heights)}."


def _limit(axes: Axes, x: float, height: float, label: str) -> None:
    axes.axhline(height, color=style.GREY, linestyle="--")
    axes.annotate(
        label,
        (x, height),
        xytext=(0, 3),
        textcoords="offset points",
        fontsize=8.5,
        color=style.BLACK,
    )


def _curve(axes: Axes, settings: Sequence[float], heights: Sequence[float]) -> None:
    axes.plot(
        settings,
        heights,
        color=style.BLACK,
        linestyle=":",
        marker="x",
        label="predicted",
    )
    axes.lines[0].set_label("measured")
    axes.legend(loc="best")


def _points(
    axes: Axes, settings: Sequence[float], values: Sequence[EstimateLike], number: int
) -> None:
    axes.errorbar(
        settings,
        [value.value for value in values],
        yerr=_spread(values),
        marker=style.MARKERS[number % len(style.MARKERS)],
        color=style.CYCLE[number % len(style.CYCLE)],
        capsize=3,
        markersize=5,
    )


def _spread(values: Sequence[EstimateLike]) -> list[list[float]]:
    """Lengths of the error bars; an interval without end is not drawn."""
    below = [_finite(value.value - value.low) for value in values]
    above = [_finite(value.high - value.value) for value in values]
    return [below, above]


def _finite(length: float) -> float:
    return length if 0 <= length < float("inf") else 0.0


def _plain(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3g}" for value in values)


def _in_words(settings: Sequence[object], values: Sequence[EstimateLike]) -> str:
    return ", ".join(
        f"{setting}: {_with_interval(value)}"
        for setting, value in zip(settings, values, strict=True)
    )


def _with_interval(value: EstimateLike) -> str:
    if value.low == value.high:
        return f"{value.value:.3g}"  # a single reading
    return f"{value.value:.3g} ({value.low:.3g} to {value.high:.3g})"
