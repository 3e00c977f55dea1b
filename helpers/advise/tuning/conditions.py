"""Conditions under which a reader's loader is measured, all put back afterwards."""

import contextlib
import warnings
from collections.abc import Iterator

from torch.utils.data import DataLoader

from helpers.advise.objects import generators, walker
from helpers.advise.tuning import interrupts
from helpers.measure.timing import steady_conditions


@contextlib.contextmanager
def quiet_conditions(loader: DataLoader, threads: int) -> Iterator[None]:
    """Steady conditions; random states restored, also those inside the dataset.

    Hides torch's warning about more workers than cores: going beyond the cores
    is part of the search.

    Args:
        loader: the reader's.
        threads: intra-op threads of this process meanwhile.
    """
    with (
        interrupts.heeded(),
        warnings.catch_warnings(),
        generators.preserved(_own_generators(loader)),
        steady_conditions(threads),
    ):
        warnings.filterwarnings("ignore", "This DataLoader will create", UserWarning)
        yield


def _own_generators(loader: DataLoader) -> list[object]:
    """Generator objects inside the dataset and the loader's functions.

    Those of its samplers need no restoring: only copies of samplers are iterated.
    """
    roots = {
        "dataset": loader.dataset,
        "collate_fn": loader.collate_fn,
        "worker_init_fn": loader.worker_init_fn,
    }
    return [node.value for node in generators.in_walk(walker.walk(roots))]
