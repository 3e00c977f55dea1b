"""Rules about which samples come, how many, and of what kind (DL3xx)."""

import dis
from collections.abc import Iterator

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    IterableDataset,
    IterDataPipe,
    WeightedRandomSampler,
)

from helpers.advise.lint.codes import finding
from helpers.advise.lint.findings import ERROR, NOTE, WARNING, Finding
from helpers.advise.lint.subject import Subject
from helpers.advise.objects import inert, samplers
from helpers.advise.objects.walker import Node

_DRAWS = {
    "bernoulli",
    "choice",
    "choices",
    "integers",
    "multinomial",
    "normal",
    "normalvariate",
    "rand",
    "randint",
    "randn",
    "random",
    "standard_normal",
    "uniform",
}

_LABELS = ("targets", "labels")


def undivided_stream(subject: Subject) -> Iterator[Finding]:
    """DL301: every worker yields the whole stream."""
    if not _seems_undivided(subject):
        return
    digests = [report.digest for report in subject.reports]
    if len(digests) > 1 and digests[0] is not None and digests[0] == digests[1]:
        what = "two workers began with the same batch"
        yield finding("DL301", ERROR, "dataset", what)
    else:
        what = f"nothing in __iter__ asks which of the {subject.workers} workers it is"
        yield finding("DL301", WARNING, "dataset", what)


def _seems_undivided(subject: Subject) -> bool:
    loader, names = subject.loader, subject.stream_names
    if not inert.is_a(loader.dataset, IterableDataset) or subject.workers < 2:
        return False
    if loader.worker_init_fn is not None or not names.functions:
        return False
    if inert.is_a(loader.dataset, IterDataPipe) or _divides_itself(subject):
        return False
    if any(_tells_workers_apart(name) for name in names.mentioned):
        return False
    return not _only_draws(subject)


def _divides_itself(subject: Subject) -> bool:
    """A library that does so is used, or one of its streams lies inside."""
    used = set(subject.stream_names.packages)
    for node in subject.walk.nodes:
        used.update(map(inert.package_of, inert.bases(node.value)))
    return bool(inert.stream_libraries() & used)


def _tells_workers_apart(name: str) -> bool:
    words = name.lower().split("_")
    return bool({"worker", "workers", "rank"} & set(words))


def _only_draws(subject: Subject) -> bool:
    """The stream is made of random numbers, which differ between workers."""
    names = subject.stream_names
    if not _DRAWS & names.mentioned or "iter" in names.mentioned:
        return False
    for function in names.functions:
        steps = list(dis.get_instructions(function.__code__))
        loops = sum("GET_ITER" in s.opname or "YIELD_FROM" in s.opname for s in steps)
        counts = sum(s.argval in ("range", "count", "repeat") for s in steps)
        if loops > counts:
            return False
    return True


def incomplete_evaluation(subject: Subject) -> Iterator[Finding]:
    """DL302: samples that are never evaluated."""
    if subject.role != "eval":
        return
    for path, sampler in samplers.of(subject.loader):
        left_out = _left_out(subject, sampler)
        if left_out:
            yield finding("DL302", WARNING, f"{path}.drop_last", left_out)
    if inert.is_a(subject.loader.dataset, IterableDataset) and subject.loader.drop_last:
        what = "every worker drops its incomplete last batch"
        yield finding("DL302", WARNING, "drop_last", what)


def _left_out(subject: Subject, sampler: object) -> str | None:
    """What a sampler drops, in words; None if it drops nothing."""
    own = inert.attributes(sampler)
    if own.get("drop_last") is not True:
        return None
    if inert.is_a(sampler, BatchSampler):
        if inert.is_a(subject.loader.dataset, IterableDataset):
            return None
        total, part = subject.lengths.drawn, own.get("batch_size")
    elif inert.is_a(sampler, DistributedSampler):
        total, part = subject.lengths.samples, own.get("num_replicas")
    else:
        return None
    if type(total) is not int or type(part) is not int or part < 1:
        return "drop_last=True leaves out up to one batch"
    dropped = total % part
    return f"drop_last=True leaves out {dropped} of {total}" if dropped else None


