"""A reader's loader with other settings: always a copy, never the loader itself.

The copy is made of the loader, not of its arguments: those cannot be recovered
(``batch_sampler`` excludes ``batch_size``), and a subclass would be lost.
"""

import torch.multiprocessing
from torch.utils.data import DataLoader

from helpers.advise.tuning.grid import ALONE, USUAL_PREFETCH, Setting
from helpers.measure import copies


def current(loader: DataLoader) -> Setting:
    """The setting that the loader has now.

    Raises:
        TypeError: not a DataLoader.
    """
    copies.require_loader(loader)
    if not loader.num_workers:
        return ALONE
    return Setting(loader.num_workers, loader.prefetch_factor or USUAL_PREFETCH)


def with_setting(loader: DataLoader, setting: Setting) -> DataLoader:
    """A copy with another number of workers; it shares the dataset.

    Raises:
        TypeError: not a DataLoader.
    """
    clone = copies.detached(loader)
    changes: dict[str, object] = {"num_workers": setting.workers}
    changes["prefetch_factor"] = setting.prefetch or None
    if not setting.workers:
        # Both are refused without workers, the first only when iteration begins.
        changes |= {"timeout": 0, "persistent_workers": False}
    for name, value in changes.items():
        object.__setattr__(clone, name, value)
    return clone


def start_method(loader: DataLoader) -> str:
    """How the loader's workers are started: fork, spawn or forkserver."""
    context = loader.multiprocessing_context
    if context is None:
        return torch.multiprocessing.get_start_method()
    return context.get_start_method()
