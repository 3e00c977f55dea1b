"""How much memory a pipeline takes, counted so that shared pages count once.

The sum of the resident sizes of a process tree counts a page that ten workers
share ten times. The proportional set size (PSS) divides it among them, so the
sum over the tree is what the pipeline really costs. Pages that only mirror a
file, such as the code of a library, are left out: the system can drop them, and
any stranger who uses the same library would change our figure. Source: proc(5),
/proc/pid/smaps_rollup. Where the system has no PSS the unique set size (USS) is
used: it leaves shared pages out and is a lower bound.
"""

import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

from helpers import machine
from helpers.measure.load import process_tree

MIB = 2**20

# How often a reading is repeated while processes come and go.
_STEADY_TRIES = 3


@dataclass(frozen=True)
class ProcessMemory:
    """Memory of one process, in bytes.

    ``private_bytes`` belong to it alone (USS). ``counted_bytes`` are its fair
    share (PSS without file pages) where the system tells, else the same.
    """

    pid: int
    counted_bytes: int
    private_bytes: int


@dataclass(frozen=True)
class MemoryPeak:
    """Largest values seen while something ran, in bytes.

    Attributes:
        tree_bytes: PSS (or USS) summed over this process and its descendants.
        added_bytes: how far ``tree_bytes`` rose above its value at the start.
        shm_bytes: rise of the space used in ``/dev/shm``; None if there is none.
        device_bytes: peak allocated on the accelerator; None without one.
        processes: largest number of processes seen at once.
        readings: how often the memory was read.
        kind: ``"PSS"`` or ``"USS"``.
    """

    tree_bytes: int
    added_bytes: int
    shm_bytes: int | None
    device_bytes: int | None
    processes: int
    readings: int
    kind: str

    def __str__(self) -> str:
        parts = [
            f"{self.tree_bytes / MIB:.0f} MiB {self.kind} in {self.processes} "
            f"process(es), {self.added_bytes / MIB:+.0f} MiB while it ran"
        ]
        if self.shm_bytes is not None:
            parts.append(f"{self.shm_bytes / MIB:.0f} MiB in /dev/shm")
        if self.device_bytes is not None:
            parts.append(f"{self.device_bytes / MIB:.0f} MiB on the device")
        return ", ".join(parts)


def peak(run: Callable[[], object], interval_s: float = 0.05) -> MemoryPeak:
    """Run something and report the most memory the process tree held meanwhile.

    A thread reads the memory every ``interval_s`` seconds, and once more at the
    end; a shorter spike can be missed. Reading costs CPU time: never time and
    weigh in the same run.

    Args:
        run: function of no arguments. What it raises is raised here.
        interval_s: seconds between two readings.
    """
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    sampler = _Sampler(interval_s)
    with sampler:
        run()
        sampler.read()
    device = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else None
    trees = [sum(p.counted_bytes for p in reading) for reading in sampler.trees]
    return MemoryPeak(
        tree_bytes=max(trees),
        added_bytes=max(trees) - trees[0],
        shm_bytes=max(sampler.shm) - sampler.shm[0] if sampler.shm else None,
        device_bytes=device,
        processes=max(len(reading) for reading in sampler.trees),
        readings=len(trees),
        kind=kind(),
    )


def tree() -> list[ProcessMemory]:
    """Memory of this process and of every living descendant, this one first.

    Read again if a process came or went meanwhile: pages that a fork has just
    shared would count twice, or not at all.
    """
    for _ in range(_STEADY_TRIES):
        processes = process_tree()
        found = [memory for p in processes if (memory := _memory(p)) is not None]
        if processes == process_tree():
            break
    return found


def _memory(process: psutil.Process) -> ProcessMemory | None:
    try:
        memory = process.memory_full_info()
    except psutil.Error:
        return None  # it ended while we looked
    counted = _pss_without_files(process.pid)
    counted = getattr(memory, "pss", memory.uss) if counted is None else counted
    return ProcessMemory(process.pid, counted, memory.uss)


def _pss_without_files(pid: int) -> int | None:
    """PSS of anonymous and shared-memory pages in bytes; None if not told."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return None
    sizes = dict(line.split()[:2] for line in text.splitlines()[1:])
    if not {"Pss_Anon:", "Pss_Shmem:"} <= sizes.keys():
        return None
    return 1024 * (int(sizes["Pss_Anon:"]) + int(sizes["Pss_Shmem:"]))


def kind() -> str:
    """What ``counted_bytes`` means on this system: PSS or USS."""
    return "PSS" if hasattr(psutil.Process().memory_full_info(), "pss") else "USS"


def shm_used() -> int | None:
    """Bytes in use in ``/dev/shm``, deleted but open files included."""
    return shutil.disk_usage(machine.SHM).used if machine.SHM.is_dir() else None


class _Sampler:
    """Reads memory in a thread of its own until the ``with`` block ends."""

    def __init__(self, interval_s: float) -> None:
        self._interval = interval_s
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._lock = threading.Lock()
        self.trees: list[list[ProcessMemory]] = []
        self.shm: list[int] = []

    def __enter__(self) -> "_Sampler":
        self.read()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def read(self) -> None:
        with self._lock:
            self.trees.append(tree())
            used = shm_used()
            if used is not None:
                self.shm.append(used)

    def _watch(self) -> None:
        while not self._done.wait(self._interval):
            self.read()
