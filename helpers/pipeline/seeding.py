"""Seeds for the book's experiments."""

import random

import numpy as np
import torch


def seed_everything(seed: int) -> None:
    """Seed the global generators of ``random``, numpy and torch (all devices).

    Generator *objects* that you made yourself are not reached.

    Args:
        seed: 0 to 2**32 - 1, the range of numpy's legacy generator.

    Raises:
        ValueError: the seed is out of range.
    """
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed must be 0..{2**32 - 1}, got {seed}")
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def loader_generator(seed: int) -> torch.Generator:
    """A generator of its own for one loader, so that others cannot move it."""
    return torch.Generator().manual_seed(seed)
