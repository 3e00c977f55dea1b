"""The picture of a diagnosis: the parts of a batch, and what workers would bring."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from helpers.measure.timeline_summary import duration
from helpers.page import style

if TYPE_CHECKING:
    from helpers.advise.diagnosis import Diagnosis

_TITLE_CHARACTERS = 72


def draw(result: Diagnosis) -> Figure:
    """Left the parts of a batch, right the predicted rate with its error band."""
    figure, (left, right) = style.axes(1, 2, height_in=3.4)
    with style.look():
        figure.suptitle(
            textwrap.fill(title(result), _TITLE_CHARACTERS),
            x=0.01,
            ha="left",
            fontsize=11,
            fontweight="bold",
        )
        _draw_parts(left, result)
        _draw_forecasts(right, result)
    return figure


def title(result: Diagnosis) -> str:
    """The finding, a sentence."""
    return f"{result.current}: {result.bottleneck}"


def alt(result: Diagnosis) -> str:
    """The figure in words and numbers."""
    parts = ", ".join(f"{name} {duration(s)}" for name, s in result.parts.items())
    forecasts = ", ".join(
        f"{row.workers}: {row.samples_per_s:.3g} ({row.low:.3g} to {row.high:.3g})"
        for row in result.table.itertuples()
    )
    now = _measured_rate(result)
    measured = "" if now is None else f" Measured now: {now:.3g}."
    return (
        f"{title(result)} Per batch: {parts}. Predicted samples/s by num_workers: "
        f"{forecasts}.{measured}"
    )


def _measured_rate(result: Diagnosis) -> float | None:
    return result.samples / result.seconds if result.seconds else None


def _draw_parts(axes: Axes, result: Diagnosis) -> None:
    names, values = list(result.parts), [1e3 * s for s in result.parts.values()]
    axes.barh(range(len(names)), values, color=style.SKY, height=0.62)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(False, axis="y")
    axes.set_xlabel("ms per batch")


def _draw_forecasts(axes: Axes, result: Diagnosis) -> None:
    rows = result.table
    places = range(len(rows))
    axes.fill_between(places, rows["low"], rows["high"], color=style.SKY, alpha=0.35)
    axes.plot(
        places,
        rows["samples_per_s"],
        color=style.BLACK,
        linestyle=":",
        marker="x",
        label="predicted, with error band",
    )
    now = _measured_rate(result)
    if now is not None:
        place = rows["workers"].to_list().index(result.current.workers)
        axes.plot(place, now, "o", color=style.VERMILION, label="measured now")
    axes.set_xticks(places, [str(workers) for workers in rows["workers"]])
    axes.set_xlabel("num_workers")
    axes.set_ylabel("samples/s")
    axes.set_ylim(0, 1.15 * axes.get_ylim()[1])
    axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
    axes.legend(loc="lower right", fontsize=8.5)
