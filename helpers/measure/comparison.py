"""The result of a comparison: values per round, ratios, a verdict."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from helpers.measure.intervals import (
    Estimate,
    Ratio,
    median_estimate,
    paired_ratio,
)

#: What a comparison can be asked about: column of the frame -> meaning.
QUANTITIES = {
    "rate": "samples per second, steady period",
    "start_up_s": "seconds from iter(loader) to the first batch",
    "wait_p95_s": "95th percentile of the wait for a batch, seconds",
    "wait_share": "share of the steady period spent waiting for batches",
}


@dataclass(frozen=True, repr=False)
class Comparison:
    """The result of timing several variants against each other.

    ``frame`` has one row per variant and round: variant, round, seconds,
    samples, batches, rate (samples/s), start_up_s, wait_p95_s, wait_share,
    own_cores, main_cores, foreign_cores, accepted, replaced (slices).
    """

    frame: pd.DataFrame
    threads: int
    unit: str = "samples/s"
    notes: tuple[str, ...] = field(default=())

    @property
    def variants(self) -> list[str]:
        """Names in the order they were given."""
        return list(self.frame["variant"].cat.categories)

    @property
    def rounds(self) -> int:
        """Complete rounds that were run."""
        return int(self.frame["round"].nunique())

    @property
    def rejected_share(self) -> float:
        """Share of the kept windows that foreign load disturbed."""
        return float(1 - self.frame["accepted"].mean())

    @property
    def guarded(self) -> bool:
        """The system told how much CPU others used."""
        return bool(self.frame["foreign_cores"].notna().all())

    def values(self, variant: str, quantity: str = "rate") -> np.ndarray:
        """One value per round, in round order.

        Raises:
            KeyError: no such variant or quantity.
        """
        if variant not in self.variants:
            raise KeyError(f"no variant {variant!r}; there are {self.variants}")
        if quantity not in QUANTITIES:
            raise KeyError(f"no quantity {quantity!r}; there are {list(QUANTITIES)}")
        rows = self.frame[self.frame["variant"] == variant]
        return rows.sort_values("round")[quantity].to_numpy()

    def ratio(
        self, variant: str, reference: str | None = None, quantity: str = "rate"
    ) -> Ratio:
        """``variant`` divided by ``reference`` (default: the first variant)."""
        reference = self.variants[0] if reference is None else reference
        rows = self.frame[self.frame["variant"].isin([variant, reference])]
        return paired_ratio(
            self.values(variant, quantity),
            self.values(reference, quantity),
            trusted=bool(rows["accepted"].mean() >= 0.5),
        )

    def estimate(self, variant: str, quantity: str = "rate") -> Estimate:
        """Median over the rounds with its 95 % interval."""
        return median_estimate(self.values(variant, quantity))

    def summary(self, quantity: str = "rate") -> pd.DataFrame:
        """Median and 95 % interval per variant, and its ratio to the first."""
        rows = []
        for variant in self.variants:
            middle = self.estimate(variant, quantity)
            ratio = self.ratio(variant, quantity=quantity)
            first = variant == self.variants[0]
            rows.append(
                {
                    "variant": variant,
                    "median": middle.value,
                    "low": middle.low,
                    "high": middle.high,
                    "ratio": 1.0 if first else ratio.value,
                    "ratio_low": 1.0 if first else ratio.low,
                    "ratio_high": 1.0 if first else ratio.high,
                    "verdict": "the reference" if first else ratio.verdict,
                }
            )
        return pd.DataFrame(rows).set_index("variant")

    def caption(self) -> str:
        """How it was measured, in one line."""
        guard = (
            f"{self.rejected_share:.0%} of windows disturbed by other programs"
            if self.guarded
            else "unguarded: this system does not tell the load of other programs"
        )
        parts = [
            f"{self.rounds} rounds in random order",
            f"main process on {self.threads} thread(s)",
            guard,
            *self.notes,
        ]
        return "; ".join(parts)

    def _table(self) -> pd.DataFrame:
        summary = self.summary()
        return pd.DataFrame(
            {
                self.unit: [
                    f"{row['median']:,.4g} ({row['low']:,.4g} to {row['high']:,.4g})"
                    for _, row in summary.iterrows()
                ],
                f"against {self.variants[0]}": [
                    f"{row['ratio']:.2f} ({row['ratio_low']:.2f} to "
                    f"{row['ratio_high']:.2f})"
                    for _, row in summary.iterrows()
                ],
                "verdict": summary["verdict"].to_list(),
            },
            index=summary.index,
        )

    def __repr__(self) -> str:
        return f"{self._table().to_string()}\n{self.caption()}"

    def _repr_html_(self) -> str:
        return f"{self._table().to_html()}<p>{self.caption()}</p>"
