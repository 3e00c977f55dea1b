"""Lint finds every planted fault, and says where it is."""

import functools
import gzip
import io
import os
import random
import socket
import subprocess
import sys
import tarfile
import threading
import types
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import support_lint as support
import torch
from torch.utils.data import (
    DataLoader,
    DistributedSampler,
    SequentialSampler,
    WeightedRandomSampler,
    get_worker_info,
)

from helpers.advise import doctor
from helpers.advise.lint import rules_memory, sample_probe, subject
from helpers.advise.lint.codes import RULES
from helpers.advise.lint.findings import ERROR, NOTE, WARNING
from helpers.pipeline import datasets
from tools import notebooks

METHODS = torch.multiprocessing.get_all_start_methods()
needs_fork = pytest.mark.skipif("fork" not in METHODS, reason="no fork here")
USUAL = "fork" if "fork" in METHODS else "spawn"
BOTH = pytest.mark.parametrize(
    "method", [pytest.param("fork", marks=needs_fork), "spawn"]
)


def loader(dataset, workers=2, method=USUAL, **more) -> DataLoader:
    more = {"batch_size": 2, **more}
    if "batch_sampler" in more or more["batch_size"] is None:
        del more["batch_size"]
        more |= {} if "batch_sampler" in more else {"batch_size": None}
    return DataLoader(dataset, **more, **support.options(workers, method))


def found(findings, code: str):
    """The finding with this code; there must be exactly one."""
    matching = [finding for finding in findings if finding.code == code]
    assert len(matching) == 1, f"{code} expected once:\n{findings}"
    return matching[0]


def lint_one(code: str, *arguments, lint=None, **options):
    return found(doctor.lint(loader(*arguments, **options), **(lint or {})), code)


def assert_silent(code: str, *arguments, lint=None, **options):
    findings = doctor.lint(loader(*arguments, **options), **(lint or {}))
    assert code not in findings.codes, str(findings)


PROBE = {"probe": "worker"}

# --- 1xx randomness and order -----------------------------------------------

GENERATORS = {
    "numpy": lambda: np.random.default_rng(0),
    "legacy": lambda: np.random.RandomState(0),
    "torch": torch.Generator,
    "random": lambda: random.Random(0),
}


@pytest.mark.parametrize("kind", GENERATORS)
@BOTH
def test_a_generator_on_the_dataset(kind, method):
    dataset = support.Draws(GENERATORS[kind]())
    finding = lint_one("DL101", dataset, method=method)
    assert (finding.severity, finding.path) == (WARNING, "dataset.rng")


@pytest.mark.parametrize("kind", GENERATORS)
def test_two_workers_that_draw_the_same_numbers_prove_it(kind):
    dataset = support.Draws(GENERATORS[kind]())
    finding = lint_one("DL101", dataset, lint=PROBE)
    assert finding.severity == ERROR
    assert "two workers drew the same" in finding.what


def test_two_spawned_workers_that_draw_the_same_numbers():
    dataset = support.Draws(np.random.default_rng(0))
    assert lint_one("DL101", dataset, method="spawn", lint=PROBE).severity == ERROR


def test_a_generator_in_a_transform_in_a_list():
    dataset = support.Transformed(torch.nn.Identity())
    dataset.transform = functools.partial(support.Noisy())
    assert lint_one("DL101", dataset).path == "dataset.transform.func.rng"


def test_a_generator_in_a_partial_collate_function():
    collate = functools.partial(support.collate_drawing, rng=np.random.default_rng(0))
    finding = lint_one("DL101", support.ready(8), collate_fn=collate)
    assert (finding.severity, finding.path) == (WARNING, "collate_fn.keywords['rng']")


def test_a_generator_in_a_closure():
    rng = np.random.default_rng(0)

    def collate(samples):
        return rng.random(len(samples))

    finding = lint_one("DL101", support.ready(8), collate_fn=collate)
    assert (finding.severity, finding.path) == (WARNING, "collate_fn.<closure>.rng")


def test_a_generator_that_worker_init_fn_draws_from():
    rng = random.Random(0)

    def init(worker):
        return rng.random()

    finding = lint_one("DL101", support.ready(8), worker_init_fn=init)
    assert finding.severity == WARNING
    assert finding.path == "worker_init_fn.<closure>.rng"


