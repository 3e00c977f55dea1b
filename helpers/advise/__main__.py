"""Advice from a shell, about the loader that a function of yours makes."""

import argparse
import contextlib
import dataclasses
import importlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from typing import NoReturn, TextIO

from torch.utils.data import DataLoader

from helpers.advise.diagnose import diagnose
from helpers.advise.tune import recommend
from helpers.advise.tuning.runs import SampleError
from helpers.measure.windows import StreamEnded

_PROG = "python -m helpers.advise"
_EPILOG = """
what to write
  Put the code that makes your loader into a function without arguments, in a
  file such as train.py that does nothing when it is imported (keep the training
  behind: if __name__ == "__main__"):

      def make_loader():
          return DataLoader(MyDataset("data"), batch_size=32, shuffle=True)

      def train_step(batch):            # optional, but it changes the answer
          loss = model(batch[0].to(device)) ...

  Then, in the folder of train.py:

      python -m helpers.advise train:make_loader --step train:train_step

what you get
  --lint      faults in the loader, found without running it
  --diagnose  where the time goes, what limits the loop, what to change first
  --tune      num_workers and prefetch_factor, measured against their neighbours
  Without any of these you get all three, one after the other.

exit code
  0 advice was given; 1 lint found an error, or the loader itself failed;
  2 the command line or the function is not usable (one line says why).
"""


class _Unusable(Exception):
    """What the command line names cannot be used; the message is one line."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{_PROG}: {message}; --help shows what to write\n")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    options = _parser().parse_args(arguments)
    chosen = [name for name in _ADVICE if getattr(options, name)] or list(_ADVICE)
    with _clean_stdout(options.json) as out:
        try:
            loader, step = _inputs(options)
            results = {n: _ADVICE[n](loader, step, options.budget) for n in chosen}
        except _Unusable as problem:
            return _say(f"{_PROG}: {problem}", 2)
        except (SampleError, StreamEnded, ValueError) as problem:
            return _say(f"{_PROG}: the loader failed: {_one_line(problem)}", 1)
        except KeyboardInterrupt:
            return _say(f"{_PROG}: interrupted, workers ended", 130)
        _print(results, options.json, out)
    return int(any(getattr(result, "errors", []) for result in results.values()))


def _parser() -> _Parser:
    parser = _Parser(
        prog=_PROG,
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "factory", metavar="MODULE:FACTORY", help="function that returns a DataLoader"
    )
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--lint", action="store_true", help="look for faults")
    kinds.add_argument("--diagnose", action="store_true", help="say what limits it")
    kinds.add_argument("--tune", action="store_true", help="recommend settings")
    parser.add_argument(
        "--step",
        metavar="MODULE:FUNCTION",
        help="what the training loop does with a batch (default: nothing)",
    )
    parser.add_argument(
        "--budget",
        type=_positive,
        metavar="S",
        help="seconds to spend on each (default: 10 to diagnose, 30 to tune)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, nothing else")
    return parser


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be above 0, got {text}")
    return value


def _inputs(options: argparse.Namespace) -> tuple[DataLoader, Callable | None]:
    factory = _named(options.factory)
    step = None if options.step is None else _named(options.step)
    try:
        loader = factory()
    except Exception as error:
        raise _Unusable(f"{options.factory}() raised {_with_type(error)}") from error
    if not isinstance(loader, DataLoader):
        kind = type(loader).__name__
        raise _Unusable(f"{options.factory}() returned a {kind}, not a DataLoader")
    return loader, step


def _named(name: str) -> Callable:
    """The function that MODULE:FUNCTION names.

    Raises:
        _Unusable: there is none.
    """
    module_name, colon, function_name = name.partition(":")
    if not (module_name and colon and function_name):
        raise _Unusable(f"expected MODULE:FUNCTION, got {name!r}")
    module = _imported(module_name)
    if not hasattr(module, function_name):
        raise _Unusable(f"module {module_name} has no {function_name}")
    function = getattr(module, function_name)
    if not callable(function):
        kind = type(function).__name__
        raise _Unusable(f"{name} is a {kind}; write a function that returns it")
    return function


def _imported(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise _Unusable(
                f"there is no module {name} in {os.getcwd()} or among what is installed"
            ) from error
        raise _Unusable(f"importing {name} failed: {_with_type(error)}") from error
    except Exception as error:
        raise _Unusable(f"importing {name} failed: {_with_type(error)}") from error


def _lint(loader: DataLoader, step: Callable | None, budget_s: float | None) -> object:
    from helpers.advise.doctor import lint

    return lint(loader)


def _diagnose(
    loader: DataLoader, step: Callable | None, budget_s: float | None
) -> object:
    return diagnose(loader, step, budget_s or 10.0)


def _tune(loader: DataLoader, step: Callable | None, budget_s: float | None) -> object:
    return recommend(loader, step, budget_s or 30.0)


_ADVICE = {"lint": _lint, "diagnose": _diagnose, "tune": _tune}


@contextlib.contextmanager
def _clean_stdout(clean: bool) -> Iterator[TextIO]:
    """Where to print; if ``clean``, what anybody else prints goes to stderr.

    At the level of the file descriptor too, because workers print as well.
    """
    if not clean:
        yield sys.stdout
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with (
            os.fdopen(os.dup(kept), "w") as out,
            contextlib.redirect_stdout(sys.stderr),
        ):
            yield out
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _print(results: dict[str, object], as_json: bool, out: TextIO) -> None:
    if as_json:
        values = {name: _plain(result) for name, result in results.items()}
        print(json.dumps(values, indent=2, allow_nan=False), file=out)
        return
    print("\n\n".join(str(result) for result in results.values()), file=out)


def _plain(value: object) -> object:
    """As JSON knows it: no objects, and neither NaN nor infinity."""
    if hasattr(value, "to_dict"):
        return _plain(value.to_dict())
    if dataclasses.is_dataclass(value):
        return _plain(dataclasses.asdict(value))
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):  # a number of numpy's
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _say(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code


def _with_type(error: Exception) -> str:
    return f"{type(error).__name__}: {_one_line(error)}"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


if __name__ == "__main__":
    sys.exit(main())
