"""Looking at objects without running any code of theirs.

A reader's class may define ``__class__``, ``__getattr__``, ``__iter__``,
``__len__``, ``__eq__`` or properties that fail, wait, or change something. So
types are compared by identity, attributes read from where Python stores them,
and containers read with the methods of the built-in classes.
"""

import collections
import functools
import sys
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

# Read from ``type`` itself: a metaclass can define them anew.
_bases_of = type.__dict__["__mro__"].__get__
_namespace_of = type.__dict__["__dict__"].__get__
_module_of = type.__dict__["__module__"].__get__
name_of = type.__dict__["__name__"].__get__

_PLAIN = frozenset(
    map(id, (type(None), bool, int, float, complex, str, bytes, bytearray, range))
)

#: Built-in containers; mappings among them have keys as well.
CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque)
_CONTAINERS = frozenset(map(id, CONTAINERS))

#: Packages whose inner workings are no concern of the reader.
LIBRARIES = frozenset(sys.stdlib_module_names) | {
    "PIL",
    "matplotlib",
    "numpy",
    "pandas",
    "pyarrow",
    "scipy",
    "torch",
    "torchvision",
}

#: Class attributes of these types are part of the class, not data.
_DEFINITIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
    types.ModuleType,
    staticmethod,
    classmethod,
    property,
    type,
)

#: What an instance of torch.nn.Module keeps behind its attributes.
MODULE_TABLES = ("_parameters", "_buffers", "_modules")


class Child(NamedTuple):
    """An object inside another one.

    ``label`` is what stands behind the parent in code, such as ``.rng`` or
    ``[2]``; ``name`` is the name under which code must mention it: the attribute
    or variable. None: code may have it under any name.
    """

    label: str
    name: str | None
    value: object


def bases(value: object) -> tuple[type, ...]:
    """The classes of an object, its own first."""
    return _bases_of(type(value))


def namespace(kind: type) -> dict[str, object]:
    """What a class itself defines."""
    return _namespace_of(kind)


def is_a(value: object, *kinds: type) -> bool:
    """``isinstance`` that asks nobody."""
    # By id: a metaclass can define what == and hash() of its classes do.
    return not set(map(id, kinds)).isdisjoint(map(id, bases(value)))


def is_exactly(value: object, *kinds: type) -> bool:
    """One of these classes itself, not a subclass."""
    return any(type(value) is kind for kind in kinds)


def is_plain(value: object) -> bool:
    """A number, a text, bytes or None, which holds no other object."""
    return id(type(value)) in _PLAIN


def type_name(value: object) -> str:
    """Name of an object's class, with its package: ``numpy.Generator``."""
    kind = type(value)
    package, name = package_of(kind), name_of(kind)
    return name if package in ("builtins", "__main__") else f"{package}.{name}"


def module_of(kind: type) -> str:
    """Module that defines a class."""
    module = _module_of(kind)
    return module if type(module) is str else ""


def package_of(kind: type) -> str:
    """Top-level package that defines a class."""
    return module_of(kind).split(".")[0]


def stream_libraries() -> set[str]:
    """Packages that divide streams and seed generators in the workers by themselves."""
    found = {"litdata", "streaming", "torchdata", "webdataset"}
    # Many a project has a package of this name that is not Hugging Face's.
    module = sys.modules.get("datasets")
    if module is not None and "load_dataset" in vars(module):
        found.add("datasets")
    return found


def is_library(package: str) -> bool:
    """Whether a package is one of :data:`LIBRARIES`."""
    return package in LIBRARIES


def device_of(tensor: torch.Tensor) -> str:
    """Type of the device of a tensor, of a subclass too: ``cpu``, ``cuda``."""
    # Subclasses may answer attributes with code of their own.
    with torch._C.DisableTorchFunctionSubclass():
        return torch.Tensor.device.__get__(tensor).type


def is_object_array(value: object) -> bool:
    """An array of Python objects."""
    return is_a(value, np.ndarray) and np.ndarray.dtype.__get__(value).kind == "O"


def is_number_array(value: object) -> bool:
    """An array that holds its values itself: numbers, or texts of fixed width."""
    return is_a(value, np.ndarray) and not is_object_array(value)


def attributes(value: object) -> dict[str, object]:
    """An object's own attributes: those in its ``__dict__`` and its slots."""
    found: dict[str, object] = {}
    for kind in bases(value):
        own = namespace(kind)
        if "__slots__" not in own:
            continue
        for name, member in own.items():
            if type(member) is types.MemberDescriptorType:
                try:
                    found[name] = member.__get__(value)
                except AttributeError:  # a slot that was never filled
                    continue
    try:
        stored = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return found
    return {**found, **stored} if type(stored) is dict else found


