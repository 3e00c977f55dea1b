"""What a training step costs: one batch, taken again and again."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from helpers.advise.objects import batches
from helpers.measure.load import Load, LoadMeter

Step = Callable[[object], object]


@dataclass(frozen=True)
class StepCost:
    """Seconds per batch: on the clock, and of the main process's CPU."""

    wall: float
    cpu: float


NO_STEP = StepCost(0.0, 0.0)


def waited(step: Step | None) -> Step:
    """The step, waited for until an accelerator has really done it.

    A call only hands its work to an accelerator: without waiting, a step looks
    as short as its launch.
    """
    if step is None:
        return ignore
    if not torch.accelerator.is_available():
        return step

    def step_and_wait(batch: object) -> None:
        step(batch)
        torch.accelerator.synchronize()

    return step_and_wait


def ignore(batch: object) -> None:
    """The step of a training loop that does nothing."""


def replay(batch: object, step: Step, window_s: float, retries: int = 3) -> StepCost:
    """Time the step alone, on copies of one batch.

    Args:
        batch: left as it is.
        step: called once untimed, then at least three times.
        window_s: seconds of stepping, at least.
        retries: repeats if other programs disturbed it; the calmest counts.
    """
    step(batches.clone(batch))
    cost, load = _window(batch, step, window_s)
    for _ in range(retries):
        if load.accepted:
            break
        again, again_load = _window(batch, step, window_s)
        if again_load.foreign_cores < load.foreign_cores:
            cost, load = again, again_load
    return cost


def _window(batch: object, step: Step, window_s: float) -> tuple[StepCost, Load]:
    calls, wall, cpu = 0, 0.0, 0.0
    meter = LoadMeter().start()
    while calls < 3 or wall < window_s:
        fresh = batches.clone(batch)  # outside of what is timed
        began, cpu_began = time.perf_counter(), time.process_time()
        step(fresh)
        wall += time.perf_counter() - began
        cpu += time.process_time() - cpu_began
        calls += 1
    return StepCost(wall / calls, cpu / calls), meter.stop()
