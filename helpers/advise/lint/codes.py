"""The register of everything that lint and watch can find.

Codes never change their meaning. Hundreds group them: 1 randomness and order,
2 worker processes, 3 data flow and length, 4 memory, 5 cost and settings, 9 what
was not examined. ``python -m tools.lint_page`` writes the page of the book.
"""

from dataclasses import dataclass

from helpers.advise.lint.findings import ERROR, NOTE, WARNING, Finding

#: First digit of a code -> what the group is about.
GROUPS = {
    "1": "Randomness and order",
    "2": "Worker processes",
    "3": "Data flow and length",
    "4": "Memory",
    "5": "Cost and settings",
    "9": "What was not examined",
}


@dataclass(frozen=True)
class Rule:
    """One thing that can be found.

    Attributes:
        code: its stable name.
        title: what is found, in a few words.
        severities: those it may have, the gravest first.
        needs: what must be given for it, in words; empty if nothing.
        why: what comes of it.
        fix: what to do.
        chapter: name of the chapter that shows it.
    """

    code: str
    title: str
    severities: tuple[str, ...]
    needs: str
    why: str
    fix: str
    chapter: str

    @property
    def file(self) -> str:
        """The chapter's file, from the root of the book."""
        return f"chapters/{self.chapter}.ipynb"


_PROBE = '`probe="worker"`'

