"""What a notebook cell displays: source code, figures, errors on purpose.

The displays carry HTML for readers and plain text for terminals and tests.
"""

import base64
import contextlib
import html
import inspect
import io
import os
import re
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from IPython.display import display
from matplotlib.figure import Figure

from helpers.page.style import look

_PICTURES = Path(__file__).with_name("pictures")

# Process numbers and addresses differ on every run.
_UNSTABLE = (
    (re.compile(r"\b(pids?(?:\(s\))?:?\s+)\d+(?:,\s*\d+)*"), r"\1..."),
    (re.compile(r"0x[0-9a-fA-F]+"), "0x..."),
)


def source(*objects: object) -> None:
    """Display the code of functions, classes or methods, as it will run.

    Raises:
        TypeError: the object has no Python source.
    """
    parts = [textwrap.dedent(inspect.getsource(item)).rstrip() for item in objects]
    code = "\n\n\n".join(parts)
    data = {"text/markdown": f"```python\n{code}\n```", "text/plain": code}
    display(data, raw=True)


def figure(drawing: Figure, alt: str) -> None:
    """Display a figure as SVG with alternative text.

    Args:
        drawing: the figure.
        alt: what the figure says, in words and numbers, for who cannot see it.

    Raises:
        ValueError: ``alt`` is empty.
    """
    if not alt.strip():
        raise ValueError("a figure needs alternative text: say what it shows")
    with look():
        buffer = io.BytesIO()
        drawing.savefig(buffer, format="svg", metadata={"Date": None})
    _display_svg(buffer.getvalue(), alt)


def picture(name: str, alt: str) -> None:
    """Display one of the book's drawings.

    Args:
        name: of an SVG file in ``helpers/page/pictures``.
        alt: what it shows, in words.

    Raises:
        FileNotFoundError: there is no such drawing.
    """
    _display_svg((_PICTURES / name).read_bytes(), alt)


def _display_svg(svg: bytes, alt: str) -> None:
    encoded = base64.b64encode(svg).decode()
    text = html.escape(alt, quote=True)
    image = f'<img alt="{text}" src="data:image/svg+xml;base64,{encoded}">'
    data = {
        "text/html": f'<figure class="book-figure">{image}</figure>',
        "text/plain": f"Figure: {alt}",
    }
    display(data, raw=True)


@dataclass(frozen=True)
class Outcome:
    """What became of a piece of code that may fail.

    Attributes:
        value: what it returned; None if it failed.
        error: the exception, or None.
        warnings: texts of the warnings it caused, each once.
        stderr: what it and its child processes wrote to standard error.
    """

    value: object
    error: BaseException | None
    warnings: tuple[str, ...]
    stderr: str

    @property
    def text(self) -> str:
        """The error's message without process numbers; empty if none."""
        return "" if self.error is None else stable(str(self.error))

    def __repr__(self) -> str:
        if self.error is None:
            lines = [f"no error, returned {self.value!r}"]
        else:
            lines = [f"{type(self.error).__name__}: {self.text}"]
        lines += [f"Warning: {text}" for text in self.warnings]
        return "\n".join(lines)


def outcome(run: Callable[[], object]) -> Outcome:
    """Run code that is meant to break, and keep what it says.

    Warnings are collected instead of printed, and standard error is captured
    at the level of the file descriptor, where workers write too.
    """
    value, error = None, None
    with warnings.catch_warnings(record=True) as caught, _stderr() as written:
        warnings.simplefilter("always")
        try:
            value = run()
        except Exception as exception:
            error = exception.with_traceback(None)
            error.__context__ = None
    texts = dict.fromkeys(stable(str(item.message)) for item in caught)
    return Outcome(value, error, tuple(texts), stable(written()))


def stable(text: str) -> str:
    """``text`` with process numbers and memory addresses replaced by dots."""
    for pattern, replacement in _UNSTABLE:
        text = pattern.sub(replacement, text)
    return text


@contextlib.contextmanager
def _stderr() -> Iterator[Callable[[], str]]:
    """Capture descriptor 2 and ``sys.stderr``; yields a function that reads."""
    with tempfile.TemporaryFile() as file:

        def written() -> str:
            return text

        sys.stderr.flush()
        text, kept = "", os.dup(2)
        os.dup2(file.fileno(), 2)
        writer = os.fdopen(os.dup(2), "w", buffering=1, errors="replace")
        try:
            with contextlib.redirect_stderr(writer):
                yield written
        finally:
            writer.close()
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            text = file.read().decode(errors="replace")
