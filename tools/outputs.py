"""Rules for what executed cells show.

They hold for stored outputs and for fresh ones: cells that depend on the
machine store none, so the canonical tool applies the rules when it runs them.
"""

from html.parser import HTMLParser

from nbformat import NotebookNode

from tools import notebooks


class _Images(HTMLParser):
    """Collects whether each ``<img>`` of a text has alternative text."""

    def __init__(self) -> None:
        super().__init__()
        self.described: list[bool] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.described.append(bool((dict(attrs).get("alt") or "").strip()))


def images_described(html: str) -> bool:
    """Whether every ``<img>`` in the HTML has alternative text."""
    parser = _Images()
    parser.feed(html)
    return all(parser.described)


def problems(notebook: NotebookNode) -> list[str]:
    """Outputs that the book does not allow, each with its cell."""
    return [
        f"{notebooks.label(notebook, cell)}: {problem}"
        for cell in notebooks.code_cells(notebook)
        for output in cell.outputs
        if (problem := _problem(output)) is not None
    ]


def _problem(output: NotebookNode) -> str | None:
    if output.output_type == "error":
        return f"failed with {output.ename}: {output.evalue}"
    if output.output_type == "stream":
        text = output.text.strip()
        return f"wrote to standard error: {text}" if output.name == "stderr" else None
    if any(kind.startswith("image/") for kind in output.data):
        return "shows an image without alternative text; use show.figure(...)"
    if not images_described(output.data.get("text/html", "")):
        return "shows an <img> without alternative text"
    return None
