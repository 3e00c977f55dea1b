"""The throughput model: exact terms, and probes of known costs."""

from functools import partial

import pytest
from torch.utils.data import DataLoader

from helpers.advise.model import CONSUMER, CORES, IN_TURN, WORKERS, BatchCosts, probe
from helpers.pipeline.datasets import LatencyBound
from helpers.pipeline.device import SimulatedDevice

COSTS = BatchCosts(
    fetch=0.10, worker=0.12, cpu=0.08, main=0.002, step=0.03, step_cpu=0.01
)


def test_without_workers_loading_and_computing_add_up():
    prediction = COSTS.predict(0, cores=4)
    assert prediction.seconds == pytest.approx(0.13)
    assert prediction.bottleneck == IN_TURN


@pytest.mark.parametrize(
    ("workers", "cores", "seconds", "bottleneck"),
    [
        (1, 4, 0.12, WORKERS),
        (3, 8, 0.04, WORKERS),
        (8, 8, 0.032, CONSUMER),
        (4, 2, 0.045, CORES),
        (4, 0.5, 0.18, CORES),
    ],
)
def test_the_largest_term_is_the_period(workers, cores, seconds, bottleneck):
    prediction = COSTS.predict(workers, cores)
    assert prediction.seconds == pytest.approx(seconds)
    assert prediction.bottleneck == bottleneck


@pytest.mark.parametrize(("cores", "needed"), [(8, 4), (2, 3), (1, 2)])
def test_workers_needed_is_where_more_bring_nothing(cores, needed):
    assert COSTS.workers_needed(cores) == needed
    best = COSTS.predict(64, cores).seconds
    assert COSTS.predict(needed, cores).seconds == pytest.approx(best)
    assert COSTS.predict(needed - 1, cores).seconds > 1.05 * best


def test_negative_workers_are_refused():
    with pytest.raises(ValueError, match="workers must be 0 or more"):
        COSTS.predict(-1)


def loader(workers: int) -> DataLoader:
    return DataLoader(LatencyBound(256, wait_ms=5), batch_size=4, num_workers=workers)


def test_probe_finds_costs_that_are_known():
    costs = probe(loader, SimulatedDevice(step_ms=30), window_s=0.2, retries=0)
    # Sleeps can only be too long; on a busy machine by a lot, hence the ratios.
    assert 0.020 <= costs.fetch <= 0.030
    assert costs.worker == pytest.approx(costs.fetch, rel=0.35)
    assert 0.030 <= costs.step <= 0.045
    assert costs.step_cpu < 0.5 * costs.step
    assert costs.cpu < 0.7 * costs.worker
    assert 0 <= costs.main <= costs.cpu


def test_probe_without_a_step():
    costs = probe(partial(loader), window_s=0.05, retries=0)
    assert (costs.step, costs.step_cpu) == (0.0, 0.0)
