"""The recommender on real loaders: what it promises, with short budgets."""

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
from support_advise import (
    Broken,
    Listing,
    OnlyInWorkers,
    SlowAtFirst,
    Stream,
    Waiting,
)
from torch import nn
from torch.utils.data import DataLoader

from helpers.advise import tune
from helpers.advise.model import BatchCosts
from helpers.advise.tune import recommend
from helpers.advise.tuning import verify
from helpers.advise.tuning.grid import ALONE, Setting
from helpers.advise.tuning.hints import hints
from helpers.advise.tuning.paste import call
from helpers.advise.tuning.probes import Plan, Probes, probe
from helpers.advise.tuning.recommendation import Recommendation
from helpers.advise.tuning.room import Room, Weight
from helpers.advise.tuning.runs import SampleError, WatchedRun
from helpers.advise.tuning.verdict import NO_ROOM, UNVERIFIED, VERIFIED
from helpers.measure import load
from helpers.measure.timing import steady_conditions
from helpers.measure.windows import StreamEnded
from helpers.pipeline.datasets import InMemory
from helpers.pipeline.device import SimulatedDevice

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).resolve().parent


@pytest.fixture(autouse=True)
def calm(monkeypatch):
    """The guard accepts everything: these tests are not about load."""
    monkeypatch.setattr(load, "TOLERANCE_PER_CORE", 1e6)


def waiting_loader(workers: int = 0, **options) -> DataLoader:
    """20 ms per batch, all of it waiting, so a busy machine changes little."""
    return DataLoader(Waiting(), batch_size=4, num_workers=workers, **options)


@pytest.fixture(scope="module")
def result() -> Recommendation:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load, "TOLERANCE_PER_CORE", 1e6)
        patch.setattr(tune, "SWEEP_WINDOW_S", 0.2)
        loader = DataLoader(Waiting(wait_ms=2), 4, shuffle=True)
        return recommend(loader, SimulatedDevice(6), budget_s=20)


def test_enough_workers_and_no_more(result):
    assert result.status == VERIFIED
    assert result.setting.workers == 2
    assert result.verified


def test_arguments_can_be_pasted(result):
    arguments = {"num_workers": 2, "prefetch_factor": result.setting.prefetch}
    assert result.arguments.items() >= arguments.items()
    dataset = Waiting()
    made = eval(result.code, {"DataLoader": DataLoader, "dataset": dataset})
    assert (made.num_workers, made.batch_size) == (2, 4)
    assert isinstance(made.sampler, torch.utils.data.RandomSampler)


def test_everything_tried_is_in_the_table(result):
    table = result.table.set_index(["workers", "prefetch"])
    assert len(table) == 16
    assert table.loc[(0, 0), "rate"] < 0.8 * table.loc[(2, 2), "rate"]
    assert "(current)" in table.loc[(0, 0), "fate"]
    assert {(2, 2), (1, 2), (3, 2), (2, 4), (0, 0)} <= set(table[table.rate > 0].index)
    assert table.loc[(8, 4), "fate"] == "predicted only"
    predicted = table.loc[(2, 2), "predicted"]
    assert predicted == pytest.approx(table.loc[(2, 2), "rate"], rel=0.6)


def test_the_reader_s_own_setting_is_compared(result):
    ratio = result.row(ALONE).ratio
    assert 0.3 < ratio.value < 0.8
    assert f"(0 workers) reaches {ratio.value:.2f}" in result.about_current()


def test_the_memory_is_that_of_workers_and_batches(result):
    assert 2**20 < result.memory_bytes < 2**31
    assert result.row(ALONE).memory_bytes == 0


def test_text_html_and_figure_say_the_same(result):
    for text in (repr(result), result._repr_html_()):
        assert "num_workers=2" in text
        assert "samples/s" in text
        assert "current setting" in text
    alt = result.alt()
    assert "Recommended: 2 workers" in alt
    assert f"{result.chosen.rate.value:.3g}" in alt
    axes = result.figure().axes[0]
    assert axes.get_xlabel() == "num_workers"
    assert "Recommended: 2 workers" in axes.get_title(loc="left")
    labels = {text.get_text() for text in axes.get_legend().get_texts()}
    assert {"predicted", "recommended", "current"} <= labels


