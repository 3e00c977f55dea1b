"""Boxes from plain Markdown: a blockquote is what its first bold words say.

Notebook cells hold nothing but Markdown, so that they read well everywhere; the
classes that the style sheet needs are added when the book is built.
"""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

_QUOTES = {
    "In short": "box-in-short",
    "Predict": "box-predict",
    "Careful": "box-careful",
    "Rule of thumb": "box-rule",
}
_PARAGRAPHS = {"When it does not help": "box-limits"}


def first_bold_words(paragraph: nodes.Node) -> str:
    """The bold words a paragraph opens with, without their full stop."""
    if not isinstance(paragraph, nodes.paragraph):
        return ""
    # The Markdown parser may leave an empty text before bold words.
    first = next((child for child in paragraph.children if child.astext()), None)
    return first.astext().rstrip(".") if isinstance(first, nodes.strong) else ""


def mark_boxes(app: Sphinx, document: nodes.document) -> None:
    """Add the classes to every box of a page."""
    for quote in document.findall(nodes.block_quote):
        label = first_bold_words(quote.children[0]) if quote.children else ""
        if label in _QUOTES:
            quote["classes"] += ["book-box", _QUOTES[label]]
    for paragraph in document.findall(nodes.paragraph):
        label = first_bold_words(paragraph)
        if label in _PARAGRAPHS:
            paragraph["classes"] += ["book-box", _PARAGRAPHS[label]]


def setup(app: Sphinx) -> dict[str, Any]:
    """Mark boxes as soon as a page is read."""
    app.connect("doctree-read", mark_boxes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
