"""What does the recording cost? Run alone on a quiet machine:

    python -m benchmarks.tracer

Prints the direct cost of a batch in microseconds and bytes, and its share of a
batch of 30 ms against the bar. Timing a traced loader against a plain one cannot
tell: the difference is far below what two equal loaders differ by.
"""

import pickle
import statistics
import sys
import time
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler

from benchmarks.bars import Bar, report
from helpers.measure import tracer

BATCH_MS = 30
INDICES = list(range(32))
BATCH = b"a batch"
ROUNDS, CALLS = 41, 500


def sent_and_received(message: object) -> object:
    """What a queue between two processes does to a message."""
    return pickle.loads(ForkingPickler.dumps(message))


def collate(samples: object) -> bytes:
    return BATCH


def plain() -> None:
    """The way of one batch, without its fetching: indices out, batch back."""
    _, indices = sent_and_received((0, next(plain_sampler)))
    sent_and_received((0, collate(indices)))


def traced() -> None:
    """The same with both hooks, and the stamps taken off at the end."""
    _, indices = sent_and_received((0, next(traced_sampler)))
    item = sent_and_received((0, traced_collate(indices)))[1]
    arrived[0] = item
    next(traced_iterator)
    tracer.now(), tracer.now()  # the loop's own two: end of wait, end of step


class _Endless:
    """A batch sampler without an end."""

    def __iter__(self):
        while True:
            yield INDICES


arrived: list[object] = [None]
deliveries: list[tracer.Delivery] = []
plain_sampler = iter(_Endless())
traced_sampler = iter(tracer._MarkingSampler(_Endless(), with_workers=True))
traced_collate = tracer._TimedCollate(collate)
traced_iterator = tracer._TracedIterator(iter(lambda: arrived[0], None), deliveries)


def microseconds(run: Callable[[], None]) -> float:
    """CPU time of one call: it does not count what other programs take."""
    began = time.process_time()
    for _ in range(CALLS):
        run()
    return (time.process_time() - began) / CALLS * 1e6


def extra_bytes() -> int:
    """Bytes on both ways that a plain loader would not send."""
    pairs = [
        (next(traced_sampler), INDICES),
        (traced_collate(INDICES), BATCH),
    ]
    sizes = [[len(ForkingPickler.dumps((0, one))) for one in pair] for pair in pairs]
    return sum(with_stamps - without for with_stamps, without in sizes)


def direct_costs() -> list[float]:
    """Microseconds that the hooks add to a batch, one figure per round."""
    costs = []
    for _ in range(ROUNDS):
        without = microseconds(plain)
        costs.append(microseconds(traced) - without)
        deliveries.clear()
    return costs


def bar(costs: list[float]) -> Bar:
    """The share of a batch that the recording may cost."""
    share = statistics.median(costs) / BATCH_MS / 10
    return Bar(f"recording, share of a {BATCH_MS} ms batch", share, 2, "%")


def main() -> int:
    """Print the cost; 1 if the bar is missed."""
    costs = direct_costs()
    cost = statistics.median(costs)
    print(f"direct cost of a batch: {cost:.1f} us, {extra_bytes()} bytes")
    print(f"  over {ROUNDS} rounds: {min(costs):.1f} to {max(costs):.1f} us")
    return report([bar(costs)])


if __name__ == "__main__":
    sys.exit(main())
