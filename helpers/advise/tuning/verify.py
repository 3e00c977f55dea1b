"""Measuring a few settings against each other, within a given time.

In every block each setting gets a fresh loader, and they take turns in slices.
Where workers start slowly (spawn, forkserver) a setting is started once; its
workers are stopped between its slices and go on in the next block.
"""

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from torch.utils.data import DataLoader

from helpers.advise.replay import Step
from helpers.advise.tuning import variants
from helpers.advise.tuning.grid import Setting
from helpers.advise.tuning.race import Race
from helpers.advise.tuning.runs import RestartingRun, WatchedRun
from helpers.measure import timing
from helpers.measure.intervals import ROUNDS_TO_DECIDE
from helpers.measure.windows import Slice, StreamEnded

#: One running and three stopped: more would fill the memory with workers.
MOST_OPEN = 4

MIN_BATCHES = 8

#: Predicted to be this much slower, a setting will leave the race early.
_LEAVES_EARLY = 1.25
_EARLY_BLOCKS = 2


@dataclass(frozen=True)
class Plan:
    """How the settings are measured.

    Args:
        window_s: seconds per setting and block.
        deadline: time of ``time.perf_counter`` when no new block is begun.
        in_process: the dataset may be called in this process.
        keep_open: start every setting once instead of once per block.
        threads: of the main process.
        retries: disturbed slices replaced per setting and block.
        seed: of the order.
    """

    window_s: float
    deadline: float
    in_process: bool
    keep_open: bool
    threads: int
    retries: int = 2
    seed: int = 0


@dataclass
class Verified:
    """What was measured.

    Attributes:
        race: rates and the choice that follows from them.
        start_up_s: seconds from ``iter(loader)`` to the first batch, the shortest.
        foreign: cores that other programs used, per window; empty where the
            system does not tell.
        most_taken: batches that one run took, at most.
        too_short: settings for which the stream ends too early -> why.
    """

    race: Race
    start_up_s: dict[Setting, float] = field(default_factory=dict)
    foreign: list[float] = field(default_factory=list)
    most_taken: int = 0
    too_short: dict[Setting, str] = field(default_factory=dict)


class _TooShort(Exception):
    def __init__(self, setting: Setting, why: str) -> None:
        self.setting, self.why = setting, why


class _Entrant(RestartingRun):
    """A run that knows its setting, and may stay open between blocks."""

    def __init__(
        self, setting: Setting, start: Callable[[], WatchedRun], keep_open: bool
    ) -> None:
        self.setting, self._keep_open = setting, keep_open
        try:
            super().__init__(start)
        except StreamEnded as end:
            raise _TooShort(setting, str(end)) from None

    def slice(self, seconds: float, batches: int) -> Slice:
        try:
            return super().slice(seconds, batches)
        except StreamEnded as end:
            raise _TooShort(self.setting, str(end)) from None

    def close(self) -> None:
        """Called at the end of every block."""
        if not self._keep_open:
            self.end()

    def end(self) -> None:
        """End the workers and wait for them."""
        super().close()


def verify(
    loader: DataLoader,
    step: Step,
    settings: Sequence[Setting],
    plan: Plan,
    on_block: Callable[[], object] = lambda: None,
) -> Verified:
    """Measure settings of a copy of a loader until one is shown to be good enough.

    Args:
        loader: left as it is.
        step: run on real batches.
        settings: what is measured.
        plan: how; no block begins that would not end by the deadline, except
            the first.
        on_block: called after every block, outside of what is timed.

    Raises:
        SampleError: the dataset raised.
    """
    return _Verification(loader, step, settings, plan).run(on_block)


