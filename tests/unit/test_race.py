"""The recommender without a clock: a made-up machine and its made-up rates.

This is the part of ``benchmarks/instruments.py`` that can run anywhere: model,
shortlist and race must find a setting within 5 % of the best of all sixteen. A
wrong sign in the model, a tie band the wrong way round, or a cap that is not
asked for turns it red.
"""

from collections.abc import Callable

import numpy as np
import pytest

from helpers.advise.model import BatchCosts
from helpers.advise.tuning import grid
from helpers.advise.tuning.grid import ALONE, Setting
from helpers.advise.tuning.outlook import Outlook, outlook
from helpers.advise.tuning.race import Race
from helpers.advise.tuning.room import Room, Weight
from helpers.advise.tuning.verdict import (
    NO_ROOM,
    TOO_NOISY,
    UNVERIFIED,
    VERIFIED,
    by_measurement,
    by_model,
)
from helpers.advise.tuning.verify import Verified

CORES = 2
PLENTY, LIGHT = Room(10**12, 10**12), Weight(1000, 1000)
Truth = Callable[[Setting], float]


def plain(costs: BatchCosts) -> Truth:
    """An ideal machine, worked out here and not by the model under test."""

    def seconds(setting: Setting) -> float:
        if not setting.workers:
            return costs.fetch + costs.step
        by_workers = costs.worker / setting.workers
        by_cores = (costs.cpu + costs.step_cpu) / CORES
        return max(by_workers, by_cores, costs.step + costs.main)

    return seconds


def slower_beyond_cores(costs: BatchCosts) -> Truth:
    """A fifth slower where workers crowd the cores."""

    def seconds(setting: Setting) -> float:
        crowd = 1.2 if setting.workers > CORES else 1.0
        return crowd * plain(costs)(setting)

    return seconds


def heavy_tailed(costs: BatchCosts) -> Truth:
    """Rare dear samples hold up the queue unless many batches are in flight."""

    def seconds(setting: Setting) -> float:
        held_up = 0.6 / (1 + setting.in_flight) if setting.workers else 0.0
        return (1 + held_up) * plain(costs)(setting)

    return seconds


def made_up(name: str) -> tuple[BatchCosts, Truth]:
    """Costs in the order fetch, worker, cpu, main, step, step_cpu; and the truth."""
    decoding = BatchCosts(0.040, 0.042, 0.043, 0.001, 0.0, 0.0)
    device = BatchCosts(0.020, 0.021, 0.022, 0.001, 0.040, 0.0)
    memory = BatchCosts(0.0002, 0.0015, 0.0018, 0.0008, 0.0, 0.0)
    latency = BatchCosts(0.064, 0.065, 0.003, 0.001, 0.005, 0.0)
    large = BatchCosts(0.030, 0.045, 0.060, 0.012, 0.010, 0.010)
    return {
        "decoding": (decoding, slower_beyond_cores(decoding)),
        "device": (device, plain(device)),
        "memory": (memory, plain(memory)),
        "latency": (latency, plain(latency)),
        "heavy": (decoding, heavy_tailed(decoding)),
        "large": (large, slower_beyond_cores(large)),
    }[name]


WORKLOADS = ("decoding", "device", "memory", "latency", "heavy", "large")


def run(
    race: Race, truth: Truth, seed: int, noise: float = 0.02, most: int = 8
) -> Race:
    """Blocks with a common and an own disturbance until the race is decided."""
    rng = np.random.default_rng(seed)
    while race.blocks < most and not (race.blocks and race.decided):
        common = rng.normal(0, 0.1)
        rates = {
            setting: np.exp(common + rng.normal(0, noise)) / truth(setting)
            for setting in race.running
        }
        race.add(rates, [True] * len(rates))
    return race


def view_of(costs: BatchCosts, room: Room = PLENTY, weight: Weight = LIGHT) -> Outlook:
    return outlook(costs, CORES, ALONE, room, weight, in_process=True)


def excess(truth: Truth, setting: Setting) -> float:
    """How much slower than the best of the grid."""
    return truth(setting) / min(truth(s) for s in grid.grid(CORES)) - 1


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_choice_is_within_five_percent_of_the_best(name):
    costs, truth = made_up(name)
    misses = []
    for seed in range(10):
        choice = run(Race(view_of(costs).shortlist), truth, seed).choice
        misses.append(excess(truth, choice) > 0.05)
    assert sum(misses) <= 1


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_model_predicts_an_ideal_machine_exactly(name):
    costs = made_up(name)[0]
    for setting, seconds in view_of(costs).predicted.items():
        assert seconds == pytest.approx(plain(costs)(setting)), setting


def test_few_settings_of_the_grid_are_measured():
    for name in WORKLOADS:
        assert len(view_of(made_up(name)[0]).shortlist) <= 6, name


def test_of_equal_settings_the_cheapest_is_chosen():
    settings = [Setting(8, 4), Setting(2, 4), Setting(2, 1), Setting(3, 2)]
    for seed in range(5):
        assert run(Race(settings), lambda _: 0.01, seed).choice == Setting(2, 1)


