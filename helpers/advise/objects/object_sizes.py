"""How many bytes the Python objects in long containers take, by samples.

Nothing of the objects is called: sizes are those of the built-in classes, plus
the dictionaries of instances.
"""

import itertools
import sys
from dataclasses import dataclass

import numpy as np

from helpers.advise.objects import inert
from helpers.advise.objects.walker import SAMPLED, Node, Walk

#: Elements looked at in a container inside another one.
_INNER = 16

#: Containers inside containers are followed so far.
_DEPTH = 6

#: What the garbage collector puts in front of an object.
_GC_HEADER = 16

#: The object around the bytes of an array.
_ARRAY_HEADER = 112


@dataclass(frozen=True)
class Weight:
    """Bytes of Python objects, and bytes of arrays among them."""

    objects: float = 0.0
    arrays: float = 0.0

    def __add__(self, other: "Weight") -> "Weight":
        return Weight(self.objects + other.objects, self.arrays + other.arrays)

    def times(self, factor: float) -> "Weight":
        """So many of them."""
        return Weight(self.objects * factor, self.arrays * factor)


@dataclass(frozen=True)
class Heap:
    """A long container, with all that it holds."""

    path: str
    count: int
    weight: Weight


def long_containers(found: Walk) -> list[Heap]:
    """The long containers of a loader, without those inside another one."""
    heaps, outer = [], set()
    for node in found.nodes:
        count = length(node.value)
        if count <= SAMPLED or any(id(a.value) in outer for a in node.ancestors()):
            continue
        outer.add(id(node.value))
        heaps.append(Heap(node.path, count, weigh(node.value)))
    return heaps


def loose_arrays(found: Walk) -> list[Node]:
    """Arrays of numbers that are not inside a long container."""
    return [
        node
        for node in found.of(np.ndarray)
        if inert.is_number_array(node.value)
        and not any(length(holder.value) > SAMPLED for holder in node.ancestors())
    ]


def length(value: object) -> int:
    """Number of elements of a container of objects; 0 if it is none."""
    for kind in inert.CONTAINERS:
        if inert.is_a(value, kind):
            return kind.__len__(value)
    if inert.is_object_array(value):
        return np.ndarray.size.__get__(value)
    return 0


def weigh(value: object, sampled: int = SAMPLED, depth: int = 0) -> Weight:
    """Estimate the bytes of an object and all that it holds.

    Of the elements of a container some are weighed. Elements that are the same
    object count once, as far as the sample shows it.
    """
    if inert.is_number_array(value):
        return Weight(_ARRAY_HEADER, np.ndarray.nbytes.__get__(value))
    total = Weight(_own_size(value))
    if inert.is_plain(value) or depth == _DEPTH:
        return total
    for part in inert.attributes(value).values():
        total += weigh(part, _INNER, depth + 1)
    count = length(value)
    if count:
        elements = _spread(value, count, sampled)
        held = 2 * count if inert.is_a(value, dict) else count
        different = {id(element): element for element in elements}
        weights = [weigh(one, _INNER, depth + 1) for one in different.values()]
        total += sum(weights, Weight()).times(held / len(elements))
    return total


def _spread(value: object, count: int, sampled: int) -> list[object]:
    """About ``sampled`` elements; of a mapping, so many keys and their values."""
    step = max(1, count // sampled)
    if inert.is_a(value, list):
        return list.__getitem__(value, slice(None, None, step))
    if inert.is_a(value, tuple):
        return list(tuple.__getitem__(value, slice(None, None, step)))
    if inert.is_a(value, dict):
        pairs = itertools.islice(dict.items(value), 0, None, step)
        return list(itertools.chain.from_iterable(pairs))
    return list(itertools.islice(inert.elements(value) or (), 0, None, step))


def _own_size(value: object) -> int:
    if inert.is_plain(value) or inert.is_exactly(value, *inert.CONTAINERS):
        return sys.getsizeof(value)
    if inert.is_object_array(value):
        return _ARRAY_HEADER + np.ndarray.nbytes.__get__(value)
    own = inert.attributes(value)
    extra = _GC_HEADER + (sys.getsizeof(own) if own else 0)
    for kind in inert.CONTAINERS:
        if inert.is_a(value, kind):
            return kind.__sizeof__(value) + extra
    return object.__sizeof__(value) + extra
