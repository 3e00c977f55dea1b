"""Puts a set of files in its place once, whole, and finds it again.

A set is written into a folder beside its place and renamed when it is complete, so
what stands in the place is always whole. A lock lets only one process write; the
others wait and find the set. After a kill the next call goes on with the files that
are there; after an error nothing stays.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

import platformdirs
from filelock import FileLock

CACHE_VARIABLE = "DATALOADER_BOOK_CACHE"
_SPEC_FILE = "spec.json"
_MOST_PROCESSES = 64


class Spec(Protocol):
    """A frozen dataclass that says what a set holds and can write it."""

    kind: str
    version: int

    def write_into(self, folder: Path, processes: int | None = None) -> None:
        """Write all files into an existing folder, keeping those that exist."""


def cache_folder() -> Path:
    """Where sets are kept: ``DATALOADER_BOOK_CACHE``, or the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(os.path.abspath(os.path.expanduser(chosen)))
    return Path(platformdirs.user_cache_dir("dataloader-book", appauthor=False))


def ensure(
    spec: Spec,
    *,
    out: str | os.PathLike[str] | None = None,
    processes: int | None = None,
) -> Path:
    """Return the folder of the set that ``spec`` describes; write it if needed.

    Args:
        spec: what to write, such as an ``ImageSpec``.
        out: the folder to write; None keeps the set below ``cache_folder()``.
        processes: how many processes write, 1 to 64; None chooses.

    Returns:
        The absolute path of the complete set.

    Raises:
        ValueError: ``out`` or ``processes`` is not allowed.
        OSError: the set cannot be written; the text is one line that says why, and
            nothing half-written stays.
    """
    if processes is not None and processes not in range(1, _MOST_PROCESSES + 1):
        allowed = f"a whole number from 1 to {_MOST_PROCESSES}"
        raise ValueError(f"processes must be {allowed}, got {processes!r}")
    target = _target(spec, out)
    if _holds(target, spec):
        return target
    missing = [folder for folder in target.parents if not os.path.exists(folder)]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target):
            if not _holds(target, spec):
                _write(target, spec, processes)
    except OSError as error:
        _remove_empty(missing)
        raise _explained(error, target) from error
    return target


def _target(spec: Spec, out: str | os.PathLike[str] | None) -> Path:
    if out is None:
        digest = hashlib.sha256(_description(spec)).hexdigest()[:12]
        return cache_folder() / f"{spec.kind}-{digest}"
    target = Path(os.path.abspath(os.path.expanduser(out)))
    if not target.name:
        raise ValueError(f"out must be a folder below the root, got {str(out)!r}")
    return target


def _description(spec: Spec) -> bytes:
    """The spec as JSON: the same bytes for the same set."""
    content = {"kind": spec.kind, "version": spec.version, "parameters": asdict(spec)}
    return (json.dumps(content, indent=2) + "\n").encode()


def _holds(folder: Path, spec: Spec) -> bool:
    try:
        return (folder / _SPEC_FILE).read_bytes() == _description(spec)
    except OSError:
        return False


def _write(target: Path, spec: Spec, processes: int | None) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        text = "it exists already and holds something else"
        raise FileExistsError(errno.EEXIST, text)
    partial = target.with_name(f".{target.name}.partial")
    try:
        _prepare(partial, spec)
        spec.write_into(partial, processes)
        if target.exists():
            target.rmdir()  # it is empty; Windows renames onto nothing only
        os.replace(partial, target)
    except OSError:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _prepare(partial: Path, spec: Spec) -> None:
    """Make the folder to write into, or tidy the one that a killed run has left."""
    if not _holds(partial, spec):
        if partial.exists():
            shutil.rmtree(partial)
        partial.mkdir()
        (partial / _SPEC_FILE).write_bytes(_description(spec))
    for file in partial.rglob("*.tmp"):
        file.unlink()


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """Hold the lock of that folder; its file goes when the work is done."""
    path = target.with_name(f".{target.name}.lock")
    with FileLock(path):
        try:
            yield
        finally:
            # Under the lock: whoever comes next finds the set, or starts afresh.
            with suppress(OSError):
                path.unlink()
    if os.name == "nt":  # where an open file cannot be removed
        with suppress(OSError):
            path.unlink()


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def _explained(error: OSError, target: Path) -> OSError:
    reason = error.strerror or str(error)
    text = (
        f"cannot write {target}: {reason}. Choose another folder with --out, out= or "
        f"the environment variable {CACHE_VARIABLE}."
    )
    return OSError(error.errno or errno.EIO, text)