class _Verification:
    def __init__(
        self, loader: DataLoader, step: Step, settings: Sequence[Setting], plan: Plan
    ) -> None:
        self.loader, self.step, self.plan = loader, step, plan
        self.found = Verified(Race(settings))
        self.entrants: dict[Setting, _Entrant] = {}
        self.order = random.Random(plan.seed)
        slices = max(1, round(plan.window_s / timing.SLICE_S))
        self.timing = timing.Plan(
            rounds=1,
            window_s=plan.window_s,
            min_batches=max(MIN_BATCHES, slices),
            precision=None,
            retries=plan.retries,
            budget_s=math.inf,
            threads=plan.threads,
            seed=plan.seed,
        )

    def run(self, on_block: Callable[[], object]) -> Verified:
        race, last = self.found.race, 0.0
        try:
            while race.running and not (race.blocks and race.decided):
                began = time.perf_counter()
                if race.blocks and began + last > self.plan.deadline:
                    break
                self._block()
                last = time.perf_counter() - began
                on_block()
        finally:
            for entrant in self.entrants.values():
                entrant.end()
        return self.found

    def _block(self) -> None:
        race = self.found.race
        try:
            values = timing.one_round(
                {setting: setting for setting in race.running},
                self._start,
                self.timing,
                self.order,
                self.plan.deadline,
            )
        except _TooShort as short:
            self.found.too_short[short.setting] = short.why
            race.remove(short.setting)
            return
        self._note(values)
        rates = {setting: row["rate"] for setting, row in values.items()}
        race.add(rates, [row["accepted"] for row in values.values()])
        staying = set(race.running) if self.plan.keep_open else set()
        for setting in set(self.entrants) - staying:
            self.entrants.pop(setting).end()

    def _note(self, values: Mapping[Setting, dict]) -> None:
        for setting, row in values.items():
            before = self.found.start_up_s.get(setting, math.inf)
            self.found.start_up_s[setting] = min(before, row["start_up_s"])
            if row["foreign_cores"] is not None:
                self.found.foreign.append(row["foreign_cores"])
            taken = self.entrants[setting].taken
            self.found.most_taken = max(self.found.most_taken, taken)

    def _start(self, setting: Setting) -> _Entrant:
        if self.plan.keep_open and setting in self.entrants:
            return self.entrants[setting]
        loader = variants.with_setting(self.loader, setting)
        entrant = _Entrant(
            setting,
            lambda: WatchedRun(loader, self.step, self.plan.in_process),
            self.plan.keep_open,
        )
        self.entrants[setting] = entrant
        return entrant


@dataclass(frozen=True)
class Timetable:
    """How long a measurement will take, from the model.

    Args:
        predicted: seconds per batch of each setting.
        start_up_s: of one worker.
        cores: usable; more workers than these start one after the other.
    """

    predicted: Mapping[Setting, float]
    start_up_s: float
    cores: float

    def window_s(self, setting: Setting, seconds: float) -> float:
        """A fresh loader: start, drain, and a window of so many seconds."""
        batch, workers = self.predicted[setting], setting.workers
        start = self.start_up_s * max(1.0, workers / self.cores) if workers else 0.0
        timed = max(seconds, max(MIN_BATCHES, workers) * batch)
        # A stopped worker's first batch of each slice is not timed.
        slice_s = max(timing.SLICE_S, workers * batch)
        untimed = 1 + setting.in_flight + workers
        untimed += workers * math.ceil(min(timed / slice_s, seconds / timing.SLICE_S))
        return start + untimed * batch + timed

    def race_s(self, settings: Sequence[Setting], seconds: float) -> float:
        """Enough blocks to decide; what is predicted to be slow leaves early."""
        best = min(self.predicted[setting] for setting in settings)
        return sum(
            self.window_s(setting, seconds)
            * (
                _EARLY_BLOCKS
                if self.predicted[setting] > _LEAVES_EARLY * best
                else ROUNDS_TO_DECIDE
            )
            for setting in settings
        )

    def sweep_s(self, settings: Sequence[Setting], seconds: float) -> float:
        """One round of an exhaustive sweep."""
        return sum(self.window_s(setting, seconds) for setting in settings)
