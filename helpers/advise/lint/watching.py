"""Watching a loop: faults that only show over several epochs."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from torch.utils.data import DataLoader

from helpers.advise.lint.codes import finding
from helpers.advise.lint.findings import ERROR, NOTE, Finding, Findings
from helpers.advise.objects import code_names, inert, samplers, walker
from helpers.measure import copies


@dataclass
class Epoch:
    """One run over the loader.

    Attributes:
        told: path of a sampler -> the epoch number it had been told.
        batches: how many the loop took.
        finished: it took them all.
    """

    told: dict[str, int]
    batches: int = 0
    finished: bool = False

    @property
    def counts(self) -> bool:
        """More than a look at the first batch."""
        return self.finished or self.batches > 1


@dataclass(frozen=True)
class Held:
    """A value of the dataset, and the attribute by which code would name it."""

    value: object
    name: str | None


State = dict[str, Held]


@dataclass
class Watch:
    """What was seen of a loop over ``loader``, epoch by epoch.

    ``first`` and ``last`` hold, by path, what the dataset held when the first and
    the last epoch began. They stay empty unless the workers persist.
    """

    loader: DataLoader
    epochs: list[Epoch] = field(default_factory=list)
    first: State = field(default_factory=dict)
    last: State = field(default_factory=dict)

    @property
    def findings(self) -> Findings:
        """What is wrong so far."""
        seen = len([epoch for epoch in self.epochs if epoch.counts])
        found = [*self._repeated(), *self._outdated()]
        return Findings(found, f"{seen} epoch{'' if seen == 1 else 's'} seen.")

    def __str__(self) -> str:
        return str(self.findings)

    def _repr_html_(self) -> str:
        return self.findings._repr_html_()

    def _repeated(self) -> Iterator[Finding]:
        """DL104: two epochs under one number."""
        for path, _ in samplers.of(self.loader):
            first: dict[int, int] = {}
            for number, epoch in enumerate(self.epochs):
                if not epoch.counts or path not in epoch.told:
                    continue
                before = first.setdefault(epoch.told[path], number)
                if before != number:
                    what = (
                        f"runs {before + 1} and {number + 1} over the loader both "
                        f"had epoch number {epoch.told[path]}"
                    )
                    yield finding("DL104", ERROR, path, what)
                    break

    def _outdated(self) -> Iterator[Finding]:
        """DL206: what the workers have is not what the dataset has now."""
        first, last = self.first, self.last
        changed = [path for path in last if _differs(first.get(path), last[path])]
        nodes = walker.walk({"dataset": self.loader.dataset}).nodes
        names = code_names.follow(
            code_names.entries_of(nodes), code_names.methods_of(nodes)
        )
        for path in changed:
            # Where a whole object was replaced, all its parts differ too.
            if any(_is_inside(path, other) for other in changed):
                continue
            used = last[path].name in names.mentioned
            what = _change(first.get(path), last[path])
            yield finding("DL206", ERROR if used else NOTE, path, what)

    def _begin(self) -> Epoch:
        told = {
            path: inert.attributes(sampler).get("epoch")
            for path, sampler in samplers.of(self.loader)
            if samplers.shuffles_by_epoch(sampler)
        }
        persistent = self.loader.persistent_workers and self.loader.num_workers > 0
        if persistent:
            self.last = _state_of(self.loader.dataset)
            self.first = self.first or self.last
        self.epochs.append(Epoch(told))
        return self.epochs[-1]


@contextlib.contextmanager
def watch(loader: DataLoader) -> Iterator[Watch]:
    """Watch your own loop while it runs over ``loader``.

    It sees what cannot be seen in the loader: a DistributedSampler that is never
    told its epoch, and values of the dataset that change while persistent workers
    keep their old copy. Tensors changed in place are not noticed; if they are in
    shared memory, workers see the change. The loader itself is not modified; its
    class is, until the end of the ``with`` block::

        with watch(loader) as seen:
            train(model, loader)
        print(seen.findings)

    Raises:
        TypeError: not a DataLoader.
    """
    copies.require_loader(loader)
    seen = Watch(loader)
    kind = type(loader)
    original = kind.__iter__

    def watched(self: DataLoader) -> Iterator:
        if self is not loader:
            return original(self)
        epoch = seen._begin()
        return _Counting(original(self), epoch)

    with mock.patch.object(kind, "__iter__", watched):
        yield seen


class _Counting:
    """The loader's iterator; counts the batches that the loop takes."""

    def __init__(self, inner: Iterator, epoch: Epoch) -> None:
        self._inner = inner
        self._epoch = epoch

    def __iter__(self) -> "_Counting":
        return self

    def __next__(self) -> object:
        try:
            batch = next(self._inner)
        except StopIteration:
            self._epoch.finished = True
            raise
        self._epoch.batches += 1
        return batch

    def __len__(self) -> int:
        return len(self._inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _state_of(dataset: object) -> State:
    found = {}
    for node in walker.walk({"dataset": dataset}).nodes:
        for child in walker.children(node.value):
            name = node.name if child.name is None else child.name
            found[node.path + child.label] = Held(child.value, name)
    return found


def _differs(before: Held | None, now: Held) -> bool:
    if before is None:
        # Entries come and go, as in a cache; an attribute is meant to be seen.
        return now.name is not None and inert.is_plain(now.value)
    if before.value is now.value:
        return False
    both_plain = inert.is_plain(before.value) and inert.is_plain(now.value)
    return not both_plain or before.value != now.value


def _is_inside(path: str, other: str) -> bool:
    return path.startswith((f"{other}.", f"{other}["))


def _change(before: Held | None, now: Held) -> str:
    old = "nothing" if before is None else _shown(before.value)
    return f"the workers have {old}, the dataset has {_shown(now.value)} now"


def _shown(value: object) -> str:
    if not inert.is_plain(value):
        return f"another {inert.type_name(value)}"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
