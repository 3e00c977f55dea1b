"""The book as it is now obeys its rules.

``test_rules.py`` and ``test_files.py`` show that each rule catches what it
should.
"""

import re

import pytest

from tools import (
    anatomy,
    canonical,
    cells,
    links,
    notebooks,
    portable,
    prose,
    repository,
    toc,
)

ROOT = notebooks.ROOT
CHAPTERS = notebooks.chapters()
PAGES = [page for page in toc.pages() if page.suffix == ".md"]
TEXTS = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
SETUP = repository.read().setup_source()


def named(paths):
    """The paths as test parameters."""
    return [pytest.param(path, id=notebooks.relative(path)) for path in paths]


def test_there_are_chapters():
    assert CHAPTERS


@pytest.mark.parametrize("path", named(CHAPTERS))
def test_anatomy(path):
    assert anatomy.problems(notebooks.load(path)) == []


@pytest.mark.parametrize("path", named(CHAPTERS))
def test_code_cells(path):
    assert cells.problems(notebooks.load(path)) == []


@pytest.mark.parametrize("path", named(CHAPTERS))
def test_markdown_cells(path):
    assert prose.problems(notebooks.load(path)) == []


@pytest.mark.parametrize("path", named(CHAPTERS))
def test_canonical_form(path):
    """Set-up cell, alternative texts and outputs included."""
    assert canonical.file_problems(path, SETUP) == []


@pytest.mark.parametrize("path", named(PAGES))
def test_pages(path):
    assert prose.text_problems(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", named([*CHAPTERS, *TEXTS]))
def test_links(path):
    assert links.problems(path) == []


def test_contents():
    assert toc.problems() == []


def test_no_file_names_one_machine():
    found = {
        notebooks.relative(path): problems
        for path in portable.files()
        if (problems := portable.problems(path.read_text(encoding="utf-8")))
    }
    assert found == {}


def test_constraints_hold_everywhere():
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert portable.pin_problems(text) == []
    tested = (ROOT / "tools/tested.in").read_text(encoding="utf-8")
    pins = re.findall(r"^\w+==.+$", tested, re.MULTILINE)
    assert pins
    assert set(pins) <= set(text.splitlines())


def test_the_api_page_lists_every_module():
    page = (ROOT / "reference/api.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"automodule:: ([\w.]+)", page))
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "helpers").rglob("[a-z]*.py")
    }
    assert listed == modules | {"data_gen"}
