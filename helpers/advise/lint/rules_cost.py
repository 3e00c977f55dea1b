"""Rules about settings and what they cost (DL5xx), and what was left out (DL9xx)."""

from collections.abc import Iterator

from helpers.advise.lint.codes import finding
from helpers.advise.lint.findings import ERROR, NOTE, WARNING, Finding
from helpers.advise.lint.subject import Subject

#: Tensors in a batch from which sending them one by one is felt.
_MANY_TENSORS = 256

#: Arrays smaller than this travel quickly enough.
_LARGE_ARRAYS = 2**20


def too_many_workers(subject: Subject) -> Iterator[Finding]:
    """DL501: more workers than cores."""
    cores = subject.here.cores
    if subject.workers > cores:
        what = f"{subject.workers} workers on {cores:g} usable cores"
        yield finding("DL501", NOTE, "num_workers", what)


def pinned_for_nothing(subject: Subject) -> Iterator[Finding]:
    """DL502: page-locked memory that nobody copies from."""
    if subject.loader.pin_memory and not subject.here.accelerator:
        what = "pin_memory=True, and this machine has no accelerator"
        yield finding("DL502", NOTE, "pin_memory", what)


def impossible_prefetch(subject: Subject) -> Iterator[Finding]:
    """DL503: a prefetch factor that fails at the first batch."""
    factor = subject.loader.prefetch_factor
    if subject.workers and not factor:
        what = f"prefetch_factor={factor} with {subject.workers} workers"
        yield finding("DL503", ERROR, "prefetch_factor", what)


def impossible_timeout(subject: Subject) -> Iterator[Finding]:
    """DL504: a timeout that fails at the first batch."""
    timeout = subject.loader.timeout
    if timeout and not subject.workers:
        what = f"timeout={timeout:g} with num_workers=0"
        yield finding("DL504", ERROR, "timeout", what)


def many_tensors(subject: Subject) -> Iterator[Finding]:
    """DL505: a batch in very many pieces."""
    for report in subject.reports[:1]:
        if report.tensors >= _MANY_TENSORS and subject.workers:
            what = f"{report.tensors} tensors in one batch"
            yield finding("DL505", WARNING, "batch", what)


def arrays_in_batch(subject: Subject) -> Iterator[Finding]:
    """DL506: numpy arrays, which do not go through shared memory."""
    for report in subject.reports[:1]:
        if report.array_bytes >= _LARGE_ARRAYS and subject.workers:
            what = f"{report.array_bytes / 1e6:.1f} MB of numpy arrays in one batch"
            yield finding("DL506", NOTE, "batch", what)


def left_out(subject: Subject) -> Iterator[Finding]:
    """DL901 and DL902: what was not looked at."""
    cuts = [subject.walk.cut, *(check.cut for check in subject.pickles)]
    for cut in cuts:
        if cut is not None:
            yield finding("DL901", NOTE, "loader", cut)
    if subject.probed is not None and subject.probed.trouble is not None:
        yield finding("DL902", NOTE, "loader", subject.probed.trouble)


RULES = (
    too_many_workers,
    pinned_for_nothing,
    impossible_prefetch,
    impossible_timeout,
    many_tensors,
    arrays_in_batch,
    left_out,
)
