"""Batches of any kind, replays, state put back, faults traced, streams restarted."""

import copy
import time
from typing import NamedTuple

import numpy as np
import pytest
import torch
from support_advise import (
    Broken,
    BrokenLists,
    BrokenStream,
    Stream,
    Waiting,
    broken_collate,
)
from torch import Tensor, nn
from torch.utils.data import DataLoader

from helpers.advise.objects import batches
from helpers.advise.replay import ignore, replay
from helpers.advise.tuning import variants
from helpers.advise.tuning.grid import ALONE, Setting
from helpers.advise.tuning.kept import restored
from helpers.advise.tuning.runs import RestartingRun, SampleError, WatchedRun
from helpers.measure.windows import StreamEnded


class Pair(NamedTuple):
    image: Tensor
    label: int


class Boxed:
    """A batch of somebody's own class."""

    def __init__(self, value: Tensor) -> None:
        self.value = value


def everything() -> dict:
    return {
        "tensor": torch.arange(4.0),
        "array": np.arange(3),
        "pair": Pair(torch.ones(2), 1),
        "list": [torch.zeros(1), "text", b"bytes"],
        "own": Boxed(torch.ones(3)),
    }


def test_the_size_counts_every_storage_once_and_whole():
    base = torch.zeros(1000, dtype=torch.uint8)
    assert batches.size(base) == 1000
    assert batches.size(base[:10]) == 1000
    assert batches.size([base, base[5:]]) == 1000
    assert batches.size((np.zeros(7, np.uint8), "four", b"five5")) == 7 + 4 + 5
    assert batches.size(everything()) >= 16 + 24 + 8 + 12


def test_a_clone_shares_nothing_and_keeps_its_type():
    batch = everything()
    cloned = batches.clone(batch)
    assert batches.identical(batch, cloned)
    assert isinstance(cloned["pair"], Pair)
    for one in (cloned["tensor"], cloned["pair"].image, cloned["own"].value):
        one += 1
    cloned["array"][0] = 9
    assert batches.identical(batch, everything())


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (torch.tensor([1.0, float("nan")]), torch.tensor([1.0, float("nan")]), True),
        (torch.ones(2), torch.ones(2, dtype=torch.float64), False),
        (torch.ones(2), torch.ones(3), False),
        (torch.tensor([True]), torch.tensor([False]), False),
        (np.ones(2), np.ones(2), True),
        (np.ones(2), np.zeros(2), False),
        ([1, "a"], [1, "a"], True),
        ([1, "a"], [1, "b"], False),
        ([1], [1, 2], False),
        ({"a": torch.ones(1)}, {"a": torch.zeros(1)}, False),
    ],
)
def test_identical_means_bit_for_bit(one, other, same):
    assert batches.identical(one, other) is same


def test_every_replayed_step_gets_the_batch_as_it_was():
    seen = []

    def greedy(batch: Tensor) -> None:
        seen.append(batch.sum().item())
        batch.zero_()

    batch = torch.ones(3)
    replay(batch, greedy, window_s=0.0)
    assert seen == [3.0] * len(seen) and len(seen) >= 4
    assert batch.sum() == 3


def test_a_step_that_waits_uses_no_cpu_and_one_that_computes_does():
    waits = replay(None, lambda _: time.sleep(0.02), 0.1, retries=0)
    assert 0.02 <= waits.wall <= 0.05
    assert waits.cpu < 0.5 * waits.wall
    computes = replay(None, lambda _: sum(range(200_000)), 0.1, retries=0)
    assert computes.cpu > 0.3 * computes.wall


def training() -> tuple[nn.Module, torch.optim.Optimizer, object]:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    model.register_buffer("aside", torch.zeros(1), persistent=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 1)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, scheduler) -> None:
    for _ in range(3):
        model(torch.randn(4, 3)).square().sum().backward()
        optimizer.step()
        model.aside += 1
        scheduler.step()


