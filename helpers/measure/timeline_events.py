"""From the stamps of a recording to events: who did what from when to when."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from helpers.measure.tracer import Delivery, Making

MAIN, WORKER, QUEUE, PIN, DEVICE = "main", "worker", "queue", "pin thread", "device"

#: In the order in which a batch passes them.
STAGES = (
    "start-up",
    "fetch",
    "collate",
    "serialise",
    "transport",
    "pin",
    "ready",
    "wait",
    "transfer",
    "step",
)


#: Stages at whose end the loop has a batch.
TAKEN = ("start-up", "wait")


@dataclass(frozen=True)
class Event:
    """One stage of one batch; times in ns since the recording began.

    Attributes:
        process: ``main``, ``worker``, ``pin thread``, ``device``, or ``queue``
            for a batch on its way.
        worker: number of the worker that made the batch; None without workers.
        epoch: counts from 0.
        batch: position in the sampler's order, within the epoch.
        stage: one of :data:`STAGES`.
    """

    process: str
    worker: int | None
    epoch: int
    batch: int
    stage: str
    start_ns: int
    end_ns: int


class Turn(NamedTuple):
    """One turn of the training loop, in ns of the system's clock.

    ``asked`` is None for the first batch of an epoch: it belongs to the start.
    """

    delivery: Delivery
    began: int
    asked: int | None
    got: int
    transferred: int
    stepped: int


def events(
    deliveries: Sequence[Delivery], turns: Sequence[Turn], on_device: bool
) -> tuple[Event, ...]:
    """All events by start, in ns since the first turn began.

    Args:
        deliveries: all batches that arrived, also those after the last turn.
        turns: of the loop, in order; at least one.
        on_device: whether steps are the work of a device.

    Raises:
        RuntimeError: a batch arrived somewhere before it was sent.
    """
    check_clocks(deliveries)
    origin, end = turns[0].began, turns[-1].stepped
    calls = sorted(delivery.asked for delivery in deliveries)
    spans = [(one, span) for one in deliveries for span in _batch_spans(one, calls)]
    for turn in turns:
        spans += [(turn.delivery, span) for span in _loop_spans(turn, on_device)]
    found = [
        _event(delivery.making, span, origin, end)
        for delivery, span in spans
        if span.start < min(span.stop, end)
    ]
    return tuple(sorted(found, key=lambda event: event.start_ns))


def check_clocks(deliveries: Iterable[Delivery]) -> None:
    """Refuse stamps that cannot come from one clock.

    Raises:
        RuntimeError: a batch arrived somewhere before it was sent.
    """
    for head, tail, _, got in deliveries:
        made = head.making
        times = [made.sent, made.fetch, made.collate, made.done]
        times += [head.pickled, tail.pickled, head.unpickled, tail.unpickled]
        times += [head.pinned, tail.pinned, got]
        passed = [time for time in times if time]
        if passed != sorted(passed):
            raise RuntimeError(
                "clocks not comparable here: a batch arrived before it was sent"
            )


class _Span(NamedTuple):
    process: str
    stage: str
    start: int
    stop: int


def _event(making: Making, span: _Span, origin: int, end: int) -> Event:
    return Event(
        process=span.process,
        worker=making.worker,
        epoch=making.epoch,
        batch=making.batch,
        stage=span.stage,
        start_ns=span.start - origin,
        end_ns=min(span.stop, end) - origin,
    )


def _loop_spans(turn: Turn, on_device: bool) -> Iterator[_Span]:
    if turn.asked is None:
        yield _Span(MAIN, "start-up", turn.began, turn.got)
    else:
        yield _Span(MAIN, "wait", turn.asked, turn.got)
    place = DEVICE if on_device else MAIN
    yield _Span(place, "transfer", turn.got, turn.transferred)
    yield _Span(place, "step", turn.transferred, turn.stepped)


def _batch_spans(delivery: Delivery, calls: list[int]) -> Iterator[_Span]:
    head, tail, _, got = delivery
    made, in_worker = head.making, head.making.worker is not None
    maker = WORKER if in_worker else MAIN
    yield _Span(maker, "fetch", made.fetch, made.collate)
    yield _Span(maker, "collate", made.collate, made.done)
    usable = tail.pinned or tail.unpickled
    if in_worker:
        left = max(tail.pickled, _began_reading(delivery, calls))
        yield _Span(maker, "serialise", head.pickled, tail.pickled)
        yield _Span(QUEUE, "ready", tail.pickled, left)
        yield _Span(QUEUE, "transport", left, tail.unpickled)
        yield _Span(QUEUE, "ready", usable, got)
    if tail.pinned:
        yield _Span(PIN if in_worker else MAIN, "pin", head.pinned, tail.pinned)


def _began_reading(delivery: Delivery, calls: list[int]) -> int:
    """When somebody began to read the batch from the pipe.

    The pin thread always reads. Without one only ``next`` does
    (``_MultiProcessingDataLoaderIter._try_get_data``): until it is called a
    finished batch lies in the pipe, and that is not transport.
    """
    if delivery.tail.pinned:
        return delivery.making.done
    return calls[bisect_right(calls, delivery.tail.unpickled) - 1]
