"""The objects that decide the order of a loader's samples."""

from torch.utils.data import DataLoader, DistributedSampler

from helpers.advise.objects import inert


def of(loader: DataLoader) -> list[tuple[str, object]]:
    """Sampler and batch sampler with their paths, as far as they are used."""
    batches = loader.batch_sampler
    if batches is None:
        return [("sampler", loader.sampler)]
    inner = inert.attributes(batches).get("sampler")
    # Beside a batch sampler of the reader's own, torch makes a sampler that nobody
    # uses.
    path = "sampler" if inner is loader.sampler else "batch_sampler.sampler"
    found = [(path, inner), ("batch_sampler", batches)]
    return [(path, one) for path, one in found if one is not None]


def shuffles_by_epoch(sampler: object) -> bool:
    """A DistributedSampler, whose order depends on the epoch it is told."""
    shuffle = inert.attributes(sampler).get("shuffle")
    return inert.is_a(sampler, DistributedSampler) and shuffle is True
