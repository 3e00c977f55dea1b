"""Three probes of a reader's loader give everything that the model needs.

A window without workers, a window with one, and a replay of one batch for the
step. The first goes over the same indices twice, which tells a first epoch from
the later ones: their files are in memory, or the dataset has kept its samples.
"""

import time
from dataclasses import dataclass, replace

from torch.utils.data import DataLoader

from helpers.advise.model import BatchCosts
from helpers.advise.objects import batches
from helpers.advise.replay import NO_STEP, Step, StepCost, ignore, replay, waited
from helpers.advise.tuning import variants
from helpers.advise.tuning.grid import ALONE, Setting
from helpers.advise.tuning.room import Weight
from helpers.advise.tuning.runs import RestartingRun, WatchedRun
from helpers.measure import copies, memory
from helpers.measure.timing import replace_disturbed
from helpers.measure.windows import Slice, Window

ONE = Setting(1, 2)

#: A first visit this much slower than a later one makes two cases of it.
EPOCHS_DIFFER = 1.25

# What another program on the same core explains at most.
_SURELY = 2.0

MIN_BATCHES = 8
_PIECES = 4

# Seconds until a worker is there, before it was ever tried.
_START_UP_S = {"fork": 0.1}
_SLOW_START_UP_S = 2.0


class BudgetTooShort(Exception):
    """The probes do not fit.

    Attributes:
        needed_s: seconds that the probes would take, roughly.
        probes: what a first look found, from very few batches.
    """

    def __init__(self, needed_s: float, probes: "Probes") -> None:
        super().__init__(f"the probes need about {needed_s:.0f} s")
        self.needed_s, self.probes = needed_s, probes


@dataclass(frozen=True)
class Plan:
    """How the probes are taken.

    Args:
        window_s: seconds per window, at least; also at least 8 batches.
        budget_s: for all of them together.
        retries: pieces of a window that are replaced if others disturbed them.
        in_process: the dataset may be called in this process.
    """

    window_s: float = 0.8
    budget_s: float = 30.0
    retries: int = 3
    in_process: bool = True


@dataclass(frozen=True)
class Probes:
    """What the probes found; costs in seconds per batch.

    Attributes:
        first: costs of an epoch that reads everything for the first time.
        later: costs when it has been read before.
        samples: per batch, on average.
        weight: of a batch and a worker, in bytes.
        start_up_s: from ``iter(loader)`` with one worker to its first batch;
            None if it was not tried.
        waiting: share of fetching and collating that used no CPU, by one process.
        disturbed: the guard did not accept all of them.
    """

    first: BatchCosts
    later: BatchCosts
    samples: float
    weight: Weight
    start_up_s: float | None
    waiting: float
    disturbed: bool

    @property
    def epochs_differ(self) -> bool:
        """Reading for the first time is slower by a quarter or more."""
        return self.first.fetch > EPOCHS_DIFFER * self.later.fetch


def probe(loader: DataLoader, step: Step | None, plan: Plan) -> Probes:
    """Take the three probes of a copy of a loader; the step runs on real batches.

    Call it within :func:`helpers.measure.timing.steady_conditions`.

    Raises:
        TypeError: not a DataLoader.
        BudgetTooShort: they do not fit into the budget.
        SampleError: the dataset raised.
        StreamEnded: an iterable dataset is too short.
        ValueError: the loader yields no batch.
    """
    return _Probing(loader, step, plan).take()


class _Catcher:
    """Keeps the last batch and the size of the largest one."""

    def __init__(self) -> None:
        self.batch, self.largest = None, 0

    def __call__(self, batch: object) -> None:
        self.batch = batch
        self.largest = max(self.largest, batches.size(batch))


