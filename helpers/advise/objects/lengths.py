"""How many samples and batches a loader has, asked without disturbing it."""

from dataclasses import dataclass

from torch.utils.data import DataLoader, IterableDataset

from helpers.advise.objects import inert
from helpers.measure import copies


@dataclass(frozen=True)
class Lengths:
    """None where it cannot be known.

    Attributes:
        samples: of the dataset.
        drawn: samples that the sampler hands out in one epoch.
        batches: in one epoch, of a map-style loader.
    """

    samples: int | None = None
    drawn: int | None = None
    batches: int | None = None


def measure(loader: DataLoader) -> Lengths:
    """Ask the dataset, and copies of the samplers.

    ``len(loader)`` itself is not called: with a stream it makes the loader count
    and warn later on.
    """
    samples = _length(loader.dataset)
    if inert.is_a(loader.dataset, IterableDataset):
        return Lengths(samples)
    try:
        copy = copies.detached(loader)
    except Exception:  # a sampler of the reader's own that cannot be copied
        return Lengths(samples)
    sampler, batches = copy.sampler, copy.batch_sampler
    if batches is None:
        return Lengths(samples, _length(sampler), _length(sampler))
    # A loader with a batch sampler has a sampler too, which nobody uses.
    inner = inert.attributes(batches).get("sampler")
    return Lengths(samples, _length(inner), _length(batches))


def _length(value: object) -> int | None:
    if not any("__len__" in inert.namespace(kind) for kind in inert.bases(value)):
        return None
    try:
        return len(value)
    except Exception:  # torch's own ask the dataset, which may refuse
        return None
