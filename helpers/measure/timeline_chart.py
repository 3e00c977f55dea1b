"""The picture of a recording: a row per process, and the batches ready below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from helpers.measure.timeline_events import DEVICE, MAIN, WORKER, Event
from helpers.measure.timeline_summary import duration, finding
from helpers.page import style

if TYPE_CHECKING:
    from helpers.measure.timeline import Timeline

# Stage -> colour and hatch. Hatches tell apart what grey print would not.
_LOOK = {
    "start-up": ("#D1D5DB", "...."),
    "fetch": (style.BLUE, ""),
    "collate": (style.SKY, ""),
    "serialise": (style.PURPLE, ""),
    "pin": (style.BLACK, ""),
    "wait": (style.VERMILION, "////"),
    "transfer": (style.ORANGE, ""),
    "step": (style.GREEN, ""),
}
_NUMBERED = ("fetch", "step")
_SHADE = "#F3F4F6"
_FEW_ROWS = 6
_READY_IN = 0.75
# Top and height of a bar in its row, which goes from -0.5 to 0.5 downwards.
_BAR, _FOOT = (-0.42, 0.84), (0.27, 0.15)


def plot(
    timeline: Timeline, ax: Axes | None = None, title: str | None = None
) -> Figure:
    """One row per worker, the main process, the device; batches ready below.

    A number in a bar is that of its batch. What goes on beside something else is
    a thin line at the foot of its row: a worker serialises a batch while it
    fetches the next, and without workers the loop waits while it fetches.

    Args:
        timeline: the recording.
        ax: draw only the rows, in here and without a title.
        title: the finding, a sentence; default :meth:`.Timeline.finding`.
    """
    if ax is None:
        return _stack([timeline], title or finding(timeline))
    with style.look():
        _draw_rows(ax, timeline, timeline.end_ns)
        _label_time(ax, timeline.end_ns)
    return ax.figure


def compare_plot(
    top: Timeline,
    bottom: Timeline,
    names: tuple[str, str] = ("before", "after"),
    title: str | None = None,
) -> Figure:
    """Two recordings one above the other, on the same scale of time.

    Args:
        top: for instance of the default loader.
        bottom: for instance of the tuned one.
        names: of the two; what each shows is added.
        title: the finding, a sentence; default says how the times compare.
    """
    title = title or compare_finding(top, bottom, names)
    return _stack([top, bottom], title, names)


def compare_finding(
    top: Timeline, bottom: Timeline, names: tuple[str, str] = ("before", "after")
) -> str:
    """How the times of both compare, in one line.

    Of turns of the loop where both got to their steady period; before it a loop
    looks faster than it is, so then of the whole recordings.
    """
    pair = [one.summary() for one in (top, bottom)]
    if all(summary.steady for summary in pair):
        first, second = (duration(summary.seconds) for summary in pair)
        return f"A batch every {first} ({names[0]}) or every {second} ({names[1]})"
    first, second = (
        f"{one.batches} batches in {duration(one.seconds)}" for one in (top, bottom)
    )
    return f"{first} ({names[0]}) or {second} ({names[1]}), start-up included"


def compare_alt(
    top: Timeline, bottom: Timeline, names: tuple[str, str] = ("before", "after")
) -> str:
    """Both recordings in words and numbers."""
    return (
        f"{compare_finding(top, bottom, names)}. "
        f"Above, {names[0]}: {top.alt()} Below, {names[1]}: {bottom.alt()}"
    )


def _stack(
    timelines: Sequence[Timeline], title: str, names: Sequence[str] = ()
) -> Figure:
    heights = [part for one in timelines for part in (_rows_in(one), _READY_IN)]
    figure, axes = style.axes(
        len(heights),
        height_in=sum(heights) + 0.75 + 0.45 * len(timelines),
        sharex=True,
        height_ratios=heights,
    )
    end = max(timeline.end_ns for timeline in timelines)
    most = max(timeline.ready()["batches"].max() for timeline in timelines)
    with style.look():
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        for number, timeline in enumerate(timelines):
            rows, ready = axes[2 * number : 2 * number + 2]
            _draw_rows(rows, timeline, end)
            _draw_ready(ready, timeline, most)
            for name in names[number : number + 1]:
                text = finding(timeline, name)
                rows.set_title(text, fontsize=9.5, fontweight="normal", pad=15)
        _label_time(axes[-1], end)
        _draw_legend(figure, timelines)
    return figure


def _rows(timeline: Timeline) -> list[tuple[str, list[Event]]]:
    """Label and events of every row, from the top."""
    places = [(WORKER, number) for number in range(timeline.workers)]
    labels = [f"worker {number}" for _, number in places]
    places, labels = [*places, (MAIN, None)], [*labels, "main process"]
    if timeline.device:
        places, labels = [*places, (DEVICE, None)], [*labels, timeline.device]
    found = {place: [] for place in places}
    for event in timeline.events:
        place = event.process, event.worker if event.process == WORKER else None
        found.get(place, []).append(event)
    return list(zip(labels, found.values(), strict=True))


def _rows_in(timeline: Timeline) -> float:
    """Height of the rows in inches."""
    rows = len(_rows(timeline))
    return rows * (0.3 if rows <= _FEW_ROWS else 0.2)


def _draw_rows(axes: Axes, timeline: Timeline, end: int) -> None:
    rows = _rows(timeline)
    beside = ("serialise",) if timeline.workers else ("start-up", "wait")
    for place, (_, events) in enumerate(rows):
        for stage in _LOOK:
            some = [event for event in events if event.stage == stage]
            _draw_stage(axes, place, some, _FOOT if stage in beside else _BAR)
            if stage in _NUMBERED:
                _number(axes, place, some, end)
    axes.set_yticks(range(len(rows)), [label for label, _ in rows])
    axes.tick_params(axis="y", length=0, labelsize=9 if len(rows) <= _FEW_ROWS else 8)
    axes.set_ylim(len(rows) - 0.45, -0.55)
    axes.set_xlim(0, end)
    axes.grid(False, axis="y")
    _mark_start_and_end(axes, timeline, end)


def _draw_stage(
    axes: Axes, place: int, events: Sequence[Event], bar: tuple[float, float]
) -> None:
    if events:
        colour, hatch = _LOOK[events[0].stage]
        spans = [(event.start_ns, event.end_ns - event.start_ns) for event in events]
        top, height = bar
        axes.broken_barh(
            spans,
            (place + top, height),
            facecolors=colour,
            hatch=hatch,
            edgecolor="white",
            linewidth=0,
        )


def _number(axes: Axes, place: int, events: Sequence[Event], end: int) -> None:
    """Write its number into every bar that is wide enough."""
    for event in events:
        text = str(event.batch)
        if event.end_ns - event.start_ns > 0.009 * (1 + len(text)) * end:
            axes.text(
                (event.start_ns + event.end_ns) / 2,
                place,
                text,
                ha="center",
                va="center_baseline",
                fontsize=7,
                color="white",
            )


def _mark_start_and_end(axes: Axes, timeline: Timeline, end: int) -> None:
    starts = [event for event in timeline.events if event.stage == "start-up"]
    for event in starts:
        axes.axvspan(event.start_ns, event.end_ns, color=_SHADE, zorder=0)
        axes.axvline(event.end_ns, color=style.GREY, linewidth=0.8)
    first, length = starts[0].end_ns, timeline.end_ns
    side = "right" if first > end / 2 else "left"
    words = f"first batch after {duration(first / 1e9)}"
    _write(axes, (first, 1), words, (0, 2), ha=side, fontsize=8)
    if length < end:
        axes.axvline(length, color=style.GREY, linewidth=0.8)
    if length < 0.65 * end:  # there is room for words behind it
        words = f"done: {timeline.batches} batches in {duration(length / 1e9)}"
        _write(axes, (length, 0.5), words, (8, 0), va="center", fontsize=10)


def _write(
    axes: Axes,
    at: tuple[float, float],
    text: str,
    shift_pt: tuple[float, float],
    **options: object,
) -> None:
    """Text beside a time (ns) and a height (share of the axes)."""
    axes.annotate(
        text,
        at,
        xycoords=axes.get_xaxis_transform(),
        xytext=shift_pt,
        textcoords="offset points",
        **options,
    )


def _draw_ready(axes: Axes, timeline: Timeline, most: int) -> None:
    ready = timeline.ready()
    times = [*ready["time_ns"], timeline.end_ns]
    levels = [*ready["batches"], ready["batches"].iloc[-1]]
    axes.fill_between(times, levels, step="post", color=style.GREY, alpha=0.25)
    axes.step(times, levels, where="post", color=style.GREY, linewidth=1.2)
    axes.set_ylim(0, 1.1 * max(most, 1))
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.set_ylabel("batches\nready", rotation=0, ha="right", va="center", fontsize=9)
    axes.tick_params(labelsize=8)
    if timeline.workers == 0:
        note = "without workers no batch is made in advance"
        axes.text(0.5, 0.4, note, transform=axes.transAxes, ha="center", fontsize=8)


def _label_time(axes: Axes, end: int) -> None:
    unit, name = (1e9, "s") if end > 1e9 else (1e6, "ms")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / unit:g}")
    axes.set_xlabel(f"time since the loop began ({name})")


def _draw_legend(figure: Figure, timelines: Sequence[Timeline]) -> None:
    rows = [row for timeline in timelines for row in _rows(timeline)]
    seen = {event.stage for _, events in rows for event in events}
    patches = [
        Patch(facecolor=colour, hatch=hatch, edgecolor="white", lw=0, label=stage)
        for stage, (colour, hatch) in _LOOK.items()
        if stage in seen
    ]
    figure.legend(
        handles=patches,
        loc="outside lower center",
        ncols=len(patches),
        fontsize=8.5,
        handlelength=1.4,
        columnspacing=1.2,
    )
