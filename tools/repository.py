"""The address of the book's repository: one setting, empty until someone sets it.

``set`` switches on what needs an address: the repository and issue buttons, the
Colab button, and the clone in the set-up cell that Colab runs. ``clear``
switches all of it off again.
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tools import notebooks

COLAB = "https://colab.research.google.com"

_SETTING = "tools/repository.json"
_CONFIG = "_config.yml"
# Colab opens notebooks from GitHub only. The address is written into Python and
# YAML, so it may hold nothing to escape.
_ADDRESS = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+")
_TAG = re.compile(r"[\w][\w./-]*")


@dataclass(frozen=True)
class Repository:
    """Where the book is published; both empty: nowhere.

    Attributes:
        address: web address of the repository, without a slash at the end.
        tag: release tag (or branch) that a reader on Colab gets.
    """

    address: str = ""
    tag: str = ""

    def __post_init__(self) -> None:
        if bool(self.address) != bool(self.tag):
            raise ValueError("an address needs a tag, and a tag an address")
        if self.address and not _ADDRESS.fullmatch(self.address):
            raise ValueError(
                f"{self.address!r} is no repository address; "
                "it must look like https://github.com/OWNER/NAME"
            )
        if self.tag and not _TAG.fullmatch(self.tag):
            raise ValueError(f"{self.tag!r} is no name of a tag or branch")

    def setup_source(self) -> str:
        """Text of the set-up cell of every chapter."""
        return notebooks.setup_source(self.address, self.tag)


def read(root: Path = notebooks.ROOT) -> Repository:
    """The setting as it stands."""
    return Repository(**json.loads((root / _SETTING).read_text(encoding="utf-8")))


def write(setting: Repository, root: Path = notebooks.ROOT) -> list[str]:
    """Store the setting and rewrite all that depends on it.

    Returns:
        the files that changed.
    """
    config = root / _CONFIG
    contents = {
        root / _SETTING: json.dumps(asdict(setting), indent=2) + "\n",
        config: rewrite_config(config.read_text(encoding="utf-8"), setting),
    }
    for path in notebooks.chapters(root):
        notebook = notebooks.load(path)
        notebooks.write_setup_cell(notebook, setting.setup_source())
        contents[path] = notebooks.dumps(notebook)
    changed = [
        path
        for path, text in contents.items()
        if path.read_text(encoding="utf-8") != text
    ]
    for path in changed:
        path.write_text(contents[path], encoding="utf-8", newline="\n")
    return [notebooks.relative(path, root) for path in changed]


def rewrite_config(text: str, setting: Repository) -> str:
    """``_config.yml`` with the lines that depend on the setting.

    Raises:
        ValueError: a line is missing or stands there twice.
    """
    shown = "true" if setting.address else "false"
    values = {
        "url": json.dumps(setting.address),
        "use_repository_button": shown,
        "use_issues_button": shown,
        "colab_url": json.dumps(COLAB if setting.address else ""),
    }
    for key, value in values.items():
        pattern = rf"^(  {key}: ).*$"
        text, count = re.subn(pattern, rf"\g<1>{value}", text, flags=re.MULTILINE)
        if count != 1:
            raise ValueError(f"{_CONFIG} must hold '  {key}: ...' once, not {count}")
    return text


def default_tag(root: Path = notebooks.ROOT) -> str:
    """The tag of the current release: ``v`` and the version in pyproject.toml."""
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    return "v" + re.search(r'^version = "(.+)"$', text, re.MULTILINE).group(1)


def main(arguments: Sequence[str] | None = None, root: Path = notebooks.ROOT) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.repository", description=__doc__.split("\n\n")[0]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    setter = commands.add_parser("set", help="switch the buttons and Colab on")
    setter.add_argument("address", metavar="URL", help="https://github.com/OWNER/NAME")
    setter.add_argument("--tag", help=f"what Colab gets (default: {default_tag(root)})")
    commands.add_parser("clear", help="switch them off")
    commands.add_parser("show", help="print the setting")
    options = parser.parse_args(arguments)
    if options.command == "show":
        setting = read(root)
        print(f"{setting.address} at {setting.tag}" if setting.address else "not set")
        return 0
    try:
        setting = _wanted(options, root)
    except ValueError as error:
        parser.error(str(error))
    for name in write(setting, root) or ["nothing to change"]:
        print(name)
    return 0


def _wanted(options: argparse.Namespace, root: Path) -> Repository:
    if options.command == "clear":
        return Repository()
    address = options.address.rstrip("/").removesuffix(".git")
    return Repository(address, options.tag or default_tag(root))


if __name__ == "__main__":
    sys.exit(main())
