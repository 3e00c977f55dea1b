"""Datasets for the tests of the advisers; spawned workers import this too."""

import os
import time
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset, get_worker_info


class Waiting(Dataset):
    """Waits for every sample as for a disk, and says which one it is."""

    def __init__(self, samples: int = 512, wait_ms: float = 5.0) -> None:
        self.samples, self.wait_s = samples, wait_ms / 1000

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> Tensor:
        time.sleep(self.wait_s)
        return torch.full((4,), float(index))


class SlowAtFirst(Waiting):
    """Waits only for what nobody has read before, as the page cache has it."""

    def __init__(self, samples: int, wait_ms: float = 5.0) -> None:
        super().__init__(samples, wait_ms)
        self.known = torch.zeros(samples, dtype=torch.bool).share_memory_()

    def __getitem__(self, index: int) -> Tensor:
        time.sleep(0.001 if self.known[index] else self.wait_s)
        self.known[index] = True
        return torch.full((4,), float(index))


class Broken(Waiting):
    """Sample 21 cannot be read."""

    def __getitem__(self, index: int) -> Tensor:
        if index == 21:
            raise ValueError("bad row")
        return torch.full((4,), float(index))


class BrokenLists(Broken):
    """The same, asked for whole batches."""

    def __getitems__(self, indices: list[int]) -> list[Tensor]:
        return [self[index] for index in indices]


class OnlyInWorkers(Waiting):
    """Refuses to be called in the process that made it."""

    def __init__(self) -> None:
        super().__init__(512, 1.0)
        self.maker = os.getpid()

    def __getitem__(self, index: int) -> Tensor:
        assert os.getpid() != self.maker, "called in the main process"
        return super().__getitem__(index)


class Stream(IterableDataset):
    """Counts; the workers divide it. Nobody may ask for its length."""

    divided = True

    def __init__(self, length: int, wait_ms: float = 1.0) -> None:
        self.length, self.wait_s = length, wait_ms / 1000

    def __len__(self) -> int:
        raise AssertionError("the length of a stream was asked for")

    def __iter__(self) -> Iterator[Tensor]:
        info = get_worker_info() if self.divided else None
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for index in range(first, self.length, step):
            time.sleep(self.wait_s)
            yield torch.tensor(float(index))


class Undivided(Stream):
    """Every worker yields everything."""

    divided = False


class Constant(Undivided):
    """Yields the same all the time, so that nothing proves a duplicate."""

    def __iter__(self) -> Iterator[Tensor]:
        return (torch.zeros(1) for _ in super().__iter__())


class BrokenStream(Stream):
    """Fails after some samples."""

    def __iter__(self) -> Iterator[Tensor]:
        for value in super().__iter__():
            if value > 20:
                raise OSError("connection lost")
            yield value


class Listing:
    """A batch sampler without a length."""

    def __iter__(self) -> Iterator[list[int]]:
        return iter([[i, i + 1] for i in range(0, 200, 2)])


def broken_collate(samples: list[Tensor]) -> Tensor:
    if any(sample[0] == 21 for sample in samples):
        raise TypeError("cannot be stacked")
    return torch.stack(samples)
