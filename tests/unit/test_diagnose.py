"""The diagnosis: sentences from given costs, and short runs of real loaders."""

import pytest
import torch
from support_advise import (
    Broken,
    Constant,
    OnlyInWorkers,
    Stream,
    Undivided,
    Waiting,
)
from torch.utils.data import DataLoader

from helpers.advise.diagnosis import Diagnosis, Forecast
from helpers.advise.doctor import diagnose
from helpers.advise.model import BatchCosts
from helpers.advise.objects import streams
from helpers.advise.tuning.grid import ALONE, WORKERS, Setting
from helpers.advise.tuning.runs import SampleError
from helpers.pipeline.datasets import HeavyTailed
from helpers.pipeline.device import SimulatedDevice

CORES = 2


def diagnosis(costs: BatchCosts, current: Setting, **changes) -> Diagnosis:
    forecasts = []
    for workers in WORKERS:
        seen = costs.predict(workers, CORES)
        low, high = costs.band(workers, CORES)
        forecasts.append(Forecast(workers, seen.seconds, low, high, seen.bottleneck))
    usual = {
        "current": current,
        "cores": CORES,
        "samples": 10,
        "parts": {"fetch, computing": 0.03, "fetch, waiting": 0.0, "collate": 0.01},
        "costs": costs,
        "seconds": 0.05,
        "wait_share": 0.4,
        "start_up_s": 0.2,
        "forecasts": tuple(forecasts),
        "duplicated": False,
        "notes": (),
    }
    return Diagnosis(**usual | changes)


#: fetch, worker, cpu, main, step, step_cpu
COMPUTING = BatchCosts(0.040, 0.042, 0.044, 0.001, 0.010, 0.0)
WAITING = BatchCosts(0.040, 0.041, 0.004, 0.001, 0.010, 0.0)
STEPPING = BatchCosts(0.010, 0.011, 0.012, 0.001, 0.080, 0.0)
HANDING = BatchCosts(0.002, 0.004, 0.004, 0.006, 0.0, 0.0)


@pytest.mark.parametrize(
    ("costs", "current", "words"),
    [
        (COMPUTING, ALONE, ["take turns", "40 ms to make", "10 ms for the step"]),
        (COMPUTING, Setting(1, 2), ["The workers are the limit", "42 ms", "11 ms"]),
        (COMPUTING, Setting(4, 2), ["The cores are the limit", "44 ms", "22 ms"]),
        (STEPPING, Setting(2, 2), ["The training step is the limit", "81 ms"]),
        (HANDING, Setting(2, 2), ["The main process is the limit", "6 ms"]),
    ],
)
def test_the_bottleneck_in_one_sentence_with_numbers(costs, current, words):
    sentence = diagnosis(costs, current).bottleneck
    assert all(word in sentence for word in words), sentence
    assert ("waits 40%" in sentence) is (costs.step > 0)


def test_a_loop_that_waits_although_the_step_is_the_limit_is_doubted():
    sentence = diagnosis(STEPPING, Setting(2, 2), wait_share=0.9).bottleneck
    assert "yet the loop waited 90%" in sentence and "quiet machine" in sentence


@pytest.mark.parametrize(
    ("costs", "current", "words"),
    [
        (COMPUTING, ALONE, "num_workers=2"),
        (WAITING, Setting(1, 2), "num_workers=4"),
        (STEPPING, Setting(2, 2), "only a faster step"),
        (COMPUTING, Setting(2, 2), "fetch, computing is the largest part"),
    ],
)
def test_the_first_thing_to_change(costs, current, words):
    assert words in diagnosis(costs, current).advice


def test_a_duplicated_stream_comes_first():
    advice = diagnosis(COMPUTING, ALONE, duplicated=True).advice
    assert "workers 0 and 1 deliver the same data" in advice
    assert "get_worker_info" in advice


def test_the_band_is_wider_where_the_model_is_known_to_be_optimistic():
    low, high = COMPUTING.band(2, CORES)
    seconds = COMPUTING.predict(2, CORES).seconds
    assert (low, high) == pytest.approx((seconds / 1.13, seconds * 1.13))
    crowded = COMPUTING.band(4, CORES)[1] / COMPUTING.predict(4, CORES).seconds
    assert crowded == pytest.approx(1.29)
    assert COMPUTING.band(2, CORES, error=0.5)[1] == pytest.approx(1.5 * seconds)


