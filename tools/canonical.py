"""Bring notebooks into the one form that is kept in version control.

``python -m tools.canonical`` executes every chapter in quick mode and rewrites
it: a cell whose output is the same everywhere keeps it, with an execution
count, so that the tests compare it; a cell tagged ``nbval-ignore-output`` keeps
nothing. The set-up cell gets its current text. A cell that fails, writes to
standard error or shows a figure without alternative text is refused, and its
notebook stays as it was.

``python -m tools.canonical --check`` executes nothing and only says whether
the notebooks have this form.
"""

import argparse
import copy
import hashlib
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode, from_dict
from tqdm import tqdm

from tools import notebooks, outputs, repository

CELL_TIMEOUT_S = 300
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}

# What a cell may say about itself; everything else is left by editors.
_CELL_METADATA = ("cellView", "jupyter", "mystnb", "tags")
_JUPYTER_METADATA = ("source_hidden",)
_CELL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Refused(Exception):
    """A notebook that cannot be brought into canonical form as it is."""


def normalise(notebook: NotebookNode, setup: str) -> NotebookNode:
    """The canonical form of a notebook, from the outputs it has.

    Idempotent: the normal form of a normal form is itself.

    Args:
        notebook: any notebook of format 4; it is not changed.
        setup: text of the set-up cell.
    """
    notebook = copy.deepcopy(notebook)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = from_dict(
        {"kernelspec": KERNELSPEC, "language_info": {"name": "python"}}
    )
    notebooks.write_setup_cell(notebook, setup)
    for cell in notebook.cells:
        cell.metadata = _cell_metadata(cell)
        cell.source = cell.source.strip("\n")
        cell.pop("attachments", None)
    for count, cell in enumerate(notebooks.code_cells(notebook), start=1):
        _normalise_outputs(cell, count)
    _give_ids(notebook)
    return notebook


def execute(notebook: NotebookNode, folder: Path, description: str) -> NotebookNode:
    """A copy of the notebook with fresh outputs, run in its folder.

    Raises:
        Refused: a cell failed, wrote to standard error, or showed a figure
            without alternative text.
    """
    notebook = copy.deepcopy(notebook)
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT_S,
        kernel_name=KERNELSPEC["name"],
        resources={"metadata": {"path": str(folder)}},
    )
    with tqdm(total=len(notebook.cells), desc=description, unit="cell") as bar:
        client.on_cell_complete = lambda **_: bar.update()
        try:
            client.execute()
        except CellExecutionError as error:
            raise Refused(str(error)) from None
    found = outputs.problems(notebook)
    if found:
        raise Refused(notebooks.report(found))
    return notebook


def problems(notebook: NotebookNode, setup: str) -> list[str]:
    """What keeps a notebook on disk from being in canonical form."""
    found = outputs.problems(notebook)
    for cell in notebooks.code_cells(notebook):
        name = notebooks.label(notebook, cell)
        dependent = notebooks.MACHINE_DEPENDENT in notebooks.tags(cell)
        if dependent and (cell.outputs or cell.execution_count is not None):
            found.append(f"{name}: stores the output of one machine")
        if not dependent and cell.execution_count is None:
            found.append(f"{name}: not executed, so nothing would be compared")
    setups = notebooks.tagged(notebook, notebooks.SETUP)
    if any(cell.source != setup for cell in setups):
        found.append("the set-up cell differs from tools/setup_cell.py")
    normal = normalise(notebook, setup)
    if not found and notebooks.dumps(normal) != notebooks.dumps(notebook):
        found.append("not in canonical form (metadata, ids, counts or spacing)")
    return found


def file_problems(path: Path, setup: str) -> list[str]:
    """Like :func:`problems`, and the file must be spelt the canonical way."""
    notebook = notebooks.load(path)
    found = problems(notebook, setup)
    if not found and path.read_text(encoding="utf-8") != notebooks.dumps(notebook):
        found.append("spelt otherwise than the tools write it")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.canonical", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("notebooks", nargs="*", type=Path, help="default: all chapters")
    parser.add_argument("--check", action="store_true", help="execute nothing")
    options = parser.parse_args(arguments)
    setup = repository.read().setup_source()
    handle = _check if options.check else _rewrite
    paths = options.notebooks or notebooks.chapters()
    refused = [path for path in paths if not handle(path, setup)]
    return 1 if refused else 0


def _check(path: Path, setup: str) -> bool:
    found = file_problems(path, setup)
    print(f"{notebooks.relative(path)}: {'not canonical' if found else 'canonical'}")
    if found:
        print(notebooks.report(found))
    return not found


def _rewrite(path: Path, setup: str) -> bool:
    os.environ["BOOK_MODE"] = "quick"
    name = notebooks.relative(path)
    notebook = normalise(notebooks.load(path), setup)
    try:
        executed = execute(notebook, path.resolve().parent, name)
    except Refused as reason:
        print(f"{name}: refused, left as it was\n{reason}")
        return False
    changed = notebooks.save(normalise(executed, setup), path)
    print(f"{name}: {'rewritten' if changed else 'unchanged'}")
    return True


def _cell_metadata(cell: NotebookNode) -> NotebookNode:
    kept = {key: cell.metadata[key] for key in _CELL_METADATA if key in cell.metadata}
    if "jupyter" in kept:
        jupyter = kept.pop("jupyter")
        jupyter = {key: jupyter[key] for key in _JUPYTER_METADATA if key in jupyter}
        kept |= {"jupyter": jupyter} if jupyter else {}
    if not kept.get("tags", True):
        del kept["tags"]
    return from_dict(kept)


def _normalise_outputs(cell: NotebookNode, count: int) -> None:
    if notebooks.MACHINE_DEPENDENT in notebooks.tags(cell):
        cell.outputs, cell.execution_count = [], None
        return
    if cell.execution_count is not None:
        cell.execution_count = count
    merged: list[NotebookNode] = []
    for output in cell.outputs:
        output.pop("transient", None)
        if output.output_type == "execute_result":
            output.execution_count = cell.execution_count
        # A kernel cuts one text into pieces as its timing falls.
        stream = output.output_type == "stream"
        if stream and merged and merged[-1].get("name") == output.name:
            merged[-1].text += output.text
        else:
            merged.append(output)
    cell.outputs = merged


def _give_ids(notebook: NotebookNode) -> None:
    """Keep every valid id; cells without one get it from their text."""
    seen: set[str] = set()
    for cell in notebook.cells:
        wanted = cell.get("id", "")
        if not _CELL_ID.fullmatch(wanted) or wanted in seen:
            wanted = hashlib.sha256(cell.source.encode()).hexdigest()[:8]
            while wanted in seen:
                wanted = hashlib.sha256(wanted.encode()).hexdigest()[:8]
        cell.id = wanted
        seen.add(wanted)


if __name__ == "__main__":
    sys.exit(main())