def test_plain_types_for_json(result):
    plain = result.to_dict()
    assert plain["arguments"]["num_workers"] == 2
    assert len(plain["tried"]) == 16
    assert plain["tried"][-1]["rate"] is None


def test_the_loader_and_random_states_are_left_alone():
    generator = torch.Generator().manual_seed(3)
    loader = waiting_loader(shuffle=True, generator=generator)
    loader.dataset.rng = np.random.default_rng(5)
    loader.dataset.wait_s = 0.0
    before = dict(vars(loader))
    states = generator.get_state(), loader.dataset.rng.bit_generator.state
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    expected = random.random(), np.random.rand(), torch.rand(1)
    random.seed(1), np.random.seed(1), torch.manual_seed(1)

    def step(batch: torch.Tensor) -> None:
        loader.dataset.rng.random(), random.random(), np.random.rand(), torch.rand(1)

    recommend(loader, step, budget_s=1.5)
    assert vars(loader) == before
    assert torch.equal(generator.get_state(), states[0])
    assert loader.dataset.rng.bit_generator.state == states[1]
    assert (random.random(), np.random.rand(), torch.rand(1)) == expected


@pytest.mark.timed
def test_too_short_a_budget_gives_the_model_s_answer_unverified():
    loader = DataLoader(Waiting(wait_ms=40), batch_size=4, num_workers=2)
    result = recommend(loader, budget_s=2)
    assert result.status == UNVERIFIED
    assert "the probes need about" in result.reason
    # Of pure waiting many: a process that wakes up with the clock tick is
    # charged for CPU time that it did not use.
    assert result.setting.workers >= 4
    assert result.chosen.rate is None
    assert result.seconds < 2
    assert "unverified" in repr(result) and "predicted" in repr(result)


def test_time_for_the_probes_only_is_unverified_too():
    result = recommend(DataLoader(Waiting(wait_ms=8), batch_size=4), budget_s=2.5)
    assert result.status == UNVERIFIED
    assert "verifying needs about" in result.reason


@pytest.mark.timed
def test_few_batches_are_repeated_and_it_is_said():
    loader = DataLoader(Waiting(12, wait_ms=2), batch_size=4)
    result = recommend(loader, SimulatedDevice(8), budget_s=6)
    assert result.chosen.rate is not None
    note = "an epoch has only 3 batches: epochs repeat; caches warm from the second"
    assert note in result.notes


def test_a_stream_begins_anew_and_is_never_asked_for_its_length():
    result = recommend(DataLoader(Stream(400), 4), SimulatedDevice(3), budget_s=4)
    assert result.setting.workers > 0
    assert result.row(ALONE).rate is not None


def test_a_stream_that_is_too_short_is_refused():
    with pytest.raises(StreamEnded, match="stream ends after 2 batches: no steady"):
        recommend(DataLoader(Stream(8), batch_size=4), budget_s=4)


def test_settings_for_which_a_stream_is_too_short_are_left_out():
    loader = DataLoader(Stream(120), batch_size=4)
    plan = verify.Plan(0.05, time.perf_counter() + 5, True, False, 1)
    settings = [Setting(1, 1), Setting(8, 4)]
    found = verify.verify(loader, lambda _: None, settings, plan)
    assert "stream ends" in found.too_short[Setting(8, 4)]
    assert found.race.running == [Setting(1, 1)]


def test_a_loader_of_unknown_length():
    loader = DataLoader(Waiting(wait_ms=2), batch_sampler=Listing())
    result = recommend(loader, budget_s=1.5)
    assert "batch_sampler=batch_sampler" in result.code
    assert result.samples == 2


@pytest.mark.parametrize("epoch", ["first", "later"])
def test_a_first_epoch_that_differs_is_reported(epoch):
    loader = DataLoader(SlowAtFirst(24), batch_size=4)
    result = recommend(loader, SimulatedDevice(7), budget_s=4, epoch=epoch)
    assert any("to read for the first time" in note for note in result.notes)
    if epoch == "first":
        assert result.status == UNVERIFIED
        assert "cannot be repeated" in result.reason
        assert result.costs.fetch > 0.015
        assert result.setting.workers >= 3
    else:
        assert result.costs.fetch < 0.015
        assert result.setting.workers < 3


