"""How long until the first batch, for each way of starting workers?

A start method can only be chosen afresh in a new process, so each measurement
runs as a script of its own::

    python -m helpers.measure.startup spawn --workers 2 --loaders 3
"""

import argparse
import json
import multiprocessing
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader, TensorDataset

from helpers.measure import copies

PRELOAD = ["torch", "torch.utils.data"]
_BOOK = Path(__file__).resolve().parents[2]


def seconds_to_first_batch(
    method: str, workers: int = 2, loaders: int = 3, preload: bool = False
) -> list[float]:
    """Seconds from iter(loader) to the first batch, in a new process.

    Args:
        method: ``fork``, ``spawn`` or ``forkserver``.
        workers: per loader.
        loaders: how many are made, one after the other.
        preload: let the fork server import torch before it is asked for workers.

    Raises:
        RuntimeError: the process failed; with the last line it said.
    """
    command = [sys.executable, "-m", __name__, method]
    command += ["--workers", str(workers), "--loaders", str(loaders)]
    command += ["--preload"] * preload
    done = subprocess.run(command, cwd=_BOOK, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"starting workers by {method} failed: {last}")
    return json.loads(done.stdout)


def first_batch(loader: DataLoader) -> float:
    """Seconds from ``iter(loader)`` until its first batch is there."""
    began = time.perf_counter()
    iterator = iter(loader)
    next(iterator)
    seconds = time.perf_counter() - began
    copies.close(iterator)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("method", choices=multiprocessing.get_all_start_methods())
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--loaders", type=int, default=3)
    parser.add_argument("--preload", action="store_true")
    options = parser.parse_args()
    if options.preload:
        multiprocessing.set_forkserver_preload(PRELOAD)
    loader = DataLoader(
        TensorDataset(torch.zeros(256, 64)),
        batch_size=8,
        num_workers=options.workers,
        multiprocessing_context=options.method,
    )
    print(json.dumps([first_batch(loader) for _ in range(options.loaders)]))


if __name__ == "__main__":
    main()
