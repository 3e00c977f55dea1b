"""Comparing variants honestly: blocks in random order, a guard, an interval.

``compare`` times DataLoaders, ``compare_calls`` times plain functions. Both run
every variant once per round in a random order, repeat a window in which
somebody else used the cores, and compare variants only within rounds.
"""

import contextlib
import gc
import itertools
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field

import numpy as np
import pandas as pd
import torch
from torch.utils.data import DataLoader, IterableDataset
from tqdm import tqdm

from helpers.measure import copies
from helpers.measure.intervals import (
    Estimate,
    Ratio,
    median_estimate,
    paired_ratio,
)
from helpers.measure.load import Load, LoadMeter

#: What a comparison can be asked about: column of the frame -> meaning.
QUANTITIES = {
    "rate": "samples per second, steady period",
    "start_up_s": "seconds from iter(loader) to the first batch",
    "wait_p95_s": "95th percentile of the wait for a batch, seconds",
    "wait_share": "share of the steady period spent waiting for batches",
}


@dataclass(frozen=True)
class Window:
    """One timed stretch of one variant. Times in seconds."""

    seconds: float
    samples: int
    batches: int
    start_up_s: float
    wait_p95_s: float
    wait_share: float
    load: Load


@dataclass(frozen=True)
class Protocol:
    """How often and how carefully every variant is timed; see :func:`compare`."""

    rounds: int
    precision: float | None
    retries: int
    budget_s: float
    threads: int
    seed: int

    def __post_init__(self) -> None:
        _require("rounds", self.rounds, 1)
        _require("retries", self.retries, 0)
        _require("threads", self.threads, 1)


@dataclass(frozen=True, repr=False)
class Comparison:
    """The result of timing several variants against each other.

    ``frame`` has one row per variant and round: variant, round, seconds,
    samples, batches, rate (samples/s), start_up_s, wait_p95_s, wait_share,
    own_cores, main_cores, foreign_cores, accepted, attempts, spent_s.
    """

    frame: pd.DataFrame
    threads: int
    unit: str = "samples/s"
    notes: tuple[str, ...] = field(default=())

    @property
    def variants(self) -> list[str]:
        """Names in the order they were given."""
        return list(self.frame["variant"].cat.categories)

    @property
    def rounds(self) -> int:
        """Complete rounds that were run."""
        return int(self.frame["round"].nunique())

    @property
    def rejected_share(self) -> float:
        """Share of the kept windows that foreign load disturbed."""
        return float(1 - self.frame["accepted"].mean())

    @property
    def guarded(self) -> bool:
        """The system told how much CPU others used."""
        return bool(self.frame["foreign_cores"].notna().all())

    def values(self, variant: str, quantity: str = "rate") -> np.ndarray:
        """One value per round, in round order.

        Raises:
            KeyError: no such variant or quantity.
        """
        if variant not in self.variants:
            raise KeyError(f"no variant {variant!r}; there are {self.variants}")
        if quantity not in QUANTITIES:
            raise KeyError(f"no quantity {quantity!r}; there are {list(QUANTITIES)}")
        rows = self.frame[self.frame["variant"] == variant]
        return rows.sort_values("round")[quantity].to_numpy()

    def ratio(
        self, variant: str, reference: str | None = None, quantity: str = "rate"
    ) -> Ratio:
        """``variant`` divided by ``reference`` (default: the first variant)."""
        reference = self.variants[0] if reference is None else reference
        rows = self.frame[self.frame["variant"].isin([variant, reference])]
        return paired_ratio(
            self.values(variant, quantity),
            self.values(reference, quantity),
            trusted=bool(rows["accepted"].mean() >= 0.5),
        )

    def estimate(self, variant: str, quantity: str = "rate") -> Estimate:
        """Median over the rounds with its 95 % interval."""
        return median_estimate(self.values(variant, quantity))

    def summary(self, quantity: str = "rate") -> pd.DataFrame:
        """Median and 95 % interval per variant, and its ratio to the first."""
        rows = []
        for variant in self.variants:
            middle = self.estimate(variant, quantity)
            ratio = self.ratio(variant, quantity=quantity)
            first = variant == self.variants[0]
            rows.append(
                {
                    "variant": variant,
                    "median": middle.value,
                    "low": middle.low,
                    "high": middle.high,
                    "ratio": 1.0 if first else ratio.value,
                    "ratio_low": 1.0 if first else ratio.low,
                    "ratio_high": 1.0 if first else ratio.high,
                    "verdict": "the reference" if first else ratio.verdict,
                }
            )
        return pd.DataFrame(rows).set_index("variant")

    def caption(self) -> str:
        """How it was measured, in one line."""
        guard = (
            f"{self.rejected_share:.0%} of windows disturbed by other programs"
            if self.guarded
            else "unguarded: this system does not tell the load of other programs"
        )
        parts = [
            f"{self.rounds} rounds in random order",
            f"main process on {self.threads} thread(s)",
            guard,
            *self.notes,
        ]
        return "; ".join(parts)

    def _table(self) -> pd.DataFrame:
        summary = self.summary()
        return pd.DataFrame(
            {
                self.unit: [
                    f"{row['median']:,.4g} ({row['low']:,.4g} to {row['high']:,.4g})"
                    for _, row in summary.iterrows()
                ],
                f"against {self.variants[0]}": [
                    f"{row['ratio']:.2f} ({row['ratio_low']:.2f} to "
                    f"{row['ratio_high']:.2f})"
                    for _, row in summary.iterrows()
                ],
                "verdict": summary["verdict"].to_list(),
            },
            index=summary.index,
        )

    def __repr__(self) -> str:
        return f"{self._table().to_string()}\n{self.caption()}"

    def _repr_html_(self) -> str:
        return f"{self._table().to_html()}<p>{self.caption()}</p>"


