"""Where does the time of a training loop go, and what should change first?"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch.utils.data import DataLoader

from helpers import machine
from helpers.advise.diagnosis import Diagnosis, Forecast
from helpers.advise.model import BatchCosts
from helpers.advise.objects import streams
from helpers.advise.tuning import grid, probes, variants
from helpers.advise.tuning.conditions import quiet_conditions
from helpers.advise.tuning.hints import epoch_batches
from helpers.advise.tuning.kept import restored
from helpers.advise.tuning.probes import BudgetTooShort, Probes
from helpers.measure import copies, timeline
from helpers.measure.timeline_summary import Summary

#: Steady batches wanted in the recording; more than this tell nothing new.
_LEAST, _MOST = 9, 300

_NOTICEABLE = 0.02


def diagnose(
    loader: DataLoader,
    step: Callable[[object], object] | None = None,
    budget_s: float = 10.0,
    *,
    keep: Sequence[object] = (),
    in_process: bool = True,
    threads: int | None = None,
) -> Diagnosis:
    """Run a training loop for some seconds and say what limits it.

    The loader and the random states are left as they were, workers are ended.
    The dataset is called in this process, and what it changes in itself there
    stays changed.

    Args:
        loader: any DataLoader.
        step: what the training loop does with a batch; it is run on dozens of
            real batches. Default: nothing.
        budget_s: seconds to spend, roughly.
        keep: model, optimizer, scheduler: restored to their state of now.
        in_process: False never calls the dataset in this process.
        threads: intra-op threads of this process meanwhile; default those it has.

    Raises:
        TypeError: not a DataLoader, or something in ``keep`` has no state.
        ValueError: ``budget_s`` is not above 0, or the loader yields no batch.
        SampleError: the dataset raised; the message names the sample.
        StreamEnded: an iterable dataset is too short for the probes.
    """
    copies.require_loader(loader)
    if budget_s <= 0:
        raise ValueError(f"budget_s must be above 0, got {budget_s}")
    threads = torch.get_num_threads() if threads is None else threads
    with restored(keep), quiet_conditions(loader, threads):
        return _Examination(loader, step, budget_s, in_process).run()


@dataclass
class _Examination:
    loader: DataLoader
    step: Callable[[object], object] | None
    budget_s: float
    in_process: bool

    def run(self) -> Diagnosis:
        self.began = time.perf_counter()
        self.notes: list[str] = []
        if self.step is None:
            self.notes.append("no step was given: the loop does nothing but load")
        self.current = variants.current(self.loader)
        self.cores = machine.usable_cores()
        seen = self._probe()
        summary = self._record(seen.later)
        return Diagnosis(
            current=self.current,
            cores=self.cores,
            samples=seen.samples,
            parts=_parts(seen, summary),
            costs=seen.later,
            seconds=summary.seconds if summary else None,
            wait_share=summary.wait_share if summary else None,
            start_up_s=summary.start_up_s if summary else None,
            forecasts=self._forecasts(seen.later, summary),
            duplicated=streams.duplicated(self.loader),
            notes=tuple(self.notes),
        )

    def _probe(self) -> Probes:
        # A fifteenth of the budget per window, as recommend() does.
        window = min(0.8, self.budget_s / 15)
        plan = probes.Plan(window, 0.7 * self.budget_s, in_process=self.in_process)
        try:
            seen = probes.probe(self.loader, self.step, plan)
        except BudgetTooShort as short:
            self.notes.append(
                f"the budget is short: the probes need about {short.needed_s:.0f} s, "
                "so the predictions come from the first batches only"
            )
            return short.probes
        if seen.disturbed:
            self.notes.append("other programs disturbed the probes")
        if seen.epochs_differ:
            self.notes.append(
                f"reading for the first time takes {seen.first.fetch:.3g} s per batch, "
                f"later {seen.later.fetch:.3g} s; all this is about later"
            )
        return seen

    def _record(self, costs: BatchCosts) -> Summary | None:
        """The loop with the current setting; None if it may not run here."""
        if not self.current.workers and not self.in_process:
            self.notes.append("the loop itself was not run: it has no workers")
            return None
        wanted = self._batches(costs.predict(self.current.workers, self.cores).seconds)
        length = epoch_batches(self.loader)
        epochs = math.ceil(wanted / length) if length else 1
        recorded = timeline.record(
            self.loader, self.step, batches=wanted, epochs=epochs
        )
        summary = recorded.summary()
        if not summary.steady:
            self.notes.append(
                "the loop did not get to its steady period: it looks faster than it is"
            )
        return summary

    def _batches(self, seconds: float) -> int:
        """As many batches as the rest of the budget holds, within reason."""
        left = self.budget_s - (time.perf_counter() - self.began)
        least = copies.drain_batches(self.loader) + _LEAST
        affordable = int(max(left, 0.0) / 2 / seconds)
        return max(min(affordable, least + _MOST), min(least, 2 * max(affordable, 2)))

    def _forecasts(
        self, costs: BatchCosts, summary: Summary | None
    ) -> tuple[Forecast, ...]:
        error = 0.0
        now = costs.predict(self.current.workers, self.cores).seconds
        if summary is not None and summary.steady and summary.seconds:
            error = max(now / summary.seconds, summary.seconds / now) - 1
            self.notes.append(
                f"the model predicts {self.current} within {error:.0%}; the bands are "
                "the larger of that and what it missed other work by (13 %, and 29 % "
                "with more workers than cores)"
            )
        counts = {setting.workers for setting in [*grid.grid(self.cores), self.current]}
        return tuple(
            self._forecast(costs, workers, error) for workers in sorted(counts)
        )

    def _forecast(self, costs: BatchCosts, workers: int, error: float) -> Forecast:
        prediction = costs.predict(workers, self.cores)
        low, high = costs.band(workers, self.cores, error)
        return Forecast(workers, prediction.seconds, low, high, prediction.bottleneck)


def _parts(seen: Probes, summary: Summary | None) -> dict[str, float]:
    """Seconds per batch in each stage; fetching split into computing and waiting.

    Waiting is what one process alone did not compute. With more workers than
    cores a worker also waits for a core: that counts as computing here.
    """
    stages = dict(summary.stages) if summary else {"fetch": seen.later.fetch}
    fetch = stages.pop("fetch", 0.0)
    waiting = min(fetch, seen.waiting * seen.later.fetch)
    if waiting < _NOTICEABLE * fetch:  # the clocks are not finer
        waiting = 0.0
    for name in ("ready", "wait"):  # of the loop, not of the batch
        stages.pop(name, None)
    parts = {"fetch, computing": fetch - waiting, "fetch, waiting": waiting, **stages}
    if summary is None and seen.later.step:
        parts["step"] = seen.later.step
    return parts
