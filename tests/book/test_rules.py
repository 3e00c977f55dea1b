"""Every rule of the book catches what breaks it.

One chapter that obeys all rules is spoilt in one way at a time.
"""

from collections.abc import Callable

import pytest
import small_chapter
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from tools import anatomy, canonical, cells, markdown, notebooks, outputs, prose

SETUP = notebooks.setup_source()

Spoil = Callable[[NotebookNode], None]


def replace(words: str, by: str) -> Spoil:
    """Change the text of the first cell that holds the words."""

    def spoil(notebook: NotebookNode) -> None:
        cell = small_chapter.find(notebook, words)
        cell.source = cell.source.replace(words, by)

    return spoil


def remove(words: str) -> Spoil:
    """Remove the first cell that holds the words."""

    def spoil(notebook: NotebookNode) -> None:
        notebook.cells.remove(small_chapter.find(notebook, words))

    return spoil


def retag(words: str, *tags: str) -> Spoil:
    """Give the first cell that holds the words other tags."""

    def spoil(notebook: NotebookNode) -> None:
        small_chapter.find(notebook, words).metadata["tags"] = list(tags)

    return spoil


def append(cell: NotebookNode) -> Spoil:
    """Add a cell before the closing sections."""
    return lambda notebook: notebook.cells.insert(5, cell)


def show(output: NotebookNode) -> Spoil:
    """Let the first cell that prints show something else too."""

    def spoil(notebook: NotebookNode) -> None:
        small_chapter.find(notebook, "print(2 + 2)").outputs.append(output)

    return spoil


def swap(first: str, second: str) -> Spoil:
    """Exchange two cells."""

    def spoil(notebook: NotebookNode) -> None:
        places = [
            notebook.cells.index(small_chapter.find(notebook, words))
            for words in (first, second)
        ]
        a, b = places
        notebook.cells[a], notebook.cells[b] = notebook.cells[b], notebook.cells[a]

    return spoil


def forget_metadata(key: str) -> Spoil:
    """Remove one entry of the solution's metadata."""

    def spoil(notebook: NotebookNode) -> None:
        del small_chapter.find(notebook, "@title").metadata[key]

    return spoil


def all_problems(notebook: NotebookNode) -> list[str]:
    """What all rules for one notebook say together."""
    return (
        anatomy.problems(notebook)
        + cells.problems(notebook)
        + prose.problems(notebook)
        + canonical.problems(notebook, SETUP)
    )


def test_the_small_chapter_obeys_every_rule():
    assert all_problems(small_chapter.chapter()) == []


ANATOMY = [
    ("title", replace("# A small", "A small"), "first line"),
    ("in short", replace("> **In short.**", "**In short.**"), "In short"),
    ("abilities", replace("**You will be able to**", "You will"), "able to"),
    ("order of the opening", replace("**Needs**", "**Time** **Needs**"), "able to"),
    ("set-up first", swap("ADDRESS", "machine.card()"), "'setup'"),
    ("one set-up", retag("print(2 + 2)", "setup"), "'setup'"),
    ("set-up folded", retag("ADDRESS", "setup"), "hide-input"),
    ("machine card", remove("machine.card()"), "machine.card()"),
    ("predictions", replace("> **Predict.** ", "> **Guess.** "), "at least 2"),
    ("code after prediction", remove("print('a' + 'b')"), "at least 2"),
    ("limits", replace("**When it does not help.**", "Never:"), "not help"),
    ("broken", replace("## Broken, then fixed", "## Whole"), "Broken"),
    ("rule of thumb", remove("> **Rule of thumb.**"), "Rule of thumb"),
    ("rule after broken", swap("Rule of thumb", "## Broken"), "Rule of thumb"),
    ("coupled to", replace("## Coupled to", "## Friends"), "last sections"),
    ("order of the end", swap("## Recall", "## Go deeper"), "last sections"),
    ("self-check", retag("answer is None"), "exercise-check"),
    ("solution", remove("@title Solution"), "tagged 'solution'"),
    ("solution hidden", retag("@title Solution", "solution"), "hide-cell"),
    ("solution titled", replace("# @title Solution", "# My answer"), "must begin"),
    ("solution folded in Colab", forget_metadata("cellView"), "cellView"),
    ("solution folded in Lab", forget_metadata("jupyter"), "source_hidden"),
    ("solution prompt", forget_metadata("mystnb"), "code_prompt_show"),
    ("three questions", replace("<summary>Question 2", "Question 2"), "exactly 3"),
    ("take-away code", remove("total = 2 + 2"), "Take-away"),
    ("links", replace("[Python](https://docs.python.org/3/)", "Python"), "no list"),
    ("reasons", replace(": it says what a sum is.", ""), "no reason"),
]

CELLS = [
    ("long", append(new_code_cell("\n".join(["x = 1"] * 13))), "at most 12"),
    ("commented", append(new_code_cell("x = 1\n" + "# y\n" * 16)), "at most 16"),
    ("wide", append(new_code_cell(f"x = '{'-' * 66}'")), "at most 70"),
    ("empty", append(new_code_cell("")), "empty"),
    ("pip", append(new_code_cell("%pip install torch")), "magic"),
    ("shell", append(new_code_cell("x = 1\n!ls")), "magic"),
    ("many", lambda n: n.cells.extend([new_code_cell("x")] * 30), "at most 30"),
]

