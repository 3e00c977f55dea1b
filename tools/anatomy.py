"""The anatomy of a chapter: which parts it has, and in which order.

Each function below checks one part and returns what is wrong with it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nbformat import NotebookNode

from tools import markdown, notebooks

BROKEN = "Broken, then fixed"
COUPLED, EXERCISE, RECALL = "Coupled to", "Exercise", "Recall"
TAKE_AWAY, DEEPER = "Take-away code", "Go deeper"
#: The last sections of every chapter, in this order.
CLOSING = (COUPLED, EXERCISE, RECALL, TAKE_AWAY, DEEPER)

RECALL_QUESTIONS = 3
MIN_PREDICTIONS = 2
SOLUTION_TITLE = "# @title Solution"
SOLUTION_METADATA = {
    "cellView": "form",
    "jupyter": {"source_hidden": True},
    "mystnb": {"code_prompt_show": "Show the solution"},
}
_REASON_CHARACTERS = 15


@dataclass
class Section:
    """A part of a chapter from one ``##`` heading to the next.

    ``parts`` holds Markdown texts and code cells in their order; the opening
    before the first heading is a section without a title.
    """

    title: str
    parts: list[str | NotebookNode] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All its Markdown."""
        return "\n\n".join(part for part in self.parts if isinstance(part, str))

    @property
    def code(self) -> list[NotebookNode]:
        """Its code cells."""
        return [part for part in self.parts if not isinstance(part, str)]


def problems(notebook: NotebookNode) -> list[str]:
    """Where a chapter departs from the anatomy."""
    parts = sections(notebook)
    checks: tuple[Callable[[Sequence[Section]], list[str]], ...] = (
        _opening,
        _setup,
        _predictions,
        _limits,
        _broken,
        _closing_order,
        _exercise,
        _recall,
        _take_away,
        _deeper,
    )
    return [problem for check in checks for problem in check(parts)]


def sections(notebook: NotebookNode) -> list[Section]:
    """The opening and every section of a notebook."""
    found = [Section("")]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            found[-1].parts.append(cell)
            continue
        for title, text in _split(cell.source):
            if title is not None:
                found.append(Section(title))
            if text.strip():
                found[-1].parts.append(text)
    return found


def _split(text: str) -> list[tuple[str | None, str]]:
    """Text before the first ``##`` heading, then each heading with its text."""
    pieces: list[tuple[str | None, list[str]]] = [(None, [])]
    fenced = False
    for line in text.splitlines():
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        if line.startswith("## ") and not fenced:
            pieces.append((line[3:].strip(), []))
        else:
            pieces[-1][1].append(line)
    return [(title, "\n".join(lines)) for title, lines in pieces]


def _paragraphs(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]


def _opening(parts: Sequence[Section]) -> list[str]:
    first = parts[0].parts[0] if parts[0].parts else None
    if not isinstance(first, str):
        return ["the first cell must be the title"]
    paragraphs = _paragraphs(first)
    found = []
    if not re.match(r"# \S", paragraphs[0]):
        found.append("the first line must be '# Title'")
    if len(paragraphs) < 2 or not paragraphs[1].startswith("> **In short.** "):
        found.append("'> **In short.** ...' must follow the title")
    before_code = _text_before_code(parts[0])
    starts = [
        before_code.find(f"**{label}")
        for label in ("You will be able to", "Needs", "Time")
    ]
    if -1 in starts or starts != sorted(starts):
        found.append(
            "the opening must say **You will be able to**, **Needs** and **Time**"
        )
    return found


def _text_before_code(section: Section) -> str:
    texts: list[str] = []
    for part in section.parts:
        if not isinstance(part, str):
            break
        texts.append(part)
    return "\n\n".join(texts)


def _setup(parts: Sequence[Section]) -> list[str]:
    cells = [cell for part in parts for cell in part.code]
    tagged = [cell for cell in cells if notebooks.SETUP in notebooks.tags(cell)]
    found = []
    if len(tagged) != 1 or tagged[0] is not cells[0]:
        found.append("the first code cell, and no other, must be tagged 'setup'")
    elif "hide-input" not in notebooks.tags(tagged[0]):
        found.append("the set-up cell must be tagged 'hide-input'")
    if not any("machine.card()" in cell.source for cell in parts[0].code[1:]):
        found.append("machine.card() must follow the set-up cell, before any section")
    return found