def compare(
    variants: Mapping[str, Callable[[], DataLoader]],
    *,
    step: Callable[[object], object] | None = None,
    rounds: int = 6,
    window_s: float = 0.8,
    min_batches: int = 8,
    precision: float | None = None,
    retries: int = 6,
    budget_s: float = 60.0,
    threads: int = 1,
    seed: int = 0,
) -> Comparison:
    """Time loaders against each other.

    Every window builds a fresh loader, notes its start-up, consumes batches
    until the prefetch queue has drained to its steady level, and then times at
    least ``min_batches`` batches and ``window_s`` seconds. A map-style dataset
    that is too short is read again from its start.

    Args:
        variants: name -> function of no arguments that makes a DataLoader.
        step: what the training loop does with a batch; default nothing.
        rounds: how often every variant is timed, at least.
        precision: go on until half the width of every interval is at most this
            share of the ratio, or the budget is spent; None stops at ``rounds``.
        window_s: seconds of steady period per window.
        min_batches: at least so many batches per window.
        retries: how often a window disturbed by other programs is repeated.
        budget_s: no new round or retry is begun that would not fit; the first
            round always runs.
        threads: intra-op threads of the main process while timing.
        seed: of the order of variants.

    Raises:
        ValueError: no variants, or a setting out of range (it is named).
        TypeError: a variant does not make a DataLoader.
        RuntimeError: a stream ends before the steady period.
    """

    _require("min_batches", min_batches, 1)
    _require("window_s", window_s, 0)

    def window(make: Callable[[], DataLoader]) -> Window:
        return loader_window(make(), step or _ignore, window_s, min_batches)

    protocol = Protocol(rounds, precision, retries, budget_s, threads, seed)
    return _run_rounds(variants, window, protocol)


