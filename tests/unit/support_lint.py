"""Healthy and faulty loaders for test_lint.py; spawned workers import this too."""

import copy
import functools
import logging
import multiprocessing
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
import torchvision
from PIL import Image
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
    random_split,
)
from torch.utils.data.datapipes.iter import IterableWrapper
from torchvision.transforms import v2

from helpers.pipeline import datasets, handles, transforms

# --- healthy ----------------------------------------------------------------


class Texts(Dataset):
    """Token sequences of different lengths."""

    def __init__(self, count: int = 12) -> None:
        lengths = [1 + index % 5 for index in range(count)]
        self.tokens = torch.arange(sum(lengths))
        self.ends = np.cumsum(lengths)

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, index: int) -> Tensor:
        end = int(self.ends[index])
        return self.tokens[end - 1 - index % 5 : end]


def pad(samples: list[Tensor]) -> tuple[Tensor, Tensor]:
    lengths = torch.tensor([len(sample) for sample in samples])
    return torch.nn.utils.rnn.pad_sequence(samples, batch_first=True), lengths


class Boxes(Dataset):
    """Images with a different number of boxes each."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> tuple[Tensor, dict[str, Tensor]]:
        count = index % 3
        target = {"boxes": torch.zeros(count, 4), "labels": torch.zeros(count).long()}
        return torch.zeros(3, 8, 8), target


def keep_targets(samples: list) -> tuple[Tensor, list]:
    images, targets = zip(*samples, strict=True)
    return torch.stack(images), list(targets)


class Buckets(Sampler):
    """Batches of texts of similar length, in random order."""

    def __init__(self, lengths: np.ndarray, size: int) -> None:
        self.lengths, self.size, self.epoch = lengths, size, 0

    def __len__(self) -> int:
        return -(-len(self.lengths) // self.size)

    def __iter__(self) -> Iterator[list[int]]:
        generator = torch.Generator().manual_seed(self.epoch)
        self.epoch += 1
        order = np.argsort(self.lengths, kind="stable").tolist()
        batches = [order[i : i + self.size] for i in range(0, len(order), self.size)]
        for number in torch.randperm(len(batches), generator=generator).tolist():
            yield batches[number]


class Divided(IterableDataset):
    """Counts; every worker its own part."""

    def __init__(self, length: int = 24) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Tensor]:
        first, step = part_of_worker()
        yield from (torch.tensor(i) for i in range(first, self.length, step))


def part_of_worker() -> tuple[int, int]:
    info = get_worker_info()
    return (0, 1) if info is None else (info.id, info.num_workers)


class Noise(IterableDataset):
    """Endless random numbers, which differ between workers by themselves."""

    def __iter__(self) -> Iterator[Tensor]:
        while True:
            yield torch.randn(3)


class Augmented(Dataset):
    """Draws from the three global generators."""

    def __init__(self) -> None:
        self.images = torch.zeros(8, 3, 8, 8, dtype=torch.uint8)
        self.transform = v2.Compose(
            [v2.RandomHorizontalFlip(), v2.ColorJitter(0.5), v2.ToDtype(torch.float32)]
        )

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        shift = random.random() + np.random.rand()
        return self.transform(self.images[index]) + float(shift), index


class OwnSeeds(Dataset):
    """Makes its generator from (seed, epoch, index)."""

    def __init__(self) -> None:
        self.seed, self.epoch = 3, 0

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Tensor:
        rng = np.random.default_rng((self.seed, self.epoch, index))
        return torch.from_numpy(rng.random(3, dtype=np.float32))


class Mapped(Dataset):
    """Rows of a memory-mapped array."""

    def __init__(self, path: Path) -> None:
        np.save(path, np.zeros((16, 4), np.float32))
        self.rows = np.load(path, mmap_mode="r")

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Tensor:
        return torch.from_numpy(self.rows[index].copy())


class TableLike(Dataset):
    """Like a Hugging Face dataset: columns, formats, bulk access."""

    def __init__(self) -> None:
        self._data = {"x": np.zeros((10, 2), np.float32), "y": np.arange(10)}
        self._format = "torch"

    def __len__(self) -> int:
        return 10

    def __getattr__(self, name: str) -> object:
        raise AttributeError(name)

    def set_format(self, name: str) -> None:
        self._format = name

    def __getitems__(self, keys: list[int]) -> list[dict[str, Tensor]]:
        columns = {name: torch.tensor(c[keys]) for name, c in self._data.items()}
        return [
            {name: column[i] for name, column in columns.items()}
            for i in range(len(keys))
        ]

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return self.__getitems__([index])[0]


class Companions(Dataset):
    """Holds what looks suspicious and is not."""

    def __init__(self) -> None:
        self.logger = logging.getLogger("support_lint")
        self.counter = multiprocessing.Value("i", 0)
        self.lock = multiprocessing.Lock()
        self.epoch = torch.zeros(1, dtype=torch.int64).share_memory_()
        self.files = tuple(Path(f"{i}.jpg") for i in range(5))

    def set_epoch(self, epoch: int) -> None:
        self.epoch.fill_(epoch)

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Tensor:
        with self.lock:
            self.counter.value += 1
        return self.epoch + index


def seed_numpy(worker: int) -> None:
    np.random.seed(torch.initial_seed() % 2**32)


def options(workers: int, method: str) -> dict[str, object]:
    if not workers:
        return {}
    return {"num_workers": workers, "multiprocessing_context": method}


def _folder(folder: Path) -> Dataset:
    for label in ("cat", "dog"):
        (folder / label).mkdir(parents=True)
        for number in range(3):
            Image.new("RGB", (20, 16)).save(folder / label / f"{number}.png")
    return datasets.ClassFolderImages(folder, transforms.training(8))


def _distributed(data: Dataset) -> DistributedSampler:
    return DistributedSampler(data, num_replicas=2, rank=1)


def _used_records(folder: Path) -> Dataset:
    handles.write_records(folder / "records", 8)
    records = handles.Records(folder / "records", 8)
    records[0]
    return records


def _used_rows(folder: Path) -> Dataset:
    handles.write_sqlite(folder / "rows.sqlite", 8)
    rows = handles.SqliteRowsBulk(folder / "rows.sqlite", 8)
    rows[0]
    return rows


def healthy(name: str, folder: Path, workers: int, method: str = "fork") -> DataLoader:
    """One of the healthy loaders."""
    dataset, more = HEALTHY[name](folder)
    more = {"batch_size": 2, **more}
    if "batch_sampler" in more:
        del more["batch_size"]
    if more.get("persistent_workers") and not workers:
        del more["persistent_workers"]
    return DataLoader(dataset, **more, **options(workers, method))


def _plain(kind: Callable[..., Dataset], *arguments: object, **more: object):
    return lambda folder: (kind(*arguments), more)


def _with_sampler(folder: Path) -> tuple[Dataset, dict]:
    data = datasets.InMemory(10)
    return data, {"sampler": _distributed(data)}


#: name -> function (folder) that gives dataset and options.
HEALTHY = {
    "image folder": lambda folder: (_folder(folder), {"shuffle": True}),
    "in memory": _plain(datasets.InMemory, 10, shuffle=True),
    "padded text": _plain(Texts, collate_fn=pad, shuffle=True),
    "detection": _plain(Boxes, collate_fn=keep_targets, shuffle=True),
    "bucketed": lambda folder: (
        Texts(),
        {"batch_sampler": Buckets(Texts().ends, 3), "collate_fn": pad},
    ),
    "divided stream": _plain(Divided),
    "chained streams": lambda folder: (ChainDataset([Divided(), Divided()]), {}),
    "random stream": _plain(Noise),
    "data pipe": lambda folder: (IterableWrapper(range(8)).sharding_filter(), {}),
    "distributed": _with_sampler,
    "__getitems__": _plain(datasets.InMemoryBulk, 10, shuffle=True),
    "subset": lambda folder: (random_split(datasets.InMemory(10), [6, 4])[0], {}),
    "concat": lambda folder: (ConcatDataset([Texts(), Texts()]), {"collate_fn": pad}),
    "augmentation": _plain(Augmented, shuffle=True),
    "own seeds": _plain(OwnSeeds, shuffle=True, generator=torch.Generator()),
    "memory-mapped": lambda folder: (Mapped(folder / "rows.npy"), {}),
    "lazy file": lambda folder: (_used_records(folder), {}),
    "lazy database": lambda folder: (_used_rows(folder), {}),
    "table": _plain(TableLike, shuffle=True),
    "companions": _plain(Companions, persistent_workers=True),
    "seeded numpy": _plain(Augmented, worker_init_fn=seed_numpy),
    "weighted": lambda folder: (
        datasets.InMemory(10),
        {"sampler": WeightedRandomSampler([0.1] * 10, 10)},
    ),
    "fake data": lambda folder: (
        torchvision.datasets.FakeData(
            6, (3, 8, 8), transform=v2.Compose([v2.ToImage(), v2.RandomCrop(4)])
        ),
        {"shuffle": True},
    ),
    "no batches": _plain(datasets.InMemory, 10, batch_size=None, shuffle=True),
    "bound collate": lambda folder: (
        Texts(),
        {"collate_fn": functools.partial(collate_with, scale=2)},
    ),
}


def collate_with(samples: list[Tensor], scale: int) -> Tensor:
    return scale * torch.tensor([len(sample) for sample in samples])


# --- faulty -----------------------------------------------------------------


class Draws(Dataset):
    """Draws from a generator object that it holds."""

    def __init__(self, rng: object) -> None:
        self.rng = rng

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Tensor:
        return torch.tensor(self.draw())

    def draw(self) -> float:
        if isinstance(self.rng, torch.Generator):
            return torch.rand((), generator=self.rng).item()
        return self.rng.random()


class DrewOnce(Draws):
    """Draws from it only when it is made."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.source = rng
        self.order = rng.permutation(8)

    def draw(self) -> float:
        return float(self.order[0])


