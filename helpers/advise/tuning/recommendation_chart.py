"""The picture of a recommendation: rate against the number of workers."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from helpers.page import style

if TYPE_CHECKING:
    from helpers.advise.tuning.grid import Setting
    from helpers.advise.tuning.recommendation import Recommendation, Row

_TITLE_CHARACTERS = 72
_LOOK = {
    0: (style.BLUE, "o"),
    1: (style.SKY, "v"),
    2: (style.BLUE, "o"),
    4: (style.PURPLE, "^"),
}
_OTHER = (style.GREY, "s")
_ASIDE = {1: -0.12, 4: 0.12}


def draw(result: Recommendation) -> Figure:
    """Predicted rates as a curve, measured ones as points with their interval.

    The recommended setting has a ring around it, the reader's own a square.
    """
    figure, axes = style.axes(height_in=3.6)
    with style.look():
        curve = _curve(result)
        places = {workers: place for place, workers in enumerate(curve)}
        axes.plot(
            list(places.values()),
            list(curve.values()),
            color=style.BLACK,
            linestyle=":",
            marker="x",
            label="predicted",
        )
        for prefetch, rows in _by_prefetch(result).items():
            _points(axes, rows, prefetch, places)
        _mark(axes, result, places)
        axes.set_xticks(list(places.values()), [str(workers) for workers in places])
        axes.set_xlabel("num_workers")
        axes.set_ylabel("samples/s")
        axes.set_ylim(0, 1.15 * axes.get_ylim()[1])
        axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
        axes.set_title(textwrap.fill(title(result), _TITLE_CHARACTERS))
        axes.legend(loc="best", fontsize=8.5)
    return figure


def title(result: Recommendation) -> str:
    """The finding, a sentence."""
    return f"Recommended: {result.setting}, {result.status}"


def alt(result: Recommendation) -> str:
    """The figure in words and numbers."""
    curve = ", ".join(f"{w}: {rate:.3g}" for w, rate in _curve(result).items())
    measured = ", ".join(
        f"{row.setting}: {row.rate.value:.3g} (+{_above(row):.2g} -{_below(row):.2g})"
        for row in _measured(result)
    )
    return (
        f"{title(result)}. Samples/s by num_workers. Predicted: {curve}. "
        f"Measured: {measured or 'nothing'}. Your current setting: {result.current}."
    )


def _curve(result: Recommendation) -> dict[int, float]:
    """Workers -> predicted samples/s; prefetching does not change it."""
    return {
        row.setting.workers: result.samples / row.predicted_s for row in result.rows
    }


def _measured(result: Recommendation) -> list[Row]:
    return [row for row in result.rows if row.rate is not None]


def _by_prefetch(result: Recommendation) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for row in _measured(result):
        found.setdefault(row.setting.prefetch, []).append(row)
    return found


def _points(axes: Axes, rows: list[Row], prefetch: int, places: dict[int, int]) -> None:
    colour, marker = _LOOK.get(prefetch, _OTHER)
    axes.errorbar(
        [_x(row.setting, places) for row in rows],
        [row.rate.value for row in rows],
        yerr=[
            [_below(row) for row in rows],
            [_above(row) for row in rows],
        ],
        color=colour,
        marker=marker,
        linestyle="none",
        capsize=3,
        markersize=5,
        label=f"measured, prefetch {prefetch}" if prefetch else "measured, no workers",
    )


def _mark(axes: Axes, result: Recommendation, places: dict[int, int]) -> None:
    for setting, shape, size, colour, label in (
        (result.setting, "o", 15, style.GREEN, "recommended"),
        (result.current, "s", 13, style.GREY, "current"),
    ):
        row = next((row for row in result.rows if row.setting == setting), None)
        if row is None:
            continue
        axes.plot(
            _x(setting, places),
            result.rate(row),
            marker=shape,
            markersize=size,
            markerfacecolor="none",
            markeredgewidth=1.8,
            color=colour,
            linestyle="none",
            label=label,
        )


def _x(setting: Setting, places: dict[int, int]) -> float:
    """Beside each other, so that equal points can be seen."""
    return places[setting.workers] + _ASIDE.get(setting.prefetch, 0.0)


def _below(row: Row) -> float:
    return _finite(row.rate.value - row.rate.low)


def _above(row: Row) -> float:
    return _finite(row.rate.high - row.rate.value)


def _finite(length: float) -> float:
    """One block has no interval; none is drawn."""
    return length if 0 <= length < math.inf else 0.0
