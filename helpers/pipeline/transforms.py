"""Transforms of the book's image pipelines. They run inside the workers."""

import torch
from torch import Tensor
from torchvision.transforms import v2

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


def _random_crop_and_flip(size: int) -> list[v2.Transform]:
    return [v2.RandomResizedCrop(size, antialias=True), v2.RandomHorizontalFlip()]


def _to_normalised_tensor() -> list[v2.Transform]:
    return [
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(IMAGENET_MEAN, IMAGENET_STD),
    ]
