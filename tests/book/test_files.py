"""Rules that concern several files: links, contents, traces of a machine."""

import json

import pytest
import small_chapter
from nbformat.v4 import new_markdown_cell

from tools import links, notebooks, portable, toc


@pytest.fixture
def root(tmp_path):
    """A small book whose links and contents are right."""
    for folder in ("chapters", "reference"):
        (tmp_path / folder).mkdir()
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: index\nparts:\n"
        "  - caption: All\n    chapters:\n"
        "      - file: chapters/small\n      - file: reference/words\n"
    )
    (tmp_path / "index.md").write_text(
        "# Book\n\n[small](chapters/small.ipynb#recall)\n"
    )
    (tmp_path / "reference/words.md").write_text("# Words\n\n## A batch\n")
    notebook = small_chapter.chapter()
    text = "[a](../reference/words.md#a-batch) [b](#go-deeper) [c](https://e.org/x#y)"
    notebook.cells.insert(3, new_markdown_cell(text))
    notebooks.save(notebook, tmp_path / "chapters/small.ipynb")
    return tmp_path


def test_a_book_in_order_has_no_problems(root):
    assert toc.problems(root) == []
    assert [page.name for page in toc.pages(root)] == [
        "index.md",
        "small.ipynb",
        "words.md",
    ]
    assert [p for page in toc.pages(root) for p in links.problems(page)] == []


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("[a](missing.md)", "missing.md: no such file"),
        ("![a](missing.svg)", "missing.svg: no such file"),
        ('<a href="missing.html">a</a>', "missing.html: no such file"),
        ("[a](#missing)", "#missing: no such heading"),
        (
            "[a](chapters/small.ipynb#gone)",
            "chapters/small.ipynb#gone: no such heading",
        ),
        (
            "[a](/index.md)",
            "/index.md: starts with a slash; write it relative to the page",
        ),
    ],
)
def test_links_that_lead_nowhere(root, link, problem):
    assert links.problems(root / "index.md", [f"# Book\n\n{link}"]) == [problem]


def test_a_chapter_missing_from_the_contents(root):
    notebooks.save(small_chapter.chapter(), root / "chapters/other.ipynb")
    assert toc.problems(root) == ["chapters/other: not listed"]


def test_an_entry_without_a_page(root):
    (root / "reference/words.md").unlink()
    assert toc.problems(root) == ["reference/words: no such page"]


def test_an_entry_listed_twice(root):
    with (root / "_toc.yml").open("a") as file:
        file.write("      - file: chapters/small\n")
    assert toc.problems(root) == ["chapters/small: listed twice"]


def test_traces_of_a_machine():
    home, temporary = "/".join(["", "home", "ada"]), "/".join(["", "tmp", "x"])
    windows = "\\".join(["C:", "Users", "ada"])
    assert portable.problems(f"see {home}/book")
    assert portable.problems(json.dumps({"path": windows}))
    assert portable.problems(f'open("{temporary}")')
    assert portable.problems("file://" + home)
    assert portable.problems("below /dev/shm, see https://example.org/home/x") == []


def test_only_the_project_s_own_files_are_looked_at(root):
    (root / ".venv").mkdir()
    (root / ".venv/a.py").touch()
    (root / ".ci").mkdir()
    (root / ".ci/run").touch()
    names = {path.relative_to(root).as_posix() for path in portable.files(root)}
    assert names == {
        ".ci/run",
        "_toc.yml",
        "chapters/small.ipynb",
        "index.md",
        "reference/words.md",
    }


@pytest.mark.parametrize(
    "line",
    [
        "torch==2.14.1+cpu",
        "torch @ https://example.org/a.whl",
        "-f https://example.org",
        "torch>=2",
    ],
)
def test_pins_that_exist_on_one_machine_only(line):
    good = "# comment\nnumpy==2.2.6 ; python_full_version < '3.11'\n"
    assert portable.pin_problems(good) == []
    assert portable.pin_problems(good + line) == [f"no plain pin: {line}"]
