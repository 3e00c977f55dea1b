"""The record of a machine: whole epochs by number of workers and pinned memory.

This is the table that tutorials print for a machine of their own. It times
whole epochs, start-up included, so it answers "how long does my epoch take",
not "what is the steady rate" (that is :mod:`helpers.measure.timing`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd
import torch
from torch.utils.data import DataLoader

from helpers import machine
from helpers.measure import memory
from helpers.measure.comparison import Comparison
from helpers.measure.intervals import Estimate, median_estimate
from helpers.measure.timing import compare_calls

#: A setting this close to the best epoch is as good, if it is cheaper.
SWEET_SPOT = 0.05


@dataclass(frozen=True)
class Setting:
    """One row of the record: a number of workers, with or without pinning."""

    workers: int
    pin_memory: bool

    def __str__(self) -> str:
        return f"{self.workers} workers" + (", pinned" if self.pin_memory else "")


@dataclass(frozen=True)
class Epoch:
    """What a whole epoch costs with one setting.

    ``seconds`` with its interval; ``cpu_share`` of the usable cores, 0 to 1;
    ``peak_bytes`` of the whole process tree, shared pages counted once.
    """

    seconds: Estimate
    cpu_share: float
    peak_bytes: int


@dataclass(frozen=True, repr=False)
class EpochRecord:
    """Seconds per epoch, CPU use and memory for every setting that was tried."""

    epochs: dict[Setting, Epoch]
    comparison: Comparison

    @property
    def best(self) -> Setting:
        """The setting with the shortest epoch."""
        return min(self.epochs, key=lambda setting: self._seconds(setting))

    @property
    def sweet_spot(self) -> Setting:
        """The cheapest setting within 5 % of the shortest epoch.

        Cheapest means fewest workers, and not pinned where that is enough.
        """
        bound = self._seconds(self.best) * (1 + SWEET_SPOT)
        close = [s for s in self.epochs if self._seconds(s) <= bound]
        return min(close, key=lambda setting: (setting.workers, setting.pin_memory))

    @property
    def frame(self) -> pd.DataFrame:
        """One row per setting: epoch_s, low_s, high_s, cpu_share, peak_mib."""
        return pd.DataFrame(
            {
                str(setting): {
                    "epoch_s": epoch.seconds.value,
                    "low_s": epoch.seconds.low,
                    "high_s": epoch.seconds.high,
                    "cpu_share": epoch.cpu_share,
                    "peak_mib": epoch.peak_bytes / memory.MIB,
                }
                for setting, epoch in self.epochs.items()
            }
        ).T

    def _seconds(self, setting: Setting) -> float:
        return self.epochs[setting].seconds.value

    def _table(self) -> pd.DataFrame:
        rows = {
            str(setting): {
                "seconds per epoch": f"{epoch.seconds.value:.2f} "
                f"({epoch.seconds.low:.2f} to {epoch.seconds.high:.2f})",
                "CPU in use": f"{epoch.cpu_share:.0%}",
                "peak memory": f"{epoch.peak_bytes / memory.MIB:,.0f} MiB",
                "": "sweet spot" if setting == self.sweet_spot else "",
            }
            for setting, epoch in self.epochs.items()
        }
        return pd.DataFrame(rows).T

    def _caption(self) -> str:
        return (
            f"{self.comparison.caption()}; CPU of {machine.usable_cores():g} usable "
            f"cores; memory is {memory.kind()} of all processes"
        )

    def __repr__(self) -> str:
        return f"{self._table().to_string()}\n{self._caption()}"

    def _repr_html_(self) -> str:
        return f"{self._table().to_html()}<p>{self._caption()}</p>"


def record(
    make: Callable[[int, bool], DataLoader],
    workers: Sequence[int] | None = None,
    step: Callable[[object], object] | None = None,
    rounds: int = 4,
    budget_s: float = 60.0,
) -> EpochRecord:
    """Time and weigh whole epochs for every number of workers, pinned and not.

    Args:
        make: makes the loader from (num_workers, pin_memory).
        workers: the numbers to try; default as :func:`helpers.machine.worker_counts`.
        step: what the training loop does with a batch; default nothing.
        rounds: how often each epoch is timed, at least once.
        budget_s: no round is begun that would not fit.

    Pinning is tried only where there is an accelerator: elsewhere it does
    nothing.

    Raises:
        ValueError: no numbers of workers.
        TypeError: ``make`` does not make a DataLoader.
    """
    counts = machine.worker_counts() if workers is None else workers
    pinned = [False, True] if torch.accelerator.is_available() else [False]
    settings = [Setting(count, pin) for count in counts for pin in pinned]

    def run(setting: Setting) -> None:
        for batch in make(setting.workers, setting.pin_memory):
            if step is not None:
                step(batch)

    runs = {str(setting): partial(run, setting) for setting in settings}
    # Weighed first, so that the files are in the page cache when the clock runs.
    peaks = {s: memory.peak(partial(run, s)).tree_bytes for s in settings}
    comparison = compare_calls(
        runs, rounds=rounds, window_s=0, warm_up=False, budget_s=budget_s, retries=1
    )
    epochs = {s: _epoch(comparison, str(s), peaks[s]) for s in settings}
    return EpochRecord(epochs, comparison)


def _epoch(comparison: Comparison, name: str, peak_bytes: int) -> Epoch:
    rows = comparison.frame[comparison.frame["variant"] == name]
    return Epoch(
        median_estimate(rows["seconds"]),
        float(rows["own_cores"].median() / machine.usable_cores()),
        peak_bytes,
    )
