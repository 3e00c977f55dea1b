"""Machine facts, with made-up control-group files for both versions."""

from pathlib import Path

import psutil
import pytest

from helpers import machine


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


V2 = {"proc/self/cgroup": "0::/box\n"}
V1 = {"proc/self/cgroup": "4:memory:/box\n3:cpu,cpuacct:/box\n1:name=systemd:/\n0::/\n"}


def test_quota_v2(tmp_path):
    write(tmp_path, V2 | {"sys/fs/cgroup/box/cpu.max": "150000 100000\n"})
    assert machine.cpu_quota(tmp_path) == 1.5


def test_quota_v2_of_a_parent_counts(tmp_path):
    files = {
        "proc/self/cgroup": "0::/pod/box\n",
        "sys/fs/cgroup/pod/box/cpu.max": "max 100000\n",
        "sys/fs/cgroup/pod/cpu.max": "50000 100000\n",
    }
    assert machine.cpu_quota(write(tmp_path, files)) == 0.5


def test_no_quota_v2(tmp_path):
    write(tmp_path, V2 | {"sys/fs/cgroup/box/cpu.max": "max 100000\n"})
    assert machine.cpu_quota(tmp_path) is None


@pytest.mark.parametrize("mount", ["cpu,cpuacct", "cpu"])
def test_quota_v1(tmp_path, mount):
    folder = f"sys/fs/cgroup/{mount}/box"
    files = {f"{folder}/cpu.cfs_quota_us": "50000", f"{folder}/cpu.cfs_period_us": "1"}
    files[f"{folder}/cpu.cfs_period_us"] = "100000\n"
    assert machine.cpu_quota(write(tmp_path, V1 | files)) == 0.5


def test_no_quota_v1(tmp_path):
    folder = "sys/fs/cgroup/cpu"
    files = {
        f"{folder}/cpu.cfs_quota_us": "-1",
        f"{folder}/cpu.cfs_period_us": "100000",
    }
    assert machine.cpu_quota(write(tmp_path, V1 | files)) is None


def test_no_control_groups_at_all(tmp_path):
    assert machine.cpu_quota(tmp_path) is None
    assert machine.memory_limit(tmp_path) is None
    assert machine.cpu_stat(tmp_path) is None


def test_usable_cores_is_the_smaller_of_affinity_and_quota(tmp_path):
    write(tmp_path, V2 | {"sys/fs/cgroup/box/cpu.max": "25000 100000\n"})
    assert machine.usable_cores(tmp_path) == 0.25
    write(tmp_path, {"sys/fs/cgroup/box/cpu.max": "99900000 100000\n"})
    assert machine.usable_cores(tmp_path) == machine.affinity()


def test_memory_limit_v2_and_v1(tmp_path):
    two = write(tmp_path / "2", V2 | {"sys/fs/cgroup/box/memory.max": "1048576\n"})
    assert machine.memory_limit(two) == 2**20
    assert machine.memory_total(two) == 2**20
    one = write(
        tmp_path / "1",
        V1 | {"sys/fs/cgroup/memory/box/memory.limit_in_bytes": "2097152\n"},
    )
    assert machine.memory_limit(one) == 2**21


def test_unlimited_memory_is_the_ram(tmp_path):
    unlimited = {"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712"}
    write(tmp_path, V1 | unlimited)
    assert machine.memory_limit(tmp_path) is None
    assert machine.memory_total(tmp_path) == psutil.virtual_memory().total


def test_cpu_stat_v2_in_seconds(tmp_path):
    stat = "usage_usec 2500000\nuser_usec 1\nthrottled_usec 500000\n"
    write(tmp_path, V2 | {"sys/fs/cgroup/box/cpu.stat": stat})
    assert machine.cpu_stat(tmp_path) == machine.CpuStat(2.5, 0.5)


def test_cpu_stat_v1_in_seconds(tmp_path):
    folder = "sys/fs/cgroup/cpu,cpuacct/box"
    stat = "nr_periods 3\nnr_throttled 1\nthrottled_time 250000000\n"
    files = {f"{folder}/cpuacct.usage": "1500000000", f"{folder}/cpu.stat": stat}
    write(tmp_path, V1 | files)
    assert machine.cpu_stat(tmp_path) == machine.CpuStat(1.5, 0.25)


@pytest.mark.parametrize(
    ("limit", "counts"),
    [(0, [0]), (1, [0, 1]), (4, [0, 1, 2, 4]), (6, [0, 1, 2, 4]), (8, [0, 1, 2, 4, 8])],
)
def test_worker_counts_double_up_to_the_limit(limit, counts):
    assert machine.worker_counts(limit) == counts


def test_worker_counts_reach_twice_the_usable_cores(monkeypatch):
    monkeypatch.setattr(machine, "usable_cores", lambda: 1.5)
    assert machine.worker_counts() == [0, 1, 2]


def test_description_names_what_it_found():
    found = machine.describe()
    assert found.usable_cores <= found.cores
    text = str(found)
    assert found.torch in text and found.cpu in text
    assert found.cpu in found._repr_html_()


def memory_group(root: Path, files: dict[str, int | str], group: dict) -> Path:
    folder = "sys/fs/cgroup/memory/box" if group is V1 else "sys/fs/cgroup/box"
    return write(root, group | {f"{folder}/{n}": f"{v}\n" for n, v in files.items()})


def test_memory_available_is_what_the_container_leaves(tmp_path):
    v2 = {"memory.max": 1000, "memory.current": 700}
    assert machine.memory_available(memory_group(tmp_path / "2", v2, V2)) == 300
    v1 = {"memory.limit_in_bytes": 1000, "memory.usage_in_bytes": 600}
    assert machine.memory_available(memory_group(tmp_path / "1", v1, V1)) == 400


def test_file_pages_that_can_be_dropped_are_available(tmp_path):
    files = {"memory.max": 1000, "memory.current": 900}
    files["memory.stat"] = "anon 100\ninactive_file 750"
    assert machine.memory_available(memory_group(tmp_path, files, V2)) == 850


def test_without_a_limit_the_system_s_figure_counts(tmp_path):
    files = {"memory.max": "max", "memory.current": 900}
    available = machine.memory_available(memory_group(tmp_path, files, V2))
    assert available == pytest.approx(psutil.virtual_memory().available, rel=0.2)
