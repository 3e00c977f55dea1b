"""How good is the timing harness? Run alone on a quiet machine:

    python -m benchmarks.timing

Prints, against its bars: the A/A half-width (a loader against itself), how
often that interval covers 1, how often a true 10 % difference is found, and how
many windows the guard flags beside a busy process. Printed without a bar: the
A/A half-width of work whose speed depends on where memory happens to lie.
"""

import argparse
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision.io import decode_jpeg
from tqdm import tqdm

from benchmarks.bars import Bar, report
from helpers.measure.intervals import Ratio
from helpers.measure.timing import compare
from helpers.pipeline.datasets import HeavyTailed

BATCH = 2

# A fresh worker draws its memory layout, and with it a speed that it keeps. So
# many short rounds, each with fresh workers, say more than few long ones.
WINDOW_S = 0.3
ROUNDS = 12
PRECISION = 0.035
_BUSY = "import time; end = time.time() + 120\nwhile time.time() < end: pass"


class EvenDecoding(Dataset):
    """Decodes the same JPEG ``decodings`` times per sample: CPU work only.

    By torchvision: its speed hardly depends on the memory layout of the process,
    so the benchmark shows the harness and not the decoder.
    """

    def __init__(self, decodings: int) -> None:
        self.decodings = decodings
        encoded = bytearray(HeavyTailed(samples=1).jpeg)
        self.jpeg = torch.frombuffer(encoded, dtype=torch.uint8)

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> Tensor:
        for _ in range(self.decodings):
            image = decode_jpeg(self.jpeg)
        return image


class LayoutSensitive(HeavyTailed):
    """The same, decoded by Pillow: one process may be much faster than the next."""

    def __init__(self, decodings: int) -> None:
        super().__init__(samples=64)
        self.decodings[:] = decodings


def loader(work: Callable[[int], Dataset], decodings: int) -> DataLoader:
    return DataLoader(work(decodings), BATCH, num_workers=1)


def ratio(
    decodings: tuple[int, int],
    seed: int,
    budget_s: float,
    work: Callable[[int], Dataset] = EvenDecoding,
) -> Ratio:
    """Rate of the second loader divided by that of the first."""
    first, second = (partial(loader, work, count) for count in decodings)
    result = compare(
        {"first": first, "second": second},
        rounds=ROUNDS,
        window_s=WINDOW_S,
        precision=PRECISION,
        seed=seed,
        budget_s=budget_s,
    )
    return result.ratio("second")


def same_against_same(runs: int, budget_s: float) -> list[Bar]:
    half_widths, covered = [], 0
    for seed in tqdm(range(runs), desc="A/A"):
        seen = ratio((20, 20), seed, budget_s)
        half_widths.append(_half_width(seen))
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


def layout_sensitive(runs: int, budget_s: float) -> str:
    seen = [
        ratio((20, 20), seed, budget_s, work=LayoutSensitive)
        for seed in tqdm(range(runs), desc="layout")
    ]
    covered = sum(one.low <= 1 <= one.high for one in seen)
    middle = 100 * statistics.median(_half_width(one) for one in seen)
    return (
        f"layout-sensitive work: A/A median half-width {middle:.2g} %, "
        f"interval covers 1 in {covered} of {runs} runs"
    )


def _half_width(seen: Ratio) -> float:
    return (seen.high - seen.low) / 2


def _words(seen: Ratio) -> str:
    return f"{seen.value:.3f} ({seen.low:.3f} to {seen.high:.3f}), {seen.rounds} rounds"


def guard(windows: int) -> list[Bar]:
    # Under a shell that ends at once the process belongs to nobody here, as a
    # neighbour's would.
    command = f'"{sys.executable}" -c "{_BUSY}" >/dev/null 2>&1 & echo $!'
    starter = subprocess.run(command, shell=True, capture_output=True, text=True)
    try:
        even = partial(loader, EvenDecoding, 20)
        seen = compare({"even": even}, rounds=windows, retries=0)
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
    print(layout_sensitive(max(options.runs // 4, 1), options.budget))
    return report(bars)


if __name__ == "__main__":
    sys.exit(main())
