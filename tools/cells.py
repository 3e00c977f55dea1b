"""Rules for code cells: short, narrow, few, and nothing but Python."""

import re

from nbformat import NotebookNode

from tools import notebooks

MAX_CODE_LINES = 12
MAX_LINES = 16
MAX_WIDTH = 70
MAX_CELLS = 30

# Folded away for readers, so only the hard limit applies.
_FOLDED = (notebooks.SETUP, "solution")
_MAGIC = re.compile(r"^\s*[%!]", re.MULTILINE)


def problems(notebook: NotebookNode) -> list[str]:
    """All problems of a notebook's code cells, each with its cell."""
    cells = notebooks.code_cells(notebook)
    found = []
    if len(cells) > MAX_CELLS:
        found.append(f"{len(cells)} code cells; at most {MAX_CELLS}")
    for cell in cells:
        name = notebooks.label(notebook, cell)
        found += [f"{name}: {problem}" for problem in _problems(cell)]
    return found


def _problems(cell: NotebookNode) -> list[str]:
    lines = [line for line in cell.source.splitlines() if line.strip()]
    code = [line for line in lines if not line.lstrip().startswith("#")]
    folded = any(tag in _FOLDED for tag in notebooks.tags(cell))
    found = []
    if not lines:
        found.append("empty")
    if len(code) > MAX_CODE_LINES and not folded:
        found.append(f"{len(code)} lines of code; at most {MAX_CODE_LINES}")
    if len(lines) > MAX_LINES:
        found.append(f"{len(lines)} lines; at most {MAX_LINES}")
    found += [
        f"a line of {len(line)} characters; at most {MAX_WIDTH}: {line.strip()}"
        for line in lines
        if len(line) > MAX_WIDTH and not _is_written_address(cell, line)
    ]
    if _MAGIC.search(cell.source):
        found.append("holds a magic or shell command; cells are plain Python")
    return found


def _is_written_address(cell: NotebookNode, line: str) -> bool:
    """The one line whose length the repository's address decides."""
    return notebooks.SETUP in notebooks.tags(cell) and line.startswith("ADDRESS,")
