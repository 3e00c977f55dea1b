"""A small chapter that obeys every rule; tests spoil one thing at a time."""

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools import anatomy, canonical, notebooks

OPENING = """# A small chapter

> **In short.** Two plus two is four. That is the answer.

**You will be able to** add.

**Needs** nothing.

**Time** five minutes."""

IDEA = """## Adding {thing}

> **Predict.** What is the sum?"""

LIMITS = """**When it does not help.** Infinity stays what it is."""

RECALL = "\n\n".join(
    f"<details>\n<summary>Question {n}?</summary>\n\nAnswer {n}.\n\n</details>"
    for n in (1, 2, 3)
)

DEEPER = """## Go deeper

- [Python](https://docs.python.org/3/): it says what a sum is."""

RULE = """> **Rule of thumb.** Check the sum."""


def chapter() -> NotebookNode:
    """The chapter in canonical form, as if it had been executed."""
    setup = code(notebooks.setup_source(), tags=["setup", "hide-input"])
    solution = code(f"{anatomy.SOLUTION_TITLE}\nanswer = 4", tags=["hide-cell"])
    solution.metadata.tags.append("solution")
    solution.metadata.update(anatomy.SOLUTION_METADATA)
    cells = [
        new_markdown_cell(OPENING),
        setup,
        code("from helpers import machine\nmachine.card()", dependent=True),
        new_markdown_cell(IDEA.format(thing="numbers")),
        code("print(2 + 2)", output="4\n"),
        new_markdown_cell(LIMITS),
        new_markdown_cell(IDEA.format(thing="words")),
        code("print('a' + 'b')", output="ab\n"),
        new_markdown_cell("## Broken, then fixed: the sum"),
        code("total = 5"),
        new_markdown_cell(RULE),
        new_markdown_cell("## Coupled to\n\nNothing."),
        new_markdown_cell("## Exercise\n\nAdd two and two."),
        code("answer = None"),
        code("print(answer is None)", tags=["exercise-check"], output="True\n"),
        solution,
        new_markdown_cell("## Recall\n\n" + RECALL),
        new_markdown_cell("## Take-away code"),
        code("total = 2 + 2"),
        new_markdown_cell(DEEPER),
    ]
    notebook = new_notebook(cells=cells)
    return canonical.normalise(notebook, notebooks.setup_source())


def code(
    source: str,
    tags: list[str] | None = None,
    output: str = "",
    dependent: bool = False,
) -> NotebookNode:
    """A code cell as the kernel leaves it."""
    cell = new_code_cell(source, execution_count=1)
    if tags:
        cell.metadata["tags"] = list(tags)
    if dependent:
        cell.metadata["tags"] = [notebooks.MACHINE_DEPENDENT]
    if output:
        cell.outputs = [stream("stdout", output)]
    return cell


def stream(name: str, text: str) -> NotebookNode:
    """Text that a cell wrote."""
    return NotebookNode(output_type="stream", name=name, text=text)


def display(**data: str) -> NotebookNode:
    """A display of a cell: ``display(text_html="<b>")``."""
    kinds = {kind.replace("_", "/", 1): value for kind, value in data.items()}
    return NotebookNode(output_type="display_data", data=kinds, metadata={})


def find(notebook: NotebookNode, words: str) -> NotebookNode:
    """The first cell that holds the words."""
    return next(cell for cell in notebook.cells if words in cell.source)
