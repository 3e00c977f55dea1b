"""Estimates with their uncertainty: bootstrap intervals and paired ratios."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm, t

DRAWS = 2000
LEVEL = 0.95

#: Two settings differ only if the whole interval of their ratio lies outside.
TIE_BAND = (0.97, 1.03)

#: Fewer rounds than this decide nothing: the interval of 3 rounds is just
#: their range, which misses the truth in one case of four.
ROUNDS_TO_DECIDE = 4


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval, in the unit of the data."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Ratio:
    """How many times larger one quantity is than another, with its interval.

    ``trusted`` is False when the guard rejected more than half of the windows
    behind it.
    """

    value: float
    low: float
    high: float
    rounds: int
    trusted: bool = True

    @property
    def decisive(self) -> bool:
        """Enough undisturbed rounds to say anything."""
        return self.trusted and self.rounds >= ROUNDS_TO_DECIDE

    @property
    def differs(self) -> bool:
        """The two are told apart: the interval lies outside the tie band."""
        outside = self.low > TIE_BAND[1] or self.high < TIE_BAND[0]
        return self.decisive and outside

    @property
    def verdict(self) -> str:
        """In words: larger, smaller, or no difference detected."""
        if not self.trusted:
            return "too much foreign load"
        if self.rounds < ROUNDS_TO_DECIDE:
            return f"too few rounds ({self.rounds})"
        if not self.differs:
            return "no difference detected"
        return "larger" if self.value > 1 else "smaller"

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def median_estimate(values: Sequence[float], seed: int = 0) -> Estimate:
    """Median of ``values`` with its bootstrap interval."""
    low, high = bootstrap_interval(values, np.median, seed)
    return Estimate(float(np.median(values)), low, high)


def paired_ratio(
    numerator: Sequence[float],
    denominator: Sequence[float],
    *,
    trusted: bool = True,
    seed: int = 0,
) -> Ratio:
    """Geometric mean of the per-round ratios, with its interval.

    Args:
        numerator: one value > 0 per round.
        denominator: the other setting's value in the same rounds.
        trusted: False if foreign load spoilt most of the windows.
        seed: of the bootstrap.

    Raises:
        ValueError: lengths differ, no rounds, or a value is not above 0.
    """
    top, bottom = np.asarray(numerator, float), np.asarray(denominator, float)
    if top.shape != bottom.shape or top.size == 0:
        raise ValueError(
            f"need the same rounds on both sides, got {top.size} and {bottom.size}"
        )
    if not (np.all(top > 0) and np.all(bottom > 0)):
        raise ValueError("a ratio needs values above 0")
    logs = np.log(top / bottom)
    low, high = bootstrap_interval(logs, np.mean, seed)
    return Ratio(
        math.exp(logs.mean()), math.exp(low), math.exp(high), len(logs), trusted
    )


def bootstrap_interval(
    values: Sequence[float],
    statistic: Callable[..., np.ndarray],
    seed: int = 0,
) -> tuple[float, float]:
    """95 % expanded percentile interval of a statistic.

    The plain percentile bootstrap is too narrow for a handful of values; the
    percentiles are moved outwards to match Student's t for n values.
    Source: T. Hesterberg, "What Teachers Should Know About the Bootstrap",
    The American Statistician 69 (2015), section 5.3.

    Args:
        values: the data, one per round.
        statistic: like ``numpy.mean``, called with ``axis=1``.
        seed: of the resampling.
    """
    data = np.asarray(values, float)
    n = len(data)
    if n == 1:
        return -math.inf, math.inf
    draws = np.random.default_rng(seed).choice(data, size=(DRAWS, n))
    tail = norm.cdf(math.sqrt(n / (n - 1)) * t.ppf((1 - LEVEL) / 2, n - 1))
    low, high = np.quantile(statistic(draws, axis=1), [tail, 1 - tail])
    return float(low), float(high)
