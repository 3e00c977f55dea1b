"""The record of whole epochs."""

import math

import pytest
import torch
from torch.utils.data import DataLoader

from helpers.measure import epochs
from helpers.measure.epochs import Epoch, EpochRecord, Setting
from helpers.measure.intervals import Estimate
from helpers.measure.timing import compare_calls
from helpers.pipeline.datasets import LatencyBound

COMPARISON = compare_calls({"a": int}, rounds=1, window_s=0, retries=0)


def epoch_of(seconds: float) -> Epoch:
    return Epoch(Estimate(seconds, seconds, seconds), 0.5, 2**20)


def test_the_sweet_spot_is_the_cheapest_within_five_percent():
    seconds = {(0, False): 9.0, (1, False): 4.19, (2, True): 4.0, (2, False): 4.05}
    record = EpochRecord(
        {Setting(*key): epoch_of(value) for key, value in seconds.items()}, COMPARISON
    )
    assert record.best == Setting(2, True)
    assert record.sweet_spot == Setting(1, False)


def test_just_outside_five_percent_is_not_as_good():
    record = EpochRecord(
        {Setting(0, False): epoch_of(4.21), Setting(4, False): epoch_of(4.0)},
        COMPARISON,
    )
    assert record.sweet_spot == Setting(4, False)


def record_waiting() -> EpochRecord:
    dataset = LatencyBound(samples=32, wait_ms=5)
    return epochs.record(
        lambda workers, pin: DataLoader(
            dataset, batch_size=4, num_workers=workers, pin_memory=pin
        ),
        workers=[0, 2],
        rounds=2,
    )


@pytest.fixture(scope="module")
def waiting() -> EpochRecord:
    return record_waiting()


@pytest.mark.timed
def test_every_setting_is_timed_and_weighed():
    waiting = record_waiting()
    pins = 2 if torch.accelerator.is_available() else 1
    assert len(waiting.epochs) == 2 * pins
    alone, two = (waiting.epochs[Setting(count, False)] for count in (0, 2))
    assert alone.seconds.value == pytest.approx(32 * 0.005, rel=0.5)
    assert alone.cpu_share < 0.3
    assert two.seconds.value < alone.seconds.value * 1.5
    assert min(epoch.peak_bytes for epoch in waiting.epochs.values()) > 50 * 2**20


def test_table_and_frame_hold_every_setting(waiting):
    assert "sweet spot" in str(waiting) and "sweet spot" in waiting._repr_html_()
    assert list(waiting.frame.index) == [str(setting) for setting in waiting.epochs]
    assert all(math.isfinite(value) for value in waiting.frame["epoch_s"])
    assert str(Setting(2, True)) == "2 workers, pinned"


def test_the_step_sees_every_batch():
    seen = []
    epochs.record(
        lambda workers, pin: DataLoader(LatencyBound(8, 0), 4), [0], seen.append, 1
    )
    runs = len(seen) // 2
    assert len(seen) == 2 * runs and runs >= 2  # weighed once, timed at least once


def test_no_workers_to_try_is_refused():
    with pytest.raises(ValueError, match="variants is empty"):
        epochs.record(lambda workers, pin: DataLoader(LatencyBound(8)), workers=[])
