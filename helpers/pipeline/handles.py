"""Datasets that hold a file or a database open: too early, once, per process.

A handle belongs to the process that opened it. The broken ones are here so that
a chapter can show what they do.
"""
# These classes keep files open, which is what they are about.
# ruff: noqa: SIM115

import contextlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset


class PerProcess:
    """Something that every process must open for itself, such as a file.

    ``get()`` opens it when a process asks for the first time. A handle that a
    forked process inherits is neither used nor closed (SQLite forbids both),
    and none is pickled.

    Args:
        open_it: a function that can be pickled, such as ``open``.
        arguments: of that function.
    """

    def __init__(self, open_it: Callable[..., object], *arguments: object) -> None:
        self.open_it, self.arguments = open_it, arguments
        self.handles: dict[int, object] = {}

    def get(self) -> object:
        """The handle of this process."""
        process = os.getpid()
        if process not in self.handles:
            self.handles[process] = self.open_it(*self.arguments)
        return self.handles[process]

    def close(self) -> None:
        """Close the handle of this process, if it has one."""
        handle = self.handles.pop(os.getpid(), None)
        if handle is not None:
            handle.close()

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "handles": {}}


class Records(Dataset):
    """Rows of a binary file, read one by one: int64 [8].

    Args:
        path: a file written by :func:`write_records`.
        rows: how many of them to hand out, from the start of the file.
    """

    def __init__(self, path: str | Path, rows: int) -> None:
        self.rows = rows
        self.file = PerProcess(open, str(path), "rb")

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, index: int) -> Tensor:
        return read_record(self.file.get(), index)


class RecordsOpenedEarly(Records):
    """Broken on purpose: opens the file in ``__init__``, for all processes."""

    def __init__(self, path: str | Path, rows: int) -> None:
        self.rows = rows
        self.file = open(path, "rb")

    def __getitem__(self, index: int) -> Tensor:
        return read_record(self.file, index)


class RecordsOpenedOnce(Records):
    """Half mended: opens the file at the first sample, in whatever process."""

    def __init__(self, path: str | Path, rows: int) -> None:
        self.path, self.rows = str(path), rows
        self.file = None

    def __getitem__(self, index: int) -> Tensor:
        if self.file is None:
            self.file = open(self.path, "rb")
        return read_record(self.file, index)


class SqliteRows(Dataset):
    """Rows of a database, one query each: float32 [values] and a label.

    Args:
        path: a file written by :func:`write_sqlite`.
        rows: how many it holds.
    """

    def __init__(self, path: str | Path, rows: int) -> None:
        self.rows = rows
        self.database = PerProcess(sqlite3.connect, str(path))

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        query = "SELECT content, label FROM sample WHERE id = ?"
        content, label = self.database.get().execute(query, (index,)).fetchone()
        return _floats(content), label


class SqliteRowsBulk(SqliteRows):
    """:class:`SqliteRows` that asks for a whole batch in one query."""

    def __getitems__(self, indices: list[int]) -> list[tuple[Tensor, int]]:
        marks = ",".join("?" * len(indices))
        query = f"SELECT id, content, label FROM sample WHERE id IN ({marks})"
        rows = self.database.get().execute(query, indices)
        # A database answers in an order of its own, and once per number.
        found = {index: (_floats(content), label) for index, content, label in rows}
        return [found[index] for index in indices]


def write_records(path: str | Path, rows: int) -> Tensor:
    """Write a file for :class:`Records` and give its contents, int64 [rows, 8]."""
    table = torch.arange(8 * rows).view(rows, 8)
    table.numpy().tofile(path)
    return table


def read_record(file: BinaryIO, index: int) -> Tensor:
    """Row number ``index`` of an open file of records."""
    file.seek(8 * 8 * index)
    return torch.frombuffer(bytearray(file.read(8 * 8)), dtype=torch.int64)


def write_sqlite(path: str | Path, rows: int, values: int = 64, seed: int = 0) -> None:
    """Write a database for :class:`SqliteRows`."""
    contents = np.random.default_rng(seed).random((rows, values), np.float32)
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "CREATE TABLE sample (id INTEGER PRIMARY KEY, content BLOB, label INTEGER)"
        )
        database.executemany(
            "INSERT INTO sample VALUES (?, ?, ?)",
            ((i, content.tobytes(), i % 10) for i, content in enumerate(contents)),
        )


def _floats(content: bytes) -> Tensor:
    """The float32 values in some bytes, in memory that may be written to."""
    return torch.frombuffer(bytearray(content), dtype=torch.float32)
