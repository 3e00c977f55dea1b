"""Helper processes: order, errors, deaths, and odd places to be called from."""

import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from data_gen import workers

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("processes", [1, 3])
def test_results_come_in_the_order_of_the_jobs(processes):
    numbers = [float(n) for n in range(40)]
    found = list(workers.run(math.sqrt, numbers, processes))
    assert found == [math.sqrt(n) for n in numbers]


def test_several_processes_do_the_work():
    found = set(workers.run(_process_number, range(40), 2))
    assert len(found) == 2
    assert os.getpid() not in found


def _process_number(_: int) -> int:
    return os.getpid()


@pytest.mark.parametrize("processes", [1, 2])
def test_error_of_a_job_is_raised_here(processes):
    with pytest.raises(ValueError):
        list(workers.run(math.sqrt, [1.0, -1.0, 4.0], processes))


def test_death_of_a_process_is_said_in_one_line():
    with pytest.raises(ChildProcessError, match="exit code 3") as caught:
        list(workers.run(os._exit, [3, 3, 3, 3], 2))
    assert "\n" not in str(caught.value)


def test_ctrl_c_is_left_to_the_parent():
    found = list(workers.run(signal.raise_signal, [signal.SIGINT] * 2, 2))
    assert found == [None, None]


def test_processes_end_when_the_caller_stops_early():
    results = workers.run(math.sqrt, [1.0] * 1000, 2)
    next(results)
    assert len(psutil.Process().children()) >= 2
    results.close()
    assert not psutil.Process().children()


def test_little_work_needs_no_processes():
    assert workers.suggest(0.5) == 1
    assert 1 <= workers.suggest(100) <= 8


def test_runs_from_a_script_without_main_guard_and_with_threads(tmp_path):
    """The folder of the script also holds a file that hides a standard module."""
    (tmp_path / "random.py").write_text("raise SystemExit('wrong file')")
    script = tmp_path / "script.py"
    script.write_text(
        f"import sys; sys.path[0] = {str(ROOT)!r}\n"
        "import math, threading\n"
        "from data_gen import workers\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "print(list(workers.run(math.sqrt, [4.0, 9.0], 2)))\n"
    )
    run = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "[2.0, 3.0]\n", "")
