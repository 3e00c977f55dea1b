"""Ctrl-C must end a measurement, even where Python swallows it.

An interrupt that arrives while a worker is being forked is raised inside one of
Python's own callbacks (``os.register_at_fork``), which print it and go on. So it
is noted as well, and looked at before every batch.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_interrupted = threading.Event()


def check() -> None:
    """Raise an interrupt that was swallowed.

    Raises:
        KeyboardInterrupt: there was one.
    """
    if _interrupted.is_set():
        _interrupted.clear()
        raise KeyboardInterrupt


@contextlib.contextmanager
def heeded() -> Iterator[None]:
    """Note interrupts until the block ends; otherwise they do what they did.

    Only the main thread may change what a signal does; elsewhere, and where
    interrupts are ignored, nothing happens.
    """
    before = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not main or not callable(before):
        yield
        return

    def note(number: int, frame: FrameType | None) -> None:
        _interrupted.set()
        before(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        _interrupted.clear()
