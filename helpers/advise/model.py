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
from collections.abc import Callable
from dataclasses import dataclass

from torch.utils.data import DataLoader

from helpers import machine
from helpers.advise.replay import NO_STEP, Step, StepCost, ignore, replay, waited
from helpers.measure.timing import steady_conditions
from helpers.measure.windows import Window, calmest, loader_window

WORKERS, CORES, CONSUMER = "workers", "cores", "consumer"
IN_TURN = "loading and computing in turn"

#: Nine of ten predictions were this close. Seen, like the next, on 25 settings of
#: real work on a virtual machine with two cores; ``python -m
#: benchmarks.instruments`` prints the model's error on yours.
ERROR = 0.13

#: With more workers than cores the model is optimistic: a batch took up to this
#: much longer than predicted.
ERROR_BEYOND_CORES = 0.29


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

    @classmethod
    def measured(cls, alone: Window, one: Window, step: StepCost) -> "BatchCosts":
        """From the three probes.

        Args:
            alone: a loader with 0 workers and no step.
            one: a loader with 1 worker and no step.
            step: the step on its own.
        """
        period = one.seconds / one.batches
        return cls(
            fetch=alone.seconds / alone.batches,
            worker=period,
            cpu=one.load.own_cores * period,
            main=one.load.main_cores * period,
            step=step.wall,
            step_cpu=step.cpu,
        )

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

    def band(
        self, workers: int, cores: float | None = None, error: float = 0.0
    ) -> tuple[float, float]:
        """Seconds per batch between which the truth should lie in 9 of 10 cases.

        Args:
            workers: 0 or more.
            cores: usable cores; default those of this machine.
            error: of this model on this loader, if it is known to be larger than
                :data:`ERROR`.
        """
        cores = machine.usable_cores() if cores is None else cores
        seconds = self.predict(workers, cores).seconds
        error = max(error, ERROR)
        slower = max(error, ERROR_BEYOND_CORES) if workers > cores else error
        return seconds / (1 + error), seconds * (1 + slower)

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
        return calmest(lambda: loader_window(make(workers), ignore, window_s), retries)

    with steady_conditions():
        alone, one, cost = window(0), window(1), NO_STEP
        if step is not None:
            batch = next(iter(make(0)))
            cost = replay(batch, waited(step), window_s, retries)
    return BatchCosts.measured(alone, one, cost)
