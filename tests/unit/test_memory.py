"""Memory of a process tree, checked against processes of known size."""

import multiprocessing
import sys
import threading

import numpy as np
import pytest
import torch

from helpers import machine
from helpers.measure import memory

MIB = memory.MIB
CONTEXT = multiprocessing.get_context("fork" if sys.platform == "linux" else None)
needs_pss = pytest.mark.skipif(
    memory.kind() != "PSS", reason="this system does not tell the proportional size"
)


def hold(size: int, ready, release) -> None:
    block = np.ones(size, np.uint8)
    ready.put(block.nbytes)
    release.wait()


def read_parent_block(ready, release) -> None:
    ready.put(int(PARENT_BLOCK.sum()))
    release.wait()


PARENT_BLOCK = np.ones(0, np.uint8)


def peak_with(target, count: int, *args) -> memory.MemoryPeak:
    def run() -> None:
        ready, release = CONTEXT.Queue(), CONTEXT.Event()
        children = [
            CONTEXT.Process(target=target, args=(*args, ready, release))
            for _ in range(count)
        ]
        for child in children:
            child.start()
        for _ in children:
            ready.get(timeout=60)
        threading.Event().wait(0.3)  # several readings while all are there
        release.set()
        for child in children:
            child.join()

    return memory.peak(run, interval_s=0.05)


def test_private_memory_of_every_child_is_counted():
    peak = peak_with(hold, 2, 64 * MIB)
    assert 128 * MIB <= peak.added_bytes <= 190 * MIB
    assert peak.processes >= 3


@needs_pss
def test_memory_shared_by_fork_is_counted_once(monkeypatch):
    monkeypatch.setitem(globals(), "PARENT_BLOCK", np.ones(200 * MIB, np.uint8))
    peak = peak_with(read_parent_block, 3)
    assert peak.added_bytes <= 80 * MIB
    assert peak.tree_bytes >= 200 * MIB


@pytest.mark.skipif(not machine.SHM.is_dir(), reason="no /dev/shm on this system")
def test_shared_memory_in_use_is_seen():
    def run() -> torch.Tensor:
        block = torch.zeros(32 * MIB, dtype=torch.uint8).share_memory_()
        threading.Event().wait(0.2)
        return block

    assert 32 * MIB <= memory.peak(run).shm_bytes <= 40 * MIB


@needs_pss
def test_pages_that_mirror_a_file_are_not_counted(tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(bytes(64 * MIB))

    def run() -> None:
        mirror = np.memmap(path, np.uint8, mode="r")
        assert mirror.sum() == 0
        threading.Event().wait(0.2)

    assert memory.peak(run).added_bytes <= 20 * MIB


def test_no_accelerator_no_device_bytes():
    expected_none = not torch.cuda.is_available()
    assert (memory.peak(lambda: None).device_bytes is None) == expected_none


def test_what_the_run_raises_comes_through_and_the_thread_ends():
    threads = threading.active_count()
    with pytest.raises(RuntimeError, match="no luck"):
        memory.peak(lambda: (_ for _ in ()).throw(RuntimeError("no luck")))
    assert threading.active_count() == threads


def test_tree_begins_with_this_process():
    first = memory.tree()[0]
    assert first.pid == multiprocessing.current_process().pid
    assert first.private_bytes > 10 * MIB and first.counted_bytes > 10 * MIB
