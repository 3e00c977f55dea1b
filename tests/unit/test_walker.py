"""The walker finds every object, and runs no code of any of them."""

import collections
import functools
import sys

import numpy as np
import pandas as pd
import pytest
import support_lint as support
import torch
from torchvision.transforms import v2

from helpers.advise.objects import inert, walker
from helpers.advise.objects.object_sizes import long_containers, weigh
from helpers.advise.objects.walker import Limits, walk


class Target:
    """What the tests look for."""


def paths(root: object, kind: type = Target, **options) -> list[str]:
    found = walk({"root": root}, **options)
    return [node.path for node in found.of(kind)]


class Slotted:
    __slots__ = ("inner", "never_set")

    def __init__(self, inner: object) -> None:
        self.inner = inner


class Derived(Slotted):
    __slots__ = ("__private",)

    def __init__(self, inner: object) -> None:
        super().__init__(None)
        self.__private = inner


class Shared:
    target = Target()


def closing_over(target):
    def function():
        return target

    return function


def with_default(a=Target(), *, b=None):  # noqa: B008
    return a, b


def module_with(target):
    module = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Identity())
    module[1].extra = target
    return module


NESTED = {
    "attribute": (lambda t: support.Holder(a=t), "root.a"),
    "slot": (Slotted, "root.inner"),
    "private slot": (Derived, "root._Derived__private"),
    "list": (lambda t: [0, t], "root[1]"),
    "tuple": (lambda t: (t,), "root[0]"),
    "dict": (lambda t: {"k": {3: t}}, "root['k'][3]"),
    "odd key": (lambda t: {(1,): t}, "root[key 0]"),
    "key": (lambda t: {t: 1}, "root.keys()[0]"),
    "set": (lambda t: {t}, "root[0]"),
    "deque": (lambda t: collections.deque([t]), "root[0]"),
    "default dict": (lambda t: collections.defaultdict(int, a=t), "root['a']"),
    "object array": (lambda t: np.array([None, t], object), "root[1]"),
    "table": (lambda t: pd.DataFrame({"c": [1, 2], "t": [None, t]}), "root['t'][1]"),
    "series": (lambda t: pd.Series([None, t]), "root[1]"),
    "closure": (closing_over, "root.<closure>.target"),
    "partial": (lambda t: functools.partial(print, 0, t), "root.args[1]"),
    "keyword": (lambda t: functools.partial(print, a=t), "root.keywords['a']"),
    "method": (lambda t: Slotted(t).__init__, "root.__self__.inner"),
    "built-in method": (lambda t: [t].append, "root.__self__[0]"),
    "module": (module_with, "root[1].extra"),
    "compose": (lambda t: v2.Compose([v2.Identity(), t]), "root.transforms[1]"),
    "tensor": (
        lambda t: vars(tensor := torch.zeros(1)).update(a=t) or tensor,
        "root.a",
    ),
}


@pytest.mark.parametrize("kind", NESTED)
def test_every_way_to_hold_an_object(kind, monkeypatch):
    # v2.Compose wants transforms that can be called.
    monkeypatch.setattr(Target, "__call__", lambda self: None, raising=False)
    make, path = NESTED[kind]
    assert paths(make(Target())) == [path]


def test_attributes_of_a_class_and_defaults_of_a_function():
    assert paths(Shared()) == ["root.target"]
    assert paths(with_default) == ["root.__defaults__[0]"]


def test_circles_end_and_nothing_comes_twice():
    target = Target()
    circle = [target, target]
    circle.append(circle)
    assert paths(circle) == ["root[0]"]
    assert len(walk({"root": circle}).nodes) == 2


def explode(*arguments: object) -> None:
    raise AssertionError("code of the object was run")


class MetaEvil(type):
    """Even its class does not want to be looked at."""

    __getattribute__ = explode
    __hash__ = explode
    __eq__ = explode
    __instancecheck__ = explode
    __subclasscheck__ = explode


EVIL = (
    "__getattr__",
    "__getattribute__",
    "__len__",
    "__iter__",
    "__getitem__",
    "__eq__",
    "__bool__",
    "__repr__",
    "__str__",
    "__sizeof__",
    "__reduce__",
    "__reduce_ex__",
    "__getstate__",
    "__contains__",
    "__del__",
)
BODY = {name: explode for name in EVIL if name != "__del__"}
BODY |= {"__class__": property(explode), "value": property(explode)}


def evil(*bases: type, evil_class: bool = False, **held: object) -> object:
    """An object of a class that raises whatever is asked of it."""
    kind = MetaEvil if evil_class else type
    cls = kind("Evil", bases, {**BODY, "__hash__": explode})
    value = object.__new__(cls) if not bases else bases[0].__new__(cls)
    object.__getattribute__(value, "__dict__").update(held)
    return value


