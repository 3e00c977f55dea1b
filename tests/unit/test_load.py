"""The guard sees other people's load and does not blame our own."""

import subprocess
import sys
import time

import pytest

from helpers import machine
from helpers.measure.load import Load, LoadMeter, own_cpu_seconds


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_a_busy_stranger_is_foreign_load(busy_stranger):
    meter = LoadMeter().start()
    time.sleep(0.5)
    load = meter.stop()
    assert load.foreign_cores > 0.3
    assert not load.accepted


@pytest.mark.timed
def test_own_work_and_that_of_children_is_not_foreign():
    code = "import time\nwhile time.process_time() < 0.4: pass"
    before = own_cpu_seconds()
    meter = LoadMeter().start()
    burn(0.2)
    subprocess.run([sys.executable, "-c", code], check=True)
    load = meter.stop()
    used = own_cpu_seconds() - before
    assert used >= 0.55
    assert load.own_cores * load.wall_s >= 0.55
    assert 0.15 <= load.main_cores * load.wall_s <= 0.4


def test_only_foreign_load_above_the_tolerance_is_refused():
    assert Load(1.0, 2.0, 1.0, 0.06, 0.06).accepted
    assert not Load(1.0, 2.0, 1.0, 0.061, 0.06).accepted
    assert Load(1.0, 2.0, 1.0, None, 0.06).accepted


def container(root, usage_s: float, throttled_s: float, waited_s: float) -> None:
    """Made-up files of a container with a quota of half a core."""
    group = root / "sys/fs/cgroup/box"
    task = root / f"proc/{__import__('os').getpid()}/task/1"
    for folder in (group, task, root / "proc/self"):
        folder.mkdir(parents=True, exist_ok=True)
    (root / "proc/self/cgroup").write_text("0::/box\n")
    (group / "cpu.max").write_text("50000 100000\n")
    (group / "cpu.stat").write_text(
        f"usage_usec {int(usage_s * 1e6)}\nthrottled_usec {int(throttled_s * 1e6)}\n"
    )
    (task / "schedstat").write_text(f"0 {int(waited_s * 1e9)} 0\n")


@pytest.mark.parametrize(
    ("usage", "throttled", "waited", "accepted"),
    [
        (0.0, 0.0, 0.0, True),
        (0.5, 0.0, 0.0, False),  # others in the container worked
        (0.0, 0.0, 0.5, False),  # we waited for a core on a crowded host
        (0.0, 0.5, 0.5, True),  # we waited because our own quota was used up
    ],
)
def test_under_a_quota_the_container_is_judged(
    tmp_path, usage, throttled, waited, accepted
):
    container(tmp_path, 10, 1, 1)
    assert machine.cpu_quota(tmp_path) == 0.5
    meter = LoadMeter(tmp_path).start()
    time.sleep(0.3)
    container(tmp_path, 10 + usage, 1 + throttled, 1 + waited)
    assert meter.stop().accepted is accepted