class _Probing:
    def __init__(self, loader: DataLoader, step: Step | None, plan: Plan) -> None:
        self.began = time.perf_counter()
        self.loader, self.step, self.plan = loader, step, plan
        self.alone = ALONE if plan.in_process else ONE
        self.caught = _Catcher()

    def take(self) -> Probes:
        with copies.preserved_random_state():
            first = self._first_visit()
        with copies.preserved_random_state():
            later, run = self._later_visit(first)
        if self.plan.in_process:
            with copies.preserved_random_state():
                one, run = self._worker()
        else:
            one = later
        return self._probes(first, later, one, run)

    def _start(self, setting: Setting, step: Step = ignore) -> RestartingRun:
        loader = variants.with_setting(self.loader, setting)
        in_process = self.plan.in_process
        return RestartingRun(lambda: WatchedRun(loader, step, in_process))

    def _first_visit(self) -> Window:
        """New indices; also weighs batches, so it is a little less exact."""
        run = self._start(self.alone, self.caught)
        try:
            look = run.slice(0, 1)
            self._check_budget(run.window([look]))
            rest = run.slice(self.plan.window_s / _PIECES, MIN_BATCHES // _PIECES)
            return run.window([look, rest])
        finally:
            run.close()

    def _later_visit(self, first: Window) -> tuple[Window, "_Rest"]:
        """The same indices again, and again if that is much quicker."""
        before = memory.tree()[0].counted_bytes
        run = self._start(self.alone)
        try:
            piece = run.slice(0, first.batches)
            if _period(first) < EPOCHS_DIFFER * piece.seconds / len(piece.waits):
                return self._fill(run, [piece]), _Rest.of(run, before)
            pieces = [piece]
            while not self._filled(pieces):
                run.close()
                run = self._start(self.alone)
                pieces.append(run.slice(0, first.batches))
            return run.window(pieces), _Rest.of(run, before)
        finally:
            run.close()

    def _worker(self) -> tuple[Window, "_Rest"]:
        before = memory.tree()[0].counted_bytes
        run = self._start(ONE)
        try:
            return self._fill(run, []), _Rest.of(run, before)
        finally:
            run.close()

    def _fill(self, run: RestartingRun, pieces: list[Slice]) -> Window:
        """Slices until a window is full and calm."""

        def take() -> Slice:
            return run.slice(self.plan.window_s / _PIECES, MIN_BATCHES // _PIECES)

        while not self._filled(pieces):
            pieces.append(take())
        deadline = self.began + self.plan.budget_s / 2
        replace_disturbed(pieces, take, self.plan.retries, deadline)
        return run.window(pieces)

    def _filled(self, pieces: list[Slice]) -> bool:
        seconds = sum(piece.seconds for piece in pieces)
        count = sum(len(piece.waits) for piece in pieces)
        return seconds >= self.plan.window_s and count >= MIN_BATCHES

    def _check_budget(self, look: Window) -> None:
        cost = _once(self.caught.batch, self.step)
        needed = self._needed_s(_period(look), cost)
        if needed <= self.plan.budget_s:
            return
        costs = BatchCosts.measured(look, look, cost)
        if self.plan.in_process:
            # This process made the batches, perhaps on several threads; a worker
            # has one. What it costs to take a batch over is not known: little.
            costs = replace(costs, cpu=min(costs.cpu, costs.worker), main=0.0)
        weight = Weight(self.caught.largest, 0)
        samples = look.samples / look.batches
        rough = Probes(costs, costs, samples, weight, None, _waiting(look), False)
        raise BudgetTooShort(needed, rough)

    def _needed_s(self, period: float, cost: StepCost) -> float:
        """Seconds of all probes, from the first batches."""
        window = self.plan.window_s
        method = variants.start_method(self.loader)
        starts = _START_UP_S.get(method, _SLOW_START_UP_S) + 6 * period
        windows = max(window / 4, 2 * period) + 2 * max(window, 8 * period)
        replayed = 0.0 if self.step is None else max(window, 3 * cost.wall) + cost.wall
        spent = time.perf_counter() - self.began
        return spent + starts + windows + replayed

    def _probes(
        self, first: Window, later: Window, one: Window, rest: "_Rest"
    ) -> Probes:
        cost = NO_STEP
        if self.step is not None:
            step, plan = waited(self.step), self.plan
            cost = replay(self.caught.batch, step, plan.window_s, plan.retries)
        costs = BatchCosts.measured(later, one, cost)
        return Probes(
            first=_dearer(costs, first, later) if _believed(first, later) else costs,
            later=costs,
            samples=later.samples / later.batches,
            weight=Weight(self.caught.largest, rest.worker_bytes),
            start_up_s=rest.start_up_s,
            waiting=_waiting(later),
            disturbed=not (later.load.accepted and one.load.accepted),
        )


@dataclass(frozen=True)
class _Rest:
    """What is left of a run with one worker: its start and its memory."""

    start_up_s: float
    worker_bytes: int

    @classmethod
    def of(cls, run: RestartingRun, before: int) -> "_Rest":
        """How much more memory this process and the workers hold than before.

        Of a forked worker the pages that it shares with this process cost nothing
        more; at least its private ones do.
        """
        main, *others = memory.tree()
        workers = [process for process in others if process.pid in run.worker_pids]
        held = main.counted_bytes + sum(worker.counted_bytes for worker in workers)
        private = sum(worker.private_bytes for worker in workers)
        return cls(run.start_up_s, max(held - before, private))


def _dearer(costs: BatchCosts, first: Window, later: Window) -> BatchCosts:
    """The costs with what a first visit takes in addition, in worker and alone."""
    extra = _period(first) - _period(later)
    extra_cpu = _cpu(first) - _cpu(later)
    return replace(
        costs,
        fetch=costs.fetch + extra,
        worker=max(costs.worker + extra, 0.0),
        cpu=max(costs.cpu + extra_cpu, 0.0),
    )


def _believed(first: Window, later: Window) -> bool:
    """A slow first visit was not the work of other programs."""
    return first.load.accepted or _period(first) > _SURELY * _period(later)


def _period(window: Window) -> float:
    return window.seconds / window.batches


def _cpu(window: Window) -> float:
    return window.load.own_cores * _period(window)


def _waiting(window: Window) -> float:
    """Share of the window in which nothing of ours computed."""
    return max(0.0, 1 - window.load.own_cores)


def _once(batch: object, step: Step | None) -> StepCost:
    if step is None:
        return NO_STEP
    fresh, run = batches.clone(batch), waited(step)
    began, cpu = time.perf_counter(), time.process_time()
    run(fresh)
    return StepCost(time.perf_counter() - began, time.process_time() - cpu)
