"""How a benchmark reports: one line per bar, exit code 1 if one is missed."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Bar:
    """A figure that an instrument must reach.

    ``value`` must be at most ``limit``, or at least where ``at_least`` is set.
    """

    name: str
    value: float
    limit: float
    unit: str = ""
    at_least: bool = False

    @property
    def met(self) -> bool:
        """The figure is on the right side of the limit."""
        if self.at_least:
            return self.value >= self.limit
        return self.value <= self.limit

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        word = "met" if self.met else "MISSED"
        return (
            f"{word:6}  {self.name}: {self.value:.4g} {self.unit} "
            f"(bar {sign} {self.limit:g})"
        )


def report(bars: Sequence[Bar]) -> int:
    """Print every bar; returns the exit code."""
    for bar in bars:
        print(bar, flush=True)
    return 0 if all(bar.met for bar in bars) else 1