@pytest.mark.timed
def test_a_dataset_that_is_as_slow_again_has_one_epoch_only():
    with steady_conditions():
        seen = probe(waiting_loader(), None, Plan(window_s=0.2))
    assert not seen.epochs_differ
    assert seen.later.fetch == pytest.approx(0.021, rel=0.3)
    assert seen.waiting > 0.5
    assert seen.samples == 4
    assert seen.weight.batch_bytes == 64
    assert seen.weight.worker_bytes > 2**20
    assert 0.02 < seen.start_up_s < 2


def test_training_is_undone_and_steps_get_whole_batches():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    weight, steps = model.weight.detach().clone(), []

    def step(batch: torch.Tensor) -> None:
        assert not (batch == -1).any(), "the batch of an earlier step"
        optimizer.zero_grad()
        (model(batch) / 100).square().mean().backward()
        optimizer.step()
        scheduler.step()
        batch.fill_(-1)
        steps.append(1)

    loader = DataLoader(Waiting(wait_ms=1), batch_size=4)
    recommend(loader, step, budget_s=3, keep=(model, optimizer, scheduler))
    assert len(steps) > 20
    assert torch.equal(model.weight, weight)
    assert scheduler.last_epoch == 0 and not optimizer.state_dict()["state"]


@pytest.mark.parametrize("workers", [0, 2])
def test_the_error_of_the_dataset_comes_with_its_sample(workers):
    loader = DataLoader(Broken(64), batch_size=4, num_workers=workers)
    with pytest.raises(SampleError, match="sample 21 raised ValueError: bad row"):
        recommend(loader, budget_s=4)


def test_the_dataset_need_not_be_called_in_this_process():
    result = recommend(DataLoader(OnlyInWorkers(), 4), budget_s=3, in_process=False)
    assert result.setting.workers > 0
    assert result.row(ALONE).rate is None
    assert "not measured" in result.about_current()


def test_without_room_there_are_no_workers_and_the_reason_is_given(monkeypatch):
    monkeypatch.setattr(Room, "now", lambda: Room(shm_bytes=100, memory_bytes=2**40))
    result = recommend(waiting_loader(), budget_s=5)
    assert (result.setting, result.status) == (ALONE, NO_ROOM)
    assert result.arguments == {"num_workers": 0}
    assert "/dev/shm" in result.reason


def test_a_current_setting_that_does_not_fit_is_not_tried(monkeypatch):
    room = Room(shm_bytes=2 * 96 * 20, memory_bytes=2**40)
    monkeypatch.setattr(Room, "now", lambda: room)
    started = count_starts(monkeypatch)
    result = recommend(waiting_loader(16), SimulatedDevice(15), budget_s=4)
    assert max(started) < 16
    assert "not measured" in result.about_current()
    assert "too much memory" in result.row(Setting(16, 2)).fate


def count_starts(monkeypatch) -> list[int]:
    """Numbers of workers of all runs that are started from now on."""
    started: list[int] = []
    original = WatchedRun.__init__

    def counted(self, loader, *arguments):
        started.append(loader.num_workers)
        original(self, loader, *arguments)

    monkeypatch.setattr(WatchedRun, "__init__", counted)
    return started


@pytest.mark.parametrize(("keep_open", "starts"), [(True, 1), (False, 4)])
def test_slow_starters_are_started_once(monkeypatch, keep_open, starts):
    started = count_starts(monkeypatch)
    settings = [Setting(1, 1), Setting(1, 2), ALONE]
    plan = verify.Plan(0.05, time.perf_counter() + 20, True, keep_open, 1)
    loader = DataLoader(Waiting(wait_ms=2), batch_size=4)
    found = verify.verify(loader, lambda _: None, settings, plan)
    assert found.race.blocks >= 4
    assert started.count(0) >= starts
    assert (len(started) == len(settings)) is keep_open


def test_workers_that_are_spawned():
    loader = waiting_loader(1, multiprocessing_context="spawn")
    loader.dataset.wait_s = 0.002
    plan = verify.Plan(0.05, time.perf_counter() + 30, True, True, 1)
    found = verify.verify(loader, lambda _: None, [Setting(1, 1), ALONE], plan)
    assert found.race.blocks >= 2
    assert found.start_up_s[Setting(1, 1)] > found.start_up_s[ALONE]


