"""Working on a copy of a loader, so that the reader's own stays as it was."""

import contextlib
import copy
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import psutil
import torch
from torch.utils.data import DataLoader, IterableDataset

#: More batches than any loader has in flight.
_TRACEABLE = 1024


class EndlessSampler:
    """Yields what the inner (batch) sampler yields, starting over at its end.

    ``sizes`` holds the number of samples of every batch handed out so far,
    ``recent`` the indices of the last ones, so that a fault can be traced.
    """

    def __init__(self, inner: Iterable) -> None:
        self.inner = inner
        self.sizes: list[int] = []
        self.recent: deque[object] = deque(maxlen=_TRACEABLE)

    def __iter__(self) -> Iterator:
        while True:
            before = len(self.sizes)
            for indices in self.inner:
                self.sizes.append(len(indices) if isinstance(indices, list) else 1)
                self.recent.append(indices)
                yield indices
            if len(self.sizes) == before:
                raise ValueError(
                    "the loader yields no batch: is batch_size larger than the "
                    "dataset while drop_last=True?"
                )


def detached(loader: DataLoader) -> DataLoader:
    """A copy that shares the dataset; samplers and generator are copied too.

    Iterating over the copy moves no generator and no sampler of the original.

    Raises:
        TypeError: not a DataLoader.
    """
    require_loader(loader)
    clone = copy.copy(loader)
    # One memo for all, so that what they share they go on sharing. Samplers may
    # hold the dataset, or the one inside a Subset.
    memo = {id(part): part for part in _nested(loader.dataset)}
    # DataLoader refuses these assignments after construction, on purpose;
    # on a copy that nobody else sees they are safe.
    for name in ("batch_sampler", "sampler", "generator"):
        value = copy.deepcopy(getattr(loader, name), memo)
        object.__setattr__(clone, name, value)
    object.__setattr__(clone, "_iterator", None)
    return clone


def _nested(dataset: object) -> list[object]:
    """A dataset and those it wraps, as ``Subset`` does in ``dataset``."""
    found = []
    while dataset is not None and all(dataset is not seen for seen in found):
        found.append(dataset)
        dataset = getattr(dataset, "dataset", None)
    return found


def endless(loader: DataLoader) -> tuple[DataLoader, EndlessSampler]:
    """A detached copy of a map-style loader that never ends, and its sampler.

    Raises:
        TypeError: not a DataLoader, or one of an IterableDataset.
    """
    clone = detached(loader)
    if isinstance(loader.dataset, IterableDataset):
        raise TypeError("a stream cannot be made endless: it has no sampler")
    name = "sampler" if loader.batch_sampler is None else "batch_sampler"
    sampler = EndlessSampler(getattr(clone, name))
    object.__setattr__(clone, name, sampler)
    return clone, sampler


@contextlib.contextmanager
def preserved_random_state() -> Iterator[None]:
    """Put the global generators of torch, numpy and ``random`` back afterwards."""
    python, legacy = random.getstate(), np.random.get_state()
    on_cpu_only = [] if not torch.cuda.is_initialized() else None
    with torch.random.fork_rng(devices=on_cpu_only):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(legacy)


def require_loader(loader: object) -> None:
    """Refuse what is not a DataLoader, in one line.

    Raises:
        TypeError: with the type that came instead.
    """
    if not isinstance(loader, DataLoader):
        raise TypeError(
            f"expected a torch.utils.data.DataLoader, got {type(loader).__name__}"
        )


def close(iterator: Iterator) -> None:
    """End the workers of a loader's iterator now and wait for them.

    DataLoader has no public way to do this before the epoch ends; this is what
    its own destructor calls.
    """
    # A stopped process cannot end itself.
    continue_workers(iterator)
    shut_down = getattr(iterator, "_shutdown_workers", None)
    if shut_down is not None:
        shut_down()


def stop_workers(iterator: Iterator) -> None:
    """Stop the workers of a loader's iterator where they are.

    They use no core until :func:`continue_workers`; :func:`close` ends them
    stopped or not.
    """
    _to_each_worker(iterator, psutil.Process.suspend)


def continue_workers(iterator: Iterator) -> None:
    """Let stopped workers go on."""
    _to_each_worker(iterator, psutil.Process.resume)


def worker_pids(iterator: Iterator) -> list[int]:
    """Process numbers of the workers of a loader's iterator."""
    return [worker.pid for worker in getattr(iterator, "_workers", ())]


def _to_each_worker(
    iterator: Iterator, action: Callable[[psutil.Process], None]
) -> None:
    for pid in worker_pids(iterator):
        # A worker that died is reported by the loader, at the next batch.
        with contextlib.suppress(psutil.NoSuchProcess):
            action(psutil.Process(pid))


def drain_batches(loader: DataLoader) -> int:
    """Batches to consume before timing: until every one was asked for after
    the consumer had settled into its pace.

    A full prefetch queue holds ``num_workers * prefetch_factor`` batches that
    were made while nobody waited, and each worker may be busy with one more.
    """
    if loader.num_workers == 0:
        return 0
    return loader.num_workers * (loader.prefetch_factor or 0) + loader.num_workers