class Reseeded(Draws):
    """Seeds its generator anew for every sample."""

    def __init__(self) -> None:
        self.g = torch.Generator()

    def __getitem__(self, index: int) -> Tensor:
        self.g.manual_seed(index)
        return torch.rand((), generator=self.g)


class Renewed(Draws):
    """Gets another generator in every worker."""

    def __getitem__(self, index: int) -> Tensor:
        info = get_worker_info()
        if info is not None and not hasattr(self, "renewed"):
            self.renewed = True
            self.rng = np.random.default_rng(info.seed)
        return torch.tensor(self.draw())


def renew_rng(worker: int) -> None:
    info = get_worker_info()
    info.dataset.rng = np.random.default_rng(info.seed)


RNG = np.random.default_rng(0)


class DrawsGlobally(Draws):
    """Draws from a generator of its module."""

    def __init__(self) -> None:
        pass

    def draw(self) -> float:
        return RNG.random()


class Noisy:
    """A transform with a generator."""

    def __init__(self) -> None:
        self.rng = random.Random(0)

    def __call__(self, image: Tensor) -> Tensor:
        return image + self.rng.random()


class Transformed(Dataset):
    """Applies a transform to zeros."""

    def __init__(self, transform: object) -> None:
        self.transform = transform

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Tensor:
        return self.transform(torch.zeros(3))


