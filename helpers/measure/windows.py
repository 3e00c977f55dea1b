"""What is timed: one fresh loader (or function), in one or several slices.

A run is started once and then timed in slices, with its workers stopped in
between, so that several runs can take turns every fraction of a second. What
slows the machine down for a second then slows them all alike.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from torch.utils.data import DataLoader, IterableDataset

from helpers.measure import copies
from helpers.measure.load import Load, LoadMeter

Step = Callable[[object], object]


@dataclass(frozen=True)
class Slice:
    """One uninterrupted stretch of a run. ``waits`` in seconds, one per batch."""

    seconds: float
    samples: int
    waits: tuple[float, ...]
    load: Load


@dataclass(frozen=True)
class Window:
    """All slices of one run together. Times in seconds."""

    seconds: float
    samples: int
    batches: int
    start_up_s: float
    wait_p95_s: float
    wait_share: float
    load: Load


class Run(Protocol):
    """What can be timed in slices: a loader or a function."""

    start_up_s: float

    def slice(self, seconds: float, batches: int) -> Slice:
        """Time at least so many seconds and batches."""
        ...

    def window(self, slices: list[Slice]) -> Window:
        """The slices of this run as one window."""
        ...

    def close(self) -> None:
        """End what the run started."""
        ...


class StreamEnded(RuntimeError):
    """An iterable dataset has no more batches, and a window needs more."""


class LoaderRun:
    """A copy of a loader, started and past its start-up; its workers are stopped.

    Starting consumes batches until the prefetch queue has drained to its steady
    level. A map-style dataset that is too short is read again from its start.

    Args:
        loader: left as it is.
        step: what the training loop does with a batch.

    Raises:
        TypeError: not a DataLoader.
        StreamEnded: a stream ends before the steady period.
    """

    def __init__(self, loader: DataLoader, step: Step) -> None:
        copies.require_loader(loader)
        self._step, self._loader = step, loader
        self._taken = 0
        self._sampler: copies.EndlessSampler | None = None
        source = loader
        if not isinstance(loader.dataset, IterableDataset):
            source, self._sampler = copies.endless(loader)
        began = time.perf_counter()
        self._iterator = iter(source)
        try:
            first = self._next()
            self.start_up_s = time.perf_counter() - began
            step(first)
            self._consume(copies.drain_batches(loader))
        except BaseException:
            self.close()
            raise
        copies.stop_workers(self._iterator)

    def slice(self, seconds: float, batches: int) -> Slice:
        """Let the workers go on and time whole waves of batches."""
        workers = self._loader.num_workers
        copies.continue_workers(self._iterator)
        # A wait that ended while the worker was stopped (a sleep, a disk) made
        # each worker's first batch early.
        self._consume(workers)
        waits: list[float] = []
        first = self._taken
        meter = LoadMeter().start()
        began = now = time.perf_counter()
        # Batches come in waves of one per worker: whole waves keep the end of
        # the slice in the same phase as its beginning.
        while (
            now - began < seconds
            or len(waits) < batches
            or len(waits) % max(workers, 1)
        ):
            asked = now
            batch = self._next()
            waits.append(time.perf_counter() - asked)
            self._step(batch)
            now = time.perf_counter()
        load = meter.stop()
        copies.stop_workers(self._iterator)
        return Slice(now - began, self._samples(first), tuple(waits), load)

    def window(self, slices: list[Slice]) -> Window:
        """The slices as one window."""
        return _window(slices, self.start_up_s, waits=True)

    @property
    def taken(self) -> int:
        """Batches taken so far."""
        return self._taken

    @property
    def worker_pids(self) -> list[int]:
        """Process numbers of the workers."""
        return copies.worker_pids(self._iterator)

    def failed_batch(self) -> object:
        """After an error: the indices of the batch that was not delivered.

        None if it cannot be told: of a stream, or if the sampler itself failed.
        """
        if self._sampler is None or not self._loader.in_order:
            return None
        outstanding = len(self._sampler.sizes) - self._taken
        recent = self._sampler.recent
        return recent[-outstanding] if 0 < outstanding <= len(recent) else None

    def close(self) -> None:
        """End the workers and wait for them."""
        copies.close(self._iterator)

    def _consume(self, batches: int) -> None:
        for _ in range(batches):
            self._step(self._next())

    def _next(self) -> object:
        try:
            batch = next(self._iterator)
        except StopIteration:
            raise StreamEnded(
                f"the stream ends after {self._taken} batches: no steady state to "
                "measure; use a longer stream or smaller batches"
            ) from None
        self._taken += 1
        return batch

    def _samples(self, first: int) -> int:
        """Samples in the batches taken since the given one."""
        if self._sampler is None:
            return (self._taken - first) * (self._loader.batch_size or 1)
        return sum(self._sampler.sizes[first : self._taken])


class CallRun:
    """A function, called again and again; nothing to stop in between."""

    start_up_s = np.nan

    def __init__(self, call: Callable[[], object], samples: int, warm_up: bool) -> None:
        self._call, self._samples = call, samples
        if warm_up:
            call()

    def slice(self, seconds: float, batches: int) -> Slice:
        """Time at least one call; a "batch" is a call."""
        durations: list[float] = []
        meter = LoadMeter().start()
        began = now = time.perf_counter()
        while len(durations) < batches or now - began < seconds:
            asked = now
            self._call()
            now = time.perf_counter()
            durations.append(now - asked)
        samples = len(durations) * self._samples
        return Slice(now - began, samples, tuple(durations), meter.stop())

    def window(self, slices: list[Slice]) -> Window:
        """The slices as one window; a call waits for nothing."""
        return _window(slices, self.start_up_s, waits=False)

    def close(self) -> None:
        """Nothing to end."""


def _window(slices: list[Slice], start_up_s: float, waits: bool) -> Window:
    seconds = sum(piece.seconds for piece in slices)
    every = [wait for piece in slices for wait in piece.waits]
    return Window(
        seconds=seconds,
        samples=sum(piece.samples for piece in slices),
        batches=len(every),
        start_up_s=start_up_s,
        wait_p95_s=float(np.quantile(every, 0.95)),
        wait_share=sum(every) / seconds if waits else np.nan,
        load=Load.together([piece.load for piece in slices]),
    )


def loader_window(
    loader: DataLoader,
    step: Step,
    window_s: float = 0.8,
    min_batches: int = 8,
) -> Window:
    """One window of a fresh loader in one piece: start, drain, steady period, end.

    Args:
        loader: left as it is.
        step: what the training loop does with a batch.
        window_s: seconds of steady period, at least.
        min_batches: batches in the steady period, at least.

    Raises:
        TypeError: not a DataLoader.
        ValueError: the loader yields no batch.
        RuntimeError: a stream ends before the steady period.
    """
    run = LoaderRun(loader, step)
    try:
        return run.window([run.slice(window_s, min_batches)])
    finally:
        run.close()


def calmest(take: Callable[[], Window], retries: int) -> Window:
    """The first window that the guard accepts, else the least disturbed one."""
    best = take()
    for _ in range(retries):
        if best.load.accepted:
            break
        best = min(best, take(), key=lambda window: window.load.foreign_cores)
    return best
