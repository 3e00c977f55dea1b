"""What the rules of lint look at: a loader and everything found out about it."""

import multiprocessing
import shutil
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.utils.data import DataLoader

from helpers import machine
from helpers.advise.lint.examination import Report
from helpers.advise.lint.findings import ERROR, NOTE, WARNING
from helpers.advise.lint.sample_probe import Probed
from helpers.advise.objects import code_names, generators, lengths, pickling, walker
from helpers.advise.objects.code_names import Names
from helpers.advise.objects.lengths import Lengths
from helpers.advise.objects.loop_source import Loop
from helpers.advise.objects.walker import Walk
from helpers.measure import copies

FORK = "fork"

#: What a loader sends to its workers.
SENT = ("dataset", "collate_fn", "worker_init_fn")


@dataclass(frozen=True)
class Here:
    """What this machine offers now. Sizes in bytes; None without ``/dev/shm``."""

    cores: float
    shm_free: int | None
    memory_free: int
    accelerator: bool

    @classmethod
    def now(cls) -> "Here":
        """Look at this machine."""
        shm = shutil.disk_usage(machine.SHM).free if machine.SHM.is_dir() else None
        return cls(
            cores=machine.usable_cores(),
            shm_free=shm,
            memory_free=machine.memory_available(),
            accelerator=torch.accelerator.is_available(),
        )


@dataclass(frozen=True)
class Subject:
    """A loader under examination.

    Attributes:
        loader: the reader's own, only to be read.
        role: ``train``, ``eval`` or None.
        loop: the training loop, as far as its source is known.
        start_method: how its workers are started, or would be.
        walk: the objects that go to the workers.
        pickles: what pickling them came to.
        names: names in the code that the workers run.
        init_names: those in ``worker_init_fn``.
        stream_names: those in the ``__iter__`` of datasets.
        lengths: samples and batches.
        here: the machine.
        probed: batches from a throw-away worker, or None.
    """

    loader: DataLoader
    role: str | None
    loop: Loop | None
    start_method: str
    walk: Walk
    pickles: list[pickling.Check]
    names: Names
    init_names: Names
    stream_names: Names
    lengths: Lengths
    here: Here
    probed: Probed | None = None

    @property
    def workers(self) -> int:
        """Number of workers of the loader."""
        return self.loader.num_workers

    @property
    def forks(self) -> bool:
        """Workers are started by fork."""
        return self.start_method == FORK

    @property
    def unsendable(self) -> str:
        """How grave it is here if something cannot be pickled."""
        if not self.workers:
            return NOTE
        return WARNING if self.forks else ERROR

    @property
    def reports(self) -> tuple[Report, ...]:
        """What the throw-away workers reported in their first epoch."""
        epochs = () if self.probed is None else self.probed.epochs
        return epochs[0] if epochs else ()


def look_at(
    loader: DataLoader, role: str | None, loop: str | Callable | None
) -> Subject:
    """Collect all that can be known without calling the dataset for a sample."""
    found = walker.walk({name: getattr(loader, name) for name in SENT})
    mine = [n for n in found.nodes if not n.path.startswith("worker_init_fn")]
    methods = code_names.methods_of(mine)
    streams = [f for name in ("__iter__", "__next__") for f in methods.get(name, [])]
    init = code_names.entries_of(
        node for node in found.nodes if node.path == "worker_init_fn"
    )
    owned = [node.value for node in generators.in_walk(found)]
    with copies.preserved_random_state(), generators.preserved(owned):
        counted = lengths.measure(loader)
        pickles = [pickling.check(getattr(loader, name), name) for name in SENT]
    return Subject(
        loader=loader,
        role=role,
        loop=None if loop is None else Loop.of(loop),
        start_method=start_method(loader),
        walk=found,
        pickles=pickles,
        names=code_names.follow(code_names.entries_of(mine), methods),
        init_names=code_names.follow(init, {}),
        stream_names=code_names.follow(streams, methods),
        lengths=counted,
        here=Here.now(),
    )


def start_method(loader: DataLoader) -> str:
    """How the workers of a loader are started, or would be if it had any.

    Does not fix Python's choice, which asking for it plainly would do.
    """
    context = loader.multiprocessing_context
    chosen = context or multiprocessing
    method = chosen.get_start_method(allow_none=True)
    # The list begins with the default of the system.
    return method or multiprocessing.get_all_start_methods()[0]
