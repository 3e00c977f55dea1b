"""The recording: batches untouched, stamps right, nothing left behind."""

import contextlib
import random
from functools import partial

import numpy as np
import psutil
import pytest
import support_timeline as support
import torch
from torch.utils.data import DataLoader

from helpers.measure import copies
from helpers.measure.timeline import record
from helpers.pipeline.device import SimulatedDevice

METHODS = torch.multiprocessing.get_all_start_methods()
needs_fork = pytest.mark.skipif("fork" not in METHODS, reason="no fork here")


def batches_of(make, epochs: int, traced: bool) -> list:
    """Batches of a fresh loader from a fixed random state."""
    torch.manual_seed(1), np.random.seed(1), random.seed(1)
    loader, found = make(), []
    if traced:
        record(loader, found.append, epochs=epochs, batches=1000)
    else:
        for _ in range(epochs):
            found += list(loader)
    return found


def same(one: object, other: object) -> bool:
    """Equal in type, structure and every value."""
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        return same(list(one.items()), list(other.items()))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if hasattr(one, "__dict__"):
        return same(vars(one), vars(other))
    return one == other


def assert_same_batches(kind: str, workers: int, method: str, epochs: int = 2) -> None:
    make = support.KINDS[kind]
    # How workers are started changes nothing in what they yield; fork is fast.
    usual = "fork" if "fork" in METHODS else method
    expected = batches_of(partial(make, workers, usual), epochs, traced=False)
    seen = batches_of(partial(make, workers, method), epochs, traced=True)
    assert len(expected) >= 5
    if kind == "out of order":
        expected, seen = (sorted(some, key=repr) for some in (expected, seen))
    assert same(seen, expected)


@pytest.mark.parametrize("kind", support.KINDS)
def test_batches_are_those_of_the_loader_without_workers(kind):
    assert_same_batches(kind, 0, "")


@needs_fork
@pytest.mark.parametrize("kind", support.KINDS)
def test_batches_are_those_of_the_loader_with_forked_workers(kind):
    assert_same_batches(kind, 2, "fork")


@pytest.mark.parametrize("method", [m for m in METHODS if m != "fork"])
def test_batches_are_those_of_the_loader_with_started_workers(method, capfd):
    kind = "persistent" if method == "spawn" else "own batch class"
    assert_same_batches(kind, 1, method, epochs=2 if kind == "persistent" else 1)
    assert capfd.readouterr().err == ""


def events_of(recording, stage: str):
    frame = recording.frame()
    return frame[frame["stage"] == stage].set_index("batch").sort_index()


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=needs_fork)])
def test_every_stage_gets_its_own_time_of_its_own_batch(workers):
    waits = [0.001] * 12
    waits[7] = 0.08
    dataset = support.Slow(waits)
    loader = support.loader(
        dataset, workers, batch_size=2, collate_fn=support.slow_collate
    )
    recording = record(loader, SimulatedDevice(5))
    frame = recording.frame()
    frame["ms"] = (frame["end_ns"] - frame["start_ns"]) / 1e6
    ms = frame.pivot_table(index="batch", columns="stage", values="ms")
    assert list(ms.index) == [0, 1, 2, 3, 4, 5]
    assert ms["fetch"].idxmax() == 3 and ms.loc[3, "fetch"] >= 80
    assert ms["collate"].between(10, 75).all()
    assert ms["step"].between(5, 75).all()
    if workers:
        makers = events_of(recording, "fetch")["worker"]
        assert list(makers) == [0, 1, 0, 1, 0, 1]


@needs_fork
def test_stages_follow_one_another():
    recording = record(support.KINDS["map"](2, "fork"), SimulatedDevice(2))
    frame = recording.frame()
    assert (frame["start_ns"] < frame["end_ns"]).all()
    assert (frame["start_ns"] >= 0).all()
    assert (frame["end_ns"] <= recording.end_ns).all()
    order = ["fetch", "collate", "serialise", "transport"]
    for earlier, later in zip(order, order[1:], strict=False):
        first, second = events_of(recording, earlier), events_of(recording, later)
        assert list(first.index) == list(second.index) == [0, 1, 2, 3, 4]
        assert (first["end_ns"] <= second["start_ns"]).all()
    step = events_of(recording, "step")
    assert (events_of(recording, "transport")["end_ns"] <= step["start_ns"]).all()


@needs_fork
@pytest.mark.timed
def test_a_batch_that_waits_in_the_pipe_is_ready_and_not_in_transport():
    dataset = support.Slow([0.001] * 40)
    loader = support.loader(dataset, 1, batch_size=2)
    summary = record(loader, SimulatedDevice(30)).summary()
    assert summary.stages["ready"] > 0.020
    assert summary.stages["transport"] < 0.020
    assert summary.ready > 0.8
    assert summary.wait_share < 0.5


@needs_fork
def test_work_on_batches_that_nobody_takes_is_recorded():
    loader = support.loader(support.Slow([0.002] * 400), 2, batch_size=2)
    recording = record(loader, SimulatedDevice(10), batches=12)
    assert recording.batches == 12
    fetched = events_of(recording, "fetch").index
    assert len(fetched) > 12
    assert recording.ready()["batches"].iloc[-1] >= 2
    assert recording.frame()["end_ns"].max() == recording.end_ns


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=needs_fork)])
def test_loader_and_random_states_are_left_as_they_were(workers):
    kind = {"sampler": support.EagerSampler(20), "generator": torch.Generator()}
    loader = support.loader(support.Numbers(), workers, batch_size=4, **kind)
    before = dict(vars(loader)), dict(vars(loader.sampler)), states(loader)
    record(loader, lambda batch: torch.rand(3), batches=2)
    after = dict(vars(loader)), dict(vars(loader.sampler)), states(loader)
    assert before[0].keys() == after[0].keys()
    assert all(before[0][name] is after[0][name] for name in before[0])
    assert same(before[1:], after[1:])


