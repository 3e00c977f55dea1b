"""Claims: what the book says, checked where it is read.

An exact claim (order, shape, count, error) must hold or the notebook fails. A
measured claim (a timing, a size) states one of three verdicts and never fails:
another machine may really be different, or too noisy to tell.

Every claim carries metadata from which the book's claims page is made.
"""

import html
from typing import Protocol

import numpy as np
from IPython.display import display

HOLDS = "holds"
FAILS = "does not hold"
NOISY = "too noisy"

_HEADINGS = {
    HOLDS: ("✓", "Holds on this machine", "book-claim-holds"),
    FAILS: ("✗", "Does not hold on this machine", "book-claim-fails"),
    NOISY: ("?", "Too noisy to tell on this machine", "book-claim-noisy"),
}
# Also readable where the book's style sheet is missing, as in JupyterLab.
_BORDERS = {HOLDS: "solid", FAILS: "double", NOISY: "dashed"}


class RatioLike(Protocol):
    """A ratio with its interval, such as :class:`helpers.measure.intervals.Ratio`."""

    value: float
    low: float
    high: float
    rounds: int
    decisive: bool
    trusted: bool


def check(text: str, condition: bool) -> None:
    """State something that must be exactly so.

    Args:
        text: the claim, a full sentence.
        condition: whether it is so.

    Raises:
        AssertionError: it is not.
        TypeError: ``condition`` is not a bool (``==`` of tensors is not).
    """
    if not isinstance(condition, bool | np.bool_):
        raise TypeError(
            f"a claim needs True or False, got {type(condition).__name__}: {text}"
        )
    if not condition:
        raise AssertionError(f"does not hold: {text}")
    _box(text, "exact", HOLDS, "")


def measured(
    text: str,
    ratio: RatioLike,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
) -> None:
    """State something about a measured ratio and say whether it holds here.

    It holds if the whole interval is on the claimed side of the bound, fails if
    the whole interval is on the other side, and is too noisy otherwise. Both
    bounds together claim "about the same".

    Args:
        text: the claim, a full sentence.
        ratio: the measured ratio with its interval.
        at_least: lower bound of the claim.
        at_most: upper bound of the claim.

    Raises:
        ValueError: no bound is given.
    """
    if at_least is None and at_most is None:
        raise ValueError("a measured claim needs at_least or at_most")
    low = -np.inf if at_least is None else at_least
    high = np.inf if at_most is None else at_most
    if not ratio.decisive:
        verdict = NOISY
    elif low <= ratio.low and ratio.high <= high:
        verdict = HOLDS
    elif ratio.high < low or high < ratio.low:
        verdict = FAILS
    else:
        verdict = NOISY
    _box(text, "measured", verdict, _detail(ratio, at_least, at_most))


def observed(text: str, condition: bool, detail: str) -> None:
    """State something seen once on this machine; it never fails.

    For what is neither exact nor a ratio of rounds, such as a peak of memory or
    which of several settings came out best.

    Args:
        text: the claim, a full sentence.
        condition: whether it was so.
        detail: the numbers behind it.
    """
    _box(text, "measured", HOLDS if condition else FAILS, detail)


def _detail(ratio: RatioLike, at_least: float | None, at_most: float | None) -> str:
    bounds = [
        f"{word} {bound:g}"
        for word, bound in (("at least", at_least), ("at most", at_most))
        if bound is not None
    ]
    measured_text = (
        f"measured {ratio.value:.2f} times, 95 % interval {ratio.low:.2f} to "
        f"{ratio.high:.2f}, {ratio.rounds} rounds; claimed {' and '.join(bounds)}"
    )
    if not ratio.trusted:
        return f"{measured_text}; other programs disturbed most windows"
    if not ratio.decisive:
        return f"{measured_text}; too few rounds to decide"
    return measured_text


def _box(text: str, kind: str, verdict: str, detail: str) -> None:
    sign, heading, css = _HEADINGS[verdict]
    if kind == "exact":
        heading = "Checked"
    style = f"border-left:6px {_BORDERS[verdict]};padding:.4em .8em;margin:.6em 0"
    small = f'<br><small class="book-claim-detail">{html.escape(detail)}</small>'
    body = (
        f'<div class="book-claim {css}" style="{style}">'
        f"<strong>{sign} {heading}.</strong> {html.escape(text)}"
        f"{small if detail else ''}</div>"
    )
    plain = f"{sign} {heading}. {text}" + (f" ({detail})" if detail else "")
    claim = {"text": text, "kind": kind, "verdict": verdict, "detail": detail}
    data = {"text/html": body, "text/plain": plain}
    display(data, raw=True, metadata={"claim": claim})