def no_batch(subject: Subject) -> Iterator[Finding]:
    """DL303: the loop would run zero times."""
    loader, samples = subject.loader, subject.lengths.samples
    size = loader.batch_size
    if subject.lengths.batches == 0 and samples:
        what = f"0 batches from {samples} samples"
        if size is not None and loader.drop_last:
            what += f": batch_size={size} and drop_last=True"
        yield finding("DL303", ERROR, "loader", what)
    elif _workers_drop_all(subject):
        workers = max(1, subject.workers)
        what = (
            f"0 batches from {samples} samples: {workers} workers have at most "
            f"{-(-samples // workers)} each, batch_size={size} and drop_last=True"
        )
        yield finding("DL303", ERROR, "loader", what)


def _workers_drop_all(subject: Subject) -> bool:
    loader, samples = subject.loader, subject.lengths.samples
    stream = inert.is_a(loader.dataset, IterableDataset)
    if not stream or not samples or not loader.drop_last or not loader.batch_size:
        return False
    parts = 1 if _seems_undivided(subject) else max(1, subject.workers)
    return -(-samples // parts) < loader.batch_size


def lonely_sample(subject: Subject) -> Iterator[Finding]:
    """DL304: a last batch of one."""
    size, drawn = subject.loader.batch_size, subject.lengths.drawn
    if subject.role != "train" or not size or size == 1 or drawn is None:
        return
    if not subject.loader.drop_last and drawn % size == 1:
        what = f"{drawn} samples in batches of {size} leave one alone"
        yield finding("DL304", NOTE, "loader", what)


def weights_of_classes(subject: Subject) -> Iterator[Finding]:
    """DL305: weights that are not one per sample."""
    samples = subject.lengths.samples
    for path, sampler in samplers.of(subject.loader):
        if not inert.is_a(sampler, WeightedRandomSampler) or samples is None:
            continue
        weights = inert.attributes(sampler).get("weights")
        if not inert.is_a(weights, torch.Tensor) or len(weights) == samples:
            continue
        what = f"{len(weights)} weights for {samples} samples"
        classes = _classes(subject, len(weights))
        yield finding("DL305", ERROR, f"{path}.weights", what + classes)


def _classes(subject: Subject, weights: int) -> str:
    """A hint, if there are as many classes as weights."""
    for node in subject.walk.nodes:
        if not node.path.startswith("dataset") or node.name is None:
            continue
        if node.name == "classes" and inert.is_a(node.value, list, tuple):
            names = inert.elements(node.value) or []
            if len(names) == weights:
                shown = ", ".join(name for name in names[:5] if type(name) is str)
                dots = ", ..." if len(names) > 5 else ""
                return f"; there are as many classes: {shown}{dots}"
        if node.name in _LABELS and _different(node) == weights:
            return f"; {node.path} has as many different values"
    return ""


def _different(node: Node) -> int | None:
    """Number of different values in an array, tensor or list of numbers."""
    value = node.value
    if type(value) is torch.Tensor:
        return len(value.unique())
    if type(value) is np.ndarray and value.dtype != object:
        return len(np.unique(value))
    if type(value) is list and value and all(type(one) is int for one in value):
        return len(set(value))
    return None


def failing_batch(subject: Subject) -> Iterator[Finding]:
    """DL306: the reader's code raised an error in the throw-away worker."""
    if subject.probed is not None and subject.probed.raised is not None:
        yield finding("DL306", ERROR, "dataset", subject.probed.raised)


def doubles(subject: Subject) -> Iterator[Finding]:
    """DL307: float64 in a batch."""
    for report in subject.reports[:1]:
        if report.doubles:
            paths = ", ".join(report.doubles[:5])
            more = len(report.doubles) - 5
            what = f"float64 in {paths}" + (f" and {more} more" if more > 0 else "")
            yield finding("DL307", NOTE, report.doubles[0], what)


RULES = (
    undivided_stream,
    incomplete_evaluation,
    no_batch,
    lonely_sample,
    weights_of_classes,
    failing_batch,
    doubles,
)