def states(loader: DataLoader) -> list:
    kind, keys, *rest = np.random.get_state()
    return [
        torch.get_rng_state(),
        random.getstate(),
        [kind, keys.tolist(), *rest],
        loader.generator.get_state(),
    ]


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=needs_fork)])
@pytest.mark.parametrize(
    ("dataset", "collate", "error", "text"),
    [
        (support.Broken(), None, ValueError, "sample 9 is broken"),
        (support.Numbers(), support.broken_collate, KeyError, "no such field"),
    ],
)
def test_errors_come_through_and_workers_are_ended(
    workers, dataset, collate, error, text
):
    loader = support.loader(dataset, workers, batch_size=4, collate_fn=collate)
    before = psutil.Process().children()
    with pytest.raises(error, match=text):
        record(loader)
    assert psutil.Process().children() == before


@needs_fork
def test_an_error_of_the_step_ends_the_workers():
    before = psutil.Process().children()
    with pytest.raises(ZeroDivisionError):
        record(support.KINDS["persistent"](2, "fork"), lambda batch: 1 / 0)
    assert psutil.Process().children() == before


def test_faults_after_the_last_recorded_batch_are_nobodys_concern():
    loader = support.loader(support.Broken(), 0, batch_size=4)
    assert record(loader, batches=2).batches == 2


@needs_fork
def test_faults_in_prefetched_batches_are_nobodys_concern():
    loader = support.loader(support.Broken(), 2, batch_size=4)
    assert record(loader, batches=1).batches == 1


def test_start_up_is_recorded_for_every_epoch():
    recording = record(support.KINDS["map"](0, ""), epochs=3)
    frame = recording.frame()
    starts = frame[frame["stage"] == "start-up"]
    assert list(starts["epoch"]) == [0, 1, 2]
    assert recording.batches == 15
    assert len(frame[frame["stage"] == "wait"]) == 12
    assert list(events_of(recording, "fetch").index) == sorted([0, 1, 2, 3, 4] * 3)


class Consumer:
    """A step in two stages; the sleeps stand for a device."""

    label = "simulated device"

    def transfer(self, batch: object) -> tuple:
        return "moved", batch

    def step(self, batch: tuple) -> None:
        assert batch[0] == "moved"


def test_transfer_and_step_are_told_apart_and_belong_to_the_device():
    recording = record(support.KINDS["map"](0, ""), Consumer())
    frame = recording.frame()
    on_device = frame[frame["process"] == "device"]
    assert set(on_device["stage"]) == {"transfer", "step"}
    assert recording.device == "simulated device"


def test_a_plain_step_runs_in_the_main_process():
    recording = record(support.KINDS["map"](0, ""), lambda batch: None, device="cpu")
    assert set(recording.frame()["process"]) == {"main"}
    assert recording.device is None


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=needs_fork)])
def test_pinning_is_recorded(workers, monkeypatch):
    """Without an accelerator torch pins nothing, so one is pretended."""
    monkeypatch.setattr(copies, "preserved_random_state", contextlib.nullcontext)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(
        torch.accelerator, "current_accelerator", lambda *_: torch.device("cpu")
    )
    monkeypatch.setattr(torch.accelerator, "current_device_index", lambda: 0)
    monkeypatch.setattr(torch.accelerator, "set_device_index", lambda index: None)
    # What torch 2.6 asks instead.
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "set_device", lambda index: None)
    options = {"collate_fn": support.to_pinnable, "pin_memory": True}
    loader = support.loader(support.Numbers(), workers, batch_size=4, **options)
    seen = []
    recording = record(loader, seen.append)
    assert len(seen) == 5 and all(batch.pinned for batch in seen)
    pin = events_of(recording, "pin")
    assert list(pin.index) == [0, 1, 2, 3, 4]
    assert set(pin["process"]) == {"pin thread" if workers else "main"}
    before = events_of(recording, "transport" if workers else "collate")
    assert (before["end_ns"] <= pin["start_ns"]).all()


def test_what_is_not_a_dataloader_is_refused_in_one_line():
    with pytest.raises(TypeError, match=r"^expected a .*DataLoader, got list$"):
        record([1, 2, 3])


def test_a_loader_with_a_running_iterator_is_refused_untouched():
    loader = support.loader(support.Numbers(), 0, batch_size=4, kind=support.Endless)
    with pytest.raises(RuntimeError, match="running iterator in .iterator"):
        record(loader)
    assert len(list(loader.iterator)) == 5


class Elsewhere(DataLoader):
    def __iter__(self):
        return iter([1, 2, 3])


class Repacking(DataLoader):
    def _get_iterator(self):
        return iter([[1], [2]])


@pytest.mark.parametrize("kind", [Elsewhere, Repacking])
def test_batches_that_come_some_other_way_are_refused_in_one_line(kind):
    with pytest.raises(RuntimeError, match=r"^the timeline cannot follow .*\)$"):
        record(kind(support.Numbers()))


@pytest.mark.parametrize("wrong", [{"batches": 0}, {"epochs": 0}])
def test_numbers_below_one_are_refused(wrong):
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        record(support.KINDS["map"](0, ""), **wrong)


def test_a_loader_without_batches_is_refused():
    loader = DataLoader(support.Numbers(3), batch_size=4, drop_last=True)
    with pytest.raises(ValueError, match="yields no batch"):
        record(loader)


def test_the_default_reaches_the_steady_period():
    recording = record(DataLoader(support.Numbers(400), batch_size=2))
    assert recording.batches == 32
    assert recording.summary().steady
