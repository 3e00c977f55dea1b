"""Two hooks that make a loader's batches carry the times of their making.

Nothing is wrapped that the reader's code could notice: the dataset stays as it
is, and the batches come out unchanged.

1. The (batch) sampler of a copy yields marked indices. When a worker unpickles
   one it notes the time and gets the reader's own index: fetching begins.
2. The collate function of the copy returns ``(head, batch, tail)``. Head and
   tail note when they are pickled, unpickled and pinned. torch and pickle treat
   a tuple from left to right, so these are the start and the end of each stage.

All times are ``time.perf_counter_ns``. It is one clock for the whole system:
CLOCK_MONOTONIC on Linux, and system-wide on macOS and Windows from Python 3.10
on (cpython issue 37205).
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch.utils.data import DataLoader, get_worker_info
from torch.utils.data.dataloader import _BaseDataLoaderIter

from helpers.measure import copies

now = time.perf_counter_ns


class Making(NamedTuple):
    """How one batch was made, in ns; ``worker`` is None in the main process.

    ``batch`` counts within the epoch, in the order of the sampler.
    """

    epoch: int
    batch: int
    worker: int | None
    sent: int
    fetch: int
    collate: int
    done: int


class Stamp:
    """Travels in front of or behind a batch and notes when it passes a stage.

    A time of 0 means that the stage was never passed.
    """

    __slots__ = ("making", "pickled", "pinned", "unpickled")

    def __init__(
        self,
        making: Making | None = None,
        pickled: int = 0,
        unpickled: int = 0,
        pinned: int = 0,
    ) -> None:
        self.making = making
        self.pickled = pickled
        self.unpickled = unpickled
        self.pinned = pinned

    def __reduce__(self) -> tuple:
        return _received, (self.making and tuple(self.making), now())

    def pin_memory(self, device: object = None) -> "Stamp":
        """Called by torch (``_utils/pin_memory.py``) in the stamp's turn."""
        return Stamp(self.making, self.pickled, self.unpickled, now())


def _received(making: tuple | None, pickled: int) -> Stamp:
    return Stamp(making and Making(*making), pickled, now())


class Delivery(NamedTuple):
    """One batch that arrived: its stamps, and the call of ``next`` it came by."""

    head: Stamp
    tail: Stamp
    asked: int
    got: int

    @property
    def making(self) -> Making:
        return self.head.making


class TracedLoader:
    """Yields the batches of a copy of ``loader`` and keeps their times.

    ``deliveries`` grows by one with every batch. Call :meth:`close` when done,
    also after an error.

    Raises:
        TypeError: not a DataLoader.
        RuntimeError: the hooks cannot reach how this loader iterates.
    """

    def __init__(self, loader: DataLoader) -> None:
        copies.require_loader(loader)
        _refuse_unhookable(loader)
        self.deliveries: list[Delivery] = []
        self._iterators: list[_TracedIterator] = []
        self._copy = copies.detached(loader)
        name = "sampler" if loader.batch_sampler is None else "batch_sampler"
        inner = getattr(self._copy, name)
        self._sampler = _MarkingSampler(inner, loader.num_workers > 0)
        # On the instance: DataLoader.__iter__ asks ``self`` for an iterator, so
        # a subclass that changes batches in its own __iter__ gets plain ones.
        hooks = {
            name: self._sampler,
            "collate_fn": _TimedCollate(loader.collate_fn),
            "_get_iterator": self._traced_iterator,
        }
        for attribute, hook in hooks.items():
            object.__setattr__(self._copy, attribute, hook)

    def __iter__(self) -> Iterator:
        self._sampler.epoch += 1
        return iter(self._copy)

    def latest(self) -> Delivery:
        """The batch that arrived last.

        Raises:
            RuntimeError: none did, so batches reach the loop some other way.
        """
        if not self.deliveries:
            raise _cannot_follow("they do not come from DataLoader's own iterator")
        return self.deliveries[-1]

    def drain(self, limit_s: float = 5.0) -> None:
        """Take in what workers have been asked for already, and nothing more.

        Without this the work on batches that nobody takes would be missing.
        Faults in those batches are nobody's concern.
        """
        self._sampler.stopped = True
        deadline = now() + limit_s * 1e9
        with contextlib.suppress(Exception):
            for _ in self._iterators[-1]:
                if now() > deadline:
                    break

    def close(self) -> None:
        """End the workers and wait for them."""
        for iterator in self._iterators:
            copies.close(iterator)

    def _traced_iterator(self) -> "_TracedIterator":
        inner = type(self._copy)._get_iterator(self._copy)
        self._iterators.append(_TracedIterator(inner, self.deliveries))
        return self._iterators[-1]


