"""Random generators as objects: which they are, their states, how to keep them."""

import contextlib
import hashlib
import pickle
import random
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import torch

from helpers.advise.objects import inert
from helpers.advise.objects.walker import Node, Walk


class _Kind(NamedTuple):
    """How to read and write the state of one kind of generator."""

    type: type
    read: Callable[..., object]
    write: Callable[..., object]


def _write_bits(bits: np.random.BitGenerator, state: object) -> None:
    bits.state = state


_KINDS = (
    _Kind(torch.Generator, torch.Generator.get_state, torch.Generator.set_state),
    _Kind(
        np.random.Generator,
        lambda generator: generator.bit_generator.state,
        lambda generator, state: _write_bits(generator.bit_generator, state),
    ),
    _Kind(np.random.BitGenerator, lambda bits: bits.state, _write_bits),
    _Kind(
        np.random.RandomState,
        np.random.RandomState.get_state,
        np.random.RandomState.set_state,
    ),
    _Kind(random.Random, random.Random.getstate, random.Random.setstate),
)


def is_generator(value: object) -> bool:
    """A generator with a state of its own."""
    # SystemRandom asks the system, which repeats nothing.
    return _kind(value) is not None and not inert.is_a(value, random.SystemRandom)


def is_global(value: object) -> bool:
    """One of the generators that torch seeds in every worker."""
    known = (torch.default_generator, random._inst, np.random.mtrand._rand)
    return any(value is one for one in known)


def in_walk(found: Walk) -> list[Node]:
    """The generators among the objects of a loader."""
    return [node for node in found.nodes if is_generator(node.value)]


def fingerprint(generator: object) -> str:
    """A short text that differs if the state differs."""
    kind = _kind(generator)
    assert kind is not None
    return _digest(kind.read(generator))


def global_fingerprints() -> dict[str, str]:
    """Those of the global generators of torch, numpy and ``random``."""
    return {
        "torch": _digest(torch.get_rng_state()),
        "numpy": _digest(np.random.get_state()),
        "random": _digest(random.getstate()),
    }


@contextlib.contextmanager
def preserved(generators: Iterable[object]) -> Iterator[None]:
    """Put the states of some generators back afterwards."""
    kept = [(kind, one, kind.read(one)) for one in generators if (kind := _kind(one))]
    try:
        yield
    finally:
        for kind, generator, state in kept:
            kind.write(generator, state)


def _kind(value: object) -> _Kind | None:
    return next((kind for kind in _KINDS if inert.is_a(value, kind.type)), None)


def _digest(state: object) -> str:
    # A tensor's pickle holds more than its values.
    plain = state.tolist() if isinstance(state, torch.Tensor) else state
    return hashlib.sha256(pickle.dumps(plain)).hexdigest()[:16]
