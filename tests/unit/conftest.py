"""Fixtures that several unit tests share."""

import signal
import subprocess
import sys
import time

import psutil
import pytest

from helpers.measure.load import LoadMeter

_BUSY = """
import os, sys, time
if os.fork():
    os._exit(0)          # the grandchild is adopted: it is not our descendant
print(os.getpid(), flush=True)
end = time.monotonic() + 60
while time.monotonic() < end:
    pass
"""


#: How often a test of a timing is tried: wrong code fails every time.
_TRIES = 3


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Try a test marked ``timed`` again if it fails, since a timing is a draw.

    If other programs used the cores in every failed try, it is skipped in the end.
    """
    if pyfuncitem.get_closest_marker("timed") is None:
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    calm: AssertionError | None = None
    for _ in range(_TRIES):
        meter = LoadMeter().start()
        try:
            pyfuncitem.obj(**arguments)
            return True
        except AssertionError as wrong:
            load, reason = meter.stop(), str(wrong).partition("\n")[0]
            if load.accepted:
                calm = wrong
    if calm is not None:
        raise calm
    pytest.skip(f"other programs used {load.foreign_cores:.1f} cores: {reason}")


@pytest.fixture
def busy_stranger():
    """A process that burns one core and is no descendant of this one."""
    if not hasattr(__import__("os"), "fork"):
        pytest.skip("a process is made a stranger by fork, which is not here")
    starter = subprocess.Popen(
        [sys.executable, "-c", _BUSY], stdout=subprocess.PIPE, text=True
    )
    stranger = psutil.Process(int(starter.stdout.readline()))
    starter.wait()
    time.sleep(0.2)  # until it has left its start-up behind
    yield stranger
    stranger.kill()
    starter.stdout.close()


@pytest.fixture(autouse=True, scope="session")
def interruptible():
    """Child processes heed Ctrl-C, also if the tests were started not to.

    A shell lets what it starts in the background ignore it, and children inherit
    that, but not a handler.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def no_process_left():
    """Every test ends the processes that it started."""
    before = _children()
    yield
    deadline = time.monotonic() + 10
    while (left := _children() - before) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left, f"processes left behind: {left}"


def _children() -> set[psutil.Process]:
    return {
        child
        for child in psutil.Process().children(recursive=True)
        if not _is_service(child)
    }


def _is_service(process: psutil.Process) -> bool:
    """Python's own helpers of multiprocessing live until the interpreter ends."""
    try:
        words = " ".join(process.cmdline())
    except psutil.Error:
        return True
    return "resource_tracker" in words or "forkserver" in words
