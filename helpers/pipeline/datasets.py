"""The datasets that the chapters study, each with one clear kind of cost."""

import io
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, default_collate, get_worker_info

IMAGE_SUFFIXES = (".jpeg", ".jpg", ".png")


class ClassFolderImages(Dataset):
    """Images in one folder per class: ``root/class/file``.

    Opening happens in ``__getitem__``, so workers share the work and carry
    nothing but file names.

    Args:
        root: folder that holds the class folders; other entries are ignored.
        transform: applied to the PIL image; default gives a uint8 tensor
            [3, height, width].
        classes: names in label order; default is the folder names, sorted.
        at_least: as for :func:`read_image`.

    Raises:
        FileNotFoundError: no root, no class folder, or a class without images.
        ValueError: a folder is not in ``classes``.
    """

    def __init__(
        self,
        root: str | Path,
        transform: Callable[[Image.Image], Tensor] | None = None,
        classes: Sequence[str] | None = None,
        at_least: int | None = None,
    ) -> None:
        self.root = Path(root)
        self.at_least = at_least
        self.transform = transform or to_tensor
        self.classes = list(classes) if classes else find_classes(self.root)
        files, labels = list_images(self.root, self.classes)
        # Two arrays, not a list of objects: reading a Python object writes its
        # reference count, and every worker would end up with its own copy.
        self.files = np.array(files)
        self.labels = np.array(labels, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = read_image(self.root / str(self.files[index]), self.at_least)
        return self.transform(image), int(self.labels[index])


class ClassFolderBulk(ClassFolderImages):
    """:class:`ClassFolderImages` with a bulk method that has nothing to save."""

    def __getitems__(self, indices: list[int]) -> list[tuple[Tensor, int]]:
        return [self[index] for index in indices]


class EagerImages(Dataset):
    """The same images, all decoded in ``__init__``. Shown because it is common.

    Every worker that is started by spawn or forkserver receives a pickled copy
    of all pixels; it is the opposite of :class:`ClassFolderImages`.
    """

    def __init__(self, root: str | Path) -> None:
        lazy = ClassFolderImages(root)
        self.classes, self.labels = lazy.classes, lazy.labels
        paths = [lazy.root / str(file) for file in lazy.files]
        self.images = [np.array(read_image(path)) for path in paths]

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return to_tensor(self.images[index]), int(self.labels[index])


class OneTensorImages(Dataset):
    """The same images, decoded once into one uint8 tensor; all of one size.

    torch moves a tensor into shared memory when it is sent to a worker, so all
    workers read the same pixels, however they are started.
    """

    def __init__(self, root: str | Path) -> None:
        lazy = ClassFolderImages(root)
        self.classes, self.labels = lazy.classes, lazy.labels
        shape = lazy[0][0].shape
        self.images = torch.empty(len(lazy), *shape, dtype=torch.uint8)
        for index in range(len(lazy)):
            self.images[index] = lazy[index][0]

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.images[index], int(self.labels[index])


class InMemory(Dataset):
    """Ready tensors in memory: fetching costs next to nothing.

    Args:
        samples: how many.
        shape: of one sample, float32.
        seed: of the values.
    """

    def __init__(
        self, samples: int = 4096, shape: Sequence[int] = (64,), seed: int = 0
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.values = torch.randn(samples, *shape, generator=generator)
        self.labels = torch.randint(10, (samples,), generator=generator)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.values[index], self.labels[index]


class InMemoryBulk(InMemory):
    """:class:`InMemory` that hands out a whole batch in one indexing.

    The fetcher calls ``__getitems__`` once per batch where it exists. What it
    returns still goes through the collate function, so it is a list of samples.
    """

    def __getitems__(self, indices: list[int]) -> list[tuple[Tensor, Tensor]]:
        rows = torch.tensor(indices)
        return list(zip(self.values[rows], self.labels[rows], strict=True))


class LatencyBound(Dataset):
    """Waits for every sample and uses no CPU, like a read from far storage.

    The sleep stands for waiting on a disk or a network.

    Args:
        samples: how many.
        wait_ms: milliseconds of waiting per sample.
        shape: of one sample, float32.
    """

    def __init__(
        self, samples: int = 4096, wait_ms: float = 2.0, shape: Sequence[int] = (64,)
    ) -> None:
        self.samples = samples
        self.wait_s = wait_ms / 1000
        self.value = torch.zeros(*shape)

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        time.sleep(self.wait_s)
        return self.value, index % 10


class Witness(Dataset):
    """Every sample says which process fetched it and what it saw there.

    Keys: ``index``, ``pid``, ``worker`` (-1 in the main process), ``threads``
    (intra-op threads of that process) and ``note`` (the attribute of this
    dataset, as that process sees it).
    """

    def __init__(self, samples: int = 8, note: int = 0) -> None:
        self.samples = samples
        self.note = note

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> dict[str, int]:
        worker = get_worker_info()
        return {
            "index": index,
            "pid": os.getpid(),
            "worker": -1 if worker is None else worker.id,
            "threads": torch.get_num_threads(),
            "note": self.note,
        }


def witness_collate(samples: list[dict[str, int]]) -> dict[str, Tensor]:
    """Collate what :class:`Witness` gives, and say in which process.

    Adds the key ``collate_pid``; everything else as the default collate does.
    """
    return {**default_collate(samples), "collate_pid": torch.tensor(os.getpid())}


class CachingWitness(Dataset):
    """Keeps what it has fetched, and says for every sample if it had it already.

    Keys: ``index`` and ``hit``. The dictionary ``cache`` belongs to the process
    that fills it.
    """

    def __init__(self, samples: int = 8) -> None:
        self.samples = samples
        self.cache: dict[int, dict[str, int]] = {}

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> dict[str, int]:
        if index in self.cache:
            return {**self.cache[index], "hit": 1}
        self.cache[index] = {"index": index, "hit": 0}
        return self.cache[index]


class FirstFrames(Dataset):
    """Makes a whole clip per sample, as a video decoder does; gives one frame.

    Args:
        clips: how many samples.
        frames: per clip.
        shape: of one frame, float32.
        clone: give the frame a storage of its own, instead of a view into the
            clip.
    """

    def __init__(
        self,
        clips: int = 64,
        frames: int = 32,
        shape: Sequence[int] = (3, 64, 64),
        clone: bool = False,
    ) -> None:
        self.clips, self.frames = clips, frames
        self.shape, self.clone = tuple(shape), clone

    def __len__(self) -> int:
        return self.clips

    def __getitem__(self, index: int) -> Tensor:
        clip = torch.full((self.frames, *self.shape), float(index))
        first = clip[0]
        return first.clone() if self.clone else first


class HeavyTailed(Dataset):
    """Decodes one JPEG a varying number of times: few samples cost very much.

    The number of decodings is 1 plus a Pareto variable of shape 1.5, cut off
    at ``most``; it depends only on (seed, index).

    Args:
        samples: how many.
        most: largest number of decodings of one sample.
        size: width and height of the JPEG in pixels.
        seed: of image and costs.
    """

    def __init__(
        self, samples: int = 1024, most: int = 60, size: int = 128, seed: int = 0
    ) -> None:
        rng = np.random.default_rng(seed)
        self.decodings = np.minimum(1 + rng.pareto(1.5, samples), most).astype(int)
        pixels = rng.integers(0, 256, (size // 8, size // 8, 3), dtype=np.uint8)
        image = Image.fromarray(pixels).resize((size, size))
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=90)
        self.jpeg = buffer.getvalue()

    def __len__(self) -> int:
        return len(self.decodings)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        for _ in range(self.decodings[index]):
            image = Image.open(io.BytesIO(self.jpeg)).convert("RGB")
        return to_tensor(image), index % 10


def getitem_calls(loader: DataLoader) -> int:
    """How often a loader without workers calls ``__getitem__`` in one epoch."""
    kind = type(loader.dataset)
    original = kind.__getitem__
    with mock.patch.object(kind, "__getitem__", autospec=True) as spy:
        spy.side_effect = original
        for _ in loader:
            pass
    return spy.call_count


def find_classes(root: Path) -> list[str]:
    """Names of the class folders below ``root``, sorted.

    Raises:
        FileNotFoundError: ``root`` is missing or holds no folder.
    """
    if not root.is_dir():
        raise FileNotFoundError(f"no folder {root}: check the path of the dataset")
    classes = sorted(entry.name for entry in root.iterdir() if entry.is_dir())
    if not classes:
        raise FileNotFoundError(
            f"{root} holds no class folder: expected {root}/CLASS/IMAGE"
        )
    return classes


def list_images(root: Path, classes: Sequence[str]) -> tuple[list[str], list[int]]:
    """File names relative to ``root`` and their labels, sorted by class and name.

    The order that a system lists a folder in is not the same everywhere.

    Raises:
        FileNotFoundError: a class has no images.
        ValueError: a folder below ``root`` is not in ``classes``.
    """
    unknown = sorted(set(find_classes(root)) - set(classes))
    if unknown:
        raise ValueError(
            f"folder {root / unknown[0]} is none of the {len(classes)} classes: "
            f"its label would be outside 0..{len(classes) - 1}"
        )
    files, labels = [], []
    for label, name in enumerate(classes):
        images = sorted(
            path.relative_to(root).as_posix()
            for path in (root / name).glob("*")
            if path.suffix.lower() in IMAGE_SUFFIXES
        )
        if not images:
            raise FileNotFoundError(
                f"class {name!r} has no images in {root / name}: expected files "
                f"ending in {', '.join(IMAGE_SUFFIXES)}"
            )
        files += images
        labels += [label] * len(images)
    return files, labels


def read_image(path: Path, at_least: int | None = None) -> Image.Image:
    """Open and decode an image as RGB; the file is closed again.

    Args:
        path: of the file.
        at_least: let the JPEG decoder halve width and height, again and again,
            while both stay this many pixels or more. It skips the work for the
            pixels it leaves out; other formats are decoded in full.

    Raises:
        OSError: the file is missing or cannot be decoded; the message names it.
    """
    try:
        with Image.open(path) as image:
            if at_least is not None:
                image.draft("RGB", (at_least, at_least))
            return image.convert("RGB")
    except OSError as error:  # PIL's own errors are OSErrors too
        raise OSError(f"cannot read image {path}: {error}") from error


def to_tensor(image: Image.Image | np.ndarray) -> Tensor:
    """Image, or uint8 array [height, width, 3], to uint8 tensor [3, height, width]."""
    # A copy, because torch wants memory that it may write to.
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous()


def check_batch(
    images: Tensor, labels: Tensor, shape: Sequence[int], classes: int
) -> None:
    """Check the first batch of a loader before training on it.

    Args:
        images: the batch of images.
        labels: its labels.
        shape: expected shape of ``images``, batch dimension included.
        classes: labels must lie in 0..classes - 1.

    Raises:
        ValueError: names the first thing that is wrong and where to look.
    """
    if tuple(images.shape) != tuple(shape):
        raise ValueError(
            f"images are {list(images.shape)}, expected {list(shape)}: look at the "
            "transform (size, channels first?) and at batch_size"
        )
    if images.dtype != torch.float32:
        raise ValueError(
            f"images are {images.dtype}, expected torch.float32: convert in the "
            "transform"
        )
    if not torch.isfinite(images).all():
        raise ValueError("images hold NaN or infinity: look for broken files")
    if tuple(labels.shape) != (len(images),) or labels.dtype != torch.int64:
        raise ValueError(
            f"labels are {labels.dtype} {list(labels.shape)}, expected torch.int64 "
            f"[{len(images)}]: __getitem__ must return a Python int"
        )
    if labels.min() < 0 or labels.max() >= classes:
        raise ValueError(
            f"labels reach from {labels.min()} to {labels.max()}, expected "
            f"0..{classes - 1}: look at the class list"
        )
