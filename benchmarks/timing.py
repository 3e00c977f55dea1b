"""How good is the timing harness? Run alone on a quiet machine:

    python -m benchmarks.timing

Prints, against its bars: the A/A half-width (a loader against itself), how
often that interval covers 1, how often a true 10 % difference is found, and how
many windows the guard flags beside a busy process.
"""

import argparse
import statistics
import subprocess
import sys
from functools import partial

from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

from benchmarks.bars import Bar, report
from helpers.measure.intervals import Ratio
from helpers.measure.timing import compare
from helpers.pipeline.datasets import HeavyTailed

BATCH = 2
PRECISION = 0.035
_BUSY = "import time; end = time.time() + 120\nwhile time.time() < end: pass"


class EvenDecoding(Dataset):
    """Decodes the same JPEG ``decodings`` times per sample: CPU work only."""

    def __init__(self, decodings: int) -> None:
        self.inner = HeavyTailed(samples=64)
        self.inner.decodings[:] = decodings

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, index: int) -> object:
        return self.inner[index]


def loader(decodings: int, workers: int = 1) -> DataLoader:
    return DataLoader(EvenDecoding(decodings), BATCH, num_workers=workers)


def ratio(decodings: tuple[int, int], seed: int, budget_s: float) -> Ratio:
    """Rate of the second loader divided by that of the first."""
    first, second = (partial(loader, count) for count in decodings)
    result = compare(
        {"first": first, "second": second},
        precision=PRECISION,
        seed=seed,
        budget_s=budget_s,
    )
    return result.ratio("second")


def same_against_same(runs: int, budget_s: float) -> list[Bar]:
    half_widths, covered = [], 0
    for seed in tqdm(range(runs), desc="A/A"):
        seen = ratio((20, 20), seed, budget_s)
        half_widths.append((seen.high - seen.low) / 2)
        covered += seen.low <= 1 <= seen.high
        tqdm.write(f"A/A run {seed + 1}: {_words(seen)}")
    return [
        Bar("A/A median half-width", 100 * statistics.median(half_widths), 4, "%"),
        Bar("A/A interval covers 1", covered / runs, 0.9, "of runs", at_least=True),
    ]


def ten_percent(runs: int, budget_s: float) -> list[Bar]:
    found = 0
    for seed in tqdm(range(runs), desc="10 % difference"):
        seen = ratio((20, 22), seed, budget_s)
        found += seen.verdict == "smaller"
        tqdm.write(f"10 % run {seed + 1}: {_words(seen)}")
    return [
        Bar("true 10 % difference found", found / runs, 0.9, "of runs", at_least=True)
    ]


def _words(seen: Ratio) -> str:
    return f"{seen.value:.3f} ({seen.low:.3f} to {seen.high:.3f}), {seen.rounds} rounds"


def guard(windows: int) -> list[Bar]:
    # Under a shell that ends at once the process belongs to nobody here, as a
    # neighbour's would.
    command = f'"{sys.executable}" -c "{_BUSY}" >/dev/null 2>&1 & echo $!'
    starter = subprocess.run(command, shell=True, capture_output=True, text=True)
    try:
        seen = compare({"x": partial(loader, 20)}, rounds=windows, retries=0)
    finally:
        subprocess.run(["kill", starter.stdout.strip()], check=False)
    flagged = seen.rejected_share
    return [Bar("windows flagged beside a busy process", flagged, 0.9, "", True)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20, help="A/A runs (default 20)")
    parser.add_argument(
        "--budget", type=float, default=60, help="seconds per comparison (default 60)"
    )
    options = parser.parse_args()
    bars = guard(windows=20)
    bars += same_against_same(options.runs, options.budget)
    bars += ten_percent(options.runs, options.budget)
    return report(bars)


if __name__ == "__main__":
    sys.exit(main())