def test_a_generator_that_begins_with_another_state_in_each_worker():
    def init(worker):
        info = get_worker_info()
        setattr(info.dataset, "".join(["r", "ng"]), random.Random(info.seed))

    dataset = support.Draws(random.Random(0))
    finding = lint_one("DL101", dataset, worker_init_fn=init, lint=PROBE)
    assert (finding.severity, finding.path) == (NOTE, "dataset.rng")
    assert "another state" in finding.what


def test_a_generator_of_a_class():
    class Shared(support.Draws):
        rng = np.random.default_rng(0)

        def __init__(self):
            pass

    finding = lint_one("DL101", Shared())
    assert (finding.severity, finding.path) == (WARNING, "dataset.rng")


@BOTH
def test_a_generator_of_a_module(method):
    finding = lint_one("DL101", support.DrawsGlobally(), method=method)
    assert finding.path == "support_lint.RNG"
    assert finding.severity == (WARNING if method == "fork" else NOTE)


@pytest.mark.parametrize(
    ("dataset", "more"),
    [
        (support.DrewOnce(np.random.default_rng(0)), {}),
        (support.Reseeded(), {}),
        (support.Renewed(np.random.default_rng(0)), {}),
        (
            support.Draws(np.random.default_rng(0)),
            {"worker_init_fn": support.renew_rng},
        ),
        (support.Draws(np.random.default_rng(0)), {"workers": 0}),
    ],
    ids=["drew once", "reseeded", "renewed", "renewed by init", "no workers"],
)
@pytest.mark.parametrize("probe", ["none", "worker"])
def test_a_generator_that_does_no_harm_is_a_note(dataset, more, probe):
    finding = lint_one("DL101", dataset, lint={"probe": probe}, **more)
    assert finding.severity == NOTE


@needs_fork
def test_the_global_generators_are_seeded_by_torch():
    dataset = support.Holder(
        a=torch.default_generator,
        b=np.random.mtrand._rand,
        c=random._inst,
        d=random.SystemRandom(),
    )
    assert_silent("DL101", dataset)


def test_a_generator_in_the_sampler_is_in_its_place():
    assert_silent("DL101", support.ready(8), sampler=support.drawing_sampler())


@pytest.mark.parametrize(
    ("init", "words"),
    [
        (support.seed_fixed, "every worker"),
        (functools.partial(support.seed_bound, 7), "every worker"),
        (support.seed_by_number, "every epoch"),
        (support.seed_by_state, "every epoch"),
    ],
)
def test_a_fixed_seed(init, words):
    finding = lint_one("DL102", support.ready(8), worker_init_fn=init)
    assert (finding.severity, finding.path) == (WARNING, "worker_init_fn")
    assert words in finding.what


@pytest.mark.parametrize(
    ("init", "words"),
    [
        (support.seed_fixed, "two workers began with the same state of torch"),
        (support.seed_by_state, "two epochs began with the same state of numpy"),
    ],
)
def test_two_epochs_of_two_workers_prove_it(init, words):
    finding = lint_one("DL102", support.ready(8), worker_init_fn=init, lint=PROBE)
    assert finding.severity == ERROR
    assert words in finding.what


@pytest.mark.parametrize(
    "init", [support.seed_numpy, support.seed_from_system, support.renew_rng]
)
@pytest.mark.parametrize("probe", ["none", "worker"])
def test_a_seed_that_is_not_fixed(init, probe):
    lint = {"probe": probe}
    assert_silent("DL102", support.ready(8), worker_init_fn=init, lint=lint)


@pytest.mark.parametrize("probe", ["none", "worker"])
def test_persistent_workers_go_on_from_their_seed(probe):
    more = {"worker_init_fn": support.seed_by_number, "persistent_workers": True}
    assert_silent("DL102", support.ready(8), lint={"probe": probe}, **more)


def sampler_of(kind: str):
    return {
        "random": support.drawing_sampler(),
        "weighted": WeightedRandomSampler([1.0] * 8, 8),
        "subset": torch.utils.data.SubsetRandomSampler(range(4)),
        "distributed": DistributedSampler(range(8), 2, 0),
    }[kind]


@pytest.mark.parametrize("kind", ["random", "weighted", "subset", "distributed"])
def test_a_random_sampler_for_evaluation(kind):
    more = {"sampler": sampler_of(kind)}
    finding = lint_one("DL103", support.ready(8), lint={"role": "eval"}, **more)
    assert (finding.severity, finding.path) == (WARNING, "sampler")
    assert_silent("DL103", support.ready(8), lint={"role": "train"}, **more)
    assert_silent("DL103", support.ready(8), **more)


