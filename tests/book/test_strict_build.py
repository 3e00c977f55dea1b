"""What must stop a build does stop it: real builds with the book's own settings."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import small_chapter
from nbformat.v4 import new_markdown_cell, new_notebook

from tools import canonical, notebooks

TOC = "format: jb-book\nroot: index\nchapters:\n  - file: page\n"
PROGRAM = "from jupyter_book.cli.main import main; main()"
COMMAND = ["build", ".", "--all", "-W", "-n", "--keep-going"]


def book(folder: Path, code: str = "", text: str = "", toc: str = "") -> Path:
    """A book of one notebook with the settings of this one."""
    shutil.copy(notebooks.ROOT / "_config.yml", folder)
    for name in ("_ext", "_static"):
        shutil.copytree(notebooks.ROOT / name, folder / name)
    (folder / "_toc.yml").write_text(TOC + toc)
    (folder / "index.md").write_text(f"# Book\n\n[page](page.ipynb)\n\n{text}\n")
    cells = [new_markdown_cell("# Page")]
    cells += [small_chapter.code(code)] if code else []
    notebook = new_notebook(cells=cells, metadata={"kernelspec": canonical.KERNELSPEC})
    notebooks.save(notebook, folder / "page.ipynb")
    return folder


def build(folder: Path) -> tuple[int, str]:
    """Build as the book is built; exit status and what was printed."""
    command = [sys.executable, "-c", PROGRAM, *COMMAND]
    run = subprocess.run(
        command, cwd=folder, text=True, capture_output=True, check=False
    )
    return run.returncode, run.stdout + run.stderr


def test_a_book_in_order_is_built(tmp_path):
    status, log = build(book(tmp_path, code="print(1)"))
    assert status == 0, log
    assert (tmp_path / "_build/html/page.html").is_file()


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ({"code": "1 / 0"}, ["ZeroDivisionError"]),
        ({"code": "import sys; print('oh', file=sys.stderr)"}, ["stderr was found"]),
        ({"text": "[a](gone.md) [b](#no-anchor)"}, ["gone.md", "no-anchor"]),
        ({"toc": "  - file: gone\n"}, ["gone"]),
    ],
    ids=["failing cell", "stderr", "broken link and anchor", "dangling entry"],
)
def test_a_fault_stops_the_build(tmp_path, faults, words):
    status, log = build(book(tmp_path, **faults))
    assert status != 0
    assert [word for word in words if word not in log] == []
