"""Which names the code of a loader mentions, without running it.

The code is followed from where a worker enters it (``__getitem__``,
``__iter__``, ``__call__`` and so on) into own methods, functions of the same
project and nested functions, but not into Python's or torch's own code. What is
said about a name is therefore "is mentioned somewhere", never "is executed".
"""

import dis
import functools
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from helpers.advise.objects import inert
from helpers.advise.objects.walker import Node

#: Methods that a worker calls on datasets, transforms and collate functions.
ENTRIES = (
    "__getitem__",
    "__getitems__",
    "__iter__",
    "__next__",
    "__call__",
    "forward",
    "transform",
    "make_params",
)

# Instructions by what their name means; Python's versions differ in the rest.
_GLOBAL, _ATTRIBUTE, _VARIABLE, _ASSIGNED = "global", "attribute", "variable", "="
_KINDS = {
    "LOAD_GLOBAL": _GLOBAL,
    "LOAD_NAME": _GLOBAL,
    "LOAD_ATTR": _ATTRIBUTE,
    "LOAD_METHOD": _ATTRIBUTE,
    "LOAD_SUPER_ATTR": _ATTRIBUTE,
    "LOAD_DEREF": _VARIABLE,
    "LOAD_FAST": _VARIABLE,
    "LOAD_FAST_BORROW": _VARIABLE,
    "STORE_ATTR": _ASSIGNED,
}

#: Enough for any dataset; a limit, because code may lead anywhere.
_FUNCTIONS = 2000

Methods = dict[str, list[types.FunctionType]]


@dataclass
class Names:
    """What some code mentions.

    Attributes:
        mentioned: attributes, globals and imported names.
        assigned: attributes that are assigned.
        pairs: ``(a, b)`` for every ``a.b``.
        constants: module variables that are no function, class or module, by
            ``module.name``.
        packages: top-level packages of the modules, classes and functions that
            are mentioned.
        functions: all the code that was followed.
    """

    mentioned: set[str] = field(default_factory=set)
    assigned: set[str] = field(default_factory=set)
    pairs: set[tuple[str, str]] = field(default_factory=set)
    constants: dict[str, object] = field(default_factory=dict)
    packages: set[str] = field(default_factory=set)
    functions: list[types.FunctionType] = field(default_factory=list)


def methods_of(nodes: Iterable[Node]) -> Methods:
    """Methods and properties of the classes of some objects, by name."""
    found: Methods = {}
    for kind in _classes(nodes):
        for name, member in inert.namespace(kind).items():
            functions = list(functions_in(member))
            if functions:
                found.setdefault(name, []).extend(functions)
    return found


def entries_of(nodes: Iterable[Node]) -> list[types.FunctionType]:
    """Where a worker enters the code of some objects."""
    found: list[types.FunctionType] = []
    for node in nodes:
        found += functions_in(node.value)
        for name in ENTRIES:
            found += functions_in(_first(name, inert.bases(node.value)))
    return found


def _first(name: str, kinds: Iterable[type]) -> object:
    """What a class says about a name; what it overrides is not entered."""
    for kind in kinds:
        members = inert.namespace(kind)
        if name in members:
            return members[name]
    return None


def functions_in(value: object) -> Iterator[types.FunctionType]:
    """The plain functions behind a function, method, property or decorator."""
    if type(value) is types.FunctionType:
        yield value
    elif inert.is_exactly(value, types.MethodType, staticmethod, classmethod):
        yield from functions_in(value.__func__)
    elif type(value) is property:
        for accessor in (value.fget, value.fset):
            yield from functions_in(accessor)
    elif type(value) is functools.cached_property:
        yield from functions_in(value.func)
    elif type(value) is functools._lru_cache_wrapper:
        yield from functions_in(value.__wrapped__)
    elif inert.is_a(value, functools.partial):
        yield from functions_in(functools.partial.__dict__["func"].__get__(value))


