"""How fast and how frugal is the image generator? Run alone on a quiet machine:

    python -m benchmarks.data_gen

Prints, against its bars: how much faster two processes are than one, what a set costs
beyond drawing and encoding its pictures, and the memory of all processes together
while 10,000 pictures are written.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.bars import Bar, report
from data_gen import ImageSpec, ensure
from data_gen.images import Sample

ROOT = Path(__file__).resolve().parents[1]
SIZE = (375, 500)


def seconds_alone(spec: ImageSpec) -> float:
    """Time to draw and encode every picture here, without writing any."""
    start = time.perf_counter()
    for name, count in zip(spec.class_names, spec.counts, strict=True):
        for index in range(count):
            Sample(spec, name, index).file_bytes()
    return time.perf_counter() - start


def seconds_written(spec: ImageSpec, processes: int) -> float:
    """Time to write the whole set with that many processes."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        ensure(spec, out=Path(folder) / "set", processes=processes)
        return time.perf_counter() - start


def speed(images: int, rounds: int) -> list[Bar]:
    """Ratios within each round, so that a slow spell of the machine cancels out."""
    spec = ImageSpec(per_class=images // 10, size=SIZE)
    beyond, speed_up, beyond_two = [], [], []
    for number in range(rounds):
        alone = seconds_alone(spec)
        one = seconds_written(spec, 1)
        two = seconds_written(spec, 2)
        print(
            f"round {number + 1}: {images} pictures, drawing and encoding alone "
            f"{alone:.2f} s, set by 1 process {one:.2f} s, by 2 processes {two:.2f} s",
            flush=True,
        )
        beyond.append(one / alone)
        speed_up.append(one / two)
        beyond_two.append(2 * two / alone)
    return [
        Bar("2 processes against 1", statistics.median(speed_up), 1.7, "times", True),
        Bar("1 process against drawing alone", statistics.median(beyond), 1.25),
        Bar("2 processes against half of that", statistics.median(beyond_two), 1.25),
    ]


def peak_megabytes(images: int) -> float:
    """Most memory of the whole process tree (PSS) while that many are written."""
    with tempfile.TemporaryDirectory() as folder:
        words = f"images --classes 10 --per-class {images // 10} --out {folder}/set"
        command = [sys.executable, "-m", "data_gen", *words.split()]
        run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        peak = 0
        while run.poll() is None:
            peak = max(peak, _tree_bytes(psutil.Process(run.pid)))
            time.sleep(0.1)
        if run.returncode:
            raise SystemExit("the generator failed")
    return peak / 1e6


def _tree_bytes(process: psutil.Process) -> int:
    total = 0
    for member in [process, *process.children(recursive=True)]:
        try:
            memory = member.memory_full_info()
        except psutil.Error:  # it has just ended
            continue
        total += getattr(memory, "pss", memory.uss)
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--images", type=int, default=600, help="in a timed set")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--many", type=int, default=10_000, help="for the memory")
    options = parser.parse_args()
    bars = speed(options.images, options.rounds)
    name = f"memory of all processes, {options.many} pictures"
    bars.append(Bar(name, peak_megabytes(options.many), 400, "MB"))
    return report(bars)


if __name__ == "__main__":
    sys.exit(main())
