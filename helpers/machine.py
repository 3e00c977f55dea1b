"""What this computer is, as far as data loading is concerned.

Nothing here measures speed; it only reads what the system says about itself.
The lowest module of the book: it imports no other helper.
"""

import html
import math
import os
import platform
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy
import psutil
import torch
import torch.multiprocessing
import torchvision

GIB = 2**30
SHM = Path("/dev/shm")

# A control group without a limit says "max" (version 2) or a number near 2**63
# (version 1); no machine has that much memory.
_NO_MEMORY_LIMIT = 2**60


@dataclass(frozen=True)
class Machine:
    """Facts about the computer that runs this process.

    ``usable_cores`` may be a fraction: a container may be given 1.5 cores.
    Sizes are bytes; ``shm_bytes`` is None where ``/dev/shm`` does not exist.
    """

    cpu: str
    system: str
    cores: int
    usable_cores: float
    memory_bytes: int
    shm_bytes: int | None
    accelerator: str | None
    python: str
    torch: str
    torchvision: str
    numpy: str
    start_method: str
    start_methods: tuple[str, ...]
    main_threads: int

    def rows(self) -> list[tuple[str, str]]:
        """The card as (label, value) pairs, ready to be shown."""
        cores = f"{self.usable_cores:g} usable of {self.cores}"
        shm = "none" if self.shm_bytes is None else _gib(self.shm_bytes)
        others = ", ".join(m for m in self.start_methods if m != self.start_method)
        return [
            ("Processor", f"{self.cpu}, {cores} cores"),
            ("Memory", f"{_gib(self.memory_bytes)}, shared memory {shm}"),
            ("Accelerator", self.accelerator or "none"),
            ("System", f"{self.system}, Python {self.python}"),
            (
                "Libraries",
                f"torch {self.torch}, torchvision {self.torchvision}, "
                f"numpy {self.numpy}",
            ),
            (
                "Workers start by",
                f"{self.start_method} (also here: {others or 'nothing else'})",
            ),
            ("Threads of the main process", str(self.main_threads)),
        ]

    def __str__(self) -> str:
        return "\n".join(f"{label}: {value}" for label, value in self.rows())

    def _repr_html_(self) -> str:
        body = "".join(
            f'<tr><th scope="row">{html.escape(label)}</th>'
            f"<td>{html.escape(value)}</td></tr>"
            for label, value in self.rows()
        )
        return (
            '<table class="book-machine"><caption>The machine that ran this page'
            f"</caption><tbody>{body}</tbody></table>"
        )


def describe() -> Machine:
    """Look at this computer."""
    return Machine(
        cpu=_cpu_name(),
        system=f"{platform.system()} {platform.machine()}",
        cores=os.cpu_count() or 1,
        usable_cores=usable_cores(),
        memory_bytes=memory_total(),
        shm_bytes=shutil.disk_usage(SHM).total if SHM.is_dir() else None,
        accelerator=accelerator_name(),
        python=platform.python_version(),
        torch=torch.__version__,
        torchvision=torchvision.__version__,
        numpy=numpy.__version__,
        start_method=torch.multiprocessing.get_start_method(),
        start_methods=tuple(torch.multiprocessing.get_all_start_methods()),
        main_threads=torch.get_num_threads(),
    )


def card() -> None:
    """Display the machine card in a notebook (plain text elsewhere)."""
    from IPython.display import display

    machine = describe()
    data = {"text/html": machine._repr_html_(), "text/plain": str(machine)}
    display(data, raw=True, metadata={"machine": asdict(machine)})