def test_a_busy_stranger_is_noticed(monkeypatch, busy_stranger):
    monkeypatch.setattr(load, "TOLERANCE_PER_CORE", 0.03)
    loader = DataLoader(InMemory(), batch_size=32)
    plan = verify.Plan(0.1, 0.0, True, False, threads=1, retries=0)
    found = verify.verify(loader, lambda _: None, [Setting(1, 2), ALONE], plan)
    assert not found.race.trusted
    assert np.mean(found.foreign) > 0.2


_INTERRUPTED = """
import sys
sys.path[:0] = [{folder!r}, {root!r}]
from support_advise import Waiting
from torch.utils.data import DataLoader
from helpers.advise import tune
from helpers.advise.tuning import verify
from helpers.advise.tune import recommend
if __name__ == "__main__":
    admitted = verify.verify
    def announced(*arguments):
        print("verifying", flush=True)
        return admitted(*arguments)
    verify.verify = announced
    tune.SWEEP_WINDOW_S = 0.2
    recommend(DataLoader(Waiting(), 4, num_workers=2), budget_s=30)
"""


def test_control_c_ends_the_workers():
    code = _INTERRUPTED.format(folder=str(FOLDER), root=str(ROOT))
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "verifying\n"
    workers = wait_for_workers(child.pid)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=10)
    assert errors.strip().endswith("KeyboardInterrupt")
    assert child.returncode != 0
    _, alive = psutil.wait_procs(workers, timeout=5)
    assert not alive


def wait_for_workers(pid: int) -> list[psutil.Process]:
    for _ in range(200):
        workers = psutil.Process(pid).children(recursive=True)
        if len(workers) >= 3:
            return workers
        time.sleep(0.05)
    raise AssertionError("no workers were started")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"budget_s": 0}, ValueError, "budget_s must be above 0"),
        ({"epoch": "last"}, ValueError, "epoch must be one of"),
        ({"keep": ([],)}, TypeError, "keep: a list has no state_dict"),
    ],
)
def test_bad_input_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        recommend(waiting_loader(), **options)


def test_what_is_not_a_loader_is_refused():
    with pytest.raises(TypeError, match="expected a torch.utils.data.DataLoader"):
        recommend([1, 2])


def test_a_loader_as_code():
    loader = DataLoader(
        Waiting(), 8, shuffle=True, drop_last=True, collate_fn=itertools.chain
    )
    text = "DataLoader(dataset, batch_size=8, shuffle=True, drop_last=True, "
    assert call(loader, {"num_workers": 2}) == f"{text}collate_fn=chain, num_workers=2)"
    plain = DataLoader(Waiting(), collate_fn=lambda samples: samples)
    assert "collate_fn=collate_fn" in call(plain, {})


COSTS = BatchCosts(0.0002, 0.0015, 0.0018, 0.0008, 0.0, 0.0)
SEEN = Probes(COSTS, COSTS, 4, Weight(100, 100), 0.05, 0.0, False)


def arguments_of(loader: DataLoader, setting: Setting, start_up_s: float) -> dict:
    found = hints(loader, setting, 0.01, start_up_s, SEEN)
    return dict(hint.argument for hint in found if hint.argument)


def test_workers_stay_if_starting_them_takes_a_good_part_of_an_epoch():
    loader = waiting_loader()  # 128 batches of 10 ms
    kept = {"persistent_workers": True}
    assert arguments_of(loader, Setting(2, 2), start_up_s=0.5) == kept
    assert arguments_of(loader, Setting(2, 2), start_up_s=0.01) == {}
    assert arguments_of(loader, ALONE, start_up_s=0.5) == {}
    stream = DataLoader(Stream(8), 4)
    assert arguments_of(stream, Setting(2, 2), start_up_s=0.5) == {}


def test_pinning_is_advised_only_with_an_accelerator(monkeypatch):
    for available in (False, True):
        monkeypatch.setattr(torch.accelerator, "is_available", lambda a=available: a)
        texts = [hint.text for hint in hints(waiting_loader(), ALONE, 1, None, SEEN)]
        assert any("pin_memory=True with" in text for text in texts) is available


def test_cheap_batches_are_a_case_for_larger_ones():
    texts = [hint.text for hint in hints(waiting_loader(), ALONE, 1, None, SEEN)]
    assert any("larger batches" in text for text in texts)


def test_no_worker_of_this_process_is_left(no_process_left):
    assert os.getpid() and not [
        child for child in psutil.Process().children() if child.status() == "stopped"
    ]
