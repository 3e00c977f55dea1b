"""How many batches this machine can hold: the caps of a recommendation.

A setting keeps ``workers * prefetch`` batches in flight, plus one in the loop
and one on its way. They lie in shared memory; a full ``/dev/shm`` kills workers
with a bus error, and a full memory kills whoever the system picks.
"""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass

from helpers import machine
from helpers.advise.tuning.grid import Setting

#: Share of the free shared memory and of the available memory that may be used.
SHM_SHARE, MEMORY_SHARE = 1 / 2, 1 / 4

#: Some batch may be larger than the largest one seen.
MARGIN = 1.5

_MIB = 2**20


@dataclass(frozen=True)
class Weight:
    """What a batch and a worker take, in bytes.

    ``worker_bytes`` is the worker's fair share of memory (PSS) while it rests.
    """

    batch_bytes: int
    worker_bytes: int

    def in_flight(self, setting: Setting) -> int:
        """Bytes of batches in shared memory; none without workers."""
        if not setting.workers:
            return 0
        return int(MARGIN * self.batch_bytes * (setting.in_flight + 2))

    def total(self, setting: Setting) -> int:
        """Bytes that a setting costs: its batches and its workers."""
        return self.in_flight(setting) + setting.workers * self.worker_bytes


@dataclass(frozen=True)
class Room:
    """What is free now, in bytes; ``shm_bytes`` is None without ``/dev/shm``."""

    shm_bytes: int | None
    memory_bytes: int

    @classmethod
    def now(cls) -> "Room":
        """Look at this machine, a container's limit included."""
        shm = shutil.disk_usage(machine.SHM).free if machine.SHM.is_dir() else None
        return cls(shm, machine.memory_available())

    def objection(self, settings: Iterable[Setting], weight: Weight) -> str | None:
        """Why these settings may not be open at the same time; None if they may."""
        settings = list(settings)
        flight = sum(weight.in_flight(setting) for setting in settings)
        total = sum(weight.total(setting) for setting in settings)
        what = " with ".join(str(setting) for setting in settings)
        if self.shm_bytes is not None and flight > SHM_SHARE * self.shm_bytes:
            return (
                f"{what} may keep {_mib(flight)} of batches in /dev/shm, more than "
                f"half of the {_mib(self.shm_bytes)} that are free there"
            )
        if total > MEMORY_SHARE * self.memory_bytes:
            return (
                f"{what} may take {_mib(total)}, more than a quarter of the "
                f"{_mib(self.memory_bytes)} of memory that are available"
            )
        return None


def _mib(size: float) -> str:
    return f"{size / _MIB:,.0f} MiB"
