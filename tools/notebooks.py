"""Notebook files of the book: where they are, how they are read and written.

Every other tool goes through this module, so that a notebook has one spelling
on disk: format 4.5, one space of indentation, a newline at the end.
"""

import json
from collections.abc import Iterable
from pathlib import Path

import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent

#: Tag of the cell that finds the helpers; its text is written by the tools.
SETUP = "setup"
#: Tag of a cell whose output depends on the machine: it stores none.
MACHINE_DEPENDENT = "nbval-ignore-output"

_SETUP_SOURCE = Path(__file__).with_name("setup_cell.py")
_ADDRESS_LINE = 'ADDRESS, TAG, HOME = "", "",'


def chapters(root: Path = ROOT) -> list[Path]:
    """Every chapter, sorted by name (the order of the book is in _toc.yml)."""
    return sorted((root / "chapters").glob("*.ipynb"))


def load(path: Path) -> NotebookNode:
    """Read a notebook as it is, without mending anything.

    Raises:
        ValueError: the file is not a notebook of format 4.
    """
    notebook = nbformat.v4.reads(path.read_text(encoding="utf-8"))
    if notebook.get("nbformat") != 4:
        raise ValueError(f"{path}: not a notebook of format 4")
    return notebook


def dumps(notebook: NotebookNode) -> str:
    """The one spelling of a notebook on disk."""
    return nbformat.v4.writes(notebook).rstrip("\n") + "\n"


def save(notebook: NotebookNode, path: Path) -> bool:
    """Write a notebook; returns whether the file changed."""
    text = dumps(notebook)
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    path.write_text(text, encoding="utf-8", newline="\n")
    return True


def tags(cell: NotebookNode) -> list[str]:
    """Tags of a cell, in their order."""
    return list(cell.metadata.get("tags", []))


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The code cells, in their order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tagged(notebook: NotebookNode, tag: str) -> list[NotebookNode]:
    """The cells that carry a tag."""
    return [cell for cell in notebook.cells if tag in tags(cell)]


def label(notebook: NotebookNode, cell: NotebookNode) -> str:
    """Name of a cell for messages: its number, counted from 1 over all cells."""
    return f"cell {notebook.cells.index(cell) + 1}"


def setup_source(address: str = "", tag: str = "") -> str:
    """Text of the set-up cell for a repository address and release tag.

    Args:
        address: where Colab may clone the book from; empty: nowhere.
        tag: release tag (or branch) that Colab clones.
    """
    template = _SETUP_SOURCE.read_text(encoding="utf-8").rstrip("\n")
    if template.count(_ADDRESS_LINE) != 1:
        raise ValueError(f"{_SETUP_SOURCE.name} must hold {_ADDRESS_LINE!r} once")
    line = f"ADDRESS, TAG, HOME = {json.dumps(address)}, {json.dumps(tag)},"
    return template.replace(_ADDRESS_LINE, line)


def write_setup_cell(notebook: NotebookNode, source: str) -> None:
    """Put the text into every cell tagged ``setup``."""
    for cell in tagged(notebook, SETUP):
        cell.source = source


def relative(path: Path, root: Path = ROOT) -> str:
    """A path as messages show it: below the root where it lies there."""
    path = path.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def report(problems: Iterable[str]) -> str:
    """Problems as lines, for a terminal or an assertion."""
    return "\n".join(f"  {problem}" for problem in problems)