def test_a_cheaper_setting_below_the_tie_band_is_not_chosen():
    truth = {Setting(1, 2): 1.06, Setting(2, 2): 1.0}
    race = run(Race(list(truth)), truth.__getitem__, seed=0, noise=0.002)
    assert race.choice == Setting(2, 2)


def test_a_faster_setting_within_the_tie_band_is_not_paid_for():
    truth = {Setting(1, 2): 1.02, Setting(2, 2): 1.0}
    race = run(Race(list(truth)), truth.__getitem__, seed=0, noise=0.002)
    assert race.choice == Setting(1, 2)
    assert race.decided


def test_what_is_clearly_slower_leaves_after_two_blocks():
    truth = {Setting(1, 2): 2.0, Setting(2, 2): 1.0, Setting(3, 2): 1.0}
    race = run(Race(list(truth)), truth.__getitem__, seed=0)
    assert len(race.rates[Setting(1, 2)]) == 2
    assert race.running == [Setting(2, 2), Setting(3, 2)]
    assert race.ratio(Setting(1, 2), Setting(2, 2)).value == pytest.approx(0.5, rel=0.1)


def test_a_race_is_not_decided_before_four_blocks():
    race = run(Race([Setting(1, 2), Setting(2, 2)]), lambda _: 1.0, 0, 0.001)
    assert race.blocks == 4


def test_a_noisy_race_is_not_decided():
    race = run(Race([Setting(1, 2), Setting(2, 2)]), lambda _: 1.0, 0, noise=0.2)
    assert race.blocks == 8
    assert race.guaranteed < 0.9


def test_a_common_disturbance_of_a_block_does_not_matter():
    race = Race([Setting(1, 2), Setting(2, 2)])
    for speed in (1.0, 3.0, 0.5, 2.0):
        race.add({Setting(1, 2): 0.9 * speed, Setting(2, 2): speed}, [True, True])
    ratio = race.ratio(Setting(1, 2), Setting(2, 2))
    assert (ratio.low, ratio.high) == pytest.approx((0.9, 0.9))


def found(race: Race, **fields) -> Verified:
    return Verified(race, **fields)


def decide(race: Race, costs: BatchCosts | None = None, **fields):
    costs = costs or made_up("device")[0]
    return by_measurement(view_of(costs), found(race, **fields))


def test_a_decided_race_is_verified():
    verdict = decide(run(Race([Setting(1, 2), Setting(2, 2)]), lambda _: 1.0, 0))
    assert (verdict.status, verdict.setting) == (VERIFIED, Setting(1, 2))
    assert "4 blocks" in verdict.reason


def test_a_wide_interval_is_too_noisy_and_says_by_how_much():
    race = run(Race([Setting(1, 2), Setting(2, 2)]), lambda _: 1.0, 0, noise=0.2)
    verdict = decide(race)
    assert verdict.status == TOO_NOISY
    assert f"{1 - race.guaranteed:.0%} slower" in verdict.reason


def test_foreign_load_is_too_noisy_and_says_how_much():
    race = Race([Setting(1, 2), Setting(2, 2)])
    for _ in range(4):
        race.add({Setting(1, 2): 1.0, Setting(2, 2): 1.0}, [False, False])
    verdict = decide(race, foreign=[0.7] * 8)
    assert verdict.status == TOO_NOISY
    assert "0.7 cores" in verdict.reason


def test_too_few_blocks_are_unverified():
    race = run(Race([Setting(1, 2), Setting(2, 2)]), lambda _: 1.0, 0, most=2)
    verdict = decide(race)
    assert verdict.status == UNVERIFIED
    assert "2 blocks" in verdict.reason


def test_a_single_setting_proves_nothing():
    race = run(Race([Setting(1, 2)]), lambda _: 1.0, 0)
    assert decide(race).status == UNVERIFIED


def test_a_setting_that_cannot_be_measured_leaves_the_race():
    race = Race([Setting(8, 4)])
    race.remove(Setting(8, 4))
    verdict = decide(race, too_short={Setting(8, 4): "the stream ends"})
    assert (verdict.setting, verdict.status) == (Setting(1, 2), UNVERIFIED)


def test_a_pick_that_cannot_be_measured_stays_the_pick_unverified():
    race = run(Race([ALONE]), lambda _: 1.0, 0)
    verdict = decide(race, too_short={Setting(1, 2): "the stream ends"})
    assert (verdict.setting, verdict.status) == (Setting(1, 2), UNVERIFIED)
    assert "the stream ends" in verdict.reason


def test_without_room_the_reason_is_the_memory():
    tight = Room(shm_bytes=1000, memory_bytes=10**12)
    verdict = by_model(view_of(made_up("decoding")[0], tight), "whatever")
    assert (verdict.setting, verdict.status) == (ALONE, NO_ROOM)
    assert "/dev/shm" in verdict.reason
    race = run(Race([ALONE]), lambda _: 1.0, 0)
    measured = by_measurement(view_of(made_up("decoding")[0], tight), found(race))
    assert (measured.setting, measured.status) == (ALONE, NO_ROOM)