def _opens_with(text: str, opening: str) -> bool:
    return any(part.startswith(opening) for part in _paragraphs(text))


def _predictions(parts: Sequence[Section]) -> list[str]:
    tested = [section for section in parts if _predicts_then_runs(section)]
    if len(tested) >= MIN_PREDICTIONS:
        return []
    return [
        f"{len(tested)} sections with '> **Predict.** ...' and code after it; "
        f"at least {MIN_PREDICTIONS}"
    ]


def _predicts_then_runs(section: Section) -> bool:
    predicted = False
    for part in section.parts:
        if isinstance(part, str):
            predicted = predicted or _opens_with(part, "> **Predict.** ")
        elif predicted:
            return True
    return False


def _limits(parts: Sequence[Section]) -> list[str]:
    if any(
        _opens_with(section.text, "**When it does not help.**") for section in parts
    ):
        return []
    return ["no paragraph '**When it does not help.** ...'"]


def _broken(parts: Sequence[Section]) -> list[str]:
    titles = [section.title for section in parts]
    start = next((n for n, t in enumerate(titles) if t.startswith(BROKEN)), None)
    if start is None:
        return [f"no section '## {BROKEN}...'"]
    end = titles.index(COUPLED) if COUPLED in titles else len(parts)
    between = [section.text for section in parts[start:end]]
    if any(_opens_with(text, "> **Rule of thumb.** ") for text in between):
        return []
    return [f"'> **Rule of thumb.** ...' must stand between '{BROKEN}' and '{COUPLED}'"]


def _closing_order(parts: Sequence[Section]) -> list[str]:
    titles = tuple(section.title for section in parts[-len(CLOSING) :])
    if titles == CLOSING:
        return []
    return [f"the last sections must be {', '.join(CLOSING)}; found {titles}"]


def _section(parts: Sequence[Section], title: str) -> Section:
    return next((part for part in parts if part.title == title), Section(title))


def _exercise(parts: Sequence[Section]) -> list[str]:
    cells = _section(parts, EXERCISE).code
    checks = [c for c in cells if "exercise-check" in notebooks.tags(c)]
    solutions = [c for c in cells if "solution" in notebooks.tags(c)]
    found = []
    if len(checks) != 1:
        found.append(f"{len(checks)} cells tagged 'exercise-check'; exactly one")
    if len(solutions) != 1:
        return [*found, f"{len(solutions)} cells tagged 'solution'; exactly one"]
    solution = solutions[0]
    if "hide-cell" not in notebooks.tags(solution):
        found.append("the solution must be tagged 'hide-cell'")
    if solution.source.split("\n")[0] != SOLUTION_TITLE:
        found.append(f"the solution must begin with '{SOLUTION_TITLE}'")
    found += [
        f"the solution's metadata must hold {key}: {value}"
        for key, value in SOLUTION_METADATA.items()
        if solution.metadata.get(key) != value
    ]
    return found


def _recall(parts: Sequence[Section]) -> list[str]:
    text = _section(parts, RECALL).text
    counts = {text.count(tag) for tag in ("<details>", "<summary>", "</details>")}
    if counts == {RECALL_QUESTIONS}:
        return []
    return [f"'{RECALL}' must hold exactly {RECALL_QUESTIONS} <details> with <summary>"]


def _take_away(parts: Sequence[Section]) -> list[str]:
    return [] if _section(parts, TAKE_AWAY).code else [f"no code in '{TAKE_AWAY}'"]


def _deeper(parts: Sequence[Section]) -> list[str]:
    text = _section(parts, DEEPER).text
    items = re.split(r"^\s*(?:[-*]|\d+\.)\s+", text, flags=re.MULTILINE)[1:]
    linked = [item for item in items if markdown.links(item)]
    if not linked:
        return [f"no list of links in '{DEEPER}'"]
    return [
        f"no reason to read in '{DEEPER}': {item.strip()}"
        for item in linked
        if len(markdown.prose(item).strip()) < _REASON_CHARACTERS
    ]