_ALL = (
    Rule(
        "DL101",
        "A random generator is copied to every worker",
        (ERROR, WARNING, NOTE),
        f"{_PROBE} to prove it",
        "Every worker starts from the same copy, so all workers draw the same "
        "numbers. Unless the workers are persistent, every epoch repeats the last "
        "one as well: torch seeds only the global generators of torch, numpy and "
        "`random` in a worker, no generator object.",
        "Derive the generator from (seed, epoch, index) inside `__getitem__`, or "
        "make it in the worker from `torch.utils.data.get_worker_info().seed`; or "
        "draw from the global generators.",
        "shuffle_and_seeding",
    ),
    Rule(
        "DL102",
        "worker_init_fn sets a fixed seed",
        (ERROR, WARNING),
        f"{_PROBE} to prove it",
        "torch gives each worker its own seed, a new one every epoch. A fixed seed "
        "undoes that: without the worker's number in it all workers draw the same, "
        "and with it every epoch still repeats the last one.",
        "Delete the `worker_init_fn` and seed the main process once; other "
        "libraries can be seeded from `torch.initial_seed() % 2**32`.",
        "shuffle_and_seeding",
    ),
    Rule(
        "DL103",
        "Evaluation data comes in random order",
        (WARNING,),
        '`role="eval"`',
        "Predictions no longer line up with the rows of the dataset, and a sampler "
        "that draws with replacement leaves some samples out.",
        "Use `shuffle=False` and no random sampler for evaluation.",
        "shuffle_and_seeding",
    ),
    Rule(
        "DL104",
        "set_epoch is not called",
        (ERROR, WARNING),
        "`loop=` or `watch`",
        "DistributedSampler shuffles by seed + epoch. If nobody tells it the epoch, "
        "every epoch has the same order.",
        "Call `loader.sampler.set_epoch(epoch)` at the start of every epoch, with "
        "the same number on all ranks.",
        "sampler",
    ),
    Rule(
        "DL201",
        "Something cannot be pickled",
        (ERROR, WARNING, NOTE),
        "",
        "Workers started by spawn or forkserver get dataset, collate_fn and "
        "worker_init_fn as a pickle. With fork it works here, and fails on macOS, "
        "on Windows and on Linux with Python 3.14.",
        "Make the object in the worker, when it is first needed, and leave it out "
        "of the pickle with `__getstate__`.",
        "num_workers",
    ),
    Rule(
        "DL202",
        "A lambda, a local function or a local class",
        (ERROR, WARNING, NOTE),
        "",
        "Functions and classes are pickled by their name, and what was defined "
        "inside a function, or is a lambda, has none that a worker could import. "
        "With fork it works here, and fails on macOS, on Windows and on Linux with "
        "Python 3.14.",
        "Define it at the top level of a module. Values that it takes from around "
        "it can be bound with `functools.partial`.",
        "collate_fn",
    ),
    Rule(
        "DL203",
        "Defined in an interactive session",
        (ERROR, WARNING, NOTE),
        "",
        "A worker started by spawn or forkserver imports the main program, and a "
        "notebook or a console is nothing that can be imported. The worker ends "
        'with "exited unexpectedly" and no word about the reason. With fork it '
        "works here.",
        "Move the definition into a .py file and import it.",
        "num_workers",
    ),
    Rule(
        "DL204",
        "An open handle goes to the workers",
        (ERROR, WARNING, NOTE),
        "",
        "A forked worker inherits the open file, database or connection: all "
        "processes share one position and one state of the library, which can give "
        "wrong data. Under spawn and forkserver it cannot be pickled at all.",
        "Open it in the worker, at the first sample, once per process; the class "
        "`PerProcess` in `helpers.pipeline.handles` does that.",
        "dataset",
    ),
    Rule(
        "DL205",
        "A tensor on an accelerator goes to the workers",
        (ERROR, WARNING),
        "",
        "A forked worker cannot use the accelerator at all (Cannot re-initialize "
        "CUDA in forked subprocess). One that was spawned holds a context of its "
        "own there, with its memory.",
        "Keep datasets on the CPU (`torch.load(..., map_location='cpu')`) and move "
        "the batch to the device in the training loop.",
        "pin_memory",
    ),
    Rule(
        "DL206",
        "Persistent workers keep an old value",
        (ERROR, WARNING, NOTE),
        "`watch` to prove it, `loop=` to make it likely",
        "Persistent workers work on the copy of the dataset that they got when they "
        "were started. What the main process changes later does not reach them.",
        "Do without `persistent_workers`, keep the value in shared memory (a tensor "
        "after `share_memory_()`, changed in place), or send it with the index from "
        "the sampler.",
        "num_workers",
    ),
    Rule(
        "DL207",
        "The batch cannot be sent to the main process",
        (ERROR,),
        _PROBE,
        "A worker pickles its batch in a second thread. If that fails, the error is "
        "printed there, the batch is lost, and the loop waits for ever.",
        "Let the collate function return tensors, arrays, numbers, strings and "
        "plain containers of these.",
        "errors",
    ),
    Rule(
        "DL301",
        "The stream is not divided among the workers",
        (ERROR, WARNING),
        f"{_PROBE} to prove it",
        "Every worker iterates over the whole stream, so each record comes once per "
        "worker.",
        "Ask `torch.utils.data.get_worker_info()` in `__iter__` and yield only this "
        "worker's part, for example shards[info.id :: info.num_workers].",
        "iterable_dataset",
    ),
    Rule(
        "DL302",
        "Evaluation leaves samples out",
        (WARNING,),
        '`role="eval"`',
        "The samples of the incomplete last batch are never evaluated.",
        "Use `drop_last=False` for evaluation.",
        "dataset",
    ),
    Rule(
        "DL303",
        "The loader yields no batch",
        (ERROR,),
        "",
        "With `drop_last=True` an incomplete batch is dropped, without a word even "
        "if it is the only one. A stream is cut into batches by each worker for "
        "itself.",
        "Use `drop_last=False`, a smaller batch, or fewer workers.",
        "dataset",
    ),
    Rule(
        "DL304",
        "The last batch has one sample",
        (NOTE,),
        '`role="train"`',
        "BatchNorm1d cannot train on a single sample (Expected more than 1 value "
        "per channel), and other statistics of such a batch are poor.",
        "Use `drop_last=True` for training, or another batch size.",
        "dataset",
    ),
    Rule(
        "DL305",
        "The weights are not one per sample",
        (ERROR,),
        "",
        "WeightedRandomSampler takes entry i as the weight of sample i. With fewer "
        "weights than samples only the first samples are ever drawn, with more the "
        "index runs out of range.",
        "Give every sample the weight of its class: `weights = class_weights[labels]`.",
        "sampler",
    ),
    Rule(
        "DL306",
        "The first batch fails",
        (ERROR,),
        _PROBE,
        "The dataset or the collate function raised an error in the worker.",
        "Repeat it where it can be debugged: `collate_fn([dataset[i] for i in "
        "indices])` in the main process, with the indices named above.",
        "errors",
    ),
    Rule(
        "DL307",
        "A batch holds float64",
        (NOTE,),
        _PROBE,
        "Python floats and numpy's default are double precision, and the default "
        "collate function keeps that. It takes twice the memory, and a loss may "
        "refuse it (Found dtype Double but expected Float).",
        "Return float32 from the dataset, for example `torch.tensor(value, "
        "dtype=torch.float32)`.",
        "collate_fn",
    ),
    Rule(
        "DL401",
        "Many Python objects are copied to every worker",
        (WARNING,),
        "",
        "Reading a Python object changes its reference count, which is a write: "
        "page by page, a forked worker gets its own copy of everything it reads. "
        "Under spawn and forkserver it is copied at the start.",
        "Keep such tables in one numpy array or tensor (fixed-width strings, or "
        "bytes and offsets) instead of a list or dict of objects.",
        "slow",
    ),
    Rule(
        "DL402",
        "Large arrays are pickled for every worker",
        (WARNING,),
        "",
        "Under spawn and forkserver a numpy array travels by value, a memory map "
        "too: every worker gets a copy of all its bytes. A tensor goes into shared "
        "memory, where all workers read the same bytes.",
        "Keep the data in a CPU tensor, or open the memory map in the worker.",
        "slow",
    ),
    Rule(
        "DL403",
        "A batch holds views of much larger storages",
        (WARNING, NOTE),
        _PROBE,
        "A view keeps its whole storage. Sent from a worker, the whole storage "
        "travels through shared memory, not only the part that is seen.",
        "Return `view.clone()` from the dataset.",
        "dataset",
    ),
    Rule(
        "DL404",
        "The batches in flight need too much memory",
        (ERROR, WARNING),
        _PROBE,
        "Up to num_workers * prefetch_factor batches lie ready in shared memory. "
        "When it is full the workers fail or the loop hangs.",
        "Lower `prefetch_factor`, the number of workers or the batch size, send "
        "uint8 instead of float32, or give the container more shared memory "
        "(--shm-size).",
        "prefetch",
    ),
    Rule(
        "DL501",
        "More workers than usable cores",
        (NOTE,),
        "",
        "Workers that compute take turns on the cores, and each one needs memory. "
        "For workers that wait for a disk or a network it can be right.",
        "Measure with fewer workers, up to the number of usable cores.",
        "num_workers",
    ),
    Rule(
        "DL502",
        "pin_memory without an accelerator",
        (NOTE,),
        "",
        "Nothing is pinned where there is no accelerator; torch only warns.",
        "Write `pin_memory=torch.accelerator.is_available()`.",
        "pin_memory",
    ),
    Rule(
        "DL503",
        "prefetch_factor cannot be used",
        (ERROR,),
        "",
        "With workers it must be at least 1. The constructor lets 0 pass, and "
        "`num_workers` set later leaves it at None; the loop then fails at its "
        "first batch.",
        "Set `prefetch_factor` to 1 or more; 2 is the default.",
        "prefetch",
    ),
    Rule(
        "DL504",
        "A timeout without workers",
        (ERROR,),
        "",
        "Only workers can be waited for. The constructor lets it pass, and the loop "
        "fails with an AssertionError.",
        "Use `timeout=0` with `num_workers=0`.",
        "errors",
    ),
    Rule(
        "DL505",
        "A batch has very many tensors",
        (WARNING,),
        _PROBE,
        "Sending costs by the tensor much more than by the byte, and each one that "
        "is kept may hold a file descriptor open.",
        "Stack or concatenate in the collate function; keep offsets or lengths to "
        "take the parts out again.",
        "collate_fn",
    ),
    Rule(
        "DL506",
        "Large arrays in a batch",
        (NOTE,),
        _PROBE,
        "numpy arrays and bytes are pickled through a pipe. Tensors go through "
        "shared memory, which is several times faster.",
        "Turn them into tensors in the collate function (`torch.from_numpy`).",
        "collate_fn",
    ),
    Rule(
        "DL901",
        "Part of the loader was not examined",
        (NOTE,),
        "",
        "The search through the objects of a loader is limited in depth, number and "
        "time. There may be faults in the part that was left out.",
        "Run lint on a smaller dataset that is made in the same way.",
        "errors",
    ),
    Rule(
        "DL902",
        "The sample rules were not run",
        (NOTE,),
        _PROBE,
        "They look at a batch from a throw-away worker, and none came.",
        "Repair what is reported beside this. Against a hang, take a few samples by "
        "hand: `dataset[0]`.",
        "errors",
    ),
)

#: code -> rule, in order.
RULES = {rule.code: rule for rule in _ALL}


def finding(
    code: str, severity: str, path: str, what: str, fix: str | None = None
) -> Finding:
    """A finding with the words of the register.

    Args:
        code: of the rule.
        severity: one that the rule may have.
        path: the object concerned.
        what: what was found, a sentence without its full stop.
        fix: in place of the register's, where more is known.

    Raises:
        KeyError: no such rule.
        ValueError: the rule does not have this severity.
    """
    rule = RULES[code]
    if severity not in rule.severities:
        raise ValueError(f"{code} is never {severity!r}, only {rule.severities}")
    return Finding(
        code=code,
        severity=severity,
        path=path,
        what=what,
        why=_plain(rule.why),
        fix=_plain(rule.fix) if fix is None else fix,
        chapter=rule.file,
    )


def _plain(markdown: str) -> str:
    return markdown.replace("`", "")
