"""Consumers, seeds and the two switches of the book."""

import random
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

from helpers.pipeline import device, seeding
from helpers.pipeline.device import SimulatedDevice, SmallCNN, TrainingStep


def test_training_step_learns():
    torch.manual_seed(0)
    step = TrainingStep(SmallCNN(classes=2), torch.device("cpu"), learning_rate=0.1)
    labels = torch.arange(32) % 2
    images = torch.randn(32, 3, 16, 16) + labels.view(-1, 1, 1, 1)
    for _ in range(30):
        step((images, labels))
    step.model.eval()
    assert (step.model(images).argmax(1) == labels).float().mean() > 0.9


def test_training_step_reports_where_it_runs():
    step = TrainingStep(SmallCNN())
    assert step.label == str(device.pick_device())


def test_small_cnn_gives_one_logit_per_class():
    assert SmallCNN(classes=7)(torch.zeros(2, 3, 32, 40)).shape == (2, 7)


def test_simulated_device_blocks_without_cpu_and_says_so():
    step = SimulatedDevice(step_ms=80)
    wall, cpu = time.perf_counter(), time.process_time()
    step(None)
    assert time.perf_counter() - wall >= 0.08
    assert time.process_time() - cpu <= 0.04
    assert step.label == "simulated device"


def draws() -> tuple[float, float, float]:
    return random.random(), np.random.rand(), torch.rand(()).item()


def test_seed_reaches_all_three_global_generators():
    seeding.seed_everything(5)
    first = draws()
    seeding.seed_everything(5)
    assert draws() == first
    seeding.seed_everything(6)
    second = draws()
    assert all(a != b for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seed_out_of_range_is_refused(seed):
    with pytest.raises(ValueError, match="seed must be 0"):
        seeding.seed_everything(seed)


def test_loader_generator_is_independent_of_the_global_one():
    own = seeding.loader_generator(3)
    state = torch.random.get_rng_state()
    first = torch.randperm(10, generator=own)
    assert torch.equal(torch.random.get_rng_state(), state)
    again = torch.randperm(10, generator=seeding.loader_generator(3))
    assert torch.equal(first, again)


def settings_in_a_new_process(code: str, **environment: str):
    import os

    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


def test_start_method_follows_the_environment():
    code = (
        "from helpers import settings; settings.use_start_method();"
        "print(settings.start_method())"
    )
    done = settings_in_a_new_process(code, BOOK_START_METHOD="spawn")
    assert done.stdout.strip() == "spawn", done.stderr


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"BOOK_MODE": "fast"}, "BOOK_MODE is 'fast'; it must be one of"),
        ({"BOOK_START_METHOD": "magic"}, "BOOK_START_METHOD is 'magic'; this system"),
    ],
)
def test_wrong_switches_are_named(environment, message):
    code = "from helpers import settings; settings.use_start_method()"
    done = settings_in_a_new_process(code, **environment)
    assert done.returncode != 0
    assert message in done.stderr.splitlines()[-1]
