"""The picture and the export of a recording."""

import json

import jsonschema
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from support_recordings import delivery, recording, turns_of

from helpers.measure import chrome_trace
from helpers.measure.timeline import Timeline
from helpers.measure.timeline_chart import (
    compare_alt,
    compare_finding,
    compare_plot,
    plot,
)
from helpers.measure.timeline_events import events
from helpers.page import show, style

# The Trace Event Format's rules for the kinds of events that are used.
_NUMBER = {"type": "number", "minimum": 0}
_ID = {"type": "integer", "minimum": 0}
_BASE = {"name": {"type": "string"}, "pid": _ID}
_SPAN = {
    **_BASE,
    "tid": _ID,
    "ts": _NUMBER,
    "cat": {"type": "string"},
    "args": {"type": "object"},
}


def _phase(letter: str, fields: dict, optional: tuple[str, ...] = ()) -> dict:
    return {
        "type": "object",
        "properties": {**fields, "ph": {"const": letter}},
        "required": ["ph", *(set(fields) - set(optional))],
        "additionalProperties": False,
    }


def _args(**fields: dict) -> dict:
    return {"type": "object", "properties": fields, "required": list(fields)}


SCHEMA = {
    "type": "object",
    "required": ["traceEvents"],
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "traceEvents": {
            "type": "array",
            "minItems": 1,
            "items": {
                "oneOf": [
                    _phase("X", {**_SPAN, "dur": _NUMBER}),
                    _phase("b", {**_SPAN, "id": {"type": "string"}}),
                    _phase("e", {**_SPAN, "id": {"type": "string"}}),
                    _phase(
                        "C",
                        {
                            **_BASE,
                            "ts": _NUMBER,
                            "args": {
                                "type": "object",
                                "additionalProperties": {"type": "number"},
                            },
                        },
                    ),
                    _phase(
                        "M",
                        {
                            **_BASE,
                            "tid": _ID,
                            "name": {"enum": ["process_name", "thread_name"]},
                            "args": _args(name={"type": "string"}),
                        },
                    ),
                ]
            },
        },
    },
}


def labels(axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def test_a_row_per_worker_one_for_the_loop_and_one_for_the_device():
    figure = recording([100, 30, 30], workers=2).plot()
    rows, ready = figure.axes
    assert labels(rows) == ["worker 0", "worker 1", "main process", "simulated device"]
    assert "ready" in ready.get_ylabel()
    assert ready.get_xlabel() == "time since the loop began (ms)"
    assert figure.get_suptitle().startswith("2 workers: the loop waits 75%")


def test_the_title_can_be_given():
    assert plot(recording([100, 30]), title="Found").get_suptitle() == "Found"


def test_start_up_is_marked():
    rows = recording([100, 30, 30]).plot().axes[0]
    assert "first batch after 100 ms" in [text.get_text() for text in rows.texts]


@pytest.mark.parametrize("workers", [0, 1, 2, 16])
def test_the_chart_can_be_shown_as_svg(workers, capsys):
    made = recording([100, 30, 30], workers=workers)
    figure = made.plot()
    assert isinstance(figure, Figure)
    show.figure(figure, alt=made.alt())
    assert len(labels(figure.axes[0])) == workers + 2


def test_rows_can_be_drawn_into_given_axes():
    figure, axes = style.axes()
    assert recording([100, 30]).plot(axes) is figure
    assert any(isinstance(c, PolyCollection) for c in axes.collections)


def test_two_recordings_share_one_scale_of_time():
    slow, fast = recording([100, 90, 90], workers=0), recording([50, 5, 5])
    names = ("default", "tuned")
    figure = compare_plot(slow, fast, names)
    assert len(figure.axes) == 4
    assert {axes.get_xlim() for axes in figure.axes} == {(0, slow.end_ns)}
    assert figure.get_suptitle() == (
        "A batch every 100 ms (default) or every 15 ms (tuned)"
    )
    assert figure.axes[2].get_title(loc="left").startswith("tuned: the loop waits 33%")
    assert "done: 3 batches in 90 ms" in [t.get_text() for t in figure.axes[2].texts]
    assert "default: Timeline of 3 batches" in compare_alt(slow, fast, names)


def test_recordings_from_before_the_steady_period_are_compared_as_a_whole():
    short, steady = recording([100, 5, 5], warm_up=6), recording([50, 20, 20])
    assert compare_finding(short, steady) == (
        "3 batches in 140 ms (before) or 3 batches in 120 ms (after), start-up included"
    )


def trace_of(made, folder) -> list[dict]:
    document = json.loads(made.to_chrome_trace(folder / "trace.json").read_text())
    jsonschema.validate(document, SCHEMA)
    return document["traceEvents"]


@pytest.mark.parametrize("workers", [0, 2])
def test_the_trace_keeps_to_the_format(workers, tmp_path):
    trace = trace_of(recording([100, 30, 30], workers=workers), tmp_path)
    names = {one["args"]["name"] for one in trace if one["ph"] == "M"}
    assert {"main process", "simulated device", "training loop"} <= names
    steps = [one for one in trace if one["name"] == "step"]
    assert [one["args"]["batch"] for one in steps] == [0, 1, 2]
    assert steps[0]["ts"] == 100_000 and steps[0]["dur"] == pytest.approx(10_000)


def test_spans_of_one_thread_nest(tmp_path):
    """A viewer shows complete events wrongly where they only partly overlap.

    The worker serialises batch 0 while it fetches batch 1.
    """
    first = delivery(0, [1, 2, 10, 20, 21, 25, 28, 30, 5, 31])
    second = delivery(1, [1, 22, 26, 28, 29, 32, 42, 43, 40, 44])
    found = events([first, second], turns_of(first, second, step=5), on_device=False)
    made = Timeline(found, 1, None, 0, 49)
    threads: dict[tuple, list[float]] = {}
    spans = [one for one in trace_of(made, tmp_path) if one["ph"] == "X"]
    for one in sorted(spans, key=lambda one: (one["ts"], -one["dur"])):
        open_ends = threads.setdefault((one["pid"], one["tid"]), [])
        while open_ends and open_ends[-1] <= one["ts"]:
            open_ends.pop()
        assert not open_ends or one["ts"] + one["dur"] <= open_ends[-1] + 1e-6
        open_ends.append(one["ts"] + one["dur"])


def test_every_asynchronous_span_is_closed(tmp_path):
    trace = trace_of(recording([9, 3, 3]), tmp_path)
    opened = [(one["id"], one["name"]) for one in trace if one["ph"] == "b"]
    closed = [(one["id"], one["name"]) for one in trace if one["ph"] == "e"]
    assert opened and sorted(opened) == sorted(closed)


def test_a_failed_export_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*_):
        raise OSError("no space left on device")

    (tmp_path / "trace.json").write_text("old")
    monkeypatch.setattr(chrome_trace.json, "dump", full)
    with pytest.raises(OSError, match="no space"):
        recording([9, 3]).to_chrome_trace(tmp_path / "trace.json")
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]
    assert (tmp_path / "trace.json").read_text() == "old"
