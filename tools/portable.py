"""Rule: no file of the project names one person's machine."""

import re
from collections.abc import Iterator
from pathlib import Path

from tools import notebooks

_TEXT_SUFFIXES = {
    "", ".cfg", ".css", ".ipynb", ".json", ".md", ".py", ".svg", ".toml", ".txt",
    ".yaml", ".yml",
}  # fmt: skip
_NOT_OURS = {
    ".git", ".venv", ".hypothesis", ".ipynb_checkpoints", ".pytest_cache",
    ".ruff_cache", "__pycache__", "_build", "build", "dist",
}  # fmt: skip

_PATTERNS = {
    "a home folder": re.compile(r"(?<![\w.])/(?:home|Users|root)/\w"),
    "a Windows home folder": re.compile(r"\b[A-Z]:\\+Users\\", re.IGNORECASE),
    "a local address": re.compile(r"file:///\w"),
    "a temporary folder": re.compile(r"(?<![\w.])/tmp/\w"),
}
_PIN = re.compile(r"[a-z0-9][a-z0-9._-]*==\d[\w.]*(?: ; [^/@]+)?")


def files(root: Path = notebooks.ROOT) -> Iterator[Path]:
    """The project's own text files."""
    for path in sorted(root.iterdir()):
        if path.name in _NOT_OURS or path.name.endswith(".egg-info"):
            continue
        if path.is_dir():
            yield from files(path)
        elif path.suffix in _TEXT_SUFFIXES:
            yield path


def problems(text: str) -> list[str]:
    """Traces of one machine in a text."""
    return [
        f"names {what}: {match.group()}"
        for what, pattern in _PATTERNS.items()
        if (match := pattern.search(text))
    ]


def pin_problems(constraints: str) -> list[str]:
    """Lines of a constraints file that are no plain ``name==version``.

    Paths, addresses and local versions (``+cpu``) exist on some machines only.
    """
    return [
        f"no plain pin: {line}"
        for line in constraints.splitlines()
        if line and not line.startswith("#") and not _PIN.fullmatch(line)
    ]
