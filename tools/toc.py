"""Rules for the table of contents: it lists every chapter, and only real pages."""

from pathlib import Path

import yaml

from tools import notebooks

_SUFFIXES = (".ipynb", ".md")


def entries(root: Path = notebooks.ROOT) -> list[str]:
    """Pages of the book in their order, as ``_toc.yml`` names them."""
    content = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    return [content["root"], *_files(content)]


def _files(node: object) -> list[str]:
    if isinstance(node, list):
        return [name for item in node for name in _files(item)]
    if not isinstance(node, dict):
        return []
    own = [node["file"]] if "file" in node else []
    return own + [name for value in node.values() for name in _files(value)]


def pages(root: Path = notebooks.ROOT) -> list[Path]:
    """The files of all entries that exist."""
    files = [
        root / f"{entry}{suffix}" for entry in entries(root) for suffix in _SUFFIXES
    ]
    return [file for file in files if file.is_file()]


def problems(root: Path = notebooks.ROOT) -> list[str]:
    """Entries without a page, entries listed twice, chapters without an entry."""
    listed = entries(root)
    existing = {
        page.relative_to(root).with_suffix("").as_posix() for page in pages(root)
    }
    found = [f"{entry}: no such page" for entry in listed if entry not in existing]
    found += [f"{e}: listed twice" for e in set(listed) if listed.count(e) > 1]
    found += [
        f"{name}: not listed"
        for path in notebooks.chapters(root)
        if (name := path.relative_to(root).with_suffix("").as_posix()) not in listed
    ]
    return sorted(found)
