"""What can be read from the source of a training loop, without running it."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from helpers.advise.objects import code_names


@dataclass(frozen=True)
class Loop:
    """A training loop.

    Attributes:
        mentioned: names of everything that it uses, and that the project's own
            functions use which it calls.
        several_epochs: one loop stands inside another one, or goes over epochs.
    """

    mentioned: frozenset[str]
    several_epochs: bool

    @classmethod
    def of(cls, loop: str | Callable) -> "Loop":
        """Read a function, or source code as text.

        Raises:
            TypeError: neither a function nor a text.
            ValueError: the text is not Python.
        """
        functions = list(code_names.functions_in(loop))
        if not isinstance(loop, str) and not functions:
            raise TypeError(
                f"loop must be a function or its source, got {type(loop).__name__}"
            )
        followed = code_names.follow(functions, {})
        names, several = set(followed.mentioned), False
        sources = [loop] if isinstance(loop, str) else map(_source, functions)
        for source in sources:
            tree = _parsed(source)
            names |= {name for node in ast.walk(tree) for name in _names(node)}
            several = several or any(map(_goes_over_epochs, ast.walk(tree)))
        return cls(frozenset(names), several)


def _source(function: Callable) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):  # typed into a console, or made by a program
        return ""


def _parsed(source: str) -> ast.AST:
    try:
        return ast.parse(textwrap.dedent(source))
    except SyntaxError as error:
        raise ValueError(f"loop is not Python source: {error}") from None


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Attribute):
        return [node.attr]
    return [node.id] if isinstance(node, ast.Name) else []


def _goes_over_epochs(node: ast.AST) -> bool:
    if not isinstance(node, ast.For | ast.While):
        return False
    inner = [n for part in node.body for n in ast.walk(part)]
    if any(isinstance(n, ast.For | ast.While) for n in inner):
        return True
    target = getattr(node, "target", None)
    return isinstance(target, ast.Name) and "epoch" in target.id.lower()
