"""The claims of this build, gathered on one page.

A chapter displays a claim with ``metadata={"claim": {...}}`` and the machine
card with ``metadata={"machine": {...}}``. When all pages are read, the executed
notebooks are searched for both; the directive ``book-claims`` shows them in the
order of the book, and ``claims.json`` holds them for programs.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

logger = logging.getLogger(__name__)

JSON_NAME = "claims.json"

# Verdict: (sign, words, class). Signs and words say it without colour.
_VERDICTS = {
    "holds": ("✓", "holds", "holds"),
    "does not hold": ("✗", "does not hold", "fails"),
    "too noisy": ("?", "too noisy to tell", "noisy"),
}
_FIELDS = ("text", "kind", "verdict", "detail")


@dataclass(frozen=True)
class Chapter:
    """The claims of one page, in the order they stand there."""

    docname: str
    claims: list[dict[str, str]]


@dataclass(frozen=True)
class Collected:
    """What one build claims, and the machine that measured it."""

    chapters: list[Chapter]
    machine: dict[str, Any]
    machine_html: str

    @property
    def counts(self) -> Counter[str]:
        """Number of claims with each verdict."""
        return Counter(c["verdict"] for ch in self.chapters for c in ch.claims)

    def as_json(self) -> str:
        """The same for programs."""
        claims = [
            {"page": chapter.docname, **claim}
            for chapter in self.chapters
            for claim in chapter.claims
        ]
        counts = {verdict: self.counts[verdict] for verdict in _VERDICTS}
        content = {"machine": self.machine, "counts": counts, "claims": claims}
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


class ClaimsPlaceholder(nodes.General, nodes.Element):
    """Stands where the claims go until all pages are read."""


class ClaimsDirective(SphinxDirective):
    """``book-claims``: the machine and the claims of this build."""

    def run(self) -> list[nodes.Node]:
        """Leave a placeholder."""
        return [ClaimsPlaceholder()]


def pages_in_order(env: BuildEnvironment) -> Iterator[str]:
    """Document names in the order of the table of contents."""
    seen: set[str] = set()
    waiting = [env.config.root_doc]
    while waiting:
        docname = waiting.pop()
        if docname in seen:
            continue
        seen.add(docname)
        yield docname
        waiting += reversed(env.toctree_includes.get(docname, []))


def collect(app: Sphinx, env: BuildEnvironment) -> None:
    """Read the executed notebooks, once every page is read."""
    folder = Path(env.mystnb_config.output_folder)
    chapters: list[Chapter] = []
    machine: dict[str, Any] = {}
    machine_html = ""
    for docname in pages_in_order(env):
        notebook = folder / f"{docname}.ipynb"
        if not _is_notebook(env, docname) or not notebook.is_file():
            continue
        claims = []
        for output in _displays(notebook):
            metadata = output.get("metadata", {})
            if "claim" in metadata:
                claims.append(_checked(metadata["claim"], docname))
            if "machine" in metadata and not machine:
                machine = metadata["machine"]
                machine_html = "".join(output["data"].get("text/html", ""))
        if claims:
            chapters.append(Chapter(docname, [c for c in claims if c]))
    app.book_claims = Collected(chapters, machine, machine_html)  # type: ignore


def _is_notebook(env: BuildEnvironment, docname: str) -> bool:
    return env.doc2path(docname).endswith(".ipynb")


def _displays(notebook: Path) -> Iterator[dict[str, Any]]:
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            if output["output_type"] == "display_data":
                yield output


def _checked(claim: dict[str, str], docname: str) -> dict[str, str] | None:
    """The claim's known fields; a warning, and so a failed build, if one lacks."""
    missing = [name for name in _FIELDS if name not in claim]
    if missing or claim["verdict"] not in _VERDICTS:
        logger.warning("malformed claim %r", claim, location=docname)
        return None
    return {name: claim[name] for name in _FIELDS}


def fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Replace the placeholder by the claims."""
    for placeholder in list(doctree.findall(ClaimsPlaceholder)):
        placeholder.replace_self(_page(app, app.book_claims, docname))  # type: ignore


def _page(app: Sphinx, found: Collected, docname: str) -> list[nodes.Node]:
    content: list[nodes.Node] = []
    if found.machine_html:
        content.append(nodes.raw("", found.machine_html, format="html"))
    uri = "../" * docname.count("/") + JSON_NAME
    file = nodes.reference("", JSON_NAME, refuri=uri)
    content.append(
        nodes.paragraph("", "", nodes.Text(_summary(found) + " As a file: "), file)
    )
    for chapter in found.chapters:
        content += [_heading(app, chapter, docname), _list(chapter)]
    return content


def _summary(found: Collected) -> str:
    if not found.chapters:
        return "No chapter of this build makes a claim."
    parts = [
        f"{found.counts[name]} {words}" for name, (_, words, _) in _VERDICTS.items()
    ]
    return f"{sum(found.counts.values())} claims: {', '.join(parts)}."


def _heading(app: Sphinx, chapter: Chapter, docname: str) -> nodes.Node:
    title = app.env.titles[chapter.docname].astext()
    reference = make_refnode(
        app.builder, docname, chapter.docname, None, nodes.Text(title)
    )
    count = len(chapter.claims)
    words = f" ({count} claim{'' if count == 1 else 's'})"
    paragraph = nodes.paragraph("", "", reference, nodes.Text(words))
    paragraph["classes"].append("book-claims-chapter")
    return paragraph


def _list(chapter: Chapter) -> nodes.Node:
    items = nodes.bullet_list(classes=["book-claims"])
    for claim in chapter.claims:
        sign, words, css = _VERDICTS[claim["verdict"]]
        verdict = nodes.strong("", f"{sign} {claim['kind']}, {words}.")
        sentence = nodes.paragraph("", "", verdict, nodes.Text(f" {claim['text']}"))
        item = nodes.list_item(
            "", sentence, classes=["book-claim", f"book-claim-{css}"]
        )
        if claim["detail"]:
            item += nodes.paragraph("", claim["detail"], classes=["book-claim-detail"])
        items += item
    return items


def write_json(app: Sphinx, error: Exception | None) -> None:
    """Put ``claims.json`` beside the pages."""
    if error is None and app.builder.format == "html":
        text = app.book_claims.as_json()  # type: ignore[attr-defined]
        Path(app.outdir, JSON_NAME).write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Collect, fill and write at the three moments of a build."""
    app.add_node(ClaimsPlaceholder)
    app.add_directive("book-claims", ClaimsDirective)
    app.connect("env-updated", collect)
    app.connect("doctree-resolved", fill)
    app.connect("build-finished", write_json)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
