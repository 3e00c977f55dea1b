"""Comparing variants honestly: blocks in random order, a guard, an interval.

``compare`` times DataLoaders, ``compare_calls`` times plain functions. In every
round each variant is started afresh; then the variants take turns in slices of
a fraction of a second, in random order, and are compared only within the round.
A slice in which somebody else used the cores is replaced.
"""

import contextlib
import gc
import itertools
import math
import random
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import asdict, dataclass

import pandas as pd
import torch
from torch.utils.data import DataLoader
from tqdm import tqdm

from helpers.measure import copies
from helpers.measure.comparison import Comparison
from helpers.measure.load import Load
from helpers.measure.windows import CallRun, LoaderRun, Run, Slice, Window

#: Variants take turns this often, so that what slows the machine slows them alike;
#: below 0.1 s the clock ticks of the guard are too coarse.
SLICE_S = 0.1


@dataclass(frozen=True)
class Plan:
    """How often and how carefully every variant is timed; see :func:`compare`."""

    rounds: int
    window_s: float
    min_batches: int
    precision: float | None
    retries: int
    budget_s: float
    threads: int
    seed: int

    def __post_init__(self) -> None:
        _require("rounds", self.rounds, 1)
        _require("window_s", self.window_s, 0)
        _require("min_batches", self.min_batches, 1)
        _require("retries", self.retries, 0)
        _require("threads", self.threads, 1)

    @property
    def slices(self) -> int:
        """Slices in a window."""
        return max(1, round(self.window_s / SLICE_S))

    def filled(self, slices: list[Slice]) -> bool:
        """Slow batches made the slices longer: fewer fill the window."""
        seconds = sum(piece.seconds for piece in slices)
        batches = sum(len(piece.waits) for piece in slices)
        return bool(slices) and seconds >= self.window_s and batches >= self.min_batches


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

    Every round builds fresh loaders, notes their start-up, consumes batches
    until the prefetch queue has drained to its steady level, and then times at
    least ``min_batches`` batches and ``window_s`` seconds of each, in slices by
    turns; the workers of those whose turn it is not are stopped. A map-style
    dataset that is too short is read again from its start.

    Args:
        variants: name -> function of no arguments that makes a DataLoader.
        step: what the training loop does with a batch; default nothing.
        rounds: how often every variant is timed, at least.
        precision: go on until half the width of every interval is at most this
            share of the ratio, or the budget is spent; None stops at ``rounds``.
        window_s: seconds of steady period per round and variant.
        min_batches: at least so many batches per round and variant.
        retries: how many slices disturbed by other programs are replaced, per
            round and variant.
        budget_s: no new round or retry is begun that would not fit; the first
            round always runs.
        threads: intra-op threads of the main process while timing.
        seed: of the order of variants.

    Raises:
        ValueError: no variants, or a setting out of range (it is named).
        TypeError: a variant does not make a DataLoader.
        RuntimeError: a stream ends before the steady period.
    """

    def start(make: Callable[[], DataLoader]) -> LoaderRun:
        return LoaderRun(make(), step or _ignore)

    plan = Plan(
        rounds, window_s, min_batches, precision, retries, budget_s, threads, seed
    )
    return _run_rounds(variants, start, plan)


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

    def start(call: Callable[[], object]) -> CallRun:
        return CallRun(call, samples, warm_up)

    plan = Plan(rounds, window_s, 1, precision, retries, budget_s, threads, seed)
    return _run_rounds(variants, start, plan)


def _run_rounds(
    variants: Mapping[str, Callable], start: Callable[[Callable], Run], plan: Plan
) -> Comparison:
    if not variants:
        raise ValueError("nothing to compare: variants is empty")
    order, rows, note = random.Random(plan.seed), [], None
    began, quickest = time.perf_counter(), math.inf
    with steady_conditions(plan.threads), _progress(plan.rounds) as bar:
        for number in itertools.count():
            if _precise_enough(rows, number, variants, plan):
                break
            round_began = time.perf_counter()
            if number and round_began - began + quickest > plan.budget_s:
                note = f"stopped at the budget of {plan.budget_s:g} s"
                break
            bar.total = max(plan.rounds, number + 1)
            # Retries may use the time set aside for the rounds so far, no more.
            share = min(1.0, (number + 1) / plan.rounds)
            deadline = began + plan.budget_s * share
            windows = one_round(variants, start, plan, order, deadline)
            rows += [
                {"variant": name, "round": number, **window}
                for name, window in windows.items()
            ]
            quickest = min(quickest, time.perf_counter() - round_began)
            bar.update()
    return _comparison(rows, variants, plan, note)


def one_round(
    variants: Mapping[Hashable, Callable],
    start: Callable[[Callable], Run],
    plan: Plan,
    order: random.Random,
    deadline: float,
) -> dict[Hashable, dict]:
    """Start every variant, let them take turns, and end them.

    Args:
        variants: name -> what ``start`` makes a run of.
        start: starts a run.
        plan: how long and how carefully.
        order: of starts and turns.
        deadline: no disturbed slice is replaced after this time of
            ``time.perf_counter``.

    Returns:
        For each name the columns of :class:`.Comparison`.
    """
    seconds = plan.window_s / plan.slices
    batches = math.ceil(plan.min_batches / plan.slices)
    names, runs = list(variants), {}
    with contextlib.ExitStack() as ends:
        for name in order.sample(names, len(names)):
            runs[name] = start(variants[name])
            ends.callback(runs[name].close)
        slices: dict[str, list[Slice]] = {name: [] for name in names}
        for _ in range(plan.slices):
            for name in order.sample(names, len(names)):
                if not plan.filled(slices[name]):
                    slices[name].append(runs[name].slice(seconds, batches))
        replaced = {
            name: replace_disturbed(
                slices[name],
                lambda run=runs[name]: run.slice(seconds, batches),
                plan.retries,
                deadline,
            )
            for name in order.sample(names, len(names))
        }
        return {
            name: _values(runs[name].window(slices[name]), replaced[name])
            for name in names
        }


def replace_disturbed(
    slices: list[Slice],
    take: Callable[[], Slice],
    retries: int,
    deadline: float = math.inf,
) -> int:
    """Replace the most disturbed slice until the guard accepts them together.

    Args:
        slices: changed in place.
        take: times one more slice.
        retries: how often, at most.
        deadline: no more after this time of ``time.perf_counter``.

    Returns:
        Slices taken in addition.
    """
    for taken in range(retries):
        together = Load.together([piece.load for piece in slices])
        if together.accepted or time.perf_counter() > deadline:
            return taken
        slices.append(take())
        slices.remove(max(slices, key=lambda piece: piece.load.foreign_cores))
    return retries


def _values(window: Window, replaced: int) -> dict:
    """The columns of the frame."""
    values = asdict(window)
    del values["load"]
    return {
        **values,
        "rate": window.samples / window.seconds,
        "own_cores": window.load.own_cores,
        "main_cores": window.load.main_cores,
        "foreign_cores": window.load.foreign_cores,
        "accepted": window.load.accepted,
        "replaced": replaced,
    }


def _precise_enough(
    rows: list[dict], number: int, variants: Mapping[str, Callable], plan: Plan
) -> bool:
    """Enough rounds are done, and every ratio is as narrow as was asked for."""
    if number < plan.rounds:
        return False
    if plan.precision is None or len(variants) == 1:
        return True
    seen = _comparison(rows, variants, plan, None)
    first, *others = seen.variants
    ratios = [seen.ratio(name, first) for name in others]
    widest = max((ratio.high - ratio.low) / 2 / ratio.value for ratio in ratios)
    return widest <= plan.precision


def _comparison(
    rows: list[dict],
    variants: Mapping[str, Callable],
    plan: Plan,
    note: str | None,
) -> Comparison:
    frame = pd.DataFrame(rows)
    frame["variant"] = pd.Categorical(frame["variant"], categories=list(variants))
    return Comparison(frame, plan.threads, notes=(note,) if note else ())


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
    return tqdm(total=total, desc="timing", unit="round", leave=False, disable=None)


def _require(name: str, value: float, least: float) -> None:
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")


def _ignore(batch: object) -> None:
    """The step of a training loop that does nothing."""
