"""A recording in numbers and words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from helpers.measure.timeline_events import STAGES, TAKEN

if TYPE_CHECKING:
    from helpers.measure.timeline import Timeline


@dataclass(frozen=True)
class Summary:
    """Means over the steady batches of a recording.

    Attributes:
        batches: how many were looked at.
        steady: False if the recording ended while the loop still lived on
            batches made during start-up; it then looks faster than it is.
        seconds: of one turn of the training loop.
        stages: seconds per batch in each stage, in the order of a batch's life.
        wait_share: share of the loop's time that it waits for batches.
        ready: batches finished and not yet taken, averaged over time.
        start_up_s: from ``iter(loader)`` to the first batch, first epoch.
    """

    batches: int
    steady: bool
    seconds: float
    stages: dict[str, float]
    wait_share: float
    ready: float
    start_up_s: float

    def __str__(self) -> str:
        rows = [(stage, duration(seconds)) for stage, seconds in self.stages.items()]
        rows += [
            ("turn of the loop", duration(self.seconds)),
            ("share of waiting", f"{self.wait_share:.0%}"),
            ("batches ready", f"{self.ready:.1f}"),
            ("start-up", duration(self.start_up_s)),
        ]
        note = "" if self.steady else ", none of them from the steady period"
        head = f"Mean of {self.batches} batches{note}"
        return "\n".join([head, *(f"  {name:<18}{value}" for name, value in rows)])


def summarise(timeline: Timeline) -> Summary:
    """Means per batch, after the warm-up of each epoch if it got that far."""
    frame = timeline.frame()
    frame["seconds"] = (frame["end_ns"] - frame["start_ns"]) / 1e9
    turns = frame[frame["stage"].isin(TAKEN)]
    place = turns.groupby("epoch").cumcount()
    steady = turns[place > timeline.warm_up]
    chosen = next(part for part in (steady, turns[place > 0], turns) if not part.empty)
    stages = _mean_seconds(frame, chosen)
    loop = sum(stages.get(stage, 0.0) for stage in ("wait", "transfer", "step"))
    return Summary(
        batches=len(chosen),
        steady=not steady.empty,
        seconds=loop,
        stages=stages,
        wait_share=stages.get("wait", 0.0) / loop if loop else 0.0,
        ready=_mean_ready(timeline, chosen["start_ns"].min()),
        start_up_s=float(turns["seconds"].iloc[0]),
    )


def finding(timeline: Timeline, name: str | None = None) -> str:
    """What the recording shows, in one line: the title of its chart.

    Args:
        timeline: the recording.
        name: what it is called there; default is the number of workers.
    """
    summary = timeline.summary()
    name = name or workers(timeline)
    size = f"{timeline.batches} batches in {duration(timeline.seconds)}"
    if not summary.steady:
        size += ", not yet steady"
    if summary.wait_share > 0.999:
        return f"{name}: a batch every {duration(summary.seconds)}, {size}"
    return f"{name}: the loop waits {summary.wait_share:.0%} of its time, {size}"


def alt(timeline: Timeline) -> str:
    """The recording in words and numbers, for who cannot see the chart."""
    summary = timeline.summary()
    stages = ", ".join(f"{name} {duration(s)}" for name, s in summary.stages.items())
    device = f" (step: {timeline.device})" if timeline.device else ""
    caution = "" if summary.steady else " All this is from before the steady period."
    return (
        f"Timeline of {timeline.batches} batches with {workers(timeline)}{device}, "
        f"{duration(timeline.seconds)} in all. The first batch is there after "
        f"{duration(summary.start_up_s)}; then the loop waits "
        f"{summary.wait_share:.0%} of its time, and {summary.ready:.1f} batches are "
        f"ready on average. Per batch: {stages}.{caution}"
    )


def workers(timeline: Timeline) -> str:
    """The number of workers in words."""
    return f"{timeline.workers} worker{'' if timeline.workers == 1 else 's'}"


def _mean_seconds(frame: pd.DataFrame, chosen: pd.DataFrame) -> dict[str, float]:
    key = ["epoch", "batch"]
    wanted = frame.merge(chosen[key], on=key)
    totals = wanted.groupby("stage")["seconds"].sum()
    return {
        stage: float(totals[stage]) / len(chosen)
        for stage in STAGES
        if stage in totals.index and stage != "start-up"
    }


def _mean_ready(timeline: Timeline, start_ns: int) -> float:
    ready = timeline.ready()
    edges = np.append(ready["time_ns"], timeline.end_ns).clip(start_ns)
    length = timeline.end_ns - start_ns
    return float(np.diff(edges) @ ready["batches"]) / length if length else 0.0


def duration(seconds: float) -> str:
    """Three digits with a unit: 0.0213 is "21.3 ms"."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"
