"""Transforms of the book's image pipelines. They run inside the workers."""

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional

from helpers.pipeline.seeding import WorkerGenerator

# Mean and standard deviation of ImageNet's training images, per channel in
# RGB order; published with torchvision's pretrained models.
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


def training(size: int = 224) -> v2.Compose:
    """Random crop and flip, then a normalised float tensor.

    Takes a PIL image; gives float32 [3, size, size]. Draws from torch's global
    generator, which every worker has seeded for itself.
    """
    return v2.Compose([*_random_crop_and_flip(size), *_to_normalised_tensor()])


def training_bytes(size: int = 224) -> v2.Compose:
    """The same crop and flip, but the pixels stay bytes.

    Takes a PIL image; gives uint8 [3, size, size], a quarter of the bytes of
    :func:`training`. Normalise the whole batch later, with :func:`normalise`.
    """
    return v2.Compose([*_random_crop_and_flip(size), v2.ToImage(), v2.ToPureTensor()])


def normalise(images: Tensor) -> Tensor:
    """Bytes to normalised floats, on the device where the batch is.

    Args:
        images: uint8 [..., 3, height, width].

    Returns:
        float32 of the same shape.
    """
    floats = images.to(torch.float32).div_(255)
    mean, std = (
        torch.tensor(values, device=images.device).view(3, 1, 1)
        for values in (IMAGENET_MEAN, IMAGENET_STD)
    )
    return floats.sub_(mean).div_(std)


def evaluation(size: int = 224) -> v2.Compose:
    """Resize to a square, then a normalised float tensor; nothing random.

    Takes a PIL image; gives float32 [3, size, size].
    """
    return v2.Compose(
        [v2.Resize((size, size), antialias=True), *_to_normalised_tensor()]
    )


class TurnWithOwnGenerator:
    """Random turn and crop, from a generator made in ``__init__``. Broken in workers.

    Every worker gets a copy of the generator, in the same state.

    Args:
        size: width and height of the result in pixels.
        seed: of the generator.
    """

    def __init__(self, size: int, seed: int = 0) -> None:
        self.size = size
        self.generator = np.random.default_rng(seed)

    def __call__(self, image: Image.Image) -> Tensor:
        return turned(image, self.size, *self.generator.random(3))


class TurnWithGlobalStream:
    """The same turn and crop, from torch's global generator.

    Args:
        size: width and height of the result in pixels.
    """

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, image: Image.Image) -> Tensor:
        return turned(image, self.size, *torch.rand(3).tolist())


class TurnWithWorkerGenerator:
    """The same turn and crop, from a generator that each worker builds.

    Args:
        size: width and height of the result in pixels.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.own = WorkerGenerator()

    def __call__(self, image: Image.Image) -> Tensor:
        return turned(image, self.size, *self.own.get().random(3))


def turned(
    image: Image.Image, size: int, angle: float, left: float, top: float
) -> Tensor:
    """Cut a square of 3/5 of the shorter side out of an image, and turn it.

    Args:
        image: the picture, RGB.
        size: width and height of the result in pixels.
        angle: 0 to 1, for 0 to 360 degrees.
        left: 0 to 1, from the leftmost to the rightmost place.
        top: 0 to 1, from the highest to the lowest place.

    Returns:
        uint8 [3, size, size].
    """
    side = 3 * min(image.size) // 5
    x, y = (round(p * (n - side)) for p, n in zip((left, top), image.size, strict=True))
    cut = image.crop((x, y, x + side, y + side)).resize((size, size))
    return functional.pil_to_tensor(cut.rotate(360 * angle))


def _random_crop_and_flip(size: int) -> list[v2.Transform]:
    return [v2.RandomResizedCrop(size, antialias=True), v2.RandomHorizontalFlip()]


def _to_normalised_tensor() -> list[v2.Transform]:
    return [
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(IMAGENET_MEAN, IMAGENET_STD),
    ]
