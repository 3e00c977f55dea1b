"""The harness: blocks, drain, guard and verdicts."""

import gc
import itertools
import math
import time
from functools import partial

import psutil
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

from helpers.measure.copies import EndlessSampler, drain_batches, endless
from helpers.measure.load import Load
from helpers.measure.timing import compare, compare_calls, replace_disturbed
from helpers.measure.windows import (
    CallRun,
    LoaderRun,
    Slice,
    Window,
    calmest,
    loader_window,
)
from helpers.pipeline.datasets import InMemory, LatencyBound
from helpers.pipeline.device import SimulatedDevice

SHORT = {"rounds": 4, "window_s": 0.05, "retries": 0}


class Stream(IterableDataset):
    def __init__(self, length: int) -> None:
        self.length = length

    def __iter__(self):
        return iter(range(self.length))


def in_memory(workers: int = 0, samples: int = 40, **options) -> DataLoader:
    return DataLoader(
        InMemory(samples, (4,)), batch_size=8, num_workers=workers, **options
    )


def test_every_variant_runs_once_per_round_in_changing_order():
    calls = []
    variants = {name: partial(calls.append, name) for name in "abc"}
    result = compare_calls(variants, rounds=6, window_s=0, warm_up=False, retries=0)
    rounds = [tuple(calls[start : start + 3]) for start in range(0, 18, 3)]
    assert all(sorted(order) == ["a", "b", "c"] for order in rounds)
    assert len(set(rounds)) > 1
    assert result.variants == ["a", "b", "c"]
    assert (result.frame.groupby("variant", observed=True).size() == 6).all()


@pytest.mark.timed
def test_a_true_difference_is_found_and_has_the_right_size():
    slow = partial(DataLoader, LatencyBound(64, wait_ms=2), batch_size=4)
    fast = partial(DataLoader, LatencyBound(64, wait_ms=1), batch_size=4)
    result = compare({"slow": slow, "fast": fast}, **SHORT)
    ratio = result.ratio("fast")
    assert ratio.low > 1.3 and ratio.high < 2.2
    back = result.ratio("slow", "fast")
    assert back.value == pytest.approx(1 / ratio.value)
    assert result.summary().loc["fast", "verdict"] in (
        "larger",
        "too much foreign load",
    )


def test_the_prefetch_queue_is_drained_before_timing():
    consumed = []
    loader = in_memory(workers=2, prefetch_factor=3)
    window = loader_window(loader, consumed.append, window_s=0.01, min_batches=8)
    assert drain_batches(loader) == 2 * 3 + 2
    assert len(consumed) == 1 + 8 + 2 + window.batches  # and a wave after the start


def test_without_workers_there_is_nothing_to_drain():
    assert drain_batches(in_memory()) == 0


def test_a_window_ends_after_whole_waves():
    window = loader_window(in_memory(workers=2), lambda _: None, 0.0, min_batches=7)
    assert window.batches == 8


def test_samples_are_counted_batch_by_batch():
    loader = in_memory(samples=20)  # batches of 8, 8 and 4, again and again
    window = loader_window(loader, lambda _: None, 0.0, min_batches=6)
    assert window.samples == 8 + 4 + 8 + 8 + 4 + 8


def test_start_up_and_steady_period_are_kept_apart():
    slow_start = partial(DataLoader, LatencyBound(64, 20), batch_size=4)
    result = compare({"x": slow_start}, rounds=1, window_s=0, min_batches=2, retries=0)
    start_up = result.values("x", "start_up_s")[0]
    assert 0.08 <= start_up < result.frame["seconds"][0]


def test_the_share_of_waiting_is_that_of_fetching_without_workers():
    make = partial(DataLoader, LatencyBound(64, wait_ms=5), batch_size=4)
    step = SimulatedDevice(step_ms=20)
    seen = compare({"x": make}, step=step, rounds=1, window_s=0, retries=0)
    assert 0.35 <= seen.values("x", "wait_share")[0] <= 0.65


def test_endless_copy_leaves_the_loader_alone():
    loader = in_memory(shuffle=True)
    before = dict(vars(loader))
    clone, sampler = endless(loader)
    assert isinstance(sampler, EndlessSampler)
    batches = iter(clone)
    for _ in range(12):
        next(batches)
    assert vars(loader) == before
    assert len(list(loader)) == 5


def test_endless_copy_works_without_automatic_batching():
    clone, sampler = endless(DataLoader(InMemory(3, (4,)), batch_size=None))
    items = iter(clone)
    assert [tuple(next(items)[0].shape) for _ in range(7)] == [(4,)] * 7
    assert sampler.sizes == [1] * 7


