"""Rules about what goes to the workers, and back (DL2xx)."""

import os
import sys
import types
from collections.abc import Iterator

import torch

from helpers.advise.lint.codes import finding
from helpers.advise.lint.findings import ERROR, NOTE, WARNING, Finding
from helpers.advise.lint.subject import Subject
from helpers.advise.objects import code_names, inert, open_handles
from helpers.advise.objects.pickling import Fault
from helpers.advise.objects.walker import Node

_MAIN = "__main__"

#: A class that defines one of these decides for itself what is pickled.
_PICKLES_ITSELF = ("__getstate__", "__reduce__", "__reduce_ex__")


def unpicklable(subject: Subject) -> Iterator[Finding]:
    """DL201 and DL202: what pickle refuses."""
    for check in subject.pickles:
        for fault in check.faults:
            # Said by the rules about handles and about the interactive session.
            told = _is_handle(fault) and subject.workers
            if not told and not _is_interactive(fault.value):
                yield _unpicklable(subject, fault)


def _unpicklable(subject: Subject, fault: Fault) -> Finding:
    kind = _local_definition(fault.value)
    if kind is not None:
        return finding("DL202", subject.unsendable, fault.path, kind)
    what = f"a {inert.type_name(fault.value)} cannot be pickled ({fault.error})"
    return finding("DL201", subject.unsendable, fault.path, what)


def _is_handle(fault: Fault) -> bool:
    objects = (fault.value, *fault.owners)
    return any(open_handles.kind_of(one) is not None for one in objects)


def _local_definition(value: object) -> str | None:
    """What was defined where no worker can import it, in words."""
    if not inert.is_a(value, types.FunctionType, type):
        return None
    if "<lambda>" in value.__qualname__.rsplit(".", 1)[-1]:
        return "a lambda has no name that a worker could import"
    if "<locals>" in value.__qualname__:
        kind = "class" if inert.is_a(value, type) else "function"
        return f"the {kind} {value.__name__} is defined inside a function"
    return None


def interactive(subject: Subject) -> Iterator[Finding]:
    """DL203: defined in a notebook or a console."""
    for path, check in zip(
        ("dataset", "collate_fn", "worker_init_fn"), subject.pickles, strict=True
    ):
        named = [*check.named, *(fault.value for fault in check.faults)]
        names = sorted({one.__name__ for one in named if _is_interactive(one)})
        if names:
            what = f"{', '.join(names)} of this session cannot be imported"
            yield finding("DL203", subject.unsendable, path, what)


def _is_interactive(value: object) -> bool:
    """A function or class of a main program that is no file."""
    if not inert.is_a(value, types.FunctionType, type):
        return False
    main = sys.modules[_MAIN]
    file = getattr(main, "__file__", None)
    importable = getattr(main, "__spec__", None) or (file and os.path.isfile(file))
    ours = value.__module__ == _MAIN and _local_definition(value) is None
    return ours and not importable


def handles(subject: Subject) -> Iterator[Finding]:
    """DL204: open files, databases and connections."""
    if not subject.workers:
        return
    for node, kind in open_handles.in_walk(subject.walk):
        article = "an" if kind[0] in "aeiou" else "a"
        if _drops_it(node):
            what = f"{article} {kind} in a class that decides what is pickled"
            yield finding("DL204", NOTE, node.path, what)
        else:
            severity = WARNING if subject.forks else ERROR
            how = "shared by all workers" if subject.forks else "that cannot be sent"
            yield finding("DL204", severity, node.path, f"{article} {kind} {how}")


def _drops_it(node: Node) -> bool:
    return any(
        not inert.is_library(inert.package_of(kind)) and name in inert.namespace(kind)
        for holder in node.ancestors()
        for kind in inert.bases(holder.value)
        for name in _PICKLES_ITSELF
    )


def accelerator_tensors(subject: Subject) -> Iterator[Finding]:
    """DL205: tensors that do not lie in the CPU's memory."""
    if not subject.workers:
        return
    away = [
        node
        for node in subject.walk.of(torch.Tensor)
        if inert.device_of(node.value) not in ("cpu", "meta")
    ]
    if away:
        device = inert.device_of(away[0].value)
        others = f", and {len(away) - 1} more" if len(away) > 1 else ""
        severity = ERROR if subject.forks else WARNING
        what = f"a tensor on {device}{others}"
        yield finding("DL205", severity, away[0].path, what)


def stale_attributes(subject: Subject) -> Iterator[Finding]:
    """DL206: a setter whose value never reaches persistent workers."""
    if not subject.loader.persistent_workers:
        return
    seen: set[int] = set()
    for node in subject.walk.nodes:
        if id(type(node.value)) in seen:
            continue
        seen.add(id(type(node.value)))
        for method, attribute in _setters(node):
            if attribute not in subject.names.mentioned:
                continue
            called = subject.loop is not None and method in subject.loop.mentioned
            what = f"{method} sets {attribute}, which persistent workers"
            if called:
                what += " never see, and the loop calls it"
            else:
                what += " would not see if it were called after they started"
            severity = WARNING if called else NOTE
            yield finding("DL206", severity, f"{node.path}.{attribute}", what)


def _setters(node: Node) -> Iterator[tuple[str, str]]:
    """Methods called ``set_...`` with the attribute that they assign."""
    own = inert.attributes(node.value)
    for kind in inert.bases(node.value):
        if inert.is_library(inert.package_of(kind)):
            continue
        for name, member in inert.namespace(kind).items():
            if not name.startswith("set_"):
                continue
            assigned = code_names.follow(code_names.functions_in(member), {}).assigned
            for attribute in sorted(assigned & own.keys()):
                yield name, attribute


def unsendable_batch(subject: Subject) -> Iterator[Finding]:
    """DL207: a batch that cannot be pickled."""
    for report in subject.reports[:1]:
        if report.unsendable and subject.workers:
            path, _, error = report.unsendable.partition(": ")
            yield finding("DL207", ERROR, path, f"pickling it fails ({error})")


RULES = (
    unpicklable,
    interactive,
    handles,
    accelerator_tensors,
    stale_attributes,
    unsendable_batch,
)