def affinity() -> int:
    """Number of cores the scheduler may put this process on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def usable_cores(root: Path = Path("/")) -> float:
    """Cores this process may really use: affinity, cut by a container's quota.

    Args:
        root: where ``proc`` and ``sys`` are looked for (tests pass made-up files).
    """
    quota = cpu_quota(root)
    return affinity() if quota is None else min(affinity(), quota)


def worker_counts(limit: int | None = None) -> list[int]:
    """Numbers of workers worth a look here: 0, 1, 2, 4, ... twice the cores.

    Args:
        limit: largest count wanted; default is twice the usable cores.
    """
    limit = math.ceil(2 * usable_cores()) if limit is None else limit
    counts = [0, 1]
    while counts[-1] * 2 <= limit:
        counts.append(counts[-1] * 2)
    return [count for count in counts if count <= limit]


def cpu_quota(root: Path = Path("/")) -> float | None:
    """CPU quota of the control group (a container's ``--cpus``), in cores.

    Reads version 2 (``cpu.max``) and version 1 (``cpu.cfs_quota_us``), on the
    process's own group and every parent. None: no quota, or no control groups.
    Source: Linux kernel, Documentation/admin-guide/cgroup-v2.rst.
    """
    quotas = []
    for folder in _control_groups(root, "cpu"):
        text = _read(folder / "cpu.max").split()
        if not text:
            text = [
                _read(folder / "cpu.cfs_quota_us"),
                _read(folder / "cpu.cfs_period_us"),
            ]
        if len(text) == 2 and text[0].isdigit() and text[1].isdigit():
            quotas.append(int(text[0]) / int(text[1]))
    return min(quotas, default=None)


@dataclass(frozen=True)
class CpuStat:
    """What a control group has used and lost, in seconds since it began."""

    usage_s: float
    throttled_s: float


def cpu_stat(root: Path = Path("/")) -> CpuStat | None:
    """CPU time and throttled time of this process's control group."""
    for folder in _control_groups(root, "cpu"):
        stat = dict(
            line.split(maxsplit=1)
            for line in _read(folder / "cpu.stat").splitlines()
            if " " in line
        )
        if "usage_usec" in stat:
            throttled = int(stat.get("throttled_usec", 0))
            return CpuStat(int(stat["usage_usec"]) / 1e6, throttled / 1e6)
    for folder in _control_groups(root, "cpuacct"):
        usage = _read(folder / "cpuacct.usage")
        if usage.isdigit():
            return CpuStat(int(usage) / 1e9, _throttled_v1(root))
    return None


def _throttled_v1(root: Path) -> float:
    for folder in _control_groups(root, "cpu"):
        for line in _read(folder / "cpu.stat").splitlines():
            name, _, value = line.partition(" ")
            if name == "throttled_time":
                return int(value) / 1e9
    return 0.0


def memory_limit(root: Path = Path("/")) -> int | None:
    """Memory limit of the control group in bytes; None where there is none."""
    limits = []
    for folder in _control_groups(root, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = _read(folder / name)
            if text.isdigit() and int(text) < _NO_MEMORY_LIMIT:
                limits.append(int(text))
    return min(limits, default=None)


def memory_total(root: Path = Path("/")) -> int:
    """Bytes of memory this process may hope for: RAM, cut by the container."""
    limit = memory_limit(root)
    total = psutil.virtual_memory().total
    return total if limit is None else min(total, limit)


def memory_available(root: Path = Path("/")) -> int:
    """Bytes that this process can still get without pushing others out.

    The system's own figure, cut by what the control group's limit leaves.
    File pages that nobody uses now do not count as used: the kernel drops them.
    Source: Linux kernel, Documentation/admin-guide/cgroup-v2.rst.
    """
    available = psutil.virtual_memory().available
    for folder in _control_groups(root, "memory"):
        left = _memory_left(folder)
        if left is not None:
            available = min(available, left)
    return max(0, available)


def _memory_left(folder: Path) -> int | None:
    """Limit of one control group less its use; None where there is no limit."""
    names = (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    )
    for limit_name, used_name, droppable_name in names:
        limit, used = _read(folder / limit_name), _read(folder / used_name)
        if limit.isdigit() and used.isdigit() and int(limit) < _NO_MEMORY_LIMIT:
            stat = dict(
                line.split(maxsplit=1)
                for line in _read(folder / "memory.stat").splitlines()
                if " " in line
            )
            return int(limit) - int(used) + int(stat.get(droppable_name, 0))
    return None


def accelerator_name() -> str | None:
    """Name of the accelerator torch would use, or None."""
    if not torch.accelerator.is_available():
        return None
    device = torch.accelerator.current_accelerator()
    if device.type == "cuda":
        return torch.cuda.get_device_name()
    return device.type


def _control_groups(root: Path, controller: str) -> list[Path]:
    """Folders of this process's control group and its parents, both versions."""
    mount = root / "sys/fs/cgroup"
    folders = []
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        if names == "":
            bases = [mount, mount / "unified"]
        elif controller in names.split(","):
            bases = [mount / names, mount / controller]
        else:
            continue
        own = Path(path.lstrip("/"))
        folders += [base / part for base in bases for part in (own, *own.parents)]
    return list(dict.fromkeys(folders))


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _cpu_name() -> str:
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine() or sys.platform


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"
