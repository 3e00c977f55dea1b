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
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.bars import Bar, report
from data_gen import ImageSpec, ensure
from data_gen.images import Sample
from helpers.measure.load import LoadMeter

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


@dataclass(frozen=True)
class Round:
    """Seconds for the same pictures, one after the other: ratios within a round are
    not spoilt by a slow spell of the machine that outlasts it.
    """

    alone: float
    one: float
    two: float
    foreign_cores: float
    quiet: bool

    def __str__(self) -> str:
        return (
            f"drawing and encoding alone {self.alone:.2f} s, set by 1 process "
            f"{self.one:.2f} s, by 2 processes {self.two:.2f} s; others used "
            f"{self.foreign_cores:.2f} cores"
        )


def timed_round(spec: ImageSpec) -> Round:
    """One round, with a note of whether others used the cores meanwhile."""
    meter = LoadMeter().start()
    seconds = (
        seconds_alone(spec),
        seconds_written(spec, 1),
        seconds_written(spec, 2),
    )
    load = meter.stop()
    return Round(*seconds, load.foreign_cores or 0.0, load.accepted)


def speed(images: int, wanted: int) -> list[Bar]:
    """Medians over quiet rounds; over all, and said so, if three tries find none."""
    spec = ImageSpec(per_class=images // 10, size=SIZE)
    rounds: list[Round] = []
    while len(rounds) < 3 * wanted and sum(r.quiet for r in rounds) < wanted:
        rounds.append(timed_round(spec))
        print(f"{images} pictures: {rounds[-1]}", flush=True)
    used = [r for r in rounds if r.quiet] or rounds
    if not used[0].quiet:
        print("no round was quiet: these ratios say little; run it alone")
    speed_up = statistics.median(r.one / r.two for r in used)
    beyond = statistics.median(r.one / r.alone for r in used)
    beyond_two = statistics.median(2 * r.two / r.alone for r in used)
    return [
        Bar("2 processes against 1", speed_up, 1.7, "times", True),
        Bar("1 process against drawing alone", beyond, 1.25, "times"),
        Bar("2 processes against half of that", beyond_two, 1.25, "times"),
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
    parser.add_argument("--images", type=int, default=1000, help="in a timed set")
    parser.add_argument("--rounds", type=int, default=3, help="quiet ones")
    parser.add_argument("--many", type=int, default=10_000, help="for the memory")
    options = parser.parse_args()
    bars = speed(options.images, options.rounds)
    name = f"memory of all processes, {options.many} pictures"
    bars.append(Bar(name, peak_megabytes(options.many), 400, "MB"))
    return report(bars)


if __name__ == "__main__":
    sys.exit(main())
