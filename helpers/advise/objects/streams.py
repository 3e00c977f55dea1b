"""Do the workers of an iterable dataset deliver the same data twice?"""

import itertools

from torch.utils.data import DataLoader, IterableDataset

from helpers.advise.objects import batches
from helpers.measure import copies


def duplicated(loader: DataLoader) -> bool:
    """The first batches of workers 0 and 1 are the same, bit for bit.

    That proves that the stream is not divided among the workers, unless it
    yields the same batch all the time; so worker 0's second batch must differ.
    False also where nothing can be proven: with fewer than two workers, with a
    stream that ends early, or where every worker changes its samples at random.
    """
    workers = loader.num_workers
    if not isinstance(loader.dataset, IterableDataset) or workers < 2:
        return False
    if not loader.in_order:
        return False  # batches come in any order, so their worker is unknown
    with copies.preserved_random_state():
        iterator = iter(copies.detached(loader))
        try:
            seen = list(itertools.islice(iterator, workers + 1))
        finally:
            copies.close(iterator)
    if len(seen) <= workers:
        return False
    return batches.identical(seen[0], seen[1]) and not batches.identical(
        seen[0], seen[workers]
    )
