"""What can be done with a batch of any shape: weigh it, copy it, compare it."""

import copy
from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

_PLAIN = (str, bytes, bytearray, int, float, complex, bool, type(None))
_DATA = (Tensor, np.ndarray, *_PLAIN)


def leaves(batch: object) -> Iterator[object]:
    """The parts that hold data: tensors, arrays, texts, numbers.

    Goes into mappings, lists, tuples, sets and the attributes of other objects.
    """
    stack, seen = [batch], set()
    while stack:
        item = stack.pop()
        if isinstance(item, _DATA):
            yield item
            continue
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, Mapping):
            stack += reversed(list(item.values()))
        elif isinstance(item, list | tuple | set | frozenset):
            stack += reversed(list(item))
        elif hasattr(item, "__dict__"):
            stack += reversed(list(vars(item).values()))
        else:
            yield item


def size(batch: object) -> int:
    """Bytes that a batch takes on its way from a worker.

    Of a tensor the whole storage counts, once: that is what shared memory holds,
    even for a view of a small part.
    """
    storages: dict[int, int] = {}
    total = 0
    for leaf in leaves(batch):
        if isinstance(leaf, Tensor) and leaf.layout == torch.strided:
            storage = leaf.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
        elif isinstance(leaf, Tensor | np.ndarray):
            total += leaf.nbytes
        elif isinstance(leaf, str | bytes | bytearray):
            total += len(leaf)
        else:
            total += 8
    return total + sum(storages.values())


def clone(batch: object) -> object:
    """A batch of its own, so that a step that writes into it spoils nothing.

    Pinned tensors stay pinned: a copy from them to a device is faster.
    """
    if isinstance(batch, Tensor):
        copied = batch.clone()
        return copied.pin_memory() if batch.is_pinned() else copied
    if type(batch) is dict:
        return {key: clone(value) for key, value in batch.items()}
    if type(batch) in (list, tuple):
        return type(batch)(clone(value) for value in batch)
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(clone(value) for value in batch))
    return copy.deepcopy(batch)


def identical(one: object, other: object) -> bool:
    """Two batches hold the same bits, as far as can be seen."""
    left, right = list(leaves(one)), list(leaves(other))
    return len(left) == len(right) and all(map(_same, left, right))


def _same(one: object, other: object) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, Tensor):
        alike = (one.dtype, one.shape) == (other.dtype, other.shape)
        # NaN differs from itself; "as stored" is what is asked for here.
        close = alike and torch.isclose(one, other, rtol=0, atol=0, equal_nan=True)
        return bool(alike and close.all())
    if isinstance(one, np.ndarray):
        alike = (one.dtype, one.shape) == (other.dtype, other.shape)
        return alike and one.tobytes() == other.tobytes()
    if isinstance(one, _PLAIN):
        return one == other or one != one and other != other
    return False
