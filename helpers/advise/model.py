"""The throughput model: three probes predict every number of workers.

With, per batch, W the wall time of one worker, K the CPU seconds of all
processes, m the main process's own CPU seconds, S the wall time of the step,
S_cpu its CPU part, and C usable cores::

    T(0)      = fetch in the main process + S
    T(w >= 1) = max(W / w,  (K + S_cpu) / C,  S + m)

The largest term is the bottleneck: the workers, the cores, or the consumer.
It is the utilisation law of queueing theory for a closed system with one job
per batch (P. J. Denning and J. P. Buzen, "The Operational Analysis of Queueing
Network Models", ACM Computing Surveys 10 (1978)).
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from torch.utils.data import DataLoader

from helpers import machine
from helpers.measure.timing import steady_conditions
from helpers.measure.windows import Window, calmest, loader_window

WORKERS, CORES, CONSUMER = "workers", "cores", "consumer"
IN_TURN = "loading and computing in turn"

Step = Callable[[object], object]


@dataclass(frozen=True)
class Prediction:
    """Predicted seconds per batch, and the term that set them."""

    workers: int
    seconds: float
    bottleneck: str


@dataclass(frozen=True)
class BatchCosts:
    """What one batch costs, in seconds. Names as in the module's formula."""

    fetch: float
    worker: float
    cpu: float
    main: float
    step: float
    step_cpu: float

    def predict(self, workers: int, cores: float | None = None) -> Prediction:
        """Seconds per batch with so many workers.

        Args:
            workers: 0 or more.
            cores: usable cores; default those of this machine.

        Raises:
            ValueError: ``workers`` is negative.
        """
        if workers < 0:
            raise ValueError(f"workers must be 0 or more, got {workers}")
        if workers == 0:
            return Prediction(0, self.fetch + self.step, IN_TURN)
        terms = self.terms(workers, cores)
        bottleneck = max(terms, key=terms.get)
        return Prediction(workers, terms[bottleneck], bottleneck)

    def terms(self, workers: int, cores: float | None = None) -> dict[str, float]:
        """The three terms for ``workers`` >= 1, in seconds per batch."""
        cores = machine.usable_cores() if cores is None else cores
        return {
            WORKERS: self.worker / workers,
            CORES: (self.cpu + self.step_cpu) / cores,
            CONSUMER: self.step + self.main,
        }

    def workers_needed(self, cores: float | None = None) -> int:
        """Fewest workers after which more bring nothing."""
        terms = self.terms(1, cores)
        return math.ceil(terms[WORKERS] / max(terms[CORES], terms[CONSUMER]))


def probe(
    make: Callable[[int], DataLoader],
    step: Step | None = None,
    window_s: float = 0.8,
    retries: int = 3,
) -> BatchCosts:
    """Measure the costs of one batch with three short windows.

    Args:
        make: makes the loader with the given number of workers.
        step: what the training loop does with a batch; default nothing.
        window_s: seconds per window.
        retries: repeats of a window that other programs disturbed.
    """

    def window(workers: int) -> Window:
        return calmest(
            lambda: loader_window(make(workers), lambda _: None, window_s), retries
        )

    with steady_conditions():
        alone, one = window(0), window(1)
        seconds, cpu = (0.0, 0.0) if step is None else _replay(make, step, window_s)
    period = one.seconds / one.batches
    return BatchCosts(
        fetch=alone.seconds / alone.batches,
        worker=period,
        cpu=one.load.own_cores * period,
        main=one.load.main_cores * period,
        step=seconds,
        step_cpu=cpu,
    )


def _replay(
    make: Callable[[int], DataLoader], step: Step, window_s: float
) -> tuple[float, float]:
    """Wall and CPU seconds of the step, on one batch again and again."""
    batch = next(iter(make(0)))
    step(batch)
    calls, began, cpu = 0, time.perf_counter(), time.process_time()
    while calls < 3 or time.perf_counter() - began < window_s:
        step(batch)
        calls += 1
    return (
        (time.perf_counter() - began) / calls,
        (time.process_time() - cpu) / calls,
    )
