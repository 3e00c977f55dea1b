"""Examine a loader for faults: the rules, one after the other."""

from collections.abc import Callable
from dataclasses import replace

from torch.utils.data import DataLoader, IterableDataset

from helpers.advise.lint import (
    rules_cost,
    rules_flow,
    rules_memory,
    rules_processes,
    rules_randomness,
    sample_probe,
    subject,
)
from helpers.advise.lint.findings import ERROR, Finding, Findings
from helpers.advise.lint.sample_probe import Probed
from helpers.advise.lint.subject import Subject
from helpers.advise.objects import generators, inert
from helpers.measure import copies

ROLES = (None, "train", "eval")
PROBES = ("none", "worker")

_RULES = (
    *rules_randomness.RULES,
    *rules_processes.RULES,
    *rules_flow.RULES,
    *rules_memory.RULES,
    *rules_cost.RULES,
)

#: Where one of these is found, no worker can be started by spawn.
_NO_START = ("DL201", "DL202", "DL203")


def lint(
    loader: DataLoader,
    *,
    role: str | None = None,
    loop: str | Callable | None = None,
    probe: str = "none",
) -> Findings:
    """Look for faults in a loader; the book lists them on a page of its own.

    The loader and every random state stay as they were. Of your code these run in
    this process: ``__len__``, what decides what is pickled (``__getstate__``,
    ``__reduce__``), and, on a copy, the sampler. ``__getitem__``, ``__iter__``
    and the collate function run only with ``probe="worker"``, and only in
    workers that are thrown away; what they do outside their process stays done.

    Args:
        loader: any DataLoader.
        role: ``"train"`` or ``"eval"``, for the rules that depend on it.
        loop: the training loop as a function or as its source; it is read, not
            run.
        probe: ``"worker"`` also takes a batch from each of one or two throw-away
            workers, for the rules about samples.

    Raises:
        TypeError: not a DataLoader, or ``loop`` is neither function nor text.
        ValueError: an unknown ``role`` or ``probe``, or ``loop`` is not Python.
    """
    copies.require_loader(loader)
    _require("role", role, ROLES)
    _require("probe", probe, PROBES)
    seen = subject.look_at(loader, role, loop)
    found = _apply(seen)
    if probe == "worker":
        seen = replace(seen, probed=_probed(seen, found))
        found = _apply(seen)
    return Findings(found, _examined(seen))


def _require(name: str, value: object, allowed: tuple) -> None:
    if value not in allowed:
        choices = ", ".join(map(repr, allowed))
        raise ValueError(f"{name} must be one of {choices}; got {value!r}")


def _apply(seen: Subject) -> list[Finding]:
    return [found for rule in _RULES for found in rule(seen)]


def _probed(seen: Subject, found: list[Finding]) -> Probed:
    """Take a batch, from two workers if they are to be compared."""
    in_the_way = [
        f.code
        for f in found
        if f.code in _NO_START or (f.code == "DL204" and f.severity == ERROR)
    ]
    if in_the_way and not seen.forks:
        return Probed(trouble=f"a worker cannot be started, see {in_the_way[0]}")
    owned = generators.in_walk(seen.walk)
    init = seen.loader.worker_init_fn is not None
    stream = inert.is_a(seen.loader.dataset, IterableDataset) and seen.workers > 1
    with generators.preserved([node.value for node in owned]):
        return sample_probe.probe(
            seen.loader,
            workers=2 if owned or init or stream else 1,
            epochs=2 if init else 1,
        )


def _examined(seen: Subject) -> str:
    objects = f"{len(seen.walk.nodes):,} objects examined"
    if seen.probed is None:
        return f"{objects}; samples were not looked at (probe='none')."
    if not seen.reports:
        return f"{objects}; the sample rules were not run."
    return f"{objects}, and a batch from a throw-away worker."