def follow(start: Iterable[types.FunctionType], methods: Methods) -> Names:
    """Read some functions and all the project's own code that they lead to.

    Args:
        start: where to begin.
        methods: what an attribute may mean that is called on an object.
    """
    names, waiting, seen = Names(), list(start), set()
    while waiting and len(names.functions) < _FUNCTIONS:
        function = waiting.pop()
        if id(function.__code__) in seen or _is_library(function):
            continue
        seen.add(id(function.__code__))
        names.functions.append(function)
        waiting += _in_closure(function)
        for code in _nested(function.__code__):
            waiting += _read(code, function, names, methods)
    return names


def variables(code: types.CodeType) -> set[str]:
    """Local variables and parameters that a piece of code reads."""
    read = set(code.co_cellvars)
    for step in dis.get_instructions(code):
        if step.opname.startswith("LOAD_FAST"):
            # Newer versions of Python read two variables at once.
            names = step.argval if type(step.argval) is tuple else (step.argval,)
            read.update(names)
    return read


def _read(
    code: types.CodeType,
    function: types.FunctionType,
    names: Names,
    methods: Methods,
) -> list[types.FunctionType]:
    """Note the names of one piece of code; the functions that it leads to."""
    found: list[types.FunctionType] = []
    names.mentioned.update(code.co_names, code.co_freevars)
    before, holder = "", None
    for kind, name in _steps(code):
        value = None
        if kind == _ASSIGNED:
            names.assigned.add(name)
        elif kind == _GLOBAL:
            value = function.__globals__.get(name)
            found += _project_code(value)
            _keep_constant(names, function, name, value)
            names.packages.add(_package_of(value))
        elif kind == _ATTRIBUTE:
            names.pairs.add((before, name))
            found += methods.get(name, [])
            if type(holder) is types.ModuleType:
                found += _project_code(vars(holder).get(name))
        before, holder = name, value
    return found


def _steps(code: types.CodeType) -> Iterator[tuple[str, str]]:
    """Kind and name of every instruction; both empty where it has no name."""
    for step in dis.get_instructions(code):
        kind = _KINDS.get(step.opname, "")
        yield (kind, step.argval) if kind else ("", "")


def _keep_constant(
    names: Names, function: types.FunctionType, name: str, value: object
) -> None:
    if not inert.is_plain(value) and not inert.is_a(value, *_CODE):
        names.constants[f"{function.__globals__.get('__name__')}.{name}"] = value


_CODE = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.ModuleType,
    type,
)


def _project_code(value: object) -> list[types.FunctionType]:
    """Functions behind a global: itself, or the methods of a class."""
    if inert.is_a(value, type):
        if inert.is_library(inert.package_of(value)):
            return []
        members = inert.namespace(value).values()
        return [function for member in members for function in functions_in(member)]
    return list(functions_in(value))


def _package_of(value: object) -> str:
    """Top-level package of a module, class or function; else empty."""
    if type(value) is types.ModuleType:
        module = value.__name__
    elif inert.is_a(value, types.FunctionType, type):
        module = value.__module__
    else:
        return ""
    return module.split(".")[0] if type(module) is str else ""


def _is_library(function: types.FunctionType) -> bool:
    module = function.__module__
    package = module.split(".")[0] if type(module) is str else ""
    return inert.is_library(package)


def _in_closure(function: types.FunctionType) -> list[types.FunctionType]:
    found: list[types.FunctionType] = []
    for child in inert.inside(function):
        found += functions_in(child.value)
    return found


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """A piece of code and those of the functions defined in it."""
    yield code
    for constant in code.co_consts:
        if type(constant) is types.CodeType:
            yield from _nested(constant)


def _classes(nodes: Iterable[Node]) -> Iterator[type]:
    """Classes of some objects, each once, without those of libraries."""
    seen: set[int] = set()
    for node in nodes:
        for kind in inert.bases(node.value):
            if id(kind) not in seen:
                seen.add(id(kind))
                if not inert.is_library(inert.package_of(kind)):
                    yield kind
