"""Runs a function over many jobs in several Python processes, results in order.

Why not ``multiprocessing``: its spawned children import the caller's ``__main__``
again, which a script without a main guard does not survive, and they may stay behind
when the parent is killed. Forked children are unsafe in a process with threads, which
every notebook is. A plain subprocess that reads jobs from its standard input has none
of these troubles on any system: it starts clean, and ends when its input ends.
"""

from __future__ import annotations

import errno
import os
import pickle
import queue
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")

_SERVE = "from data_gen.workers import serve; serve()"
_PACKAGE_PARENT = str(Path(__file__).resolve().parents[1])


def suggest(seconds: float) -> int:
    """How many processes to use for work that takes one process that long.

    Below a second the start of processes costs more than it saves. More than eight
    gain little, and each takes some 30 MB of memory.
    """
    if seconds < 1 or not sys.executable:
        return 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return min(cores, 8)


def run(
    function: Callable[[Job], Result], jobs: Sequence[Job], processes: int
) -> Iterator[Result]:
    """Yield ``function(job)`` for each job, in the order of the jobs.

    Args:
        function: a function that can be imported by name.
        jobs: what can be pickled.
        processes: 1 runs everything here; more starts as many processes.

    Raises:
        Whatever the function raises; ChildProcessError when a process dies.
    """
    if processes == 1:
        yield from map(function, jobs)
        return
    with ExitStack() as stack:
        idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        for _ in range(min(processes, len(jobs))):
            idle.put(stack.enter_context(_Worker()))

        def call(job: Job) -> Result:
            worker = idle.get()
            try:
                return worker.call(function, job)
            finally:
                idle.put(worker)

        # One thread per process: it only waits for the answer.
        threads = stack.enter_context(ThreadPoolExecutor(processes))
        yield from threads.map(call, jobs)


def serve() -> None:
    """Answer the jobs that arrive on standard input, until it ends."""
    # Ctrl-C reaches the whole group; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            function, job = pickle.load(requests)
        except EOFError:
            return
        try:
            answer = (True, function(job))
        except Exception as error:
            answer = (False, error)
        pickle.dump(answer, answers)
        answers.flush()


class _Worker:
    """A process that runs ``serve``."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=_PACKAGE_PARENT,  # else a stray random.py beside the caller is found
            env=_environment(),
        )

    def call(self, function: Callable[[Job], Result], job: Job) -> Result:
        try:
            pickle.dump((function, job), self._process.stdin)
            self._process.stdin.flush()
            done, answer = pickle.load(self._process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            raise self._death() from None
        if not done:
            raise answer
        return answer

    def _death(self) -> ChildProcessError:
        code = self._process.wait()
        said = self._process.stderr.read().decode(errors="replace").strip()
        last = said.splitlines()[-1] if said else "it said nothing"
        text = f"a helper process ended with exit code {code}: {last}"
        return ChildProcessError(errno.ECHILD, text)

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: Any) -> None:
        with self._process as process:
            with suppress(OSError):  # it may be dead, with a job still to be sent
                process.stdin.close()
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()


def _environment() -> dict[str, str]:
    # The search path of this process, which is known to find everything needed.
    path = os.pathsep.join([_PACKAGE_PARENT, *filter(None, sys.path)])
    # Linear algebra is not used; its threads would only take memory.
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    # The GNU C library hands large freed blocks back to the system. Fetching them
    # anew for every picture costs a tenth of the time, more with several processes.
    names = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")
    memory = dict.fromkeys(names, str(32 * 2**20))
    return os.environ | {"PYTHONPATH": path} | threads | memory