def test_a_random_sampler_inside_a_batch_sampler():
    batches = support.batches_of(support.drawing_sampler(), 2, False)
    more = {"batch_sampler": batches, "lint": {"role": "eval"}}
    finding = lint_one("DL103", support.ready(8), **more)
    assert finding.path == "batch_sampler.sampler"


def test_samplers_in_order_are_for_evaluation():
    fixed = DistributedSampler(range(8), 2, 0, shuffle=False)
    for sampler in (SequentialSampler(range(8)), fixed):
        more = {"sampler": sampler, "lint": {"role": "eval"}}
        assert_silent("DL103", support.ready(8), **more)


FORGETFUL = """
for epoch in range(3):
    for batch in loader:
        step(batch)
"""
REMEMBERS = FORGETFUL.replace(
    "    for batch", "    loader.sampler.set_epoch(epoch)\n    for batch"
)
ONE_EPOCH = "for batch in loader:\n    step(batch)\n"


def forgetful(loader):
    for _ in range(3):
        for batch in loader:
            print(batch)


def begin_epoch(loader, epoch):
    loader.sampler.set_epoch(epoch)


def remembers(loader):
    for epoch in range(3):
        begin_epoch(loader, epoch)
        for batch in loader:
            print(batch)


@pytest.mark.parametrize("loop", [FORGETFUL, forgetful], ids=["text", "function"])
def test_a_loop_without_set_epoch(loop):
    more = {"sampler": sampler_of("distributed"), "lint": {"loop": loop}}
    finding = lint_one("DL104", support.ready(8), **more)
    assert (finding.severity, finding.path) == (WARNING, "sampler")


@pytest.mark.parametrize(
    "loop", [REMEMBERS, ONE_EPOCH, remembers, None], ids=["text", "one", "calls", "no"]
)
def test_loops_that_are_in_order(loop):
    more = {"sampler": sampler_of("distributed"), "lint": {"loop": loop}}
    assert_silent("DL104", support.ready(8), **more)


def test_only_a_sampler_that_shuffles_needs_its_epoch():
    fixed = DistributedSampler(range(8), 2, 0, shuffle=False)
    for more in ({"sampler": fixed}, {"shuffle": True}):
        assert_silent("DL104", support.ready(8), lint={"loop": FORGETFUL}, **more)


# --- 2xx worker processes ---------------------------------------------------

SEVERITY = {"fork": WARNING, "spawn": ERROR}


@BOTH
def test_a_lock_deep_inside(method):
    noisy = support.Noisy()
    noisy.lock = threading.Lock()
    transform = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Identity())
    transform.steps = [1, 2, {"last": noisy}]
    dataset = support.Transformed(transform)
    finding = lint_one("DL201", dataset, method=method)
    assert finding.severity == SEVERITY[method]
    assert finding.path == "dataset.transform.steps[2]['last'].lock"
    assert "_thread.lock" in finding.what
    assert "__getstate__" in finding.fix


def test_an_object_that_refuses():
    finding = lint_one("DL201", support.Holder(inner=[support.Refusing()]))
    assert finding.path == "dataset.inner[0]"
    assert "not for sending" in finding.what


def test_several_objects_that_cannot_be_pickled():
    dataset = support.Holder(a=threading.Lock(), b=(i for i in "ab"))
    findings = doctor.lint(loader(dataset))
    paths = [finding.path for finding in findings if finding.code == "DL201"]
    assert paths == ["dataset.a", "dataset.b"]


def test_without_workers_it_is_only_a_note():
    dataset = support.Holder(lock=threading.Lock())
    assert lint_one("DL201", dataset, workers=0).severity == NOTE


@BOTH
def test_a_lambda(method):
    finding = lint_one(
        "DL202", support.ready(8), method=method, collate_fn=lambda samples: samples
    )
    assert (finding.severity, finding.path) == (SEVERITY[method], "collate_fn")


@BOTH
def test_a_local_worker_init_fn(method):
    def init(worker):
        pass

    more = {"worker_init_fn": init}
    finding = lint_one("DL202", support.ready(8), method=method, **more)
    assert (finding.severity, finding.path) == (SEVERITY[method], "worker_init_fn")
    assert "function init" in finding.what


