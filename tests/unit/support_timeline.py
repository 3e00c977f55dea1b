"""Loaders of every kind for test_timeline.py; spawned workers import this too."""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    Sampler,
    SequentialSampler,
    default_collate,
    get_worker_info,
)


class Numbers(Dataset):
    """Sample i is a tensor of i's and a random number of each source."""

    def __init__(self, length: int = 20) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, object]:
        assert type(index) is int, type(index)
        drawn = torch.rand(()), torch.tensor(np.random.rand()), random.random()
        return {"value": torch.full((3,), index), "drawn": drawn}


class Listed(Numbers):
    """Takes all indices of a batch in one call."""

    def __getitems__(self, indices: list[int]) -> list[dict[str, object]]:
        assert type(indices) is list, type(indices)
        return [self[index] for index in indices]


class Stream(IterableDataset):
    """Counts; the workers divide the numbers."""

    def __init__(self, length: int = 21) -> None:
        self.length = length

    def __iter__(self) -> Iterator[Tensor]:
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        yield from (torch.tensor(i) for i in range(first, self.length, step))


class Slow(Dataset):
    """Waits as reading from a disk does: seconds per index."""

    def __init__(self, waits: list[float]) -> None:
        self.waits = waits

    def __len__(self) -> int:
        return len(self.waits)

    def __getitem__(self, index: int) -> int:
        time.sleep(self.waits[index])
        return index


class Broken(Numbers):
    """Sample 9 cannot be read."""

    def __getitem__(self, index: int) -> dict[str, object]:
        if index == 9:
            raise ValueError("sample 9 is broken")
        return super().__getitem__(index)


class Pair(NamedTuple):
    value: Tensor
    size: int


def to_pair(samples: list[dict]) -> Pair:
    return Pair(default_collate(samples)["value"], len(samples))


def slow_collate(samples: list[int]) -> Tensor:
    time.sleep(0.01)
    return torch.tensor(samples)


def broken_collate(samples: list) -> None:
    raise KeyError("no such field")


@dataclass
class Pinnable:
    """A batch of the reader's own class, which torch asks to pin itself."""

    value: Tensor
    pinned: bool = False

    def pin_memory(self) -> "Pinnable":
        return Pinnable(self.value, pinned=True)


def to_pinnable(samples: list[dict]) -> Pinnable:
    return Pinnable(default_collate(samples)["value"])


class EagerSampler(Sampler):
    """Draws when ``iter`` is called, and counts its epochs in itself."""

    def __init__(self, length: int) -> None:
        self.length, self.epoch = length, 0

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[int]:
        self.epoch += 1
        return iter(torch.randperm(self.length).tolist())


class Moving(DataLoader):
    """Changes the batches on their way out, as loaders for a device do."""

    def __iter__(self) -> Iterator[dict]:
        for batch in super().__iter__():
            yield {"moved": batch["value"] + 1}


class Endless(DataLoader):
    """Keeps one running iterator, as some training libraries do."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        self.iterator = super().__iter__()


def loader(
    dataset: Dataset, workers: int, method: str = "fork", **options
) -> DataLoader:
    kind: Callable = options.pop("kind", DataLoader)
    if workers:
        options["multiprocessing_context"] = method
    return kind(dataset, num_workers=workers, **options)


def _seeded() -> torch.Generator:
    return torch.Generator().manual_seed(5)


def _distributed(workers: int, method: str) -> DataLoader:
    dataset = Numbers()
    sampler = DistributedSampler(dataset, num_replicas=2, rank=1)
    sampler.set_epoch(3)
    return loader(dataset, workers, method, batch_size=3, sampler=sampler)


def _batch_sampler(workers: int, method: str) -> DataLoader:
    sampler = BatchSampler(SequentialSampler(range(20)), 3, drop_last=True)
    return loader(Numbers(), workers, method, batch_sampler=sampler)


def _kind(dataset: type, **fixed) -> Callable[[int, str], DataLoader]:
    def make(workers: int, method: str) -> DataLoader:
        options = {
            name: value() if name == "generator" else value
            for name, value in fixed.items()
        }
        if "persistent_workers" in options:
            options["persistent_workers"] = workers > 0
        return loader(dataset(), workers, method, **options)

    return make


#: name -> function (workers, start method) that makes a fresh loader.
KINDS = {
    "map": _kind(Numbers, batch_size=4),
    "shuffled": _kind(Numbers, batch_size=4, shuffle=True),
    "own generator": _kind(Numbers, batch_size=4, shuffle=True, generator=_seeded),
    "eager sampler": _kind(Numbers, batch_size=None, sampler=EagerSampler(20)),
    "__getitems__": _kind(Listed, batch_size=4, shuffle=True),
    "batch sampler": _batch_sampler,
    "no batches": _kind(Numbers, batch_size=None, shuffle=True),
    "stream": _kind(Stream, batch_size=4),
    "stream of samples": _kind(Stream, batch_size=None),
    "named tuple": _kind(Numbers, batch_size=4, collate_fn=to_pair),
    "own batch class": _kind(Numbers, batch_size=4, collate_fn=to_pinnable),
    "out of order": _kind(Numbers, batch_size=4, collate_fn=to_pair, in_order=False),
    "subclass": _kind(Numbers, batch_size=4, shuffle=True, kind=Moving),
    "persistent": _kind(Numbers, batch_size=4, shuffle=True, persistent_workers=True),
    "distributed": _distributed,
}