def compare_calls(
    variants: Mapping[str, Callable[[], object]],
    *,
    samples: int = 1,
    rounds: int = 6,
    window_s: float = 0.8,
    warm_up: bool = True,
    precision: float | None = None,
    retries: int = 6,
    budget_s: float = 60.0,
    threads: int = 1,
    seed: int = 0,
) -> Comparison:
    """Time functions against each other; arguments as in :func:`compare`.

    Args:
        variants: name -> function of no arguments.
        samples: what one call counts for, so that ``rate`` is samples/s.
        window_s: a function is called again until this much time has passed;
            0 times a single call.
        warm_up: call once before the window opens, untimed.
    """

    _require("samples", samples, 1)
    _require("window_s", window_s, 0)

    def window(call: Callable[[], object]) -> Window:
        return _call_window(call, samples, window_s, warm_up)

    protocol = Protocol(rounds, precision, retries, budget_s, threads, seed)
    return _run_rounds(variants, window, protocol)


def _run_rounds(
    variants: Mapping[str, Callable],
    window: Callable[[Callable], Window],
    protocol: Protocol,
) -> Comparison:
    if not variants:
        raise ValueError("nothing to compare: variants is empty")
    order, rows, note = random.Random(protocol.seed), [], None
    began, windows = time.perf_counter(), protocol.rounds * len(variants)
    with steady_conditions(protocol.threads), _progress(windows) as bar:
        for number in itertools.count():
            elapsed = time.perf_counter() - began
            if _precise_enough(rows, number, variants, protocol):
                break
            if number and elapsed + _undisturbed_round_s(rows) > protocol.budget_s:
                note = f"stopped at the budget of {protocol.budget_s:g} s"
                break
            bar.total = max(windows, (number + 1) * len(variants))
            # Retries may use the time set aside for the rounds so far, no more.
            share = min(1.0, (number + 1) / protocol.rounds)
            for name in order.sample(list(variants), len(variants)):
                rows.append(
                    _timed_row(
                        lambda make=variants[name]: window(make),
                        {"variant": name, "round": number},
                        protocol.retries,
                        began + protocol.budget_s * share,
                    )
                )
                bar.update()
    return _comparison(rows, variants, protocol, note)


def _undisturbed_round_s(rows: list[dict]) -> float:
    """Seconds that a round takes without retries, by the quickest of each variant."""
    seconds: dict[str, float] = {}
    for row in rows:
        one = row["spent_s"] / row["attempts"]
        seconds[row["variant"]] = min(one, seconds.get(row["variant"], one))
    return sum(seconds.values())


def _precise_enough(
    rows: list[dict], number: int, variants: Mapping[str, Callable], protocol: Protocol
) -> bool:
    """Enough rounds are done, and every ratio is as narrow as was asked for."""
    if number < protocol.rounds:
        return False
    if protocol.precision is None or len(variants) == 1:
        return True
    seen = _comparison(rows, variants, protocol, None)
    first, *others = seen.variants
    ratios = [seen.ratio(name, first) for name in others]
    widest = max((ratio.high - ratio.low) / 2 / ratio.value for ratio in ratios)
    return widest <= protocol.precision


def _comparison(
    rows: list[dict],
    variants: Mapping[str, Callable],
    protocol: Protocol,
    note: str | None,
) -> Comparison:
    frame = pd.DataFrame(rows)
    frame["variant"] = pd.Categorical(frame["variant"], categories=list(variants))
    return Comparison(frame, protocol.threads, notes=(note,) if note else ())


def _undisturbed(
    measure: Callable[[], Window], retries: int, deadline: float
) -> tuple[Window, int]:
    """The first window the guard accepts, else the least disturbed one."""
    best, attempts = measure(), 1
    while not best.load.accepted and attempts <= retries:
        if time.perf_counter() > deadline:
            break
        again = measure()
        attempts += 1
        if again.load.foreign_cores < best.load.foreign_cores:
            best = again
    return best, attempts


def _timed_row(
    measure: Callable[[], Window], names: dict, retries: int, deadline: float
) -> dict:
    """One row of the frame; ``spent_s`` holds start-up, drain and retries too."""
    began = time.perf_counter()
    window, attempts = _undisturbed(measure, retries, deadline)
    values = asdict(window)
    load = values.pop("load")
    return {
        **names,
        **values,
        "rate": window.samples / window.seconds,
        "own_cores": load["own_cores"],
        "main_cores": load["main_cores"],
        "foreign_cores": load["foreign_cores"],
        "accepted": window.load.accepted,
        "attempts": attempts,
        "spent_s": time.perf_counter() - began,
    }


