"""Who did what, when: a recording of a training loop, batch by batch.

Stages of a batch. In the process that makes it: *fetch* (from the arrival of
its indices to the call of the collate function, so reading and transforms),
*collate*, and *serialise* (by a second thread of the worker, so it competes with
the next fetch). On the way: *transport*, *pin*, and *ready*, while it is
finished and nobody takes it. In the training loop: *start-up* (until the first
batch of an epoch is there), *wait* (for every other), *transfer*, *step*.

What one sample cost is not recorded. User code inside the collate function
counts as collate.
"""

import itertools
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch.utils.data import DataLoader

from helpers.measure import chrome_trace, copies, timeline_chart, timeline_summary
from helpers.measure.timeline_events import TAKEN, Event, Turn, events
from helpers.measure.timeline_summary import Summary
from helpers.measure.tracer import TracedLoader, now

_END = object()


@dataclass(frozen=True)
class Timeline:
    """A recording; times in ns since ``iter(loader)``.

    Attributes:
        events: by start.
        workers: of the loader.
        device: label of what takes the step, None if it is the CPU.
        warm_up: batches per epoch until the loader has found its pace.
        end_ns: when the last step ended.
    """

    events: tuple[Event, ...]
    workers: int
    device: str | None
    warm_up: int
    end_ns: int

    @property
    def batches(self) -> int:
        """Number of batches that the loop took."""
        return len(self._taken())

    @property
    def seconds(self) -> float:
        """Length of the recording."""
        return self.end_ns / 1e9

    def frame(self) -> pd.DataFrame:
        """One row per event; the columns are the fields of :class:`.Event`."""
        columns = [field.name for field in fields(Event)]
        rows = [astuple(event) for event in self.events]
        return pd.DataFrame(rows, columns=columns).astype({"worker": "Int64"})

    def ready(self) -> pd.DataFrame:
        """Batches finished by a worker and not yet taken by the loop.

        One row per change: time_ns, batches.
        """
        changes = [(e.end_ns, 1) for e in self.events if e.stage == "serialise"]
        if changes:
            changes += [(e.end_ns, -1) for e in self._taken()]
        changes.sort(key=lambda change: (change[0], -change[1]))
        times, steps = zip((0, 0), *changes, strict=True)
        levels = list(itertools.accumulate(steps))
        return pd.DataFrame({"time_ns": times, "batches": levels})

    def summary(self) -> Summary:
        """Means per batch, after the warm-up of each epoch if it got that far."""
        return timeline_summary.summarise(self)

    def finding(self) -> str:
        """What the recording shows, in one line."""
        return timeline_summary.finding(self)

    def alt(self) -> str:
        """The recording in words and numbers, for who cannot see the chart."""
        return timeline_summary.alt(self)

    def plot(self, ax: Axes | None = None, title: str | None = None) -> Figure:
        """Draw it; see :func:`helpers.measure.timeline_chart.plot`."""
        return timeline_chart.plot(self, ax, title)

    def to_chrome_trace(self, path: str | Path) -> Path:
        """Write it as JSON that Perfetto opens (https://ui.perfetto.dev)."""
        return chrome_trace.write(self, path)

    def _taken(self) -> list[Event]:
        return [event for event in self.events if event.stage in TAKEN]


def record(
    loader: DataLoader,
    step: Callable[[object], object] | None = None,
    *,
    batches: int | None = None,
    epochs: int = 1,
    device: torch.device | str | None = None,
) -> Timeline:
    """Run a training loop over a copy of ``loader`` and note who did what.

    The loader, its samplers and the global random states are left as they were.
    With 0 workers the dataset is called in this process; what it changes in
    itself stays changed. Errors come through as they are; workers are ended.

    Args:
        loader: any DataLoader.
        step: what the loop does with a batch. Of an object with ``transfer`` and
            ``step``, such as :class:`helpers.pipeline.device.TrainingStep`, both
            are recorded. Default: nothing.
        batches: stop after so many in all. Default: enough to see the steady
            period, at least 32.
        epochs: stop after so many passes over the loader.
        device: where the step runs; it is waited for at the end of each step.
            Default: ``step.device``, else the accelerator if there is one.

    Raises:
        TypeError: not a DataLoader.
        ValueError: ``batches`` or ``epochs`` below 1, or the loader yields none.
        RuntimeError: this loader cannot be followed, or the clocks of two
            processes cannot be compared here.
    """
    copies.require_loader(loader)
    warm_up = copies.drain_batches(loader)
    batches = max(32, 2 * warm_up) if batches is None else batches
    for name, value in (("batches", batches), ("epochs", epochs)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    consumer = _Consumer(step, device)
    traced = TracedLoader(loader)
    with copies.preserved_random_state():
        try:
            turns = _loop(traced, consumer, batches, epochs)
        finally:
            traced.close()
    if not turns:
        raise ValueError("the loader yields no batch: nothing to record")
    found = events(traced.deliveries, turns, consumer.label is not None)
    end = turns[-1].stepped - turns[0].began
    return Timeline(found, loader.num_workers, consumer.label, warm_up, end)


class _Consumer:
    """What the loop does with a batch, waited for until it is done.

    ``label`` names the device; None if the step runs on the CPU.
    """

    def __init__(self, step: object, device: torch.device | str | None) -> None:
        has_stages = hasattr(step, "transfer") and hasattr(step, "step")
        self.transfer = step.transfer if has_stages else None
        self.step = step.step if has_stages else step
        device = torch.device(device or getattr(step, "device", None) or _accelerator())
        self.device = device if step is not None and device.type != "cpu" else None
        label = getattr(step, "label", None) or self.device and str(device)
        self.label = None if label == "cpu" else label

    def take(self, batch: object, got: int) -> tuple[int, int]:
        """Transfer and step; returns the times in ns at which each was done.

        ``got`` is the time at which the batch was there.
        """
        transferred = stepped = got
        if self.transfer is not None:
            batch = self.transfer(batch)
            transferred = stepped = self._finished()
        if self.step is not None:
            self.step(batch)
            stepped = self._finished()
        return transferred, stepped

    def _finished(self) -> int:
        # An accelerator is only given its work by the call: without waiting for
        # it the events would show launches.
        if self.device is not None:
            torch.accelerator.synchronize(self.device)
        return now()


def _accelerator() -> torch.device:
    if torch.accelerator.is_available():
        return torch.accelerator.current_accelerator()
    return torch.device("cpu")


def _loop(
    traced: TracedLoader, consumer: _Consumer, batches: int, epochs: int
) -> list[Turn]:
    turns: list[Turn] = []
    for _ in range(epochs):
        began, asked = now(), None
        iterator = iter(traced)
        while (batch := next(iterator, _END)) is not _END:
            got = now()
            transferred, stepped = consumer.take(batch, got)
            delivery = traced.latest()
            turns.append(Turn(delivery, began, asked, got, transferred, stepped))
            if len(turns) == batches:
                traced.drain()
                return turns
            asked = now()
    return turns
