"""The guard: was anybody else using the cores while we measured?

On a shared machine foreign load is the largest error of a timing. The guard
compares the CPU time the whole machine spent (steal included) with the CPU
time of this process and its children; what is left over was somebody else's.

Under a container quota the machine-wide figure says nothing, because other
containers have cores of their own. There the guard adds the CPU time of other
processes in the container and the time this process tree waited for a core
without being throttled.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from helpers import machine

#: A window may hold this much foreign CPU time per usable core, in core-seconds
#: per second: 0.06 of a core on the two-core machine it was tuned on.
TOLERANCE_PER_CORE = 0.03
_CORES_AT_LEAST = 2


@dataclass(frozen=True)
class Load:
    """CPU use during one window, in seconds of CPU time.

    ``own_s`` is this process and all its descendants, ``main_s`` this process
    alone; ``foreign_s`` is everybody else on the cores we may use, None where
    the system does not say ("unguarded"). Clocks tick in hundredths of a second,
    so a short quiet window may read a little below 0. ``tolerance`` is in cores.
    """

    wall_s: float
    own_s: float
    main_s: float
    foreign_s: float | None
    tolerance: float

    @classmethod
    def together(cls, loads: Sequence["Load"]) -> "Load":
        """One load for several windows, as if they had been one."""
        known = [load.foreign_s for load in loads if load.foreign_s is not None]
        return cls(
            wall_s=sum(load.wall_s for load in loads),
            own_s=sum(load.own_s for load in loads),
            main_s=sum(load.main_s for load in loads),
            foreign_s=sum(known) if len(known) == len(loads) else None,
            tolerance=loads[0].tolerance,
        )

    @property
    def own_cores(self) -> float:
        """Cores this process and its descendants kept busy."""
        return self.own_s / self.wall_s

    @property
    def main_cores(self) -> float:
        """Cores this process alone kept busy."""
        return self.main_s / self.wall_s

    @property
    def foreign_cores(self) -> float | None:
        """Cores that everybody else kept busy."""
        return None if self.foreign_s is None else max(0, self.foreign_s / self.wall_s)

    @property
    def accepted(self) -> bool:
        """Nobody else used more than the tolerance (or nobody could tell)."""
        return self.foreign_cores is None or self.foreign_cores <= self.tolerance


@dataclass(frozen=True)
class _Reading:
    at: float
    own_s: float
    main_s: float
    busy_s: float | None
    unfairly_waited_s: float


class LoadMeter:
    """Measures the load between :meth:`start` and :meth:`stop`.

    Args:
        root: where ``proc`` and ``sys`` are looked for (tests pass made-up files).
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._process = psutil.Process()
        self._has_quota = machine.cpu_quota(root) is not None
        cores = machine.usable_cores(root)
        self.tolerance = TOLERANCE_PER_CORE * max(_CORES_AT_LEAST, cores)

    def start(self) -> "LoadMeter":
        """Begin a window; returns the meter."""
        self._begin = self._read()
        return self

    def stop(self) -> Load:
        """End the window.

        Raises:
            AttributeError: :meth:`start` was not called.
        """
        begin, end = self._begin, self._read()
        wall = end.at - begin.at
        own = end.own_s - begin.own_s
        foreign = None
        if begin.busy_s is not None and end.busy_s is not None:
            waited = max(0.0, end.unfairly_waited_s - begin.unfairly_waited_s)
            foreign = end.busy_s - begin.busy_s - own + waited
        return Load(wall, own, end.main_s - begin.main_s, foreign, self.tolerance)

    def _read(self) -> _Reading:
        tree = process_tree(self._process)
        busy, waited = _machine_busy_seconds(), 0.0
        if self._has_quota:
            stat = machine.cpu_stat(self._root)
            busy = None if stat is None else stat.usage_s
            throttled = 0.0 if stat is None else stat.throttled_s
            waited = sum(_waited_seconds(p.pid, self._root) for p in tree) - throttled
        own, main = _tree_cpu_seconds(tree), time.process_time()
        return _Reading(time.perf_counter(), own, main, busy, waited)


def process_tree(process: psutil.Process | None = None) -> list[psutil.Process]:
    """This process (or the given one) and every living descendant."""
    process = process or psutil.Process()
    return [process, *process.children(recursive=True)]


def own_cpu_seconds() -> float:
    """CPU seconds used so far by this process and all its descendants."""
    return _tree_cpu_seconds(process_tree())


def _tree_cpu_seconds(tree: list[psutil.Process]) -> float:
    """CPU seconds of the processes in ``tree``; the first is this process."""
    this, *descendants = tree
    # This process's own clock is finer than the ticks of the process table.
    own = time.process_time() + _ticks(this, *_ENDED)
    return own + sum(_ticks(child, "user", "system", *_ENDED) for child in descendants)


#: Descendants that ended and were waited for: with these fields the sum over
#: the living tree never loses a worker's time.
_ENDED = ("children_user", "children_system")


def _ticks(process: psutil.Process, *fields: str) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return sum(getattr(times, field, 0.0) for field in fields)


def _machine_busy_seconds() -> float | None:
    """CPU seconds spent by anybody, steal included, on the cores we may use."""
    try:
        cores = psutil.cpu_times(percpu=True)
        allowed = (
            psutil.Process().cpu_affinity()
            if hasattr(psutil.Process, "cpu_affinity")
            else range(len(cores))
        )
    except (psutil.Error, OSError, NotImplementedError):
        return None
    # "user" already holds guest time. The field names differ by system.
    fields = ("user", "nice", "system", "irq", "softirq", "steal")
    return sum(
        getattr(cores[core], field, 0.0)
        for core in allowed
        if core < len(cores)
        for field in fields
    )


def _waited_seconds(pid: int, root: Path) -> float:
    """Seconds the threads of a process stood in the queue for a core."""
    waited = 0
    for task in (root / "proc" / str(pid) / "task").glob("*/schedstat"):
        try:
            waited += int(task.read_text().split()[1])
        except (OSError, IndexError, ValueError):
            continue  # the thread ended while we looked
    return waited / 1e9
