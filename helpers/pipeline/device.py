"""The consumer of batches: what the training loop does after loading."""

import time
from collections.abc import Iterable

import torch
from torch import Tensor, nn


def pick_device() -> torch.device:
    """The accelerator torch would use, else the CPU."""
    if torch.accelerator.is_available():
        return torch.accelerator.current_accelerator()
    return torch.device("cpu")


def synchronise(device: torch.device) -> None:
    """Wait until the device has done everything it was given.

    Work on an accelerator is only queued by the call that starts it; without
    this a step looks as short as its launch.
    """
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


class SimulatedDevice:
    """A step that keeps the main process waiting and uses no CPU.

    The sleep stands for a GPU at work. Figures that use it say so.

    Args:
        step_ms: milliseconds per batch.
    """

    label = "simulated device"

    def __init__(self, step_ms: float) -> None:
        self.step_s = step_ms / 1000

    def __call__(self, batch: object) -> None:
        time.sleep(self.step_s)


class SmallCNN(nn.Module):
    """Three convolutions and a linear layer; learns the book's images.

    Takes float32 [batch, 3, height, width], gives logits [batch, classes].
    """

    def __init__(self, classes: int = 10, width: int = 16) -> None:
        super().__init__()
        self.features = nn.Sequential(
            _block(3, width), _block(width, 2 * width), _block(2 * width, 4 * width)
        )
        self.head = nn.Linear(4 * width, classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.features(images).mean(dim=(2, 3)))


def _block(channels_in: int, channels_out: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels_in, channels_out, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(channels_out),
        nn.ReLU(),
    )


class TrainingStep:
    """A real training step: transfer, forward, backward, update, wait.

    Args:
        model: gives logits for images.
        device: where it runs; default :func:`pick_device`.
        learning_rate: of plain SGD.
    """

    def __init__(
        self,
        model: nn.Module,
        device: torch.device | None = None,
        learning_rate: float = 0.05,
    ) -> None:
        self.device = device or pick_device()
        self.label = str(self.device)
        self.model = model.to(self.device)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)

    def transfer(self, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Move images and labels to the device."""
        images, labels = batch
        return (
            images.to(self.device, non_blocking=True),
            labels.to(self.device, non_blocking=True),
        )

    def step(self, batch: tuple[Tensor, Tensor]) -> None:
        """Learn from a batch that is on the device, and wait for the end."""
        images, labels = batch
        loss = nn.functional.cross_entropy(self.model(images), labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        synchronise(self.device)

    def __call__(self, batch: tuple[Tensor, Tensor]) -> None:
        self.step(self.transfer(batch))


@torch.no_grad()
def predictions(
    model: nn.Module, batches: Iterable[tuple[Tensor, Tensor]]
) -> tuple[Tensor, Tensor]:
    """The classes that a model finds, and the labels, in the order of the batches.

    The model stays in the mode it is in; call ``model.eval()`` first.

    Args:
        model: gives logits [batch, classes] for the first part of a batch.
        batches: pairs of inputs and int64 labels [batch], on the model's device.

    Returns:
        Two int64 tensors [samples].

    Raises:
        ValueError: there is no batch.
    """
    pairs = [(model(inputs).argmax(1), labels) for inputs, labels in batches]
    if not pairs:
        raise ValueError("no batch to predict: is the loader empty?")
    found, labels = zip(*pairs, strict=True)
    return torch.cat(found), torch.cat(labels)