@pytest.mark.parametrize("base", [(), (list,), (dict,), (set,), (torch.nn.Module,)])
@pytest.mark.parametrize("evil_class", [False, True])
def test_no_code_of_an_object_is_run(base, evil_class):
    if evil_class and base == (torch.nn.Module,):
        base = ()
    value = evil(*base, evil_class=evil_class, inner=Target())
    found = walk({"root": [value] * 2})
    assert [node.path for node in found.of(Target)] == ["root[0].inner"]
    assert inert.type_name(value).endswith("Evil")
    weigh(value)


def test_evil_elements_of_long_containers():
    values = [evil(evil_class=True, inner=Target()) for _ in range(300)]
    found = walk({"root": values})
    assert found.of(Target)
    assert long_containers(found)[0].count == 300


def test_evil_tensors():
    class Evil(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *arguments, **more):
            explode()

    value = torch.Tensor._make_subclass(Evil, torch.zeros(2))
    assert paths({"a": value}, torch.Tensor) == ["root['a']"]
    assert inert.device_of(value) == "cpu"


def test_a_lone_odd_element_of_a_long_container_is_seen():
    for position in (0, 777, 4999):
        values: list[object] = [("name", i) for i in range(5000)]
        values[position] = Target()
        assert paths(values) == [f"root[{position}]"]
        assert paths(dict(enumerate(values))) == [f"root[{position}]"]


def test_long_containers_are_sampled():
    values = [[i] for i in range(10_000)]
    assert 200 < len(walk({"root": values}).nodes) < 300
    assert len(walk({"root": values}, sampled=None).nodes) == 10_001


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(depth=3), "nested deeper than 3 at root[0][0][0]"),
        (Limits(nodes=4), "more than 4 objects, stopped at root[0][0][0]"),
        (Limits(seconds=0), "took longer than 0 seconds, stopped at root"),
    ],
)
def test_limits_are_kept_and_told(limits, words):
    root: list = []
    for _ in range(10):
        root = [root]
    found = walk({"root": root}, limits)
    assert found.cut == words
    assert len(found.nodes) <= 4
    assert walk({"root": root}).cut is None


def test_a_logger_belongs_to_this_process():
    import logging

    logger = logging.getLogger("walked")
    handler = logging.StreamHandler()
    handler.extra = Target()
    logger.addHandler(handler)
    try:
        assert paths(support.Holder(logger=logger)) == []
    finally:
        logger.removeHandler(handler)


def texts(count: int) -> list[str]:
    lengths = np.random.default_rng(count).integers(5, 65, count).tolist()
    return ["x" * length for length in lengths]


def real_size(values: list) -> int:
    seen = {id(value): value for value in values}
    return sys.getsizeof(values) + sum(map(sys.getsizeof, seen.values()))


def test_bytes_of_a_long_list_are_estimated_within_six_percent():
    values = texts(200_000)
    assert weigh(values).objects == pytest.approx(real_size(values), rel=0.06)
    pairs = [(text, i) for i, text in enumerate(values)]
    real = real_size(values) + 200_000 * (sys.getsizeof((1, 2)) + sys.getsizeof(3000))
    assert weigh(pairs).objects == pytest.approx(real, rel=0.06)


def test_bytes_of_other_containers():
    values = texts(3000)
    keys = {text + str(i): i for i, text in enumerate(values)}
    real = sys.getsizeof(keys) + sum(map(sys.getsizeof, keys))
    real += 3000 * sys.getsizeof(3000)
    assert weigh(keys).objects == pytest.approx(real, rel=0.06)
    array = np.array(values, object)
    real = array.nbytes + sum(map(sys.getsizeof, values))
    assert weigh(array).objects == pytest.approx(real, rel=0.06)


def test_an_object_that_occurs_again_and_again_counts_once():
    text = "x" * 10_000
    assert weigh([text] * 5000).objects < 300_000
    assert weigh(texts(5000)).objects > 400_000


def test_arrays_are_weighed_apart():
    weight = weigh([np.zeros(1000) for _ in range(500)])
    assert weight.arrays == pytest.approx(500 * 8000)
    assert weight.objects < 500 * 200 + 10_000


def test_containers_inside_containers_are_not_counted_twice():
    inner = [texts(1000) for _ in range(300)]
    found = long_containers(walk({"root": inner}))
    assert [heap.path for heap in found] == ["root"]
    assert found[0].weight.objects == pytest.approx(
        sum(map(real_size, inner)) + sys.getsizeof(inner), rel=0.06
    )


def test_children_of_plain_values():
    assert list(walker.children(3)) == []
    assert list(walker.children("text")) == []
    assert list(walker.children(np.zeros(3))) == []
