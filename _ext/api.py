"""The API page: documents the helpers of this folder, from their docstrings."""

import sys
from typing import Any

from sphinx.application import Sphinx

_VALUES = ("attribute", "data", "property")


def keep_colons(
    app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]
) -> None:
    """Let the docstring of a value say "one thing: another".

    Napoleon would take the words before the colon for a type. It looks at the
    first line only, so an empty comment is put there.
    """
    if what in _VALUES:
        lines[:0] = ["..", ""]


def setup(app: Sphinx) -> dict[str, Any]:
    """Put the book's folder first on the path: an installed copy may be older."""
    sys.path.insert(0, str(app.confdir))
    # Before napoleon, which listens with the usual priority of 500.
    app.connect("autodoc-process-docstring", keep_colons, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
