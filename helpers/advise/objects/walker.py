"""Every object that a loader would send to its workers, with the path to it.

Runs no code of the objects (see :mod:`helpers.advise.objects.inert`). Long containers
are sampled, but no element whose type occurs nowhere else is passed over.
"""

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from helpers.advise.objects import inert
from helpers.advise.objects.inert import Child

#: Containers with more elements are sampled down to about so many.
SAMPLED = 256

#: Types are looked at in so many first elements of a container.
_TYPES_IN = 5_000_000

#: A logger is pickled by its name; what hangs on it stays in this process.
_CLOSED = (logging.Logger, logging.LoggerAdapter)


@dataclass(frozen=True)
class Limits:
    """Where a walk stops."""

    depth: int = 60
    nodes: int = 200_000
    seconds: float = 1.0


@dataclass(frozen=True)
class Node:
    """One object that was found.

    ``name`` is the attribute, variable or keyword nearest to it on the path.
    """

    value: object
    path: str
    name: str | None
    parent: "Node | None"
    depth: int

    def ancestors(self) -> Iterator["Node"]:
        """Those that hold it, the nearest first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent


@dataclass
class Walk:
    """What was found. ``cut`` says why and where the walk stopped early."""

    nodes: list[Node] = field(default_factory=list)
    cut: str | None = None

    def of(self, *kinds: type) -> list[Node]:
        """The nodes of these classes and their subclasses."""
        return [node for node in self.nodes if inert.is_a(node.value, *kinds)]


def walk(
    roots: dict[str, object],
    limits: Limits | None = None,
    sampled: int | None = SAMPLED,
) -> Walk:
    """Find every object below ``roots``, each once, the nearest first.

    Args:
        roots: path of a root -> the object.
        limits: where to stop.
        sampled: containers with more elements are sampled; None: none is.
    """
    limits = limits or Limits()
    found, deadline = Walk(), time.perf_counter() + limits.seconds
    waiting = [Node(root, path, None, None, 0) for path, root in roots.items()]
    # The nodes keep what they found alive, so that no id is used twice.
    seen = {id(node.value) for node in waiting}
    for node in _growing(waiting):
        found.nodes.append(node)
        if reason := _too_much(found, node, limits, deadline):
            found.cut = f"{reason} at {node.path}"
            break
        if node.depth == limits.depth:
            found.cut = f"nested deeper than {limits.depth} at {node.path}"
            continue
        for child in children(node.value, sampled):
            if inert.is_plain(child.value) or id(child.value) in seen:
                continue
            seen.add(id(child.value))
            waiting.append(_below(node, child))
    return found


def children(value: object, sampled: int | None = SAMPLED) -> Iterator[Child]:
    """The objects directly inside ``value``."""
    if inert.is_plain(value) or inert.is_a(value, *_CLOSED):
        return
    yield from inert.inside(value)
    entries = inert.items(value)
    if entries is not None:
        yield from _entries(entries, sampled)
        return
    elements = inert.elements(value)
    if elements is not None:
        for position in _chosen(elements, sampled):
            yield Child(f"[{position}]", None, elements[position])


def _growing(waiting: list[Node]) -> Iterator[Node]:
    """The nodes of a list that gets longer meanwhile, let go one by one."""
    position = 0
    while position < len(waiting):
        yield waiting[position]
        position += 1


def _too_much(found: Walk, node: Node, limits: Limits, deadline: float) -> str:
    if len(found.nodes) >= limits.nodes:
        return f"more than {limits.nodes:,} objects, stopped"
    if time.perf_counter() > deadline:
        return f"took longer than {limits.seconds:g} seconds, stopped"
    return ""


def _below(node: Node, child: Child) -> Node:
    name = node.name if child.name is None else child.name
    return Node(child.value, node.path + child.label, name, node, node.depth + 1)


def _entries(
    entries: Sequence[tuple[object, object]], sampled: int | None
) -> Iterator[Child]:
    values = [value for _, value in entries]
    for position in _chosen(values, sampled):
        key, value = entries[position]
        name = key if type(key) is str else None
        yield Child(inert.key_label(key, position), name, value)
        if not inert.is_plain(key):
            yield Child(f".keys()[{position}]", None, key)


def _chosen(elements: Sequence[object], sampled: int | None) -> Iterable[int]:
    """Positions to look at: all, or evenly spread ones and one of each type."""
    if sampled is None or len(elements) <= sampled:
        return range(len(elements))
    spread = range(0, len(elements), -(-len(elements) // sampled))
    return sorted({*spread, *_first_of_each_type(elements)})


def _first_of_each_type(elements: Sequence[object]) -> Iterable[int]:
    # The type's id, because a metaclass may define what its hash is.
    kinds = list(map(id, map(type, elements[:_TYPES_IN])))
    return [kinds.index(kind) for kind in set(kinds)]
