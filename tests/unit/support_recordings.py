"""Recordings made by hand, for tests of what is made of them."""

from helpers.measure.timeline import Timeline
from helpers.measure.timeline_events import Turn, events
from helpers.measure.tracer import Delivery, Making, Stamp


def delivery(
    batch: int, times: list[int], pinned: tuple[int, int] = (0, 0)
) -> Delivery:
    """Times: sent, fetch, collate, done, pickled (start, end), unpickled (start,
    end), asked, got."""
    sent, fetch, collate, done, *packed, arrives, arrived, asked, got = times
    making = Making(0, batch, 0, sent, fetch, collate, done)
    head = Stamp(making, packed[0], arrives, pinned[0])
    return Delivery(head, Stamp(None, packed[1], arrived, pinned[1]), asked, got)


def turns_of(*deliveries: Delivery, step: int = 0) -> list[Turn]:
    return [
        Turn(one, 0, one.asked if place else None, one.got, one.got, one.got + step)
        for place, one in enumerate(deliveries)
    ]


def recording(
    waits: list[int], step: int = 10, workers: int = 2, warm_up: int = 0
) -> Timeline:
    """Batches that arrive as they are asked for, after ``waits`` ms each."""
    ms, now, deliveries, turns = 10**6, 0, [], []
    for number, wait in enumerate(waits):
        got = now + wait * ms
        times = [now, now + 1, now + 2, now + 3, now + 4, now + 5]
        one = delivery(number, [*times, got - 2, got - 1, now, got])
        asked = now if number else None
        turns.append(Turn(one, 0, asked, got, got, got + step * ms))
        deliveries.append(one)
        now = got + step * ms
    found = events(deliveries, turns, on_device=True)
    return Timeline(found, workers, "simulated device", warm_up, now)