def _refuse_unhookable(loader: DataLoader) -> None:
    kind = type(loader).__name__
    if not hasattr(loader, "_get_iterator"):
        raise RuntimeError(
            f"the timeline cannot hook the DataLoader of torch {torch.__version__}"
        )
    for name, value in vars(loader).items():
        if name != "_iterator" and isinstance(value, _BaseDataLoaderIter):
            raise RuntimeError(
                f"the timeline cannot follow a {kind}: it keeps a running iterator "
                f"in .{name}; record the plain DataLoader instead"
            )


class _TracedIterator:
    """The iterator of the copy: takes the stamps off and hands on the batch."""

    def __init__(self, inner: Iterator, deliveries: list[Delivery]) -> None:
        self._inner = inner
        self._deliveries = deliveries

    def __iter__(self) -> "_TracedIterator":
        return self

    def __next__(self) -> object:
        asked = now()
        item = next(self._inner)
        got = now()
        if not _is_stamped(item):
            raise _cannot_follow("they do not come as collate_fn returns them")
        head, batch, tail = item
        self._deliveries.append(Delivery(head, tail, asked, got))
        return batch

    def __getattr__(self, name: str) -> Any:
        # Persistent workers are reset, and all workers ended, through here.
        return getattr(self._inner, name)


def _cannot_follow(reason: str) -> RuntimeError:
    return RuntimeError(
        f"the timeline cannot follow this loader's batches: {reason} "
        f"(torch {torch.__version__})"
    )


def _is_stamped(item: object) -> bool:
    # Older versions of torch pin a tuple into a list.
    if not isinstance(item, tuple | list) or len(item) != 3:
        return False
    return isinstance(item[0], Stamp) and isinstance(item[2], Stamp)


class _MarkingSampler:
    """Yields what the inner sampler yields, marked with number and time."""

    def __init__(self, inner: Iterable, with_workers: bool) -> None:
        self.inner = inner
        self.epoch = -1
        self.stopped = False
        # Without workers nothing is pickled: fetching begins at once, here.
        self._mark = _MarkedIndex if with_workers else _arrived

    def __iter__(self) -> Iterator:
        # Not a generator itself: a sampler that draws when iter() is called
        # must go on drawing then, before the loader draws its base seed.
        return self._marks(iter(self.inner))

    def __len__(self) -> int:
        return len(self.inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def _marks(self, indices: Iterator) -> Iterator:
        for number, index in enumerate(indices):
            if self.stopped:
                return
            yield self._mark(self.epoch, number, now(), index)


class _MarkedIndex:
    """An index on its way to a worker."""

    __slots__ = ("parts",)

    def __init__(self, *parts: object) -> None:
        self.parts = parts

    def __reduce__(self) -> tuple:
        return _arrived, self.parts


# The task this process took last. A worker takes one at a time, so it is the
# task whose samples reach the collate function next.
_task: tuple[int, int, int, int] = (0, 0, 0, 0)


def _arrived(epoch: int, number: int, sent: int, index: object) -> object:
    global _task
    _task = (epoch, number, sent, now())
    return index


class _TimedCollate:
    """Calls the reader's collate function and puts stamps around its batch."""

    def __init__(self, collate: Callable) -> None:
        self.collate = collate

    def __call__(self, samples: object) -> tuple:
        began = now()
        epoch, number, sent, fetch = _task
        batch = self.collate(samples)
        done = now()
        info = get_worker_info()
        worker = None if info is None else info.id
        making = Making(epoch, number, worker, sent, fetch, began, done)
        return Stamp(making), batch, Stamp()