def test_a_loader_without_batches_is_refused():
    empty = in_memory(samples=4, drop_last=True)
    with pytest.raises(ValueError, match="yields no batch"):
        loader_window(empty, lambda _: None)


def test_a_stream_is_timed_and_a_short_one_refused():
    window = loader_window(DataLoader(Stream(1000), 8), lambda _: None, 0.0, 5)
    assert (window.batches, window.samples) == (5, 40)
    with pytest.raises(RuntimeError, match="stream ends after 3 batches"):
        loader_window(DataLoader(Stream(24), 8), lambda _: None, 0.0, 5)


def load_with(foreign: float) -> Load:
    return Load(1.0, 1.0, 1.0, foreign, 0.06)


def slice_with(foreign: float) -> Slice:
    return Slice(1.0, 1, (0.0,), load_with(foreign))


def foreign_of(slices: list[Slice]) -> list[float]:
    return [piece.load.foreign_cores for piece in slices]


def test_disturbed_slices_are_replaced_until_they_are_calm_together():
    slices = [slice_with(0.9), slice_with(0.01), slice_with(0.3)]
    more = iter([slice_with(0.5), slice_with(0.02), slice_with(0.03)])
    assert replace_disturbed(slices, lambda: next(more), 6) == 3
    assert sorted(foreign_of(slices)) == [0.01, 0.02, 0.03]


def test_calm_slices_are_left_alone():
    slices = [slice_with(0.1), slice_with(0.0)]  # 0.05 together
    assert replace_disturbed(slices, lambda: pytest.fail("not needed"), 6) == 0


def test_the_calmest_slices_are_kept_when_none_is_calm():
    slices, more = [slice_with(0.9)], iter([slice_with(0.2), slice_with(0.5)])
    assert replace_disturbed(slices, lambda: next(more), 2) == 2
    assert foreign_of(slices) == [0.2]


def test_no_replacement_after_the_deadline():
    slices = [slice_with(0.9)]
    assert replace_disturbed(slices, lambda: slice_with(0.0), 6, deadline=0.0) == 0


def test_a_disturbed_window_is_repeated_until_a_calm_one():
    def window_with(foreign: float) -> Window:
        return Window(1.0, 1, 1, math.nan, 0.0, 0.0, load_with(foreign))

    windows = iter([window_with(0.9), window_with(0.01)])
    assert calmest(lambda: next(windows), 6).load.foreign_cores == 0.01
    windows = iter([window_with(0.9), window_with(0.2), window_with(0.5)])
    assert calmest(lambda: next(windows), 2).load.foreign_cores == 0.2


def test_slices_add_up_to_a_window():
    slices = [
        Slice(2.0, 30, (0.5, 0.1, 0.2), Load(2.0, 3.0, 1.0, -0.01, 0.06)),
        Slice(1.0, 10, (0.4,), Load(1.0, 0.6, 0.5, 0.07, 0.06)),
    ]
    run = LoaderRun(in_memory(), lambda _: None)
    window = run.window(slices)
    assert (window.seconds, window.samples, window.batches) == (3.0, 40, 4)
    assert window.wait_share == pytest.approx(1.2 / 3)
    assert window.start_up_s == run.start_up_s > 0
    assert window.load.own_cores == pytest.approx(3.6 / 3)
    assert window.load.foreign_cores == pytest.approx(0.06 / 3)
    calls = CallRun(int, samples=2, warm_up=False).window(slices)
    assert math.isnan(calls.wait_share) and math.isnan(calls.start_up_s)


def all_stopped(processes: list[psutil.Process]) -> bool:
    """A stop signal takes a moment to arrive."""
    for _ in range(100):
        if all(p.status() == psutil.STATUS_STOPPED for p in processes):
            return True
        time.sleep(0.01)
    return False


def test_workers_are_stopped_between_slices_and_ended_by_close():
    run = LoaderRun(in_memory(workers=2), lambda _: None)
    workers = [psutil.Process(worker.pid) for worker in run._iterator._workers]
    try:
        assert all_stopped(workers)
        run.slice(0.0, 2)
        assert all_stopped(workers)
    finally:
        run.close()
    assert not any(worker.is_running() for worker in workers)


