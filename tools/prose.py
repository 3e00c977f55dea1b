"""Rules for what the book's Markdown may say, and how."""

import re

from nbformat import NotebookNode

from tools import markdown, notebooks

_UNITS = (
    r"(?:[µnm]?s|ms|x|×|milliseconds?|seconds?|times (?:faster|slower|as fast)"
    r"|(?:img|images|samples|batches|rows|[KMG]i?B)/s)"
)
# Not "3×224": a shape goes on after the sign.
_TIMING = re.compile(rf"(?<![\w.,])\d+(?:[.,]\d+)?\s?{_UNITS}(?!\w)")

# Questions put to the reader give numbers to reckon with. A cell belongs to the
# first section that it begins; these two begin cells of their own.
_GIVEN_SECTIONS = ("Exercise", "Recall")
_HEADING = re.compile(r"^## (.+?)\s*$", re.MULTILINE)

# Notebook cells must read well where MyST is unknown: GitHub, Lab, Colab.
_MYST = {
    "role": re.compile(r"\{[A-Za-z][\w:.+-]*\}`"),
    "directive": re.compile(r"^\s*(?:`{3,}|~{3,}|:{3,})\{", re.MULTILINE),
    "target": re.compile(r"^\([\w-]+\)=\s*$", re.MULTILINE),
    "substitution": re.compile(r"\{\{.+?\}\}"),
    "comment": re.compile(r"^%", re.MULTILINE),
}


def timings(text: str) -> list[str]:
    """Timings and speed-ups that the text states as its own."""
    return [match.group() for match in _TIMING.finditer(markdown.prose(text))]


def text_problems(text: str) -> list[str]:
    """What no page of the book may hold."""
    found = [
        f"states a typed-in timing ({timing}); show live output or link the source"
        for timing in timings(text)
    ]
    found += [
        f"shows {link.target} without alternative text"
        for link in markdown.links(text)
        if link.image and not link.text.strip()
    ]
    return found


def cell_problems(text: str, given: bool = False) -> list[str]:
    """What no Markdown cell of a notebook may hold.

    Args:
        text: the cell's source.
        given: its numbers are those of an exercise, not the book's findings.
    """
    found = [
        f"holds a MyST {kind} ({match.group().strip()}); use plain Markdown"
        for kind, pattern in _MYST.items()
        if (match := pattern.search(text))
    ]
    stated = text_problems(text)
    if given:
        stated = [problem for problem in stated if "typed-in timing" not in problem]
    return found + stated


def problems(notebook: NotebookNode) -> list[str]:
    """All problems of a notebook's Markdown cells, each with its cell."""
    found, section = [], ""
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            continue
        section = (_HEADING.findall(cell.source) or [section])[0]
        found += [
            f"{notebooks.label(notebook, cell)}: {problem}"
            for problem in cell_problems(cell.source, section in _GIVEN_SECTIONS)
        ]
    return found
