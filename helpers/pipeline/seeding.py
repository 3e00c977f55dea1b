"""Seeds: where random numbers come from, and how to make them come again."""

import contextlib
import hashlib
import random
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import nn
from torch.utils.data import get_worker_info

_WORD = 2**32


def derive(*numbers: int) -> int:
    """One seed from several numbers, such as a seed, an epoch and an index.

    Unlike a sum it does not meet itself again: ``1 + 0`` is ``0 + 1``, but
    ``derive(1, 0)`` is not ``derive(0, 1)``. Mixed by numpy's ``SeedSequence``,
    so the same on every machine and in every process.

    Args:
        numbers: each 0 to 2**64 - 1; their order and count matter.

    Returns:
        int: 0 to 2**63 - 1. Two different inputs meet with the chance of two
        random 63-bit numbers.

    Raises:
        ValueError: no number, or one out of range.
    """
    return _mixed(numbers, 1)[0] >> 1


def _mixed(numbers: Sequence[int], count: int) -> list[int]:
    """``count`` seeds of 64 bits; see :func:`derive`."""
    if not numbers or any(not 0 <= number < _WORD**2 for number in numbers):
        raise ValueError(f"seeds need numbers from 0 to 2**64 - 1, got {numbers}")
    # Two words for each, and their count: otherwise 2**32 would be read as 0, 1.
    words = [len(numbers)]
    for number in numbers:
        words += [number % _WORD, number // _WORD]
    return np.random.SeedSequence(words).generate_state(count, np.uint64).tolist()


def seed_everything(seed: int) -> None:
    """Seed the global generators of ``random``, numpy and torch (all devices).

    numpy gets a number of its own, derived from the seed: given the same one,
    its legacy generator and torch's produce the same bits, and decisions that
    should be independent are then the same decision.

    Generator *objects* that you made yourself are not reached.

    Args:
        seed: 0 to 2**32 - 1: torch's generator on the CPU reads no more bits.

    Raises:
        ValueError: the seed is out of range.
    """
    if not 0 <= seed < _WORD:
        raise ValueError(f"seed must be 0..{_WORD - 1}, got {seed}")
    random.seed(seed)
    np.random.seed(derive(seed) % _WORD)
    torch.manual_seed(seed)


def loader_generator(seed: int) -> torch.Generator:
    """A generator of its own for one loader, so that others cannot move it."""
    return torch.Generator().manual_seed(seed)


@contextlib.contextmanager
def numbers_from(*numbers: int) -> Iterator[None]:
    """Inside the block, global random numbers depend on ``numbers`` only.

    Reaches ``random``, numpy's legacy generator and torch on the CPU, and so
    everything that draws from them. After the block all three go on as if it
    had not been there. Generator objects and other devices are not touched.

    Args:
        numbers: as for :func:`derive`, for example seed, epoch and index.

    Raises:
        ValueError: as :func:`derive` does.
    """
    # One for each: the same seed would give numpy and torch the same bits.
    for_python, for_numpy, for_torch = _mixed(numbers, 3)
    python, legacy = random.getstate(), np.random.get_state()
    # Not torch.manual_seed: it would seed the accelerators too.
    with torch.random.fork_rng(devices=[]):
        random.seed(for_python)
        np.random.seed([for_numpy % _WORD, for_numpy // _WORD])
        torch.default_generator.manual_seed(for_torch)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(legacy)


class WorkerGenerator:
    """A numpy generator that every worker builds for itself, when it first draws.

    The test is *which worker* built it, not whether there is one: a generator
    that the main process has built travels to the workers with the dataset.

    Args:
        key: two of these in one dataset need different ones, or they draw the
            same numbers.
    """

    def __init__(self, key: int = 0) -> None:
        self.key = key
        self._seed: int | None = None
        self._generator: np.random.Generator | None = None

    def get(self) -> np.random.Generator:
        """The generator of this process. It is new in a worker that is new."""
        worker = get_worker_info()
        seed = torch.initial_seed() if worker is None else worker.seed
        if self._generator is None or seed != self._seed:
            self._seed = seed
            self._generator = np.random.default_rng(derive(seed, self.key))
        return self._generator


def constant_seed(worker_id: int) -> None:
    """Often advised, and harmful. All workers and all epochs draw the same numbers."""
    np.random.seed(42)


def constant_seed_per_worker(worker_id: int) -> None:
    """Often advised, and harmful. All epochs draw the same numbers."""
    np.random.seed(42 + worker_id)


def numpy_state_per_worker(worker_id: int) -> None:
    """Often advised, and harmful. All epochs and all runs draw the same numbers."""
    np.random.seed(np.random.get_state()[1][0] + worker_id)


def documented_seed(worker_id: int) -> None:
    """The ``worker_init_fn`` of PyTorch's notes on reproducibility.

    Needed before torch 1.9, when numpy was not seeded in workers. Now it makes
    numpy and torch draw the same bits.
    """
    worker_seed = torch.initial_seed() % 2**32
    np.random.seed(worker_seed)
    random.seed(worker_seed)


#: What is advised for ``worker_init_fn``, from the worst to the least bad.
ADVISED = (
    constant_seed,
    constant_seed_per_worker,
    numpy_state_per_worker,
    documented_seed,
)


def weights_hash(model: nn.Module) -> str:
    """SHA-256 of all parameters and buffers: equal only if every bit is equal.

    Names, dtypes and shapes count too.
    """
    digest = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        value = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {value.dtype} {tuple(value.shape)} ".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