def loader_window(
    loader: DataLoader,
    step: Callable[[object], object],
    window_s: float = 0.8,
    min_batches: int = 8,
) -> Window:
    """One window of a fresh loader: start, drain, steady period, end.

    Arguments and errors as in :func:`compare`.
    """
    copies.require_loader(loader)
    if isinstance(loader.dataset, IterableDataset):
        source, sampler = loader, None
    else:
        source, sampler = copies.endless(loader)
    began = time.perf_counter()
    iterator = iter(source)
    try:
        batch = _next(iterator, 0)
        start_up = time.perf_counter() - began
        step(batch)
        drain = copies.drain_batches(loader)
        for number in range(drain):
            step(_next(iterator, number + 1))
        waits, seconds, load = _steady(
            iterator, step, window_s, min_batches, loader.num_workers, drain + 1
        )
    finally:
        copies.close(iterator)
    batches = len(waits)
    sizes = (
        sampler.sizes if sampler else [loader.batch_size or 1] * (drain + 1 + batches)
    )
    samples = sum(sizes[drain + 1 : drain + 1 + batches])
    return Window(
        seconds=seconds,
        samples=samples,
        batches=batches,
        start_up_s=start_up,
        wait_p95_s=float(np.quantile(waits, 0.95)),
        wait_share=sum(waits) / seconds,
        load=load,
    )


def _steady(
    iterator: Iterator,
    step: Callable,
    window_s: float,
    min_batches: int,
    workers: int,
    already: int,
) -> tuple[list[float], float, Load]:
    """Waits for each batch, seconds, and load of the steady period."""
    waits: list[float] = []
    meter = LoadMeter().start()
    began = now = time.perf_counter()
    # Batches come in waves of one per worker: whole waves keep the end of the
    # window in the same phase as its beginning.
    while (
        now - began < window_s
        or len(waits) < min_batches
        or len(waits) % max(workers, 1)
    ):
        asked = now
        batch = _next(iterator, already + len(waits))
        waits.append(time.perf_counter() - asked)
        step(batch)
        now = time.perf_counter()
    return waits, now - began, meter.stop()


def _next(iterator: Iterator, batches: int) -> object:
    try:
        return next(iterator)
    except StopIteration:
        raise RuntimeError(
            f"the stream ends after {batches} batches: no steady state to "
            "measure; use a longer stream or smaller batches"
        ) from None


def _call_window(
    call: Callable[[], object], samples: int, window_s: float, warm_up: bool
) -> Window:
    if warm_up:
        call()
    durations: list[float] = []
    meter = LoadMeter().start()
    began = now = time.perf_counter()
    while not durations or now - began < window_s:
        asked = now
        call()
        now = time.perf_counter()
        durations.append(now - asked)
    return Window(
        seconds=now - began,
        samples=len(durations) * samples,
        batches=len(durations),
        start_up_s=np.nan,
        wait_p95_s=float(np.quantile(durations, 0.95)),
        wait_share=np.nan,
        load=meter.stop(),
    )


@contextlib.contextmanager
def steady_conditions(threads: int = 1) -> Iterator[None]:
    """Hold still what would disturb a timing, and put it back afterwards.

    Sets the intra-op threads of the main process, keeps the garbage collector
    from running, and restores the global random states: every new loader
    iterator draws from torch's.
    """
    threads_before, collecting = torch.get_num_threads(), gc.isenabled()
    with copies.preserved_random_state():
        torch.set_num_threads(threads)
        gc.collect()
        gc.freeze()
        gc.disable()
        try:
            yield
        finally:
            gc.unfreeze()
            if collecting:
                gc.enable()
            torch.set_num_threads(threads_before)


def _progress(total: int) -> tqdm:
    return tqdm(total=total, desc="timing", unit="window", leave=False, disable=None)


def _require(name: str, value: float, least: float) -> None:
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")


def _ignore(batch: object) -> None:
    """The step of a training loop that does nothing."""