def test_an_object_of_a_local_class():
    class Local:
        pass

    finding = lint_one("DL202", support.Holder(inner=[Local()]))
    assert finding.path == "dataset.inner[0]"
    assert "class Local" in finding.what


SESSION = """
import multiprocessing, sys
import torch
from helpers.advise import doctor

class Mine(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return index

if __name__ == "__main__":
    for method in sys.argv[1:]:
        loader = torch.utils.data.DataLoader(
            Mine(), num_workers=1, multiprocessing_context=method
        )
        for finding in doctor.lint(loader):
            print(finding.code, finding.severity, finding.path, finding.what)
"""


def session(*arguments: str, text: str | None = None) -> list[str]:
    methods = [method for method in ("fork", "spawn") if method in METHODS]
    run = subprocess.run(
        [sys.executable, *arguments, *methods],
        env={**os.environ, "PYTHONPATH": str(notebooks.ROOT)},
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.splitlines()


@needs_fork
def test_a_class_of_an_interactive_session():
    assert session("-", text=SESSION) == [
        "DL203 warning dataset Mine of this session cannot be imported",
        "DL203 error dataset Mine of this session cannot be imported",
    ]


def test_a_class_of_a_script_can_be_imported(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SESSION)
    assert session(str(script)) == []


class H5File:
    """Stands for an HDF5 file, whose library need not be installed."""


H5File.__module__, H5File.__qualname__ = "h5py._hl.files", "File"
H5File.__name__ = "File"


class Environment:
    """Stands for an LMDB environment."""


Environment.__module__ = "lmdb.cpython"


def opened(kind: str, folder):
    if kind == "h5py":
        return H5File()
    if kind == "lmdb":
        return Environment()
    if kind == "socket":
        return socket.socket()
    path = folder / "file"
    if kind == "zip":
        zipfile.ZipFile(path, "w").close()
        return zipfile.ZipFile(path)
    if kind == "tar":
        tarfile.TarFile(path, "w").close()
        return tarfile.TarFile(path)
    if kind == "sqlite":
        return support.connect(path)
    path.write_bytes(b"data")
    if kind == "gzip":
        return gzip.open(path, "wb")
    return open(path, kind)


HANDLES = ["r", "rb", "r+b", "sqlite", "h5py", "lmdb", "zip", "tar", "socket"]


@pytest.mark.parametrize("kind", HANDLES)
@BOTH
def test_an_open_handle(kind, method, tmp_path):
    handle = opened(kind, tmp_path)
    dataset = support.Holder(source={"file": handle})
    findings = doctor.lint(loader(dataset, method=method))
    finding = found(findings, "DL204")
    assert finding.severity == SEVERITY[method]
    assert finding.path == "dataset.source['file']"
    # One fault, one finding; the stand-ins belong to a module that is not there.
    assert "DL201" not in findings.codes
    if kind not in ("h5py", "lmdb"):
        handle.close()


def test_a_compressed_file(tmp_path):
    with opened("gzip", tmp_path) as handle:
        finding = lint_one("DL204", support.Holder(file=handle))
        assert finding.path.startswith("dataset.file.")


@pytest.mark.parametrize("kind", ["r", "rb", "sqlite", "zip", "tar", "socket"])
def test_a_handle_that_is_closed(kind, tmp_path):
    handle = opened(kind, tmp_path)
    handle.close()
    assert_silent("DL204", support.Holder(file=handle))


def test_what_is_no_handle(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(4))
    dataset = support.Holder(
        buffer=io.BytesIO(b"a"),
        text=io.TextIOWrapper(io.BytesIO(b"a")),
        mapped=np.load(tmp_path / "a.npy", mmap_mode="r"),
        stream=sys.stderr,
    )
    assert_silent("DL204", dataset)


def test_handles_do_no_harm_without_workers(tmp_path):
    with opened("rb", tmp_path) as handle:
        assert_silent("DL204", support.Holder(file=handle), workers=0)


@BOTH
def test_a_class_that_leaves_its_handle_out(method, tmp_path):
    with opened("rb", tmp_path) as handle:
        finding = lint_one("DL204", support.Careful(file=handle), method=method)
        assert finding.severity == NOTE


@BOTH
def test_tensors_on_an_accelerator(method):
    dataset = support.Holder(images=[support.CudaTensor(), support.CudaTensor()])
    finding = lint_one("DL205", dataset, method=method)
    assert finding.severity == (ERROR if method == "fork" else WARNING)
    assert finding.path == "dataset.images[0]"
    assert finding.what == "a tensor on cuda, and 1 more"


def test_tensors_on_the_cpu_are_in_their_place():
    assert_silent("DL205", support.ready(8))
    dataset = support.Holder(images=[support.CudaTensor()])
    assert_silent("DL205", dataset, workers=0)


def test_a_setter_and_persistent_workers():
    more = {"persistent_workers": True}
    finding = lint_one("DL206", support.Epochs(), **more)
    assert (finding.severity, finding.path) == (NOTE, "dataset.epoch")
    loop = "for e in range(3):\n    loader.dataset.set_epoch_number(e)\n"
    finding = lint_one("DL206", support.Epochs(), lint={"loop": loop}, **more)
    assert finding.severity == WARNING
    assert_silent("DL206", support.Epochs())
    unread = type("Unread", (support.Epochs,), {"__getitem__": lambda self, i: i})
    assert_silent("DL206", unread(), **more)
    assert_silent("DL206", support.Companions(), **more)


def test_a_batch_that_cannot_be_sent():
    more = {"collate_fn": support.give_lambda, "lint": PROBE}
    finding = lint_one("DL207", support.ready(8), **more)
    assert (finding.severity, finding.path) == (ERROR, "batch")
    assert_silent("DL207", support.ready(8), workers=0, **more)


# --- 3xx data flow and length -----------------------------------------------


@pytest.mark.parametrize("kind", [support.Whole, support.WholeShuffled])
@BOTH
def test_a_stream_that_is_not_divided(kind, method):
    finding = lint_one("DL301", kind(), method=method)
    assert (finding.severity, finding.path) == (WARNING, "dataset")


def test_a_stream_that_is_not_divided_is_proven_by_equal_batches():
    assert lint_one("DL301", support.Whole(), lint=PROBE).severity == ERROR


def test_a_stream_inside_another_one():
    chain = torch.utils.data.ChainDataset([support.Whole()])
    assert lint_one("DL301", chain).severity == WARNING


def of_module(module: str, kind: type) -> type:
    """A class like ``kind`` that says it comes from ``module``."""
    name = f"Of{module.replace('.', '')}"
    made = type(name, (kind,), {"__module__": module, "__init__": lambda self: None})
    made.records, made.rng = range(4), None
    return made


def test_libraries_divide_their_streams_themselves(monkeypatch):
    assert_silent("DL301", of_module("webdataset.pipeline", support.Whole)())
    nested = torch.utils.data.ChainDataset([support.Whole()])
    nested.source = of_module("torchdata.nodes", support.Holder)()
    assert_silent("DL301", nested)
    own = of_module("datasets.mine", support.Whole)()
    assert lint_one("DL301", own).severity == WARNING
    theirs = types.SimpleNamespace(load_dataset=None)
    monkeypatch.setitem(sys.modules, "datasets", theirs)
    assert_silent("DL301", own)


def test_data_pipes_have_ways_of_their_own():
    class Pipe(torch.utils.data.IterDataPipe):
        def __iter__(self):
            yield from range(8)

    assert_silent("DL301", Pipe())


def test_libraries_seed_their_generators_themselves():
    stream = of_module("webdataset.filters", support.Draws)()
    stream.rng = random.Random(0)
    assert lint_one("DL101", stream).severity == NOTE


def test_a_stream_with_one_worker_or_a_worker_init_fn():
    assert_silent("DL301", support.Whole(), workers=1)
    assert_silent("DL301", support.Whole(), worker_init_fn=support.seed_numpy)


def test_samples_that_are_never_evaluated():
    more = {"drop_last": True, "batch_size": 3}
    finding = lint_one("DL302", support.ready(8), lint={"role": "eval"}, **more)
    assert finding.severity == WARNING
    assert finding.what == "drop_last=True leaves out 2 of 8"
    assert_silent("DL302", support.ready(9), lint={"role": "eval"}, **more)
    assert_silent("DL302", support.ready(8), lint={"role": "train"}, **more)


def test_samples_that_no_rank_evaluates():
    more = {"sampler": DistributedSampler(range(9), 2, 0, False, drop_last=True)}
    finding = lint_one("DL302", support.ready(9), lint={"role": "eval"}, **more)
    assert (finding.path, finding.what) == (
        "sampler.drop_last",
        "drop_last=True leaves out 1 of 9",
    )


def test_records_of_a_stream_that_are_never_evaluated():
    more = {"drop_last": True, "lint": {"role": "eval"}}
    assert lint_one("DL302", support.Divided(), **more).path == "drop_last"


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_without_batches(workers):
    more = {"batch_size": 9, "drop_last": True, "workers": workers}
    finding = lint_one("DL303", support.ready(8), **more)
    assert finding.severity == ERROR
    assert "0 batches from 8 samples" in finding.what
    assert_silent("DL303", support.ready(9), **more)


def test_workers_that_drop_all_they_have():
    more = {"batch_size": 13, "drop_last": True}
    finding = lint_one("DL303", support.Divided(24), **more)
    assert "2 workers have at most 12 each" in finding.what
    assert_silent("DL303", support.Divided(26), **more)
    assert_silent("DL303", support.Whole(24), **more)
    assert "0 batches" in lint_one("DL303", support.Whole(12), **more).what


def test_a_last_batch_of_one():
    lint = {"role": "train"}
    finding = lint_one("DL304", support.ready(9), batch_size=4, lint=lint)
    assert finding.severity == NOTE
    assert_silent("DL304", support.ready(9), batch_size=4, drop_last=True, lint=lint)
    assert_silent("DL304", support.ready(10), batch_size=4, lint=lint)
    assert_silent("DL304", support.ready(9), batch_size=1, lint=lint)
    assert_silent("DL304", support.ready(9), batch_size=4, lint={"role": "eval"})


def weighted(count: int) -> WeightedRandomSampler:
    return WeightedRandomSampler(torch.ones(count), 8)


@pytest.mark.parametrize("count", [2, 7, 9])
def test_weights_that_are_not_one_per_sample(count):
    finding = lint_one("DL305", support.ready(8), sampler=weighted(count))
    assert (finding.severity, finding.path) == (ERROR, "sampler.weights")
    assert finding.what.startswith(f"{count} weights for 8 samples")
    assert_silent("DL305", support.ready(8), sampler=weighted(8))


@pytest.mark.parametrize(
    ("held", "words"),
    [
        ({"classes": ["cat", "dog"]}, "as many classes: cat, dog"),
        ({"labels": torch.tensor([0, 1] * 4)}, "dataset.labels has as many different"),
        ({"targets": np.array([0, 1] * 4)}, "dataset.targets has as many different"),
        ({"targets": [0, 1] * 4}, "dataset.targets has as many different"),
    ],
)
def test_weights_of_classes_are_recognised(held, words):
    dataset = support.Holder(**held)
    assert words in lint_one("DL305", dataset, sampler=weighted(2)).what


def test_weights_inside_a_batch_sampler():
    more = {"batch_sampler": support.batches_of(weighted(2), 2, False)}
    finding = lint_one("DL305", support.ready(8), **more)
    assert finding.path == "batch_sampler.sampler.weights"


@pytest.mark.parametrize("workers", [0, 2])
def test_a_dataset_that_fails(workers):
    finding = lint_one("DL306", support.Fails(), workers=workers, lint=PROBE)
    assert finding.severity == ERROR
    assert "KeyError: 'no such record'" in finding.what


def test_a_sampler_that_fails():
    more = {"sampler": support.BrokenSampler(), "lint": PROBE}
    what = lint_one("DL306", support.ready(8), **more).what
    assert what == "the sampler: IndexError: no indices"


def test_double_precision():
    dataset = support.Values({"x": 0.5, "y": np.zeros(2), "z": torch.zeros(2)})
    finding = lint_one("DL307", dataset, lint=PROBE)
    assert finding.severity == NOTE
    assert finding.what == "float64 in batch['x'], batch['y']"
    assert_silent("DL307", support.ready(8), lint=PROBE)


# --- 4xx memory -------------------------------------------------------------


def a_machine(monkeypatch, **offers) -> None:
    here = {
        "cores": 2.0,
        "shm_free": 2**33,
        "memory_free": 2**33,
        "accelerator": False,
        **offers,
    }
    monkeypatch.setattr(subject.Here, "now", lambda: subject.Here(**here))


@BOTH
def test_a_long_list_of_objects(method, monkeypatch):
    a_machine(monkeypatch, memory_free=2**30)
    names = [f"images/{i:08d}.jpg" for i in range(1_700_000)]
    size = sum(map(sys.getsizeof, names[:1000])) * 1700 + sys.getsizeof(names)
    dataset = support.Holder(names=names)
    finding = lint_one("DL401", dataset, method=method)
    assert (finding.severity, finding.path) == (WARNING, "dataset.names")
    assert "1,700,000 Python objects" in finding.what
    assert f"up to {2 * size / 1e6:.0f} MB" in finding.what
    assert_silent("DL401", dataset, workers=0)
    a_machine(monkeypatch, memory_free=10**10)
    assert_silent("DL401", dataset)


@pytest.mark.parametrize(
    ("held", "path"),
    [
        ({"rows": {f"k{i}": f"v{i}" for i in range(3000)}}, "dataset.rows"),
        ({"rows": np.array([f"v{i}" for i in range(3000)], object)}, "dataset.rows"),
        (
            {
                "table": pd.DataFrame(
                    {"name": pd.Series([f"v{i}" for i in range(3000)], dtype=object)}
                )
            },
            "dataset.table['name']",
        ),
        ({"groups": [[f"v{i}" for i in range(3000)]] * 3}, "dataset.groups[0]"),
    ],
    ids=["dict", "array", "table", "nested"],
)
def test_other_long_containers_of_objects(held, path, monkeypatch):
    monkeypatch.setattr(rules_memory, "_COPIES_AT_LEAST", 200_000)
    monkeypatch.setattr(rules_memory, "_COPIES_SHARE", 0)
    assert lint_one("DL401", support.Holder(**held)).path == path
    assert_silent("DL401", support.Holder(rows=np.zeros(100_000)))


def test_large_arrays_are_pickled_where_workers_are_spawned(monkeypatch, tmp_path):
    a_machine(monkeypatch, memory_free=2**30)
    pixels = np.lib.format.open_memmap(tmp_path / "a.npy", "w+", shape=(17_000_000,))
    finding = lint_one("DL402", support.Holder(pixels=pixels), method="spawn")
    assert (finding.severity, finding.path) == (WARNING, "dataset.pixels")
    assert "a memory map among them" in finding.what
    tensor = torch.zeros(17_000_000, dtype=torch.float64)
    assert_silent("DL402", support.Holder(pixels=tensor), method="spawn")
    assert_silent("DL402", support.Holder(pixels=pixels), workers=0)


@needs_fork
def test_forked_workers_share_arrays(monkeypatch):
    a_machine(monkeypatch, memory_free=2**30)
    dataset = support.Holder(pixels=np.zeros(17_000_000))
    assert_silent("DL402", dataset, method="fork")


def test_arrays_in_a_long_list_are_pickled(monkeypatch):
    a_machine(monkeypatch, memory_free=2**30)
    images = [np.zeros(60_000) for _ in range(300)]
    assert (
        lint_one("DL402", support.Holder(images=images), method="spawn").path
        == "dataset.images"
    )


def test_views_of_large_storages():
    more = {"batch_size": None, "lint": PROBE}
    finding = lint_one("DL403", support.Clip(), **more)
    assert finding.severity == WARNING
    assert finding.what == "0.0 MB are used of storages of 4.2 MB"
    assert lint_one("DL403", support.Clip(), workers=0, **more).severity == NOTE
    assert_silent("DL403", support.Clip(clone=True), **more)
    assert_silent("DL403", support.Values(torch.zeros(3, 2**20)[0]), **more)
    assert_silent("DL403", support.Clip(), lint=PROBE)


@pytest.mark.parametrize(
    ("free", "severity"),
    [(30_000, ERROR), (50_000, WARNING), (70_000, None)],
)
def test_bytes_in_flight_against_shared_memory(free, severity, monkeypatch):
    # Two samples of 1024 float32 in each of 2 * 2 batches: 32 kB.
    a_machine(monkeypatch, shm_free=free)
    dataset = support.Values(torch.zeros(1024))
    if severity is None:
        assert_silent("DL404", dataset, lint=PROBE)
    else:
        assert lint_one("DL404", dataset, lint=PROBE).severity == severity


@pytest.mark.parametrize(("free", "told"), [(120_000, True), (140_000, False)])
def test_bytes_in_flight_against_memory(free, told, monkeypatch):
    a_machine(monkeypatch, shm_free=None, memory_free=free)
    dataset = support.Values(torch.zeros(1024))
    findings = doctor.lint(loader(dataset), probe="worker")
    assert ("DL404" in findings.codes) is told
    assert_silent("DL404", dataset, workers=0, lint=PROBE)


# --- 5xx cost and settings --------------------------------------------------


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_more_workers_than_cores(monkeypatch):
    a_machine(monkeypatch, cores=1.5)
    finding = lint_one("DL501", support.ready(8))
    assert finding.severity == NOTE
    assert finding.what == "2 workers on 1.5 usable cores"
    assert_silent("DL501", support.ready(8), workers=1)


def test_pinning_without_an_accelerator(monkeypatch):
    a_machine(monkeypatch)
    finding = lint_one("DL502", support.ready(8), pin_memory=True)
    assert (finding.severity, finding.path) == (NOTE, "pin_memory")
    assert_silent("DL502", support.ready(8))
    a_machine(monkeypatch, accelerator=True)
    assert_silent("DL502", support.ready(8), pin_memory=True)


# torch's iterator is not ready to be deleted before it is ready.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_prefetch_factor_of_zero_or_none():
    zero = loader(support.ready(8), prefetch_factor=0)
    none = loader(support.ready(8), workers=0)
    none.num_workers = 2
    for one in (zero, none):
        finding = found(doctor.lint(one), "DL503")
        assert (finding.severity, finding.path) == (ERROR, "prefetch_factor")
        with pytest.raises((AssertionError, TypeError)):
            next(iter(one))
    assert_silent("DL503", support.ready(8), workers=0)


def test_a_timeout_without_workers():
    finding = lint_one("DL504", support.ready(8), workers=0, timeout=3)
    assert (finding.severity, finding.path) == (ERROR, "timeout")
    assert_silent("DL504", support.ready(8), timeout=3)


def test_very_many_tensors():
    more = {"collate_fn": support.keep, "lint": PROBE}
    dataset = support.Values(torch.zeros(2))
    finding = lint_one("DL505", dataset, batch_size=300, **more)
    assert (finding.severity, finding.what) == (WARNING, "300 tensors in one batch")
    assert_silent("DL505", dataset, batch_size=250, **more)
    assert_silent("DL505", dataset, batch_size=300, workers=0, **more)


def test_arrays_in_a_batch():
    more = {"collate_fn": support.keep, "lint": PROBE}
    dataset = support.Values(np.zeros(100_000, np.float32))
    finding = lint_one("DL506", dataset, batch_size=4, **more)
    assert finding.severity == NOTE
    assert "1.6 MB" in finding.what
    assert_silent("DL506", dataset, batch_size=2, **more)


# --- 9xx what was not examined ----------------------------------------------


def test_a_loader_with_too_many_objects():
    inner: object = "end"
    for _ in range(70):
        inner = [inner]
    finding = lint_one("DL901", support.Holder(inner=inner))
    assert finding.severity == NOTE
    assert "nested deeper than 60" in finding.what


def test_a_worker_that_hangs_is_ended(monkeypatch):
    monkeypatch.setattr(sample_probe, "PATIENCE_S", 1.0)
    finding = lint_one("DL902", support.Hangs(), lint=PROBE)
    assert finding.severity == NOTE
    assert "no batch came within 1 seconds" in finding.what


def test_a_worker_that_dies():
    what = lint_one("DL902", support.Dies(), lint=PROBE).what
    assert what.startswith("the worker ended")


def test_a_worker_that_cannot_be_started(capfd):
    dataset = support.Holder(lock=threading.Lock())
    finding = lint_one("DL902", dataset, method="spawn", lint=PROBE)
    assert finding.what == "a worker cannot be started, see DL201"
    assert capfd.readouterr().err == ""


def test_a_sampler_that_cannot_be_copied():
    more = {"sampler": support.UncopiableSampler(), "lint": PROBE}
    what = lint_one("DL902", support.ready(8), **more).what
    assert "one of a kind" in what


def test_every_code_has_a_test():
    """By its name in this file: a new rule needs a test of its own."""
    text = Path(__file__).read_text(encoding="utf-8")
    assert [code for code in RULES if f'"{code}' not in text] == []


def test_in_memory_images_of_the_book_are_healthy_under_fork():
    assert doctor.lint(loader(datasets.InMemory(16))) == []
