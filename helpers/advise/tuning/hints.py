"""What follows for the other arguments of a DataLoader, with the numbers."""

from dataclasses import dataclass

import torch
from torch.utils.data import DataLoader, IterableDataset

from helpers.advise.tuning.grid import Setting
from helpers.advise.tuning.probes import Probes
from helpers.measure.timeline_summary import duration

#: Starting the workers may take this share of an epoch before it is worth saying.
_START_UP_SHARE = 0.02


@dataclass(frozen=True)
class Hint:
    """A sentence, and the argument that it asks for, if any."""

    text: str
    argument: tuple[str, object] | None = None


def hints(
    loader: DataLoader,
    setting: Setting,
    seconds: float,
    start_up_s: float | None,
    probes: Probes,
) -> list[Hint]:
    """About persistent_workers, pin_memory and the batch size.

    Args:
        loader: the reader's.
        setting: the recommended one.
        seconds: per batch with that setting.
        start_up_s: from ``iter(loader)`` to the first batch; None if not measured.
        probes: of the loader.
    """
    found = [
        _persistent(loader, setting, seconds, start_up_s),
        _pinned(loader),
        _batch_size(loader, setting, probes),
    ]
    return [hint for hint in found if hint is not None]


def epoch_batches(loader: DataLoader) -> int | None:
    """Batches in an epoch; None if that is not known.

    Never asks a loader of an iterable dataset: its ``len`` arms a warning.
    """
    if isinstance(loader.dataset, IterableDataset):
        return None
    try:
        return len(loader)
    except TypeError:
        return None


def _persistent(
    loader: DataLoader, setting: Setting, seconds: float, start_up_s: float | None
) -> Hint | None:
    batches = epoch_batches(loader)
    if not setting.workers or not start_up_s or not batches:
        return None
    share = start_up_s / (start_up_s + batches * seconds)
    cost = (
        f"starting the workers takes {duration(start_up_s)} of every epoch of "
        f"{duration(start_up_s + batches * seconds)} ({share:.0%})"
    )
    if loader.persistent_workers:
        return Hint(f"persistent_workers saves time: {cost}")
    if share < _START_UP_SHARE:
        return None
    return Hint(
        f"persistent_workers=True: {cost}; the workers' memory stays taken between "
        "epochs, and they do not see what the main process changes in the dataset",
        ("persistent_workers", True),
    )


def _pinned(loader: DataLoader) -> Hint | None:
    accelerator = torch.accelerator.is_available()
    if loader.pin_memory and not accelerator:
        return Hint("pin_memory=True does nothing here: there is no accelerator")
    if accelerator and not loader.pin_memory:
        return Hint(
            "pin_memory=True with .to(device, non_blocking=True) lets copies to the "
            "accelerator run beside the step; not measured here"
        )
    return None


def _batch_size(loader: DataLoader, setting: Setting, probes: Probes) -> Hint | None:
    costs = probes.later
    handing_over = costs.worker - costs.fetch
    if setting.workers or costs.fetch > handing_over:
        return None
    return Hint(
        f"a batch takes {duration(costs.fetch)} to make here and "
        f"{duration(handing_over)} more to come from a worker, so workers cannot "
        "pay; larger batches share what a batch costs among more samples"
    )
