"""Could this be sent to a spawned worker? Finds out without sending it.

torch's own pickler moves tensors into shared memory, and numpy arrays may be
large; here both are replaced by a word, and the pickle is thrown away while it
is made. ``__getstate__`` and ``__reduce__`` of the objects do run: they decide
what is pickled.
"""

import functools
import pickle
import time
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.reduction import ForkingPickler

import torch

from helpers.advise.objects import inert, walker

#: More faults than anybody wants to read at once.
_FAULTS = 10

#: Seconds for one root.
_LIMIT_S = 5.0

# These carry other objects, so they are pickled like anything else. For all other
# types that ForkingPickler knows, it has its own way, which works only while a
# process is being started.
_CARRIERS = (
    types.MethodType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    functools.partial,
)
_SYNCHRONISED = tuple(
    f"multiprocessing.{module}"
    for module in ("connection", "heap", "queues", "sharedctypes", "synchronize")
)


@dataclass(frozen=True)
class Fault:
    """One object that cannot be pickled.

    Attributes:
        value: the object.
        path: how to get to it.
        error: what pickle said.
        owners: the objects on the way, the outermost first.
    """

    value: object
    path: str
    error: str
    owners: tuple[object, ...]


@dataclass
class Check:
    """What came out for one root.

    Attributes:
        faults: what cannot be pickled.
        named: functions and classes that are pickled by their name.
        cut: why the check stopped early, or None.
    """

    faults: list[Fault] = field(default_factory=list)
    named: list[object] = field(default_factory=list)
    cut: str | None = None


class _TooLong(Exception):
    """The check has used its time."""


class _Nowhere:
    """A file that forgets what is written, and stops the writing in time."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.perf_counter() + seconds

    def write(self, data: bytes) -> int:
        if time.perf_counter() > self._deadline:
            raise _TooLong
        return len(data)


class _Stubbing:
    """What both picklers do before they save an object."""

    def prepare(self, known: dict[int, object]) -> None:
        """``known``: faults by their id; they are passed over."""
        self.known = known
        self.named: list[object] = []

    def reducer_override(self, value: object) -> object:
        if id(value) in self.known or _is_sendable(value):
            return _stub, ()
        if inert.is_a(value, types.FunctionType, type) and value is not _stub:
            self.named.append(value)
        return NotImplemented


class _Quick(_Stubbing, pickle.Pickler):
    """Decides, at the speed of C."""


class _Tracking(_Stubbing, pickle._Pickler):
    """Remembers on which way it came to the object that failed.

    The pickler in Python is slow, so it is used only where something fails.
    """

    def __init__(self, file: object) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.stack: list[object] = []

    def save(self, value: object, save_persistent_id: bool = True) -> None:
        self.stack.append(value)
        super().save(value, save_persistent_id)
        # Not after an error: the stack then ends with the culprit.
        self.stack.pop()


def check(root: object, path: str, seconds: float = _LIMIT_S) -> Check:
    """Find what cannot be pickled below ``root``.

    Args:
        root: what would be sent.
        path: its name.
        seconds: time for the whole check.
    """
    result, known = Check(), {}
    end = time.perf_counter() + seconds
    try:
        while len(result.faults) < _FAULTS:
            error, result.named = _quick(root, known, end - time.perf_counter())
            if error is None:
                break
            fault = _locate(root, path, error, known, end - time.perf_counter())
            if id(fault.value) in known:
                break
            known[id(fault.value)] = fault.value
            result.faults.append(fault)
    except _TooLong:
        result.cut = f"pickling took longer than {seconds:g} seconds at {path}"
    return result


def _quick(
    root: object, known: dict[int, object], seconds: float
) -> tuple[Exception | None, list[object]]:
    pickler = _Quick(_Nowhere(seconds), pickle.HIGHEST_PROTOCOL)
    pickler.prepare(known)
    return _error_of(pickler, root), pickler.named


def _locate(
    root: object, path: str, error: Exception, known: dict[int, object], seconds: float
) -> Fault:
    pickler = _Tracking(_Nowhere(seconds))
    pickler.prepare(known)
    # The two picklers word their errors alike; where only the one in C fails,
    # the root itself is all that can be said.
    error = _error_of(pickler, root) or error
    stack = pickler.stack or [root]
    return Fault(stack[-1], _path(path, stack), _said(error), tuple(stack[:-1]))


def _error_of(pickler: _Quick | _Tracking, root: object) -> Exception | None:
    try:
        pickler.dump(root)
    except _TooLong:
        raise
    except Exception as error:  # code of the objects may raise anything
        return error
    return None


def _is_sendable(value: object) -> bool:
    """torch or multiprocessing will send it in a way of their own."""
    if inert.is_number_array(value):
        return True
    if inert.is_a(value, torch.Tensor, torch.UntypedStorage, torch.TypedStorage):
        return True
    kind = type(value)
    if kind in ForkingPickler._extra_reducers:
        return kind not in _CARRIERS
    return any(inert.module_of(base) in _SYNCHRONISED for base in inert.bases(value))


def _stub() -> None:
    """Stands in a pickle for what was not pickled."""


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _path(path: str, stack: list[object]) -> str:
    """The names on the way along a stack of objects being pickled.

    Between an object and its attribute stands its state, usually a dict, which
    has no name in code.
    """
    holder = stack[0]
    for before, value in _pairs(stack):
        label = _label(holder, value)
        if label is None and before is not holder:
            label = _attribute(before, value)
        if label is not None:
            path, holder = path + label, value
    return path


def _pairs(stack: list[object]) -> Iterator[tuple[object, object]]:
    yield from zip(stack, stack[1:], strict=False)


def _label(holder: object, value: object) -> str | None:
    for child in walker.children(holder, sampled=None):
        if child.value is value:
            return child.label
    return None


def _attribute(state: object, value: object) -> str | None:
    """The name of a value that ``__getstate__`` made up."""
    for key, kept in inert.items(state) or ():
        if kept is value and type(key) is str:
            # What lies in these is named by the module itself.
            return None if key in inert.MODULE_TABLES else f".{key}"
    return None
