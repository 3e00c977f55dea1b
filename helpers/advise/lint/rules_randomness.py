"""Rules about random numbers and the order of samples (DL1xx)."""

import dis
import functools
from collections.abc import Iterator
from types import FunctionType

from torch.utils.data import (
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from helpers.advise.lint.codes import finding
from helpers.advise.lint.findings import ERROR, NOTE, WARNING, Finding
from helpers.advise.lint.subject import Subject
from helpers.advise.objects import code_names, generators, inert, samplers
from helpers.advise.objects.walker import Node

#: Methods that put a generator into another state. The last could be an attribute
#: of anything, so it counts only right behind the generator's name.
_RESEEDS = ("manual_seed", "set_state", "setstate", "seed")
_MODULES = ("torch", "random", "np", "numpy", "cuda")

_SEEDERS = {
    "default_rng",
    "manual_seed",
    "manual_seed_all",
    "RandomState",
    "seed",
    "seed_all",
    "seed_everything",
    "set_random_seed",
    "set_seed",
}
#: What differs between workers and between epochs.
_FRESH = {
    "entropy",
    "getpid",
    "getrandbits",
    "initial_seed",
    "integers",
    "randbits",
    "randint",
    "random_",
    "randrange",
    "SystemRandom",
    "time",
    "time_ns",
    "token_bytes",
    "urandom",
}


def copied_generators(subject: Subject) -> Iterator[Finding]:
    """DL101: generator objects inside what goes to the workers."""
    for node in generators.in_walk(subject.walk):
        if subject.forks and generators.is_global(node.value):
            continue
        severity, how = _judged(subject, node)
        yield finding("DL101", severity, node.path, f"{_a(node.value)} {how}")
    for path, value in subject.names.constants.items():
        if generators.is_generator(value) and not generators.is_global(value):
            yield _global_generator(subject, path, value)


def _judged(subject: Subject, node: Node) -> tuple[str, str]:
    if not subject.workers:
        return NOTE, "that workers, once there are some, would all copy"
    if any(_package(holder) in inert.stream_libraries() for holder in node.ancestors()):
        return NOTE, "that belongs to a library, which should see to it itself"
    if _proven(subject, node.path):
        return ERROR, "from which two workers drew the same numbers"
    if _begins_apart(subject, node.path):
        return NOTE, "that begins with another state in each worker"
    if node.path.startswith("worker_init_fn"):
        return WARNING, "that worker_init_fn has the same copy of in every worker"
    if _is_handled(subject, node.name):
        return NOTE, "that the code seems to replace or seed anew in the workers"
    if node.name is not None and node.name not in subject.names.mentioned:
        return NOTE, "that no code of a worker seems to draw from"
    return WARNING, "that the workers copy and draw from"


def _global_generator(subject: Subject, path: str, value: object) -> Finding:
    name = path.rsplit(".", 1)[-1]
    if not subject.workers:
        severity, how = NOTE, "that workers, once there are some, would all copy"
    elif _is_handled(subject, name):
        severity = NOTE
        how = "that the code seems to replace or seed anew in the workers"
    elif subject.forks:
        severity, how = WARNING, "of a module, that forked workers copy"
    else:
        severity, how = NOTE, "of a module, that every worker makes anew"
    return finding("DL101", severity, path, f"{_a(value)} {how}")


def _is_handled(subject: Subject, name: str | None) -> bool:
    names, init = subject.names, subject.init_names
    reseeded = any((name, method) in names.pairs for method in _RESEEDS) or any(
        method in _RESEEDS[:-1] and holder not in _MODULES
        for holder, method in names.pairs
    )
    bits = (name, "bit_generator") in names.pairs and "state" in names.assigned
    return reseeded or bits or name in names.assigned or name in init.mentioned


def _proven(subject: Subject, path: str) -> bool:
    """Two workers ended in one state, which is not the one they began with."""
    reports = subject.reports
    if len(reports) < 2:
        return False
    before = {report.before.objects.get(path) for report in reports}
    after = {report.after.objects.get(path) for report in reports}
    return len(after) == 1 and None not in after and not after & before


def _begins_apart(subject: Subject, path: str) -> bool:
    """worker_init_fn, or unpickling, gave each worker a state of its own."""
    before = [report.before.objects.get(path) for report in subject.reports]
    return len(before) > 1 and None not in before and len(set(before)) > 1


def _package(node: Node) -> str:
    return inert.package_of(type(node.value))


def _a(value: object) -> str:
    return f"a {inert.type_name(value)}"


def fixed_seed(subject: Subject) -> Iterator[Finding]:
    """DL102: worker_init_fn undoes torch's seeds."""
    if subject.loader.worker_init_fn is None or not subject.workers:
        return
    seen = _seen_to_repeat(subject)
    if seen is not None:
        if seen:
            yield finding("DL102", ERROR, "worker_init_fn", seen)
        return
    init = subject.init_names
    seeders = sorted(_SEEDERS & init.mentioned)
    own_seed = {"get_worker_info", "seed"} <= init.mentioned
    if not seeders or own_seed or _FRESH & init.mentioned:
        return
    if any(_seeds_from_system(function) for function in init.functions):
        return
    if not _uses_worker_number(subject):
        what = f"calls {seeders[0]} with the same value in every worker"
    elif subject.loader.persistent_workers:
        return
    else:
        what = f"calls {seeders[0]} with the same value in every epoch"
    yield finding("DL102", WARNING, "worker_init_fn", what)


def _seen_to_repeat(subject: Subject) -> str | None:
    """What two epochs of two workers showed; empty if nothing repeated."""
    if not subject.reports:
        return None
    epochs = [[r.before.seeds for r in reports] for reports in subject.probed.epochs]
    if len(epochs) < 2 or min(map(len, epochs)) < 2:
        return None
    first, second = epochs[0][:2]
    later = epochs[1][0]
    same = [name for name in first if first[name] == second[name]]
    if same:
        return f"two workers began with the same state of {', '.join(same)}"
    same = [name for name in first if first[name] == later[name]]
    if same and not subject.loader.persistent_workers:
        return f"two epochs began with the same state of {', '.join(same)}"
    return ""


def _uses_worker_number(subject: Subject) -> bool:
    init = subject.loader.worker_init_fn
    bound = 0
    if inert.is_a(init, functools.partial):
        bound = len(functools.partial.__dict__["args"].__get__(init))
    for function in code_names.functions_in(init):
        code = function.__code__
        parameters = [n for n in code.co_varnames[: code.co_argcount] if n != "self"]
        number = parameters[bound] if len(parameters) > bound else ""
        return number in code_names.variables(code)
    # An object with __call__, or something in C: give it the benefit.
    return True


def _seeds_from_system(function: FunctionType) -> bool:
    """Calls a seeding function without an argument."""
    seeding = False
    for step in dis.get_instructions(function.__code__):
        if step.opname.startswith("CALL"):
            if seeding and not step.arg:
                return True
            seeding = False
        elif step.argval in _SEEDERS:
            seeding = True
        elif step.opname not in ("PRECALL", "PUSH_NULL", "CACHE"):
            seeding = False
    return False


def shuffled_evaluation(subject: Subject) -> Iterator[Finding]:
    """DL103: a random sampler in a loader for evaluation."""
    if subject.role != "eval":
        return
    for path, sampler in samplers.of(subject.loader):
        random = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)
        if inert.is_a(sampler, *random) or samplers.shuffles_by_epoch(sampler):
            what = f"a {inert.type_name(sampler)} in a loader for evaluation"
            yield finding("DL103", WARNING, path, what)


def forgotten_set_epoch(subject: Subject) -> Iterator[Finding]:
    """DL104: the loop never tells the sampler its epoch."""
    loop = subject.loop
    if loop is None or not loop.several_epochs or "set_epoch" in loop.mentioned:
        return
    for path, sampler in samplers.of(subject.loader):
        if samplers.shuffles_by_epoch(sampler):
            what = "the loop goes over several epochs and never calls set_epoch"
            yield finding("DL104", WARNING, path, what)


RULES = (copied_generators, fixed_seed, shuffled_evaluation, forgotten_set_epoch)
