"""How good are model, recommender, recording and lint? Run alone on a quiet machine:

    python -m benchmarks.instruments

Prints every figure that the instruments must reach, against its bar, and beside
the recommender what simpler rules and searches would have chosen. Takes about
three quarters of an hour; ``--trials`` and ``--workloads`` shorten it.

The recommender is judged against an exhaustive sweep of its grid. The best
setting of a sweep looks better than it is, because it was also the luckiest. So
the sweep's best three, everything that was recommended and the settings the
loader came with are measured again, against each other, in fresh blocks.
"""

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from benchmarks import tracer
from benchmarks.bars import Bar, report
from benchmarks.sweep import SEARCHES, Sweep, fixed_rules, sweep
from benchmarks.workloads import FOR_THE_MODEL, FOR_THE_RECOMMENDER, Workload
from helpers import machine
from helpers.advise.tune import SWEEP_WINDOW_S, recommend
from helpers.advise.tuning import probes, variants
from helpers.advise.tuning.grid import ALONE, Setting
from helpers.measure import timing
from helpers.measure.timing import steady_conditions

CLOSE = 0.05
ROOT = Path(__file__).resolve().parents[1]
LINT_TESTS = ROOT / "tests/unit"


def model_errors(workload: Workload) -> list[float]:
    """Relative errors of the predicted period, with 0 workers up to the cores."""
    loader, step = workload.loader(), workload.step()
    with steady_conditions():
        costs = probes.probe(loader, step, probes.Plan()).later
    counts = range(int(machine.usable_cores()) + 1)
    settings = {
        workers: Setting(workers, 2) if workers else ALONE for workers in counts
    }
    seen = timing.compare(_variants(loader, settings.values()), step=step, rounds=5)
    errors = []
    for workers, setting in settings.items():
        rows = seen.frame[seen.frame["variant"] == str(setting)]
        measured = float(np.median(rows["seconds"] / rows["batches"]))
        predicted = costs.predict(workers).seconds
        errors.append(predicted / measured - 1)
        print(
            f"model, {workload.name}, {setting}: predicted {1e3 * predicted:.2f} ms, "
            f"measured {1e3 * measured:.2f} ms, {errors[-1]:+.1%}"
        )
    print(f"  {seen.caption()}", flush=True)
    return [abs(error) for error in errors]


def model_bars(workloads: list[Workload]) -> list[Bar]:
    errors = [error for one in workloads for error in model_errors(one)]
    return [
        Bar("model, median error", 100 * statistics.median(errors), 8, "%"),
        Bar("model, largest error", 100 * max(errors), 20, "%"),
    ]


@dataclass
class Judged:
    """A workload's recommendations: excess time per batch, and share of the sweep.

    ``others`` holds the same of the simpler searches, a pair per trial.
    """

    excess: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    others: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    @property
    def close(self) -> list[bool]:
        return [excess <= CLOSE for excess in self.excess]


def judge(workload: Workload, trials: int, budget_s: float) -> Judged:
    """Sweep once, recommend again and again, and measure what was chosen anew."""
    cores, judged = machine.usable_cores(), Judged()
    seen = sweep(workload, cores)
    _print_sweep(workload, seen)
    chosen = []
    for seed in tqdm(range(trials), desc=f"{workload.name}, trials"):
        loader, began = workload.loader(), time.perf_counter()
        result = recommend(loader, workload.step(), budget_s, threads=1, seed=seed)
        share = (time.perf_counter() - began) / seen.total_s
        tqdm.write(f"  {share:.0%} of the sweep's time: {result.headline()}")
        chosen.append(result.setting)
        judged.shares.append(share)
    excess = _anew(workload, [*seen.ranking[:3], *chosen, ALONE])
    judged.excess = [excess[setting] for setting in chosen]
    judged.others = _others(seen, cores, trials)
    return judged


def _print_sweep(workload: Workload, seen: Sweep) -> None:
    disturbed = 1 - np.mean(seen.accepted)
    print(
        f"{workload.name}: sweep of {seen.total_s:.0f} s, {disturbed:.0%} of windows "
        "disturbed; samples/s: "
        + ", ".join(f"{setting} {seen.rate(setting):.4g}" for setting in seen.ranking),
        flush=True,
    )


def _anew(workload: Workload, settings: list[Setting]) -> dict[Setting, float]:
    """Excess over the best of them, from fresh blocks."""
    settings = list(dict.fromkeys(settings))
    variants_ = _variants(workload.loader(), settings)
    seen = timing.compare(
        variants_,
        step=workload.step(),
        rounds=10,
        window_s=SWEEP_WINDOW_S / 2,
        retries=2,
        budget_s=100,
    )
    rates = {s: float(np.log(seen.values(str(s))).mean()) for s in settings}
    best = max(rates.values())
    excess = {
        setting: float(np.exp(best - rate)) - 1 for setting, rate in rates.items()
    }
    listed = ", ".join(f"{s} +{value:.1%}" for s, value in sorted(excess.items()))
    print(f"{workload.name}, measured anew: {listed}\n  {seen.caption()}", flush=True)
    return excess


