"""A recommendation as code that can be pasted."""

from collections.abc import Mapping

from torch.utils.data import (
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    default_collate,
    default_convert,
)


def call(loader: DataLoader, arguments: Mapping[str, object]) -> str:
    """The call that makes such a loader, with these arguments changed.

    What cannot be written down (objects) is named as its argument is named.

    Args:
        loader: the reader's.
        arguments: recommended ones.
    """
    words = ["dataset", *_order(loader)]
    if loader.collate_fn not in (default_collate, default_convert):
        words.append(f"collate_fn={_name(loader.collate_fn, 'collate_fn')}")
    if loader.worker_init_fn is not None:
        words.append(f"worker_init_fn={_name(loader.worker_init_fn, 'worker_init_fn')}")
    if loader.generator is not None:
        words.append("generator=generator")
    if loader.timeout and arguments.get("num_workers"):
        words.append(f"timeout={loader.timeout:g}")
    words += [f"{name}={value!r}" for name, value in arguments.items()]
    return f"{type(loader).__name__}({', '.join(words)})"


def _order(loader: DataLoader) -> list[str]:
    """The arguments that say which samples make a batch."""
    if loader.batch_size is None and loader.batch_sampler is not None:
        return ["batch_sampler=batch_sampler"]
    words = [f"batch_size={loader.batch_size}"]
    if not isinstance(loader.dataset, IterableDataset):
        kind = type(loader.sampler)
        if kind is RandomSampler:
            words.append("shuffle=True")
        elif kind is not SequentialSampler:
            words.append("sampler=sampler")
    if loader.drop_last:
        words.append("drop_last=True")
    return words


def _name(function: object, otherwise: str) -> str:
    name = getattr(function, "__name__", otherwise)
    return name if name.isidentifier() else otherwise
