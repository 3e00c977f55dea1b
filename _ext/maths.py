"""Formulas as MathML, which browsers draw themselves: no script, no download."""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)


def _mathml(node: nodes.Element, display: str) -> str:
    latex = node.astext()
    try:
        mathml = convert(latex, display=display)
    except Exception as error:  # the library raises what its parser trips over
        mathml, reason = "", repr(error)
    else:
        # Commands that the library does not know come out as they went in.
        reason = "unknown command" if "\\" in mathml else ""
    if reason:
        logger.warning("cannot convert formula %r: %s", latex, reason, location=node)
    return mathml


def visit_inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Write ``$...$``."""
    translator.body.append(f'<span class="book-math">{_mathml(node, "inline")}</span>')
    raise nodes.SkipNode


def visit_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write ``$$...$$``, with its number if it has a label."""
    translator.body.append(translator.starttag(node, "div", CLASS="book-math"))
    translator.body.append(_mathml(node, "block"))
    if node["number"]:
        number = get_node_equation_number(translator, node)
        translator.body.append(f'<span class="eqno">({number})</span>')
        translator.add_permalink_ref(node, "Link to this equation")
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer the renderer ``mathml`` (``html_math_renderer`` chooses it)."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(visit_inline, None),
        block_renderers=(visit_block, None),
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
