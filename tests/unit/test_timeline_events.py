"""From stamps to events, numbers and words, on recordings made by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support_recordings import delivery, recording, turns_of

from helpers.measure.timeline import Timeline
from helpers.measure.timeline_events import events


def spans(found, stage: str) -> list[tuple[int, int]]:
    return [(e.start_ns, e.end_ns) for e in found if e.stage == stage]


def test_a_batch_read_late_lies_ready_in_the_pipe_until_next_is_called():
    one = delivery(0, [1, 2, 10, 20, 21, 25, 102, 105, 100, 110])
    found = events([one], turns_of(one, step=5), on_device=False)
    assert spans(found, "fetch") == [(2, 10)]
    assert spans(found, "collate") == [(10, 20)]
    assert spans(found, "serialise") == [(21, 25)]
    assert spans(found, "transport") == [(100, 105)]
    assert spans(found, "ready") == [(25, 100), (105, 110)]
    assert spans(found, "start-up") == [(0, 110)]
    assert spans(found, "step") == [(110, 115)]


def test_a_batch_that_the_loop_waits_for_is_in_transport_once_it_is_sent():
    one = delivery(0, [1, 2, 10, 20, 21, 25, 28, 30, 5, 31])
    found = events([one], turns_of(one), on_device=False)
    assert spans(found, "transport") == [(25, 30)]
    assert spans(found, "ready") == [(30, 31)]


def test_a_batch_that_came_early_was_read_by_an_earlier_call():
    """Batch 1 arrives while ``next`` waits for batch 0, and is kept."""
    first = delivery(0, [1, 2, 10, 60, 61, 62, 65, 66, 50, 70])
    second = delivery(1, [1, 2, 10, 20, 21, 25, 52, 55, 200, 210])
    found = events([first, second], turns_of(first, second), on_device=False)
    of_second = [event for event in found if event.batch == 1]
    assert spans(of_second, "transport") == [(50, 55)]
    assert spans(of_second, "ready") == [(25, 50), (55, 210)]
    assert spans(of_second, "wait") == [(200, 210)]


def test_a_pin_thread_reads_at_once():
    times = [1, 2, 10, 20, 21, 25, 28, 30, 100, 110]
    one = delivery(0, times, pinned=(31, 40))
    found = events([one], turns_of(one), on_device=False)
    assert spans(found, "transport") == [(25, 30)]
    assert spans(found, "pin") == [(31, 40)]
    assert spans(found, "ready") == [(40, 110)]


def test_what_happens_after_the_last_turn_is_cut_off():
    first = delivery(0, [1, 2, 10, 20, 21, 25, 28, 30, 5, 31])
    beyond = delivery(1, [1, 20, 50, 60, 61, 62, 70, 71, 65, 72])
    found = events([first, beyond], turns_of(first, step=9), on_device=False)
    assert spans([e for e in found if e.batch == 1], "fetch") == [(20, 40)]
    assert {e.stage for e in found if e.batch == 1} == {"fetch"}


def test_a_batch_that_arrives_before_it_was_sent_is_refused():
    one = delivery(0, [5, 2, 10, 20, 21, 25, 28, 30, 4, 31])
    with pytest.raises(RuntimeError, match="^clocks not comparable here"):
        events([one], turns_of(one), on_device=False)


@given(st.lists(st.integers(1, 50), min_size=9, max_size=9), st.integers(0, 8))
def test_the_way_of_a_batch_has_no_gap_and_no_overlap(steps, call):
    moments = [1]
    for step in steps[:8]:
        moments.append(moments[-1] + step)
    asked = min(moments[call] if call < 8 else 0, moments[-2])
    one = delivery(0, [*moments[:8], asked, moments[8]])
    found = events([one], turns_of(one), on_device=False)
    way = sorted(spans(found, "ready") + spans(found, "transport"))
    assert way[0][0] == moments[5] and way[-1][1] == moments[8]
    assert all(a[1] == b[0] for a, b in zip(way, way[1:], strict=False))


def test_the_summary_leaves_out_start_up_and_warm_up():
    summary = recording([100, 5, 5, 30, 30], warm_up=2).summary()
    assert summary.steady and summary.batches == 2
    assert summary.start_up_s == pytest.approx(0.1)
    assert summary.stages["wait"] == pytest.approx(0.030)
    assert summary.stages["step"] == pytest.approx(0.010)
    assert summary.seconds == pytest.approx(0.040)
    assert summary.wait_share == pytest.approx(0.75)
    assert list(summary.stages) == [
        "fetch", "collate", "serialise", "transport", "ready", "wait", "step",
    ]  # fmt: skip


def test_a_summary_from_before_the_steady_period_says_so():
    short = recording([100, 20, 20], warm_up=6)
    assert not short.summary().steady
    assert short.summary().stages["wait"] == pytest.approx(0.020)
    assert "before the steady period" in short.alt()
    assert short.finding().endswith("not yet steady")
    assert "before the steady period" not in recording([100, 20, 20]).alt()


def test_a_single_batch_can_be_summed_up():
    summary = recording([100]).summary()
    assert summary.batches == 1 and not summary.steady
    assert summary.wait_share == 0


def test_ready_batches_are_counted_from_finished_to_taken():
    first = delivery(0, [1, 2, 10, 20, 21, 25, 28, 30, 5, 40])
    second = delivery(1, [1, 2, 10, 22, 23, 35, 52, 55, 50, 60])
    found = events([first, second], turns_of(first, second, step=5), on_device=False)
    ready = Timeline(found, 2, None, 0, 65).ready()
    assert list(ready["time_ns"]) == [0, 25, 35, 40, 60]
    assert list(ready["batches"]) == [0, 1, 2, 1, 0]


def test_ready_batches_are_averaged_over_time():
    # One batch is ready all the while the loop waits, and none during steps.
    summary = recording([100, 30, 30]).summary()
    assert summary.ready == pytest.approx(0.75, abs=0.01)


def test_the_frame_has_one_row_per_event():
    made = recording([100, 20])
    frame = made.frame()
    assert len(frame) == len(made.events)
    assert list(frame.columns) == [
        "process", "worker", "epoch", "batch", "stage", "start_ns", "end_ns",
    ]  # fmt: skip


def test_the_words_say_the_numbers():
    made = recording([100, 30, 30, 30])
    assert made.finding() == (
        "2 workers: the loop waits 75% of its time, 4 batches in 230 ms"
    )
    for words in (
        "4 batches", "2 workers", "simulated device", "100 ms", "75%", "wait 30 ms",
    ):  # fmt: skip
        assert words in made.alt()
    assert "turn of the loop  40 ms" in str(made.summary())


def test_a_loop_without_a_step_only_waits():
    made = recording([100, 30, 30], step=0, workers=1)
    assert made.finding() == "1 worker: a batch every 30 ms, 3 batches in 160 ms"
