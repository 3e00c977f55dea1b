"""Export of a recording as Chrome-trace JSON, which Perfetto opens.

Source of the format: "Trace Event Format" of the Chromium project. Used of it:
complete events (X), nestable asynchronous ones (b and e) for batches on their
way, of which many overlap, counters (C) and names (M). Times are microseconds.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from helpers.measure.timeline_events import DEVICE, MAIN, PIN, QUEUE, WORKER, Event

if TYPE_CHECKING:
    from helpers.measure.timeline import Timeline

# Numbers of processes and threads in the file, not of the system. A worker
# serialises in a second thread, beside its next fetch.
_MAIN_PID, _QUEUE_PID, _DEVICE_PID, _FIRST_WORKER_PID = 1, 2, 3, 10
_FIRST_THREAD, _SECOND_THREAD = 1, 2


def write(timeline: Timeline, path: str | Path) -> Path:
    """Write the file beside its place first, so nobody ever sees half of it.

    Raises:
        OSError: the folder is missing or may not be written.
    """
    target = Path(path)
    handle, beside = tempfile.mkstemp(dir=target.parent, prefix=target.name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(as_dict(timeline), file)
        os.replace(beside, target)
    except BaseException:
        os.unlink(beside)
        raise
    return target


def as_dict(timeline: Timeline) -> dict:
    """The recording as the JSON object of the format."""
    return {
        "traceEvents": [
            *_names(timeline),
            *(one for event in timeline.events for one in _trace_events(event)),
            *_counters(timeline),
        ],
        "displayTimeUnit": "ms",
    }


def _trace_events(event: Event) -> Iterator[dict]:
    pid, tid = _place(event)
    common = {
        "name": event.stage,
        "cat": "batch",
        "pid": pid,
        "tid": tid,
        "args": {"batch": event.batch, "epoch": event.epoch},
    }
    start, end = event.start_ns / 1000, event.end_ns / 1000
    if event.process == QUEUE:
        common["id"] = f"{event.epoch}.{event.batch}"
        yield {**common, "ph": "b", "ts": start}
        yield {**common, "ph": "e", "ts": end}
    else:
        yield {**common, "ph": "X", "ts": start, "dur": end - start}


def _place(event: Event) -> tuple[int, int]:
    """Process and thread in the file."""
    if event.process == WORKER:
        second = event.stage == "serialise"
        thread = _SECOND_THREAD if second else _FIRST_THREAD
        return _FIRST_WORKER_PID + event.worker, thread
    return {
        MAIN: (_MAIN_PID, _FIRST_THREAD),
        PIN: (_MAIN_PID, _SECOND_THREAD),
        QUEUE: (_QUEUE_PID, _FIRST_THREAD),
        DEVICE: (_DEVICE_PID, _FIRST_THREAD),
    }[event.process]


def _counters(timeline: Timeline) -> Iterator[dict]:
    for time_ns, batches in timeline.ready().itertuples(index=False):
        yield {
            "name": "batches ready",
            "ph": "C",
            "pid": _MAIN_PID,
            "ts": time_ns / 1000,
            "args": {"batches": int(batches)},
        }


def _names(timeline: Timeline) -> Iterator[dict]:
    main, queue = (_MAIN_PID, "main process"), (_QUEUE_PID, "batches on their way")
    workers = [(_FIRST_WORKER_PID + n, f"worker {n}") for n in range(timeline.workers)]
    for pid, name in [main, queue, *workers]:
        yield _name("process_name", pid, 0, name)
    if timeline.device:
        yield _name("process_name", _DEVICE_PID, 0, timeline.device)
    yield _name("thread_name", _MAIN_PID, _FIRST_THREAD, "training loop")
    if any(event.process == PIN for event in timeline.events):
        yield _name("thread_name", _MAIN_PID, _SECOND_THREAD, "pin thread")
    for pid, _ in workers:
        yield _name("thread_name", pid, _FIRST_THREAD, "fetch and collate")
        yield _name("thread_name", pid, _SECOND_THREAD, "serialise")


def _name(kind: str, pid: int, tid: int, name: str) -> dict:
    return {"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}