def test_text_html_figure_and_json_say_the_same():
    seen = diagnosis(COMPUTING, Setting(1, 2), notes=("a note",))
    for text in (repr(seen), seen._repr_html_()):
        assert seen.bottleneck in text
        assert "fetch, computing" in text and "30 ms" in text
        assert "238.1 (210.7 to 269)" in text  # 1 worker: 42 ms, 13 % around
        assert "a note" in text
    alt = seen.alt()
    assert seen.bottleneck in alt and "1: 238" in alt and "Measured now: 200." in alt
    parts, forecasts = seen.figure().axes
    assert parts.get_xlabel() == "ms per batch"
    assert forecasts.get_xlabel() == "num_workers"
    plain = seen.to_dict()
    assert plain["forecasts"][1]["workers"] == 1
    assert plain["duplicated_stream"] is False


@pytest.mark.timed
def test_a_loop_that_waits_for_its_data():
    loader = DataLoader(Waiting(), batch_size=4, num_workers=1, shuffle=True)
    before = dict(vars(loader))
    torch.manual_seed(0)
    expected = torch.rand(2)
    torch.manual_seed(0)
    seen = diagnose(loader, SimulatedDevice(5), budget_s=4)
    assert torch.equal(torch.rand(2), expected)
    assert vars(loader) == before
    assert seen.bottleneck.startswith("The workers are the limit")
    assert seen.best_workers >= 3 and "num_workers=" in seen.advice
    assert seen.parts["fetch, waiting"] > 0.7 * 0.020
    assert seen.parts["fetch, computing"] < 0.010
    assert 0.004 < seen.parts["step"] < 0.010
    assert {"collate", "serialise", "transport"} <= set(seen.parts)
    assert seen.wait_share > 0.5
    assert seen.seconds == pytest.approx(0.021, rel=0.4)
    assert seen.start_up_s > 0.02
    assert any("model predicts" in note for note in seen.notes)


@pytest.mark.timed
def test_a_budget_too_short_for_the_probes_still_says_something():
    seen = diagnose(DataLoader(Waiting(wait_ms=40), batch_size=4), budget_s=1)
    assert any("the budget is short" in note for note in seen.notes)
    assert any("no step was given" in note for note in seen.notes)
    assert "The one process is the limit: it makes a batch in" in seen.bottleneck
    assert 0.16 <= seen.costs.fetch < 1
    assert seen.seconds == pytest.approx(0.16, rel=0.5)


def test_a_budget_too_short_does_not_blame_the_step_for_what_the_worker_does():
    loader = DataLoader(HeavyTailed(most=1, size=512), batch_size=16, num_workers=1)
    seen = diagnose(loader, SimulatedDevice(1), budget_s=0.5, threads=2)
    assert any("the budget is short" in note for note in seen.notes)
    assert seen.bottleneck.startswith("The workers are the limit")
    assert seen.costs.cpu <= seen.costs.worker, "a worker computes on one thread"


def test_a_loop_without_workers_is_not_run_if_the_dataset_may_not_be():
    loader = DataLoader(OnlyInWorkers(), batch_size=4)
    seen = diagnose(loader, SimulatedDevice(1), budget_s=2, in_process=False)
    assert seen.seconds is None and seen.wait_share is None
    assert seen.parts["step"] > 0.001
    assert "the loop itself was not run" in repr(seen)
    assert "Measured" not in seen.alt()
    seen.figure()


def test_the_error_of_the_dataset_comes_with_its_sample():
    with pytest.raises(SampleError, match="sample 21"):
        diagnose(DataLoader(Broken(64), batch_size=4), budget_s=1)


@pytest.mark.parametrize(
    ("kind", "workers", "proven"),
    [(Undivided, 2, True), (Undivided, 1, False), (Stream, 2, False)]
    + [(Constant, 2, False)],
)
def test_streams_that_are_delivered_twice(kind, workers, proven):
    loader = DataLoader(kind(200, 0), batch_size=4, num_workers=workers)
    assert streams.duplicated(loader) is proven


def test_a_map_style_dataset_is_never_delivered_twice():
    assert not streams.duplicated(DataLoader(Waiting(), 4, num_workers=2))


def test_a_stream_that_ends_at_once_proves_nothing():
    assert not streams.duplicated(DataLoader(Undivided(4, 0), 4, num_workers=2))


def test_duplicates_are_part_of_the_diagnosis():
    loader = DataLoader(Undivided(2000, 0.2), batch_size=4, num_workers=2)
    seen = diagnose(loader, budget_s=2)
    assert seen.duplicated
    assert seen.advice.startswith("First divide the stream")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: diagnose([1]), TypeError, "expected a torch.utils.data.DataLoader"),
        (lambda: diagnose(DataLoader([1]), budget_s=-1), ValueError, "budget_s must"),
        (lambda: diagnose(DataLoader([1]), keep=(1,)), TypeError, "keep: a int"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