def collate_drawing(samples: list, rng: np.random.Generator) -> Tensor:
    return torch.tensor(rng.random(len(samples)))


def seed_fixed(worker: int) -> None:
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)


def seed_by_number(worker: int) -> None:
    np.random.seed(42 + worker)


def seed_by_state(worker: int) -> None:
    np.random.seed(np.random.get_state()[1][0] + worker)


def seed_from_system(worker: int) -> None:
    np.random.seed()


def seed_bound(seed: int, worker: int) -> None:
    np.random.seed(seed)


class Holder(Dataset):
    """Holds anything under any name."""

    def __init__(self, **held: object) -> None:
        vars(self).update(held)

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> int:
        return index


class Careful(Holder):
    """Leaves out of the pickle what it holds."""

    def __getstate__(self) -> dict:
        return {}


class Refusing:
    """Cannot be pickled, by its own will."""

    def __reduce__(self) -> str:
        raise RuntimeError("not for sending")


class Whole(IterableDataset):
    """Every worker gives all of it."""

    def __init__(self, length: int = 24) -> None:
        self.records = range(length)

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Tensor]:
        for record in self.records:
            yield torch.tensor(record)


class WholeShuffled(Whole):
    """The same through a shuffle buffer, which draws."""

    def __iter__(self) -> Iterator[Tensor]:
        buffer = []
        for record in self.records:
            buffer.append(record)
            random.random()
        yield from map(torch.tensor, buffer)


class Epochs(Holder):
    """Uses a number that a setter changes."""

    def __init__(self) -> None:
        self.epoch = 0

    def set_epoch_number(self, epoch: int) -> None:
        self.epoch = epoch

    def __getitem__(self, index: int) -> int:
        return index + self.epoch


class Clip(Dataset):
    """Gives a small part of a large tensor."""

    def __init__(self, clone: bool = False) -> None:
        self.clone = clone

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Tensor:
        part = torch.zeros(1024, 1024)[0]
        return part.clone() if self.clone else part


class Values(Dataset):
    """Gives one and the same object."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __len__(self) -> int:
        return 600

    def __getitem__(self, index: int) -> object:
        return copy.copy(self.value)


class Fails(Holder):
    """Has no samples."""

    def __getitem__(self, index: int) -> int:
        raise KeyError("no such record")


class Hangs(Holder):
    """Never comes to an end."""

    def __getitem__(self, index: int) -> int:
        time.sleep(600)
        return index


class Dies(Holder):
    """Ends its process."""

    def __getitem__(self, index: int) -> int:
        import os

        os._exit(3)


def keep(samples: list) -> list:
    return samples


def give_lambda(samples: list) -> Callable:
    return lambda: samples


class BrokenSampler(Sampler):
    """Fails when it is asked for indices."""

    def __init__(self) -> None:
        pass

    def __len__(self) -> int:
        return 8

    def __iter__(self) -> Iterator[int]:
        raise IndexError("no indices")


class UncopiableSampler(BrokenSampler):
    """Cannot be copied."""

    def __deepcopy__(self, memo: dict) -> None:
        raise TypeError("one of a kind")


class CudaTensor(Tensor):
    """Says it is on an accelerator; there is none behind it."""

    @staticmethod
    def __new__(cls) -> Tensor:
        return torch.Tensor._make_wrapper_subclass(cls, (3,), device="cuda")

    @classmethod
    def __torch_dispatch__(cls, *arguments: object, **more: object) -> None:
        raise RuntimeError("no device behind this")


def drawing_sampler() -> RandomSampler:
    return RandomSampler(range(8), generator=torch.Generator().manual_seed(0))


def batches_of(sampler: Sampler, size: int, drop_last: bool) -> BatchSampler:
    return BatchSampler(sampler, size, drop_last)


def connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path)


def ready(count: int) -> TensorDataset:
    return TensorDataset(torch.zeros(count, 2))