TEXTS = [
    ("role", "See {ref}`there`.", "MyST role"),
    ("directive", "```{note}\nHello\n```", "MyST directive"),
    ("colon directive", ":::{note}\nHello\n:::", "MyST directive"),
    ("target", "(here)=\n# Title", "MyST target"),
    ("substitution", "It is {{ number }}.", "MyST substitution"),
    ("comment", "% hidden", "MyST comment"),
    ("seconds", "It takes 12 s here.", "typed-in timing (12 s)"),
    ("milliseconds", "Only 1.3ms.", "typed-in timing (1.3ms)"),
    ("speed-up", "It is 3× faster.", "typed-in timing (3×)"),
    ("speed-up in words", "About 2.5 times faster.", "typed-in timing"),
    ("throughput", "It reads 1,500 images/s.", "typed-in timing (1,500 images/s)"),
    ("in a box", "> **Careful.** 5 s, see [this](https://a.org).", "timing (5 s)"),
    ("in a table", "| a |\n|---|\n| 7 ms |", "typed-in timing (7 ms)"),
    ("in an answer", "<details>\n<summary>4 s</summary>\n</details>", "timing (4 s)"),
    ("no alt", "![](a.svg)", "without alternative text"),
    ("no alt in html", '<img src="a.svg">', "without alternative text"),
]

OUTPUTS = [
    ("stderr", small_chapter.stream("stderr", "oh"), "standard error"),
    ("picture", small_chapter.display(image_png="AAAA"), "show.figure"),
    ("no alt", small_chapter.display(text_html="<img src=x>"), "alternative text"),
    ("blank alt", small_chapter.display(text_html='<img alt=" ">'), "alternative text"),
    (
        "error",
        NotebookNode(output_type="error", ename="E", evalue="no", traceback=[]),
        "failed with E: no",
    ),
]

CANONICAL = [
    ("not executed", lambda n: n.cells[4].update(execution_count=None), "not executed"),
    ("stored", lambda n: n.cells[2].update(execution_count=2), "of one machine"),
    ("set-up changed", replace("ADDRESS", "ADRESS"), "set-up cell differs"),
    ("counts", lambda n: n.cells[4].update(execution_count=9), "canonical form"),
    ("kernel", lambda n: n.metadata.kernelspec.update(name="x"), "canonical form"),
    ("editor", lambda n: n.cells[4].metadata.update(scrolled=True), "canonical form"),
    ("twin ids", lambda n: n.cells[4].update(id=n.cells[5].id), "canonical form"),
]


def _cases(cases: list[tuple[str, Spoil, str]]) -> list:
    return [pytest.param(*case[1:], id=case[0]) for case in cases]


def spoilt(spoil: Spoil) -> NotebookNode:
    """The small chapter with one fault."""
    notebook = small_chapter.chapter()
    spoil(notebook)
    return notebook


def only(problems: list[str], words: str) -> bool:
    """There are problems, and one of them is the expected."""
    return any(words in problem for problem in problems)


@pytest.mark.parametrize(("spoil", "words"), _cases(ANATOMY))
def test_anatomy(spoil, words):
    assert only(anatomy.problems(spoilt(spoil)), words)


@pytest.mark.parametrize(("spoil", "words"), _cases(CELLS))
def test_code_cells(spoil, words):
    assert only(cells.problems(spoilt(spoil)), words)


@pytest.mark.parametrize(("text", "words"), _cases(TEXTS))
def test_markdown_cells(text, words):
    assert only(prose.problems(spoilt(append(new_markdown_cell(text)))), words)


@pytest.mark.parametrize(("output", "words"), _cases(OUTPUTS))
def test_outputs(output, words):
    notebook = spoilt(show(output))
    assert only(outputs.problems(notebook), words)
    assert only(canonical.problems(notebook, SETUP), words)


@pytest.mark.parametrize(("spoil", "words"), _cases(CANONICAL))
def test_canonical_form(spoil, words):
    assert only(canonical.problems(spoilt(spoil), SETUP), words)


@pytest.mark.parametrize(
    "text",
    [
        "A batch of [32, 3, 224, 224] numbers, 3×224×224 each.",
        "Half of 4 workers, `prefetch_factor=2`, step 2 of 3.",
        "> It took 142 s ([source](https://example.org)).",
        "[It took 142 s](https://example.org) there.",
        "```python\ntime.sleep(5)  # 5 s\n```",
        "With $2 s$ the area of the square.",
        "Python 3.12 and torch 2.6, at most 5 %.",
    ],
)
def test_no_timing_where_there_is_none(text):
    assert prose.timings(text) == []


def test_a_figure_with_alternative_text_is_fine():
    figure = small_chapter.display(text_html='<img alt="A line" src="x">')
    assert outputs.problems(spoilt(show(figure))) == []


def test_the_address_may_make_its_line_longer():
    notebook = small_chapter.chapter()
    address = "https://example.org/" + "long-name/" * 6 + "book"
    notebooks.write_setup_cell(notebook, notebooks.setup_source(address, "v1"))
    assert cells.problems(notebook) == []


def test_a_repeated_heading_gets_a_numbered_anchor():
    text = ["## The `num_workers` sweep!\n\n## Words", "```\n## not one\n```\n## Words"]
    assert markdown.slugs(text) == {"the-num_workers-sweep", "words", "words-1"}
