"""The extensions of the book, each in a real build of a tiny one."""

import json
import re
import sys
from io import StringIO

import pytest
import small_chapter
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

from tools import notebooks

EXTENSIONS = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_nb"]
EXTENSIONS += ["api", "boxes", "claims_page", "maths"]


@pytest.fixture(autouse=True)
def import_path(monkeypatch):
    """Extensions of the book are found, and leave no trace on the path."""
    monkeypatch.setattr(sys, "path", [str(notebooks.ROOT / "_ext"), *sys.path])


@pytest.fixture
def build(tmp_path):
    """A function that builds pages: name -> text; returns HTML and warnings."""

    def run(pages, main="index"):
        source, out = tmp_path / "source", tmp_path / "_build/html"
        for name, text in pages.items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_text(text, encoding="utf-8")
        (source / "conf.py").touch()
        warnings = StringIO()
        settings = {
            "extensions": EXTENSIONS,
            "nb_execution_mode": "off",
            "html_math_renderer": "mathml",
            "html_theme": "basic",
            "myst_enable_extensions": ["dollarmath"],
        }
        with docutils_namespace():
            app = Sphinx(
                source,
                source,
                out,
                tmp_path / "_build/doctrees",
                "html",
                confoverrides=settings,
                status=None,
                warning=warnings,
            )
            app.build()
        return (out / f"{main}.html").read_text(encoding="utf-8"), warnings.getvalue()

    return run


@pytest.mark.parametrize(
    ("text", "element"),
    [
        ("> **In short.** Yes.", '<blockquote class="book-box box-in-short">'),
        ("> **Predict.** What?", '<blockquote class="book-box box-predict">'),
        ("> **Careful.** Hot.", '<blockquote class="book-box box-careful">'),
        ("> **Rule of thumb.** Two.", '<blockquote class="book-box box-rule">'),
        ("**When it does not help.** So.", '<p class="book-box box-limits">'),
    ],
)
def test_boxes(build, text, element):
    html, warnings = build({"index.md": f"# Title\n\n{text}\n\n> A quotation.\n"})
    assert warnings == ""
    assert element in html
    assert html.count("book-box") == 1


def test_maths_is_written_as_mathml(build):
    text = (
        "# Title\n\nInline $a < b$.\n\n$$\n\\frac{1}{2}\n$$ (half)\n\nSee {eq}`half`."
    )
    html, warnings = build({"index.md": text})
    assert warnings == ""
    assert '<span class="book-math"><math ' in html
    assert "<mo>&#x0003C;</mo>" in html
    assert re.search(r'<div class="book-math"[^>]*>\s*<math .*?<mfrac>', html, re.S)
    assert '<span class="eqno">(1)' in html
    assert not re.search(r"<script[^>]*mathjax", html, re.I)


@pytest.mark.parametrize("formula", ["\\left( a", "\\nothing{x}"])
def test_a_formula_that_cannot_be_read_is_a_warning(build, formula):
    _, warnings = build({"index.md": f"# Title\n\n${formula}$\n"})
    assert "cannot convert formula" in warnings


def test_thebe_is_taken_out(build, monkeypatch):
    extensions = ["myst_nb", "maths", "sphinx_thebe"]
    monkeypatch.setattr(sys.modules[__name__], "EXTENSIONS", extensions)
    html, _ = build({"index.md": "# Title\n"})
    assert "thebe" in html
    extensions.append("no_thebe")
    html, warnings = build({"index.md": "# New title\n"})
    assert warnings == ""
    assert "thebe" not in html


MODULE = '''
class Thing:
    """A thing."""

    @property
    def size(self) -> int:
        """In short: large."""


#: Not so many: one.
LIMIT = 1
'''


def test_docstrings_of_values_may_hold_colons(build, tmp_path):
    (tmp_path / "source").mkdir()
    (tmp_path / "source/book_example.py").write_text(MODULE)
    page = "# API\n\n```{eval-rst}\n.. automodule:: book_example\n   :members:\n```\n"
    html, warnings = build({"index.md": page})
    assert warnings == ""
    assert "<p>In short: large.</p>" in html
    assert "<p>Not so many: one.</p>" in html


def claim(verdict, text):
    """A display as ``helpers.page.claims`` makes it."""
    output = small_chapter.display(text_html="<b>box</b>", text_plain="box")
    output.metadata["claim"] = {
        "text": text,
        "kind": "measured",
        "verdict": verdict,
        "detail": f"about {text}",
    }
    return output


def chapter(title, *outputs):
    """A notebook whose one cell displays the outputs."""
    notebook = small_chapter.chapter()
    notebook.cells = [notebook.cells[0], small_chapter.code("1")]
    notebook.cells[0].source = f"# {title}"
    notebook.cells[1].outputs = list(outputs)
    return notebooks.dumps(notebook)


def claims_book():
    """Two chapters whose alphabetical order is not the order of the book."""
    card = small_chapter.display(text_html="<table>card</table>", text_plain="card")
    card.metadata["machine"] = {"cpu": "made up"}
    toctree = "```{toctree}\nz\na\nclaims\n```"
    return {
        "index.md": f"# Book\n\n{toctree}\n",
        "claims.md": "# Claims\n\n```{book-claims}\n```\n",
        "z.ipynb": chapter("Zeta", card, claim("holds", "First <1>")),
        "a.ipynb": chapter(
            "Alpha", claim("too noisy", "Second"), claim("does not hold", "Third")
        ),
    }


def test_claims_stand_in_the_order_of_the_book(build, tmp_path):
    html, warnings = build(claims_book(), main="claims")
    assert warnings == ""
    words = ["<table>card</table>", "3 claims: 1 holds, 1 does not hold, 1 too noisy"]
    words += ['href="z.html"', "First &lt;1&gt;", "about First", 'href="a.html"']
    words += ["Second", "Third"]
    page = html[html.index("<table>card") :]  # the side bar names pages too
    places = [page.index(word) for word in words]
    assert places == sorted(places)
    for css in ("holds", "fails", "noisy"):
        assert html.count(f"book-claim book-claim-{css}") == 1


def test_claims_are_written_for_programs(build, tmp_path):
    build(claims_book())
    text = (tmp_path / "_build/html/claims.json").read_text(encoding="utf-8")
    content = json.loads(text)
    assert content["machine"] == {"cpu": "made up"}
    assert content["counts"] == {"holds": 1, "does not hold": 1, "too noisy": 1}
    assert [(c["page"], c["text"]) for c in content["claims"]] == [
        ("z", "First <1>"),
        ("a", "Second"),
        ("a", "Third"),
    ]


def test_a_book_without_claims_says_so(build):
    pages = {"index.md": "# Claims\n\n```{book-claims}\n```\n"}
    html, warnings = build(pages)
    assert warnings == ""
    assert "No chapter of this build makes a claim." in html


def test_a_malformed_claim_is_a_warning(build):
    unknown, incomplete = claim("perhaps", "First"), claim("holds", "Second")
    del incomplete.metadata["claim"]["detail"]
    _, warnings = build({"index.ipynb": chapter("Book", unknown, incomplete)})
    assert warnings.count("malformed claim") == 2