def test_training_state_is_put_back():
    objects = training()
    model, optimizer, scheduler = objects
    before = [copy.deepcopy(item.state_dict()) for item in objects]
    with restored(objects):
        train(*objects)
        assert scheduler.last_epoch == 3
    for item, state in zip(objects, before, strict=True):
        after = item.state_dict()
        assert str(after) == str(state)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert model.aside == 0
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_training_state_is_put_back_after_an_error_too():
    model, *_ = training()
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(RuntimeError, match="stop"), restored([model]):
        model[0].weight.data.zero_()
        raise RuntimeError("stop")
    assert torch.equal(model[0].weight, before["0.weight"])


def test_what_has_no_state_is_refused():
    with (
        pytest.raises(TypeError, match="keep: a list has no state_dict"),
        restored([[1]]),
    ):
        pass


def run_over(loader: DataLoader, batches: int = 12, in_process: bool = True) -> None:
    run = WatchedRun(loader, ignore, in_process)
    try:
        run.slice(0.0, batches)
    finally:
        run.close()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", [Broken, BrokenLists])
def test_the_error_of_a_sample_names_it(kind, workers):
    loader = DataLoader(kind(64), batch_size=4, num_workers=workers)
    with pytest.raises(SampleError, match="sample 21 raised ValueError: bad row") as e:
        run_over(loader)
    assert e.value.index == 21
    assert isinstance(e.value.__cause__, ValueError)


def test_the_right_batch_is_blamed_when_shuffled():
    loader = DataLoader(Broken(64), batch_size=4, num_workers=2, shuffle=True)
    with pytest.raises(SampleError) as caught:
        run_over(loader, 40)
    assert caught.value.index == 21


def test_if_the_dataset_may_not_be_called_here_the_batch_is_named():
    loader = DataLoader(Broken(64), batch_size=4, num_workers=2)
    with pytest.raises(SampleError, match="samples 20, 21, 22, 23 failed: ValueError"):
        run_over(loader, in_process=False)


def test_an_error_while_collating_blames_no_sample():
    loader = DataLoader(Broken(20), batch_size=4, collate_fn=broken_collate)
    run_over(loader)
    loader = DataLoader(Waiting(64, 0), batch_size=4, collate_fn=broken_collate)
    with pytest.raises(SampleError, match="TypeError.*look at the collate function"):
        run_over(loader)


def test_a_broken_stream_says_how_far_it_came():
    loader = DataLoader(BrokenStream(100, 0), batch_size=4)
    with pytest.raises(SampleError, match="failed after 5 batches: OSError"):
        run_over(loader)


def test_an_empty_loader_is_not_blamed_on_a_sample():
    loader = DataLoader(Waiting(2), batch_size=4, drop_last=True)
    with pytest.raises(ValueError, match="yields no batch"):
        run_over(loader)


def test_a_stream_begins_again_where_it_ended():
    starts = []

    def start() -> WatchedRun:
        starts.append(1)
        return WatchedRun(DataLoader(Stream(40, 0), batch_size=4), ignore, True)

    run = RestartingRun(start)
    slices = [run.slice(0.0, 6) for _ in range(4)]
    run.close()
    assert [len(piece.waits) for piece in slices] == [6] * 4
    assert len(starts) == 4


def test_a_stream_too_short_for_a_slice_is_refused():
    run = RestartingRun(
        lambda: WatchedRun(DataLoader(Stream(12, 0), batch_size=4), ignore, True)
    )
    with pytest.raises(StreamEnded, match="ends after 3 batches"):
        run.slice(0.0, 6)
    run.close()


def test_a_variant_is_a_copy_with_other_settings():
    loader = DataLoader(
        Waiting(8, 0), 2, num_workers=1, timeout=5, persistent_workers=True
    )
    before = dict(vars(loader))
    alone = variants.with_setting(loader, ALONE)
    assert len(list(alone)) == 4
    more = variants.with_setting(loader, Setting(2, 4))
    assert (more.num_workers, more.prefetch_factor) == (2, 4)
    assert (more.timeout, more.persistent_workers) == (5, True)
    assert vars(loader) == before
    assert variants.current(loader) == Setting(1, 2)
    assert variants.current(alone) == ALONE


def test_the_start_method_of_a_loader():
    usual = torch.multiprocessing.get_start_method()
    assert variants.start_method(DataLoader([1])) == usual
    loader = DataLoader([1], num_workers=1, multiprocessing_context="spawn")
    assert variants.start_method(loader) == "spawn"
