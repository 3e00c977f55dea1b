"""The workloads on which the instruments are judged, each with one kind of limit."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from helpers.pipeline import transforms
from helpers.pipeline.datasets import HeavyTailed, InMemory, LatencyBound
from helpers.pipeline.device import SimulatedDevice, SmallCNN, TrainingStep

Step = Callable[[object], object]


@dataclass(frozen=True)
class Workload:
    """A loader with the settings that a reader might have now, and its step."""

    name: str
    loader: Callable[[], DataLoader]
    step: Callable[[], Step | None] = lambda: None


class Augmented(Dataset):
    """Ready images in memory, cropped and normalised anew for every sample."""

    def __init__(self, samples: int = 256) -> None:
        generator = torch.Generator().manual_seed(0)
        shape = (samples, 3, 160, 160)
        self.images = torch.randint(0, 256, shape, generator=generator).byte()
        self.transform = transforms.training(128)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.transform(self.images[index]), index % 10


class FloatImages(HeavyTailed):
    """The same number of decodings for all; gives what a model takes."""

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image, label = super().__getitem__(index)
        return image.float() / 255, label


def even(size: int = 256) -> HeavyTailed:
    """Every sample decodes one JPEG once."""
    return HeavyTailed(samples=1024, most=1, size=size)


def _loader(make: Callable[[], Dataset], batch: int) -> Callable[[], DataLoader]:
    return lambda: DataLoader(make(), batch, shuffle=True)


DECODING = Workload("decoding", _loader(even, 16))
DEVICE = Workload("device", _loader(even, 8), lambda: SimulatedDevice(30))
AUGMENTING = Workload("augmenting", _loader(Augmented, 8))
TRAINING = Workload(
    "training on the CPU",
    _loader(lambda: FloatImages(samples=1024, most=1, size=128), 16),
    lambda: TrainingStep(SmallCNN(), torch.device("cpu")),
)
IN_MEMORY = Workload("in memory", _loader(InMemory, 32))
LATENCY = Workload(
    "latency", _loader(lambda: LatencyBound(wait_ms=2), 16), lambda: SimulatedDevice(5)
)
HEAVY_TAILED = Workload(
    "heavy-tailed", _loader(HeavyTailed, 8), lambda: SimulatedDevice(4)
)
LARGE_BATCH = Workload("large batch", _loader(lambda: InMemory(256, (3, 224, 224)), 64))

#: What the model is judged on: work for the CPU.
FOR_THE_MODEL = (DECODING, DEVICE, AUGMENTING, TRAINING)

#: What the recommender is judged on.
FOR_THE_RECOMMENDER = (
    DECODING,
    DEVICE,
    IN_MEMORY,
    LATENCY,
    HEAVY_TAILED,
    LARGE_BATCH,
)
