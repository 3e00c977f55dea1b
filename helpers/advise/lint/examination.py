"""What runs in the throw-away worker of lint: looks at a batch and reports.

Only the report, which is small, goes to the main process; the batch does not.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.utils.data import get_worker_info

from helpers.advise.objects import batches, generators, inert, pickling, walker
from helpers.advise.objects.walker import Limits, Node

#: A batch is small beside a dataset, and every part of it counts.
_BATCH_LIMITS = Limits(depth=20, nodes=100_000, seconds=5)


@dataclass(frozen=True)
class Randomness:
    """Fingerprints of generators in one process at one moment.

    ``seeds`` are the global ones by library, ``objects`` those of the dataset by
    path.
    """

    seeds: dict[str, str]
    objects: dict[str, str]

    @classmethod
    def now(cls) -> "Randomness":
        """Look at this worker."""
        info = get_worker_info()
        found = walker.walk({"dataset": None if info is None else info.dataset})
        objects = {
            node.path: generators.fingerprint(node.value)
            for node in generators.in_walk(found)
        }
        return cls(generators.global_fingerprints(), objects)


# When this worker began, for the report of its batch.
_beginning: Randomness | None = None


@dataclass(frozen=True)
class View:
    """Tensors of a batch that share one storage; sizes in bytes."""

    path: str
    used: int
    storage: int


@dataclass(frozen=True)
class Report:
    """What one worker says about its first batch.

    Attributes:
        worker: its number.
        tensors: how many tensors the batch holds.
        size: bytes of the batch.
        array_bytes: bytes of numpy arrays, which are pickled.
        doubles: paths of float64 tensors and arrays.
        views: storages, each with the part that is used.
        unsendable: path and error of what cannot be pickled, or None.
        digest: of the contents; None where there is nothing to compare.
        before: the generators when the worker began.
        after: the same when the batch was made.
    """

    worker: int
    tensors: int
    size: int
    array_bytes: int
    doubles: tuple[str, ...]
    views: tuple[View, ...]
    unsendable: str | None
    digest: str | None
    before: Randomness | None
    after: Randomness | None


class Begin:
    """The reader's ``worker_init_fn``, and a note of the state that it leaves."""

    def __init__(self, init: Callable[[int], object] | None) -> None:
        self.init = init

    def __call__(self, worker: int) -> None:
        if self.init is not None:
            self.init(worker)
        global _beginning
        _beginning = Randomness.now()


class Examine:
    """The reader's collate function; gives a report instead of the batch."""

    def __init__(self, collate: Callable[[object], object]) -> None:
        self.collate = collate

    def __call__(self, samples: object) -> Report | str:
        batch = self.collate(samples)
        info = get_worker_info()
        try:
            return report(
                batch, 0 if info is None else info.id, _beginning, Randomness.now()
            )
        except Exception as error:  # not to be taken for a fault of the batch
            return f"the batch cannot be examined ({type(error).__name__}: {error})"


def report(
    batch: object,
    worker: int = 0,
    before: Randomness | None = None,
    after: Randomness | None = None,
) -> Report:
    """Look at a batch."""
    found = walker.walk({"batch": batch}, _BATCH_LIMITS, sampled=None)
    tensors, arrays = found.of(torch.Tensor), found.of(np.ndarray)
    faults = pickling.check(batch, "batch").faults
    return Report(
        worker=worker,
        tensors=len(tensors),
        size=batches.size(batch),
        array_bytes=sum(node.value.nbytes for node in arrays),
        doubles=tuple(node.path for node in tensors + arrays if _is_double(node)),
        views=_views(tensors),
        unsendable=f"{faults[0].path}: {faults[0].error}" if faults else None,
        digest=_digest(batch),
        before=before,
        after=after,
    )


def _is_double(node: Node) -> bool:
    return node.value.dtype in (torch.float64, np.dtype(np.float64))


def _views(tensors: Sequence[Node]) -> tuple[View, ...]:
    found: dict[int, View] = {}
    for node in tensors:
        tensor = node.value
        if tensor.layout != torch.strided:
            continue
        storage = tensor.untyped_storage()
        used = tensor.numel() * tensor.element_size()
        view = View(node.path, used, storage.nbytes())
        known = found.setdefault(storage.data_ptr(), view)
        if known is not view:
            together = View(known.path, known.used + used, known.storage)
            found[storage.data_ptr()] = together
    return tuple(found.values())


def _digest(batch: object) -> str | None:
    parts = [_content(leaf) for leaf in batches.leaves(batch)]
    if not any(parts):
        return None
    return hashlib.sha256(b"|".join(parts)).hexdigest()


def _content(leaf: object) -> bytes:
    if isinstance(leaf, torch.Tensor):
        if leaf.layout != torch.strided or leaf.device.type != "cpu":
            return b""
        flat = leaf.detach().contiguous().flatten()
        return flat.view(torch.uint8).numpy().tobytes()
    if isinstance(leaf, np.ndarray):
        return leaf.tobytes()
    return repr(leaf).encode() if inert.is_plain(leaf) else b""