@pytest.mark.timed
def test_stopping_makes_a_waiting_worker_look_no_faster():
    """What slept through the stop is not counted: about 20 ms per batch."""
    run = LoaderRun(DataLoader(LatencyBound(64, 20), 1, num_workers=2), lambda _: None)
    try:
        slices = []
        for _ in range(8):
            time.sleep(0.1)
            slices.append(run.slice(0.0, 4))
    finally:
        run.close()
    window = run.window(slices)
    assert 0.65 <= window.seconds / window.batches / 0.010 <= 2


def test_variants_take_turns_within_a_round():
    calls: list[str] = []

    def call(name: str) -> None:
        calls.append(name)
        time.sleep(0.005)

    variants = {name: partial(call, name) for name in "ab"}
    compare_calls(variants, rounds=1, window_s=0.4, warm_up=False, retries=0)
    turns = [name for name, _ in itertools.groupby(calls)]
    assert len(turns) >= 5  # 4 slices each; equal neighbours count once


def test_slow_calls_are_not_made_more_often_than_the_window_asks():
    calls = []
    nap = {"nap": lambda: (calls.append(1), time.sleep(0.3))}
    compare_calls(nap, rounds=1, window_s=0.5, warm_up=False, retries=0)
    assert len(calls) == 2


def test_results_beside_a_busy_stranger_are_not_trusted(busy_stranger):
    result = compare({"a": in_memory, "b": in_memory}, **SHORT | {"window_s": 0.3})
    assert result.rejected_share > 0.5
    assert result.ratio("b").verdict == "too much foreign load"
    assert "disturbed" in result.caption()


def test_the_budget_ends_the_rounds():
    slow = {"nap": lambda: time.sleep(0.1)}
    result = compare_calls(
        slow, rounds=50, window_s=0, warm_up=False, budget_s=0.5, retries=0
    )
    assert 1 <= result.rounds <= 6
    assert "budget" in result.caption()


def test_rounds_go_on_until_the_interval_is_narrow_enough():
    naps = {"a": lambda: time.sleep(0.004), "b": lambda: time.sleep(0.008)}
    common = {"window_s": 0, "warm_up": False, "retries": 0, "rounds": 4}
    easy = compare_calls(naps, precision=100, **common)
    never = compare_calls(naps, precision=1e-9, budget_s=2, **common)
    assert easy.rounds == 4
    assert never.rounds > 4
    assert "budget" in never.caption()


def test_conditions_are_put_back():
    threads = torch.get_num_threads()
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    seen = {}

    def look() -> None:
        seen["threads"], seen["collecting"] = torch.get_num_threads(), gc.isenabled()

    compare({"a": partial(in_memory, shuffle=True)}, rounds=1, window_s=0)
    compare_calls({"look": look}, rounds=1, window_s=0, retries=0)
    assert seen == {"threads": 1, "collecting": False}
    assert torch.equal(torch.rand(3), expected)
    assert torch.get_num_threads() == threads
    assert gc.isenabled()


def test_a_failing_step_leaves_no_worker_behind():
    def broken(batch: object) -> None:
        raise RuntimeError("step failed")

    with pytest.raises(RuntimeError, match="step failed"):
        compare({"a": partial(in_memory, 2)}, step=broken, rounds=1)
    assert not [c for c in psutil.Process().children() if "pytest" in str(c.cmdline())]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: compare({}), ValueError, "variants is empty"),
        (lambda: compare({"a": list}), TypeError, "DataLoader, got list"),
        (lambda: compare({"a": in_memory}, rounds=0), ValueError, "rounds must be"),
        (lambda: compare({"a": in_memory}, threads=0), ValueError, "threads must be"),
        (lambda: compare({"a": in_memory}, retries=-1), ValueError, "retries must be"),
        (lambda: compare({"a": in_memory}, window_s=-1), ValueError, "window_s must"),
        (lambda: compare({"a": in_memory}, min_batches=0), ValueError, "min_batches"),
        (lambda: compare_calls({"a": int}, samples=0), ValueError, "samples must be"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_unknown_names_are_refused_with_the_known_ones():
    result = compare_calls({"a": int}, rounds=1, window_s=0, retries=0)
    with pytest.raises(KeyError, match="no variant 'b'"):
        result.values("b")
    with pytest.raises(KeyError, match="no quantity 'speed'"):
        result.values("a", "speed")


def test_text_and_html_show_the_same_verdict():
    result = compare_calls({"a": int, "b": int}, rounds=2, window_s=0, retries=0)
    verdict = result.ratio("b").verdict
    assert verdict in str(result)
    assert verdict in result._repr_html_()
