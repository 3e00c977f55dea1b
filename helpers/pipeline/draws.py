"""Datasets whose samples are random, each drawn from another kind of stream."""

import random
from collections.abc import Callable
from itertools import islice

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, get_worker_info

from helpers.pipeline.seeding import numbers_from, seed_everything

# A power of two, so that no generator rejects a number and draws again; from
# 2**28 on torch takes 64 random bits for a number, and numpy 32.
_BOUND = 2**27


class StreamWitness(Dataset):
    """Every sample is one draw from each kind of random stream.

    Keys: ``index``, ``worker_seed`` (-1 in the main process) and the names in
    ``STREAMS``; all are ints, the draws from 0 to 2**27 - 1. The first three
    streams are global, the next three are objects of this dataset, and the last
    is a generator made anew, without a seed, for every draw.

    Args:
        samples: how many.
        seed: of the three objects.
    """

    STREAMS = (
        "torch",
        "random",
        "numpy, legacy",
        "torch.Generator",
        "random.Random",
        "numpy.Generator",
        "a new default_rng()",
    )

    def __init__(self, samples: int = 2, seed: int = 0) -> None:
        self.samples = samples
        self.torch = torch.Generator().manual_seed(seed)
        self.python = random.Random(seed)
        self.numpy = np.random.default_rng(seed)

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> dict[str, int]:
        draws = (
            torch.randint(_BOUND, ()),
            random.randrange(_BOUND),
            np.random.randint(_BOUND),
            torch.randint(_BOUND, (), generator=self.torch),
            self.python.randrange(_BOUND),
            self.numpy.integers(_BOUND),
            np.random.default_rng().integers(_BOUND),
        )
        named = zip(self.STREAMS, map(int, draws), strict=True)
        worker = get_worker_info()
        seed = -1 if worker is None else worker.seed
        return {"index": index, "worker_seed": seed, **dict(named)}


class OnePicture(Dataset):
    """The same picture for every index, through a transform that draws.

    Whatever differs between two samples was drawn.

    Args:
        image: the picture.
        transform: takes it, gives a tensor.
        samples: how many.
    """

    def __init__(
        self,
        image: Image.Image,
        transform: Callable[[Image.Image], Tensor],
        samples: int = 8,
    ) -> None:
        self.image = image
        self.transform = transform
        self.samples = samples

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> Tensor:
        return self.transform(self.image)


class SeededPerSample(Dataset):
    """Any map-style dataset, its randomness decided by seed, epoch and index.

    So a sample does not depend on which worker fetches it, nor on how many there
    are. It reaches what :func:`helpers.pipeline.seeding.numbers_from` reaches.

    Args:
        dataset: the dataset to wrap.
        seed: of the run, 0 to 2**64 - 1.
    """

    def __init__(self, dataset: Dataset, seed: int) -> None:
        self.dataset = dataset
        self.seed = seed
        # In shared memory, so that workers that are kept see it change.
        self.epoch = torch.zeros((), dtype=torch.int64).share_memory_()

    def set_epoch(self, epoch: int) -> None:
        """Call it between epochs, before you iterate; ``epoch`` is 0 or more."""
        self.epoch.fill_(epoch)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> object:
        with numbers_from(self.seed, int(self.epoch), index):
            return self.dataset[index]


def two_epochs(
    dataset: Dataset,
    seed: int = 0,
    between: Callable[[], object] = lambda: None,
    stop: int | None = None,
    **options: object,
) -> tuple[list, list]:
    """Seed everything, then read two epochs with one loader.

    A dataset with ``set_epoch`` is told the number of each epoch.

    Args:
        dataset: map-style.
        seed: of all global generators.
        between: called between the epochs.
        stop: leave epoch 1 after this many batches.
        options: of the DataLoader.

    Returns:
        The batches of both epochs.
    """
    seed_everything(seed)
    set_epoch = getattr(dataset, "set_epoch", lambda epoch: None)
    loader = DataLoader(dataset, **options)
    set_epoch(0)
    first = list(islice(loader, stop))
    between()
    set_epoch(1)
    return first, list(loader)
