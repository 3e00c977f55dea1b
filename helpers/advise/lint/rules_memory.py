"""Rules about memory: of the dataset, and of the batches in flight (DL4xx)."""

from collections.abc import Iterator

import numpy as np

from helpers.advise.lint.codes import finding
from helpers.advise.lint.findings import ERROR, NOTE, WARNING, Finding
from helpers.advise.lint.subject import Subject
from helpers.advise.objects import object_sizes

#: Copies that together take less than this are not worth a word.
_COPIES_AT_LEAST = 256_000_000
_COPIES_SHARE = 0.05

#: A view is wasteful if its storage is so many times larger, and so much.
_VIEW_TIMES, _VIEW_EXTRA = 4, 2**20

#: Shares of what is free that the batches in flight may take.
_SHM_SHARE, _MEMORY_SHARE = 1 / 2, 1 / 4


def long_lists(subject: Subject) -> Iterator[Finding]:
    """DL401: Python objects that every worker ends up with a copy of."""
    heaps = object_sizes.long_containers(subject.walk)
    if not heaps:
        return
    size = sum(heap.weight.objects for heap in heaps)
    if size * subject.workers <= _worth_a_word(subject):
        return
    largest = max(heaps, key=lambda heap: heap.weight.objects)
    others = f" and {len(heaps) - 1} other containers" if len(heaps) > 1 else ""
    what = (
        f"{largest.count:,} Python objects{others} of {_mb(size)}, copied to "
        f"{subject.workers} workers: up to {_mb(size * subject.workers)}"
    )
    yield finding("DL401", WARNING, largest.path, what)


def pickled_arrays(subject: Subject) -> Iterator[Finding]:
    """DL402: numpy arrays that every started worker gets by value."""
    if subject.forks:
        return
    loose = object_sizes.loose_arrays(subject.walk)
    sizes = {node.path: float(node.value.nbytes) for node in loose}
    for heap in object_sizes.long_containers(subject.walk):
        sizes[heap.path] = heap.weight.arrays
    size = sum(sizes.values())
    if size * subject.workers <= _worth_a_word(subject):
        return
    largest = max(sizes, key=sizes.__getitem__)
    mapped = any(n.path == largest and type(n.value) is np.memmap for n in loose)
    what = (
        f"{_mb(size)} of arrays{', a memory map among them,' if mapped else ''} "
        f"pickled for {subject.workers} workers: {_mb(size * subject.workers)}"
    )
    yield finding("DL402", WARNING, largest, what)


def _worth_a_word(subject: Subject) -> float:
    return max(_COPIES_AT_LEAST, _COPIES_SHARE * subject.here.memory_free)


def views(subject: Subject) -> Iterator[Finding]:
    """DL403: a part of a large storage drags the whole of it along."""
    for report in subject.reports[:1]:
        large = [
            view
            for view in report.views
            if view.storage > _VIEW_TIMES * view.used
            and view.storage - view.used > _VIEW_EXTRA
        ]
        if large:
            used = sum(view.used for view in large)
            storage = sum(view.storage for view in large)
            what = f"{_mb(used)} are used of storages of {_mb(storage)}"
            severity = WARNING if subject.workers else NOTE
            yield finding("DL403", severity, large[0].path, what)


def in_flight(subject: Subject) -> Iterator[Finding]:
    """DL404: the prefetched batches against what is free."""
    prefetch = subject.loader.prefetch_factor or 0
    for report in subject.reports[:1]:
        batches = subject.workers * prefetch
        size = batches * report.size
        what = f"{batches} batches of {_mb(report.size)} in flight take {_mb(size)}"
        shm, memory = subject.here.shm_free, subject.here.memory_free
        if shm is not None and size > _SHM_SHARE * shm:
            severity = ERROR if size > shm else WARNING
            what += f", and /dev/shm has {_mb(shm)} free"
            yield finding("DL404", severity, "loader", what)
        elif size > _MEMORY_SHARE * memory:
            what += f", and {_mb(memory)} of memory are free"
            yield finding("DL404", WARNING, "loader", what)


def _mb(size: float) -> str:
    return f"{size / 1e6:,.0f} MB" if size >= 1e7 else f"{size / 1e6:.1f} MB"


RULES = (long_lists, pickled_arrays, views, in_flight)
