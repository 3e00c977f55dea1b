"""The set-up cell finds the book from every place a reader may open a chapter."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools import notebooks

NO_BOOK = "ImportError: Put dataloader-book.zip beside this notebook."


def make_book(folder: Path) -> Path:
    """A stand-in for the book that says where it was found."""
    helpers = folder / "helpers"
    helpers.mkdir(parents=True)
    (helpers / "__init__.py").touch()
    (helpers / "settings.py").write_text(
        "def use_start_method():\n    print(__file__.replace(chr(92), '/'))\n"
    )
    (folder / "data_gen").mkdir()
    (folder / "data_gen/__init__.py").touch()
    return folder


def run_cell(
    folder: Path, source: str = "", installed: Path | None = None, colab: bool = False
) -> subprocess.CompletedProcess:
    """Run the cell as a kernel does whose folder is the notebook's."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    if installed:
        environment["PYTHONPATH"] = str(installed)
    if colab:
        environment["COLAB_RELEASE_TAG"] = "release"
    # An import from site-packages would find the real book: -S leaves them out.
    return subprocess.run(
        [sys.executable, "-S", "-c", source or notebooks.setup_source()],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def found(run: subprocess.CompletedProcess) -> Path:
    """Folder of the book that the cell used."""
    assert (run.returncode, run.stderr) == (0, "")
    return Path(run.stdout.strip()).parent.parent.resolve()


def test_the_cell_is_short():
    lines = notebooks.setup_source().splitlines()
    assert len(lines) <= 16
    assert max(map(len, lines)) <= 70


def test_a_checkout_wins_over_an_installed_copy(tmp_path):
    book = make_book(tmp_path / "book")
    other = make_book(tmp_path / "installed")
    (book / "chapters").mkdir()
    assert found(run_cell(book / "chapters", installed=other)) == book.resolve()


def test_else_the_installed_copy(tmp_path):
    other = make_book(tmp_path / "installed")
    (tmp_path / "elsewhere").mkdir()
    assert found(run_cell(tmp_path / "elsewhere", installed=other)) == other.resolve()


@pytest.mark.parametrize("top", ["dataloader-book", "dataloader-book-main"])
def test_else_the_zip_beside_the_notebook(tmp_path, top):
    book = make_book(tmp_path / "made" / top)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    with zipfile.ZipFile(folder / "dataloader-book.zip", "w") as archive:
        for file in book.rglob("*.py"):
            archive.write(file, file.relative_to(book.parent))
    assert found(run_cell(folder)) == (folder / top).resolve()
    (folder / "dataloader-book.zip").unlink()
    assert found(run_cell(folder)) == (folder / top).resolve(), "the second time"


def git(*arguments: str, folder: Path) -> None:
    """Run git as somebody who has no settings of his own."""
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    command = ["git", *who, *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


@pytest.fixture
def address(tmp_path):
    """A git repository of the book with a tag, and something newer that is broken."""
    book = make_book(tmp_path / "published")
    git("init", "-q", folder=book)
    git("add", ".", folder=book)
    git("commit", "-q", "-m", "book", folder=book)
    git("tag", "v1", folder=book)
    (book / "helpers/settings.py").write_text("raise SystemExit('not the release')")
    git("commit", "-q", "-a", "-m", "newer", folder=book)
    return book.as_uri()


def test_else_on_colab_a_clone_at_the_tag(tmp_path, address):
    folder = tmp_path / "content"
    folder.mkdir()
    source = notebooks.setup_source(address, "v1")
    assert found(run_cell(folder, source, colab=True)) == folder / "dataloader-book"


def test_no_clone_elsewhere(tmp_path, address):
    folder = tmp_path / "content"
    folder.mkdir()
    run = run_cell(folder, notebooks.setup_source(address, "v1"))
    assert run.stderr.rstrip().splitlines()[-1] == NO_BOOK
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("colab", [False, True])
def test_else_the_last_line_says_what_to_do(tmp_path, colab):
    run = run_cell(tmp_path, colab=colab)
    assert run.returncode == 1
    assert run.stderr.rstrip().splitlines()[-1] == NO_BOOK
