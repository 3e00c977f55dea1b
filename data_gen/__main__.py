"""The command line: ``python -m data_gen images --help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from data_gen.cache import CACHE_VARIABLE, ensure
from data_gen.images import ALLOWED, ImageSpec

_IMAGES_TEXT = """\
Draw pictures of coloured shapes whose class can be learned. A class is a shape in a
colour. Each picture shows one to four objects of its class and has their boxes.
The folder holds one folder per class, manifest.jsonl with size, boxes and fault of
each file, and spec.json with the options. Its path is printed.
"""
_IMAGES_EXAMPLES = f"""\
examples:
  a hundred pictures for each of ten classes:
    python -m data_gen images --out photos --classes 10 --per-class 100 --size 256
  three classes, the first ten times as frequent as the last:
    python -m data_gen images --classes 3 --per-class 500,100,50
  pictures of different sizes, one file in twenty damaged:
    python -m data_gen images --size 200-500 --broken 0.05

The same options give the same bytes on every run and for any number of processes, and
a larger set holds the files of a smaller one. A run that was killed goes on when you
start it again. Without --out the set is kept in your cache folder (or the folder named
by {CACHE_VARIABLE}) and found again at once.
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n")


def _reader(name: str, read: Callable[[str], Any]) -> Callable[[str], Any]:
    """A type for argparse whose error names the allowed range."""

    def convert(text: str) -> Any:
        try:
            return read(text)
        except ValueError:
            message = f"must be {ALLOWED[name]}, got {text!r}"
            raise argparse.ArgumentTypeError(message) from None

    return convert


def _numbers(separator: str) -> Callable[[str], int | tuple[int, ...]]:
    def read(text: str) -> int | tuple[int, ...]:
        numbers = tuple(int(part) for part in text.split(separator))
        return numbers if len(numbers) > 1 else numbers[0]

    return read


# Option, how its text is read, how its value is shown, what it means.
_IMAGE_OPTIONS = [
    ("classes", int, "N", "number of classes"),
    ("per_class", _numbers(","), "N[,N...]", "pictures per class"),
    ("size", _numbers("-"), "N[-N]", "width and height, or the range of both"),
    ("format", str, "{jpeg,png}", "file format"),
    ("quality", int, "N", "JPEG quality"),
    ("difficulty", float, "X", "0 is clear; 1 is small, faded and cluttered"),
    ("broken", float, "X", "files that are cut short, empty or all black"),
    ("seed", int, "N", "another seed draws other pictures"),
]


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m data_gen", description="Make synthetic data.")
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    images = kinds.add_parser(
        "images",
        help="labelled pictures with boxes",
        description=_IMAGES_TEXT,
        epilog=_IMAGES_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    images.add_argument("--out", metavar="DIR", help="folder to write (default: cache)")
    for name, read, metavar, meaning in _IMAGE_OPTIONS:
        default = getattr(ImageSpec, name)
        images.add_argument(
            f"--{name.replace('_', '-')}",
            type=_reader(name, read),
            default=default,
            metavar=metavar,
            help=f"{meaning}: {ALLOWED[name]} (default: {default})",
        )
    images.add_argument(
        "--processes", type=int, metavar="N", help="1 to 64 (default: by cores)"
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0, 2 for an error, 130 stopped."""
    parser = _parser()
    options = vars(parser.parse_args(arguments))
    kind, out, processes = (options.pop(key) for key in ("kind", "out", "processes"))
    try:
        print(ensure(ImageSpec(**options), out=out, processes=processes))
    except ValueError as error:
        return _fail(f"{parser.prog} {kind}: error: {error}", 2)
    except OSError as error:
        return _fail(f"{parser.prog} {kind}: error: {error.strerror or error}", 2)
    except KeyboardInterrupt:
        return _fail("stopped; the same command goes on from here", 130)
    return 0


def _fail(line: str, code: int) -> int:
    print(line, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
