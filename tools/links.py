"""Rule: a relative link leads to a file of the book, and its anchor exists."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tools import markdown, notebooks


def texts(path: Path) -> list[str]:
    """The Markdown of a page: the file itself, or a notebook's cells."""
    if path.suffix == ".ipynb":
        cells = notebooks.load(path).cells
        return [cell.source for cell in cells if cell.cell_type == "markdown"]
    return [path.read_text(encoding="utf-8")]


def problems(path: Path, page: Sequence[str] | None = None) -> list[str]:
    """Relative links of a page that lead nowhere.

    Args:
        path: the page.
        page: its Markdown texts; default: read from the file.
    """
    page = texts(path) if page is None else page
    targets = {link.target for text in page for link in markdown.links(text)}
    return [
        f"{target}: {problem}"
        for target in sorted(targets)
        if (problem := _problem(path, page, target)) is not None
    ]


def _problem(path: Path, page: Sequence[str], target: str) -> str | None:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return None
    if parts.path.startswith("/"):
        return "starts with a slash; write it relative to the page"
    file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not file.exists():
        return "no such file"
    if not parts.fragment or file.suffix not in (".md", ".ipynb"):
        return None
    anchors = markdown.slugs(page if file == path else texts(file))
    return None if unquote(parts.fragment) in anchors else "no such heading"
