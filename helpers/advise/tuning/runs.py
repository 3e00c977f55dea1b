"""Loaders while they are measured: faults traced, streams restarted, runs kept.

All build on :class:`helpers.measure.windows.LoaderRun`.
"""

from collections.abc import Callable

from torch.utils.data import DataLoader, IterableDataset

from helpers.advise.replay import Step
from helpers.advise.tuning import interrupts
from helpers.measure.windows import LoaderRun, Slice, StreamEnded, Window

_FROM_WORKER = "in DataLoader worker process"
_WORKER_DIED = "DataLoader worker (pid"


class SampleError(RuntimeError):
    """The dataset raised; the message names the sample, the cause is its error.

    Attributes:
        index: of the sample; None if it could not be told.
    """

    def __init__(self, message: str, index: object = None) -> None:
        super().__init__(message)
        self.index = index


class WatchedRun(LoaderRun):
    """A run that says which sample an error came from.

    Args:
        loader: left as it is.
        step: what the training loop does with a batch.
        in_process: the dataset may be asked here which sample of the failing
            batch it is.

    Raises:
        SampleError: from the error of the dataset or the collate function.
        StreamEnded: a stream ends before the steady period.
    """

    def __init__(self, loader: DataLoader, step: Step, in_process: bool) -> None:
        self._in_process = in_process
        super().__init__(loader, step)

    def _next(self) -> object:
        interrupts.check()
        try:
            return super()._next()
        except StreamEnded:
            raise
        except Exception as error:
            traced = self._traced(error)
            if traced is None:
                raise
            raise traced from error

    def _traced(self, error: Exception) -> SampleError | None:
        """The error with its sample; None if no sample is to blame."""
        raised = not self._loader.num_workers or _FROM_WORKER in str(error)
        if not (raised or _WORKER_DIED in str(error)):
            return None
        if isinstance(self._loader.dataset, IterableDataset):
            words = _last_words(error)
            return SampleError(f"the stream failed after {self.taken} batches: {words}")
        batch = self.failed_batch()
        if batch is None:
            return None
        indices = batch if isinstance(batch, list) else [batch]
        if raised and self._in_process:
            return _trace(self._loader.dataset, indices, error)
        return SampleError(f"{_one_of(indices)} failed: {_last_words(error)}")


def _trace(dataset: object, indices: list, error: Exception) -> SampleError:
    """Ask for the samples of a batch one by one until one fails again."""
    for index in indices:
        try:
            _fetch(dataset, index)
        except Exception as again:
            words = f"sample {index!r} raised {_last_words(again)}"
            return SampleError(words, index)
    return SampleError(
        f"{_one_of(indices)} failed: {_last_words(error)}; alone each can be "
        "fetched, so look at the collate function"
    )


def _fetch(dataset: object, index: object) -> object:
    if hasattr(dataset, "__getitems__"):
        return dataset.__getitems__([index])
    return dataset[index]


def _one_of(indices: list) -> str:
    shown = ", ".join(map(repr, indices[:4]))
    more = f", ... ({len(indices)} in all)" if len(indices) > 4 else ""
    return f"the batch of samples {shown}{more}"


def _last_words(error: Exception) -> str:
    """Type and message; of an error from a worker the last line of its traceback."""
    lines = str(error).strip().splitlines()
    if lines and _FROM_WORKER in lines[0]:
        return lines[-1]
    return f"{type(error).__name__}: {' '.join(lines)}"


class RestartingRun:
    """A run that begins again where a stream has ended.

    Args:
        start: starts the run.

    Raises:
        StreamEnded: even a whole stream is too short for a slice.
    """

    def __init__(self, start: Callable[[], LoaderRun]) -> None:
        self._start, self._run = start, start()
        self.start_up_s = self._run.start_up_s

    def slice(self, seconds: float, batches: int) -> Slice:
        """As :meth:`helpers.measure.windows.LoaderRun.slice`."""
        try:
            return self._run.slice(seconds, batches)
        except StreamEnded:
            self._run.close()
            self._run = self._start()
            return self._run.slice(seconds, batches)

    def window(self, slices: list[Slice]) -> Window:
        """The slices as one window."""
        return self._run.window(slices)

    @property
    def taken(self) -> int:
        """Batches taken since the last start."""
        return self._run.taken

    @property
    def worker_pids(self) -> list[int]:
        """Process numbers of the workers that run now."""
        return self._run.worker_pids

    def close(self) -> None:
        """End the workers and wait for them."""
        self._run.close()
