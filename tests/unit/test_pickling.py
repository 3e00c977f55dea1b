"""The pickle check names the deepest fault, and sends nothing anywhere."""

import functools
import multiprocessing.pool
import threading
from pathlib import Path

import numpy as np
import pytest
import support_lint as support
import torch

from helpers.advise.objects import pickling
from helpers.advise.objects.pickling import check


def lock():
    return threading.Lock()


class Stateful:
    """Decides what is pickled."""

    def __init__(self, state: object, **held: object) -> None:
        vars(self).update(held)
        self.state = state

    def __getstate__(self) -> object:
        return {"made_up": self.state}


class Listing(list):
    """A list with an attribute."""


def listing(value):
    found = Listing([1, value])
    found.name = "x"
    return found


def module(value):
    found = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Identity())
    found[1].extra = value
    return found


FAULTS = {
    "itself": (lambda x: x, "root"),
    "attribute": (lambda x: support.Holder(a=x), "root.a"),
    "list": (lambda x: [1, [x]], "root[1][0]"),
    "dict": (lambda x: {"k": x}, "root['k']"),
    "attribute of a list": (listing, "root[1]"),
    "partial": (lambda x: functools.partial(print, x), "root.args[0]"),
    "keyword": (lambda x: functools.partial(print, a=x), "root.keywords['a']"),
    "method": (lambda x: support.Holder(a=x).__len__, "root.__self__.a"),
    "module": (module, "root[1].extra"),
    "made up": (lambda x: Stateful(x), "root.state"),
    "object array": (lambda x: np.array([0, x], object), "root[1]"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_the_path_leads_to_the_deepest_object(kind):
    make, path = FAULTS[kind]
    culprit = lock()
    result = check(make(culprit), "root")
    assert [fault.path for fault in result.faults] == [path]
    assert result.faults[0].value is culprit
    assert "_thread.lock" in result.faults[0].error


def test_a_state_that_was_made_for_the_pickle():
    fault = check(Stateful([lock()]), "root").faults[0]
    assert fault.path == "root.state[0]"

    class Fresh(Stateful):
        def __getstate__(self):
            return {"fresh": self.make()}

        def make(self):
            return lock()

    Fresh.__qualname__ = Fresh.__name__ = "Fresh"
    globals()["Fresh"] = Fresh
    assert check(Fresh(None), "root").faults[0].path == "root.fresh"


def test_what_is_left_out_of_the_pickle_does_no_harm():
    assert check(Stateful(1, lock=lock()), "root").faults == []
    assert check(support.Careful(lock=lock()), "root").faults == []


def test_the_nine_hundredth_element():
    values: list[object] = [(i, str(i)) for i in range(1000)]
    values[900] = (900, lock())
    assert [f.path for f in check(values, "root").faults] == ["root[900][1]"]


def test_several_faults_are_all_found_and_a_limit_holds():
    result = check({"a": lock(), "b": {"c": lock()}}, "root")
    assert [f.path for f in result.faults] == ["root['a']", "root['b']['c']"]
    assert len(check([lock() for _ in range(50)], "root").faults) == 10


def test_an_error_of_the_object_itself():
    fault = check([support.Refusing()], "root").faults[0]
    assert (fault.path, fault.error) == ("root[0]", "RuntimeError: not for sending")


def test_functions_and_classes_are_collected():
    named = check([support.pad, support.Holder()], "root").named
    assert support.pad in named and support.Holder in named


@pytest.mark.parametrize(
    "make",
    [
        multiprocessing.Lock,
        multiprocessing.Queue,
        lambda: multiprocessing.Value("i", 0),
        lambda: multiprocessing.Array("d", 3),
        lambda: torch.multiprocessing.get_context("spawn").Event(),
        torch.Generator,
        lambda: torch.nn.Linear(2, 2),
        lambda: torch.zeros(3).to_sparse(),
        lambda: Path("x"),
    ],
)
def test_what_can_be_sent_while_a_process_is_started(make):
    assert check([make()], "root").faults == []


def test_a_pool_cannot_be_sent():
    with multiprocessing.pool.ThreadPool(1) as pool:
        assert check([pool], "root").faults != []


def test_no_tensor_moves_into_shared_memory_and_no_array_is_copied(monkeypatch):
    tensor, array = torch.zeros(1000), np.zeros(1000)
    written = []
    monkeypatch.setattr(
        pickling._Nowhere, "write", lambda self, data: written.append(len(data))
    )
    subclass = torch.nn.Parameter(torch.zeros(1000))
    assert (
        check([tensor, array, subclass, tensor.untyped_storage()], "root").cut is None
    )
    assert not tensor.is_shared() and not subclass.is_shared()
    assert sum(written) < 2000


def test_the_time_is_limited():
    values = [str(i) for i in range(300_000)]
    result = check(values, "root", seconds=0)
    assert result.cut == "pickling took longer than 0 seconds at root"
    assert check(values, "root").cut is None