def _variants(loader: object, settings: object) -> dict[str, object]:
    return {
        str(setting): partial(variants.with_setting, loader, setting)
        for setting in settings
    }


def _others(
    seen: Sweep, cores: float, trials: int
) -> dict[str, list[tuple[float, float]]]:
    """What simpler rules choose on the same sweep: (excess, share of its time)."""
    found = {
        name: [(seen.excess(setting), 0.0)]
        for name, setting in fixed_rules(cores).items()
    }
    for name, search in SEARCHES.items():
        runs = [search(seen, seed) for seed in range(trials)]
        found[name] = [
            (seen.excess(run.setting), run.seconds / seen.total_s) for run in runs
        ]
    return found


def recommender_bars(
    workloads: list[Workload], trials: int, budget_s: float
) -> list[Bar]:
    judged = {one.name: judge(one, trials, budget_s) for one in workloads}
    print("\nrecommender: share of trials within 5 % of the best, share of the time")
    for name, one in judged.items():
        print(
            f"  {name:20} {np.mean(one.close):5.0%} {np.mean(one.shares):5.0%}  "
            f"(slowest choice +{max(one.excess):.1%})"
        )
    _print_others(list(judged.values()))
    pooled = [close for one in judged.values() for close in one.close]
    lowest = min(np.mean(one.close) for one in judged.values())
    longest = max(np.mean(one.shares) for one in judged.values())
    return [
        Bar("recommender within 5 %, pooled", np.mean(pooled), 0.9, "of trials", True),
        Bar("recommender within 5 %, worst workload", lowest, 0.8, "of trials", True),
        Bar("recommender, time of the sweep, worst", 100 * longest, 25, "%"),
    ]


def _print_others(judged: list[Judged]) -> None:
    print("simpler rules and searches on the same sweeps, all workloads:")
    for name in judged[0].others:
        runs = [run for one in judged for run in one.others[name]]
        excess, shares = zip(*runs, strict=True)
        close = np.mean([value <= CLOSE for value in excess])
        print(
            f"  {name:28} within 5 %: {close:4.0%}  slowest choice "
            f"+{max(excess):6.0%}  share of the time {np.mean(shares):4.0%}"
        )


def lint_bars() -> list[Bar]:
    """False alarms on healthy loaders; planted faults that the tests find."""
    sys.path.insert(0, str(LINT_TESTS))
    import support_lint

    from helpers.advise.doctor import lint

    alarms = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(support_lint.HEALTHY):
            place = Path(folder) / str(number)
            place.mkdir()
            loader = support_lint.healthy(name, place, workers=2)
            findings = lint(loader, probe="worker")
            alarms += len(findings.errors) + len(findings.warnings)
    found, all_ = _planted_faults()
    healthy = len(support_lint.HEALTHY)
    return [
        Bar(f"lint, alarms on {healthy} healthy loaders", alarms, 0),
        Bar(f"lint, tests of {all_} planted faults passed", found, all_, "", True),
    ]


def _planted_faults() -> tuple[int, int]:
    """Each is a test of its own; returns (passed, all)."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command.append(str(LINT_TESTS / "test_lint_rules.py"))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    last = done.stdout.strip().splitlines()[-1]
    counts = {
        word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error)", last)
    }
    return counts.get("passed", 0), sum(counts.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [workload.name for workload in FOR_THE_RECOMMENDER]
    parser.add_argument("--trials", type=int, default=10, help="per workload")
    parser.add_argument("--budget", type=float, default=30, help="s per recommendation")
    parser.add_argument(
        "--workloads", nargs="*", default=names, choices=names, help="default: all"
    )
    parser.add_argument(
        "--only", choices=["model", "recommender", "recording", "lint"], help="one part"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    chosen = [one for one in FOR_THE_RECOMMENDER if one.name in options.workloads]
    parts = {
        "recording": lambda: [tracer.bar(tracer.direct_costs())],
        "lint": lint_bars,
        "model": lambda: model_bars(list(FOR_THE_MODEL)),
        "recommender": lambda: recommender_bars(chosen, options.trials, options.budget),
    }
    wanted = [options.only] if options.only else list(parts)
    began = time.perf_counter()
    bars = [bar for name in wanted for bar in parts[name]()]
    print(f"\n{(time.perf_counter() - began) / 60:.0f} minutes; the bars:")
    return report(bars)


if __name__ == "__main__":
    sys.exit(main())
