"""The canonical tool executes, refuses, rewrites, and says what it did."""

import json
import os
import subprocess
import sys

import pytest
import small_chapter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools import canonical, notebooks

SETUP = notebooks.setup_source()


@pytest.fixture(scope="module")
def rewritten(tmp_path_factory):
    """A notebook without outputs after the tool ran on it, and what it printed."""
    path = tmp_path_factory.mktemp("notebooks") / "small.ipynb"
    measured = new_code_cell("import time\ntime.perf_counter()")
    measured.metadata["tags"] = [notebooks.MACHINE_DEPENDENT]
    cells = [
        new_markdown_cell("# Small"),
        new_code_cell("import os\nprint(1)\nprint(os.environ['BOOK_MODE'])"),
        measured,
        new_code_cell("6 * 7"),
    ]
    notebook = new_notebook(cells=cells, metadata={"widgets": {}})
    path.write_text(json.dumps(notebook), encoding="utf-8")
    run = tool(path)
    return path, run


def tool(*arguments):
    """Run the command line as a person would."""
    return subprocess.run(
        [sys.executable, "-m", "tools.canonical", *map(str, arguments)],
        cwd=notebooks.ROOT,
        env=os.environ | {"BOOK_MODE": "full"},  # as it is outside the tests
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_rewritten_notebook_is_canonical(rewritten):
    path, run = rewritten
    assert (run.returncode, "rewritten" in run.stdout) == (0, True), run.stderr
    assert canonical.file_problems(path, SETUP) == []


def test_the_same_everywhere_is_kept_with_its_count(rewritten):
    first, _, last = notebooks.code_cells(notebooks.load(rewritten[0]))
    assert (first.execution_count, first.outputs[0].text) == (1, "1\nquick\n")
    assert (last.execution_count, last.outputs[0].execution_count) == (3, 3)
    assert last.outputs[0].data["text/plain"] == "42"


def test_the_machine_s_own_is_not_kept(rewritten):
    measured = notebooks.code_cells(notebooks.load(rewritten[0]))[1]
    assert (measured.outputs, measured.execution_count) == ([], None)


def test_a_second_run_changes_nothing(rewritten):
    path, _ = rewritten
    before = path.read_bytes()
    run = tool(path)
    assert (run.returncode, path.read_bytes()) == (0, before)
    assert "unchanged" in run.stdout


def nbval(path):
    """Run the tests' own comparison of one notebook."""
    command = ["-m", "pytest", "--nbval", "-q", "-p", "no:cacheprovider", path]
    run = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=notebooks.ROOT,
        env=os.environ | {"BOOK_MODE": "quick"},
        capture_output=True,
        text=True,
        check=False,
    )
    return run.returncode, run.stdout


@pytest.mark.parametrize(
    ("cell", "text"), [(0, "1\nslow\n"), (2, "43")], ids=["printed", "returned"]
)
def test_a_changed_output_fails_and_only_that(rewritten, tmp_path, cell, text):
    """The measured cell differs on every run and is compared with nothing."""
    path = tmp_path / "changed.ipynb"
    notebook = notebooks.load(rewritten[0])
    notebooks.save(notebook, path)
    assert nbval(path)[0] == 0
    output = notebooks.code_cells(notebook)[cell].outputs[0]
    if "text" in output:
        output.text = text
    else:
        output.data["text/plain"] = text
    notebooks.save(notebook, path)
    status, log = nbval(path)
    assert status == 1
    assert "1 failed, 2 passed" in log


def test_check_executes_nothing_and_names_the_file(rewritten, tmp_path):
    good, bad = rewritten[0], tmp_path / "bad.ipynb"
    notebook = notebooks.load(good)
    notebook.cells[1].source = "raise SystemExit('executed')"
    notebook.cells[1].execution_count = 7
    notebooks.save(notebook, bad)
    before = bad.read_bytes()
    run = tool("--check", good, bad)
    assert (run.returncode, bad.read_bytes()) == (1, before)
    assert f"{good}: canonical" in run.stdout
    assert f"{bad}: not canonical" in run.stdout


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("import sys\nprint('oh', file=sys.stderr)", "standard error: oh"),
        (
            "from IPython.display import HTML\nHTML('<img src=x>')",
            "without alternative text",
        ),
    ],
)
def test_refused_and_left_alone(tmp_path, source, words):
    path = tmp_path / "bad.ipynb"
    cell = new_code_cell(source)
    # The rule holds for cells that would store nothing, too.
    cell.metadata["tags"] = [notebooks.MACHINE_DEPENDENT]
    path.write_text(json.dumps(new_notebook(cells=[cell])), encoding="utf-8")
    before = path.read_bytes()
    run = tool(path)
    assert (run.returncode, path.read_bytes()) == (1, before)
    assert words in run.stdout


def test_normalising_twice_is_normalising_once():
    notebook = small_chapter.chapter()
    for cell in notebook.cells:
        cell.pop("id")
    notebook.cells[3].source = notebook.cells[7].source  # two cells of one text
    notebook.cells[4].outputs.append(small_chapter.stream("stdout", "5\n"))
    once = canonical.normalise(notebook, SETUP)
    assert canonical.normalise(once, SETUP) == once
    assert once.cells[4].outputs == [small_chapter.stream("stdout", "4\n5\n")]
    assert len({cell.id for cell in once.cells}) == len(once.cells)


def test_ids_stay_when_text_changes():
    notebook = small_chapter.chapter()
    before = [cell.id for cell in notebook.cells]
    notebook.cells[4].source = "print(3 + 1)"
    after = [cell.id for cell in canonical.normalise(notebook, SETUP).cells]
    assert after == before


def test_the_set_up_cell_is_written():
    notebook = small_chapter.chapter()
    small_chapter.find(notebook, "ADDRESS").source = "old"
    normal = canonical.normalise(notebook, SETUP)
    assert notebooks.tagged(normal, "setup")[0].source == SETUP


def test_spacing_of_the_file_counts(tmp_path):
    path = tmp_path / "a.ipynb"
    notebooks.save(small_chapter.chapter(), path)
    assert canonical.file_problems(path, SETUP) == []
    path.write_text(json.dumps(json.loads(path.read_text()), indent=2))
    assert canonical.file_problems(path, SETUP) == [
        "spelt otherwise than the tools write it"
    ]
