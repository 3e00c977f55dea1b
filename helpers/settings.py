"""The two switches of the book, both read from the environment.

``BOOK_MODE``
    ``full`` (default) measures long enough to decide something;
    ``quick`` only proves that everything runs. The tests use ``quick``.
``BOOK_START_METHOD``
    ``fork``, ``spawn`` or ``forkserver``: how every DataLoader worker of a
    chapter is started. Unset, Python's own default applies.
"""

import os
import warnings

import torch.multiprocessing

MODES = ("full", "quick")


def _mode() -> str:
    mode = os.environ.get("BOOK_MODE", "full")
    if mode not in MODES:
        raise ValueError(f"BOOK_MODE is {mode!r}; it must be one of {MODES}")
    return mode


QUICK: bool = _mode() == "quick"

#: The lighter measuring protocol of the chapters: keyword arguments for
#: :func:`helpers.measure.timing.compare`.
LIGHT: dict[str, float] = (
    {"rounds": 2, "window_s": 0.1, "retries": 0, "budget_s": 8}
    if QUICK
    else {"rounds": 5, "window_s": 0.3, "retries": 2, "budget_s": 20}
)


def start_method() -> str:
    """The start method DataLoader workers use now (fixes the default)."""
    return torch.multiprocessing.get_start_method()


def use_start_method() -> None:
    """Make every later DataLoader start its workers by ``BOOK_START_METHOD``.

    With ``forkserver``, torch is imported once in the server instead of once
    per worker. Also hides torch's warning about more workers than cores: the
    chapters go beyond the cores on purpose, and say so.

    Raises:
        ValueError: the variable names a method this system does not have.
    """
    warnings.filterwarnings("ignore", "This DataLoader will create", UserWarning)
    wanted = os.environ.get("BOOK_START_METHOD")
    available = torch.multiprocessing.get_all_start_methods()
    if wanted is not None:
        if wanted not in available:
            raise ValueError(
                f"BOOK_START_METHOD is {wanted!r}; this system has {available}"
            )
        torch.multiprocessing.set_start_method(wanted, force=True)
    if start_method() == "forkserver":
        torch.multiprocessing.set_forkserver_preload(
            ["torch", "torch.utils.data", "torchvision"]
        )
