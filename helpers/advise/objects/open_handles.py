"""Open files, databases and connections among the objects of a loader.

Memory maps and files in memory are none: they may be shared or copied.
"""

import _socket
import io
import socket
import sqlite3
import sys
import tarfile
import zipfile

from helpers.advise.objects import inert
from helpers.advise.objects.walker import Node, Walk

_FILES = (io.FileIO, io.BufferedReader, io.BufferedWriter, io.BufferedRandom)

# Libraries that need not be installed: package -> names of its handles.
_BY_NAME = {
    "h5py": ("HDF5 handle", ("File", "Group", "Dataset")),
    "tables": ("HDF5 handle", ("File",)),
    "netCDF4": ("netCDF handle", ("Dataset",)),
    "lmdb": ("LMDB handle", ("Environment", "Transaction", "Cursor")),
}


def in_walk(found: Walk) -> list[tuple[Node, str]]:
    """The open handles and what they are, without those inside another one."""
    handles = [(node, kind) for node in found.nodes if (kind := kind_of(node.value))]
    outer = {id(node.value) for node, _ in handles}
    return [
        (node, kind)
        for node, kind in handles
        if not any(id(holder.value) in outer for holder in node.ancestors())
    ]


def kind_of(value: object) -> str | None:
    """What kind of open handle an object is; None: it is none."""
    if _is_standard_stream(value):
        return None
    if inert.is_a(value, io.TextIOWrapper, *_FILES):
        return "open file" if _has_descriptor(value) else None
    if inert.is_a(value, sqlite3.Connection):
        return "SQLite connection" if _is_connected(value) else None
    if inert.is_a(value, zipfile.ZipFile):
        return "open zip archive" if inert.attributes(value).get("fp") else None
    if inert.is_a(value, tarfile.TarFile):
        closed = inert.attributes(value).get("closed", False)
        return None if closed else "open tar archive"
    if inert.is_a(value, socket.socket):
        return "open socket" if _socket.socket.fileno(value) >= 0 else None
    return _by_name(value)


def _by_name(value: object) -> str | None:
    for kind in inert.bases(value):
        words, names = _BY_NAME.get(inert.package_of(kind), ("", ()))
        if inert.name_of(kind) in names:
            return words
    return None


def _is_standard_stream(value: object) -> bool:
    streams = (sys.stdin, sys.stdout, sys.stderr)
    originals = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    return any(value is stream for stream in (*streams, *originals))


def _has_descriptor(file: object) -> bool:
    """Goes down from text to bytes to the file itself, which may be in memory."""
    try:
        if inert.is_a(file, io.TextIOWrapper):
            file = io.TextIOWrapper.buffer.__get__(file)
        for kind in (io.BufferedReader, io.BufferedWriter, io.BufferedRandom):
            if inert.is_a(file, kind):
                file = kind.raw.__get__(file)
    except ValueError:  # detached: the file belongs to somebody else
        return False
    return inert.is_a(file, io.FileIO) and not io.FileIO.closed.__get__(file)


def _is_connected(connection: sqlite3.Connection) -> bool:
    try:
        sqlite3.Connection.total_changes.__get__(connection)
    except sqlite3.ProgrammingError as error:
        # The other reason is a connection that belongs to another thread.
        return "closed" not in str(error)
    return True