def class_attributes(value: object) -> Iterator[Child]:
    """Data that an object's classes hold for all their instances."""
    # What an instance or a derived class defines anew is not seen any more.
    hidden = set(attributes(value))
    for kind in bases(value):
        if is_library(package_of(kind)):
            continue
        for name, member in namespace(kind).items():
            special = name.startswith("__") or name == "_abc_impl"
            data = not is_plain(member) and not is_a(member, *_DEFINITIONS)
            if data and not special and name not in hidden:
                yield Child(f".{name}", name, member)
        hidden.update(namespace(kind))


def elements(value: object) -> list[object] | None:
    """The elements of a sequence, set or array of objects; None: it is none."""
    if is_a(value, list):
        return list(list.__iter__(value))
    if is_a(value, tuple):
        return list(tuple.__iter__(value))
    if is_a(value, collections.deque):
        return list(collections.deque.__iter__(value))
    if is_a(value, set):
        return list(set.__iter__(value))
    if is_a(value, frozenset):
        return list(frozenset.__iter__(value))
    if is_object_array(value):
        return list(np.ndarray.ravel(np.ndarray.view(value, np.ndarray)))
    return None


def items(value: object) -> list[tuple[object, object]] | None:
    """Keys and values of a mapping; None: it is none."""
    return list(dict.items(value)) if is_a(value, dict) else None


def inside(value: object) -> list[Child]:
    """What an object holds besides the elements of containers."""
    # Most objects of most datasets are of these.
    if is_plain(value) or id(type(value)) in _CONTAINERS:
        return []
    if is_a(value, type, types.ModuleType):
        return []
    if _is_table(value):
        return _columns(value)
    if type(value) is types.FunctionType:
        return _inside_function(value)
    if type(value) is types.MethodType:
        bound = Child(".__self__", None, value.__self__)
        return [bound, Child(".__func__", None, value.__func__)]
    if type(value) is types.BuiltinFunctionType:
        return [Child(".__self__", None, value.__self__)]
    found = []
    if is_a(value, functools.partial):
        found = _inside_partial(value)
    for name, member in attributes(value).items():
        if name in MODULE_TABLES and is_a(value, torch.nn.Module):
            found += _members(member)
        else:
            found.append(Child(f".{name}", name, member))
    found += class_attributes(value)
    return found


def _inside_function(function: types.FunctionType) -> list[Child]:
    names = function.__code__.co_freevars
    found = []
    for name, cell in zip(names, function.__closure__ or (), strict=True):
        try:
            found.append(Child(f".<closure>.{name}", name, cell.cell_contents))
        except ValueError:  # a variable that was never set
            continue
    found += [
        Child(f".__defaults__[{position}]", None, default)
        for position, default in enumerate(function.__defaults__ or ())
    ]
    found += [
        Child(f".__kwdefaults__[{name!r}]", None, default)
        for name, default in (function.__kwdefaults__ or {}).items()
    ]
    # Decorators keep the original here.
    found += [Child(f".{name}", name, kept) for name, kept in vars(function).items()]
    return found


def _inside_partial(value: functools.partial) -> list[Child]:
    read = functools.partial.__dict__
    keywords = read["keywords"].__get__(value)
    found = [Child(".func", None, read["func"].__get__(value))]
    found += [
        Child(f".args[{position}]", None, argument)
        for position, argument in enumerate(read["args"].__get__(value))
    ]
    found += [
        Child(f".keywords[{name!r}]", None, argument)
        for name, argument in keywords.items()
    ]
    return found


def _members(table: object) -> list[Child]:
    """Submodules, parameters or buffers under the names that code uses."""
    return [
        Child(f"[{name}]" if name.isdigit() else f".{name}", name, member)
        for name, member in (items(table) or [])
        if type(name) is str
    ]


def _is_table(value: object) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and is_exactly(value, pandas.DataFrame, pandas.Series)


def _columns(table: Any) -> list[Child]:
    """Columns of Python objects of a pandas table, as arrays."""
    single = type(table).__name__ == "Series"
    columns = [("", table)] if single else list(table.items())
    return [
        Child("" if single else key_label(name, position), None, column.to_numpy())
        for position, (name, column) in enumerate(columns)
        if column.dtype == object
    ]


def key_label(key: object, position: int) -> str:
    """How an entry of a mapping is written; other keys than texts and numbers
    are not shown, because that would run their code."""
    return f"[{key!r}]" if is_exactly(key, str, int) else f"[key {position}]"
