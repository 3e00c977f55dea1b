"""One batch from each of one or two throw-away workers.

Samples are never taken in the reader's process: they might be slow, wait for
ever, or change something.
"""

import copy
import itertools
import warnings
from dataclasses import dataclass

from torch.utils.data import DataLoader

from helpers.advise.lint.examination import Begin, Examine, Report
from helpers.measure import copies

#: Seconds until a worker that gives no batch is ended. Starting it by spawn on a
#: busy machine takes several of them.
PATIENCE_S = 30.0


@dataclass(frozen=True)
class Probed:
    """What the workers reported.

    Attributes:
        epochs: for each epoch the reports, one per worker.
        raised: what the reader's code raised there, or None.
        trouble: why else there is no report, or None.
    """

    epochs: tuple[tuple[Report, ...], ...] = ()
    raised: str | None = None
    trouble: str | None = None


def probe(
    loader: DataLoader,
    workers: int = 1,
    epochs: int = 1,
    patience_s: float | None = None,
) -> Probed:
    """Let workers make their first batch and report on it.

    The loader and the global random states are left as they were.

    Args:
        loader: any DataLoader; its start method is used.
        workers: how many.
        epochs: each starts its workers anew.
        patience_s: seconds to wait for a batch; then the workers are ended.
            Default: :data:`PATIENCE_S`.
    """
    patience_s = PATIENCE_S if patience_s is None else patience_s
    with copies.preserved_random_state(), warnings.catch_warnings():
        # More probing workers than cores are no concern of the reader's.
        warnings.filterwarnings("ignore", "This DataLoader will create")
        try:
            copied = copies.detached(loader)
        except Exception as error:
            return Probed(trouble=f"the sampler cannot be copied ({_said(error)})")
        try:
            taken = [_first(copied, workers) for _ in range(epochs)]
        except Exception as error:
            return Probed(raised=f"the sampler: {_said(error)}")
        if not taken[0]:
            return Probed(trouble="the sampler gives no batch")
        try:
            found = [_epoch(copied, indices, patience_s) for indices in taken]
        except Exception as error:
            return _explained(error, patience_s)
    return _sorted_out(found)


def _first(copied: DataLoader, count: int) -> list[object]:
    """The indices of the first batches of an epoch."""
    return list(itertools.islice(getattr(copied, _sampler_name(copied)), count))


def _sampler_name(loader: DataLoader) -> str:
    return "sampler" if loader.batch_sampler is None else "batch_sampler"


def _epoch(
    copied: DataLoader, indices: list[object], patience_s: float
) -> list[Report | str]:
    """What as many workers as there are indices report."""
    clone = copy.copy(copied)
    changes = {
        _sampler_name(copied): indices,
        "collate_fn": Examine(copied.collate_fn),
        "worker_init_fn": Begin(copied.worker_init_fn),
        "num_workers": len(indices),
        "prefetch_factor": 1,
        "persistent_workers": False,
        "pin_memory": False,
        "timeout": patience_s,
    }
    for attribute, value in changes.items():
        object.__setattr__(clone, attribute, value)
    iterator = clone._get_iterator()
    try:
        return list(itertools.islice(iterator, len(indices)))
    finally:
        copies.close(iterator)


def _sorted_out(found: list[list[Report | str]]) -> Probed:
    for answer in itertools.chain.from_iterable(found):
        if isinstance(answer, str):
            return Probed(trouble=answer)
    if not found[0]:
        return Probed(trouble="the loader gave no batch")
    return Probed(tuple(map(tuple, found)))


def _explained(error: Exception, patience_s: float) -> Probed:
    text = str(error)
    if "in DataLoader worker process" in text:
        return Probed(raised=_last_line(text))
    if "timed out after" in text:
        return Probed(
            trouble=f"no batch came within {patience_s:g} seconds; "
            "the worker may wait for something for ever"
        )
    if "exited unexpectedly" in text or "killed by signal" in text:
        return Probed(trouble=f"the worker ended ({_said(error)})")
    return Probed(trouble=f"the worker could not be started ({_said(error)})")


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _last_line(text: str) -> str:
    """The error itself, which stands below its traceback."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1]
