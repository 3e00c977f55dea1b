"""An exhaustive sweep of the recommender's grid, and searches replayed on it."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from tqdm import tqdm

from benchmarks.workloads import Workload
from helpers.advise.replay import ignore
from helpers.advise.tune import SWEEP_ROUNDS, SWEEP_WINDOW_S
from helpers.advise.tuning import variants
from helpers.advise.tuning.grid import ALONE, PREFETCH, Setting, grid
from helpers.measure.timing import steady_conditions
from helpers.measure.windows import loader_window


@dataclass
class Sweep:
    """Rates and wall seconds of every setting, one of each per round."""

    rates: dict[Setting, list[float]] = field(default_factory=dict)
    seconds: dict[Setting, list[float]] = field(default_factory=dict)
    accepted: list[bool] = field(default_factory=list)

    @property
    def total_s(self) -> float:
        """What the sweep took."""
        return sum(map(sum, self.seconds.values()))

    def rate(self, setting: Setting) -> float:
        """Geometric mean over all rounds, samples/s."""
        return float(np.exp(np.log(self.rates[setting]).mean()))

    @property
    def ranking(self) -> list[Setting]:
        """The fastest first."""
        return sorted(self.rates, key=self.rate, reverse=True)

    def excess(self, setting: Setting) -> float:
        """How much longer a batch takes than with the best of this sweep."""
        return self.rate(self.ranking[0]) / self.rate(setting) - 1


def sweep(workload: Workload, cores: float, seed: int = 0) -> Sweep:
    """Measure every setting in every round, in random order."""
    loader, step = workload.loader(), workload.step() or ignore
    found, order = Sweep(), random.Random(seed)
    settings = grid(cores)
    rounds = [order.sample(settings, len(settings)) for _ in range(SWEEP_ROUNDS)]
    with steady_conditions():
        for setting in tqdm([s for one in rounds for s in one], desc=workload.name):
            began = time.perf_counter()
            variant = variants.with_setting(loader, setting)
            window = loader_window(variant, step, SWEEP_WINDOW_S)
            rate = window.samples / window.seconds
            found.rates.setdefault(setting, []).append(rate)
            found.seconds.setdefault(setting, []).append(time.perf_counter() - began)
            found.accepted.append(window.load.accepted)
    return found


@dataclass(frozen=True)
class Found:
    """What a search chose, and the wall seconds of the windows it looked at."""

    setting: Setting
    seconds: float


def fixed_rules(cores: float) -> dict[str, Setting]:
    """Rules that look at nothing."""
    counts = {
        "0 workers": 0,
        "as many as cores": round(cores),
        "twice the cores": round(2 * cores),
        "4 workers": 4,
        "8 workers": 8,
    }
    return {name: _usual(count, cores) for name, count in counts.items()}


def _usual(workers: int, cores: float) -> Setting:
    """The setting of the grid nearest to a number of workers."""
    if not workers:
        return ALONE
    usual = [setting for setting in grid(cores) if setting.prefetch == 2]
    return min(usual, key=lambda setting: abs(setting.workers - workers))


def successive_halving(seen: Sweep, seed: int) -> Found:
    """One window each, the better half another one, and so on to the last."""
    order = _rounds(seen, seed)
    left, looked = list(seen.rates), {setting: [] for setting in seen.rates}
    seconds = 0.0
    for number in order:
        for setting in left:
            looked[setting].append(seen.rates[setting][number])
            seconds += seen.seconds[setting][number]
        left.sort(key=lambda setting: np.log(looked[setting]).mean(), reverse=True)
        left = left[: max(1, len(left) // 2)]
        if len(left) == 1:
            break
    return Found(left[0], seconds)


def hill_climbing(seen: Sweep, seed: int, start: Setting) -> Found:
    """From a setting to its best neighbour, until none is better."""
    rates = {s: values[_rounds(seen, seed)[0]] for s, values in seen.rates.items()}
    costs = {s: values[_rounds(seen, seed)[0]] for s, values in seen.seconds.items()}
    looked, here = {start}, start
    while True:
        near = _neighbours(here, seen)
        looked |= set(near)
        best = max([here, *near], key=rates.get)
        if best == here:
            return Found(here, sum(costs[setting] for setting in looked))
        here = best


def _neighbours(setting: Setting, seen: Sweep) -> list[Setting]:
    counts = sorted({s.workers for s in seen.rates})
    place = counts.index(setting.workers)
    near = []
    for workers in counts[max(0, place - 1) : place + 2]:
        prefetch = setting.prefetch or 2
        near.append(Setting(workers, prefetch if workers else 0))
    if setting.workers:
        level = PREFETCH.index(setting.prefetch)
        near += [
            Setting(setting.workers, prefetch)
            for prefetch in PREFETCH[max(0, level - 1) : level + 2]
        ]
    return [one for one in dict.fromkeys(near) if one != setting]


def _rounds(seen: Sweep, seed: int) -> list[int]:
    count = len(next(iter(seen.rates.values())))
    return random.Random(seed).sample(range(count), count)


#: Searches that look at windows of the sweep: name -> (sweep, seed) -> choice.
SEARCHES: dict[str, Callable[[Sweep, int], Found]] = {
    "successive halving": successive_halving,
    "hill-climbing from 2 workers": lambda seen, seed: hill_climbing(
        seen, seed, Setting(2, 2)
    ),
}
