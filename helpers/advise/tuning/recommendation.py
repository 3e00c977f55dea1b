"""The result of :func:`helpers.advise.tune.recommend`: settings, and why."""

import html
import math
from dataclasses import asdict, dataclass

import pandas as pd
from matplotlib.figure import Figure

from helpers.advise.model import BatchCosts
from helpers.advise.tuning import recommendation_chart
from helpers.advise.tuning.grid import Setting
from helpers.advise.tuning.verdict import VERIFIED
from helpers.measure.intervals import Estimate, Ratio
from helpers.measure.timeline_summary import duration

_MIB = 2**20


@dataclass(frozen=True)
class Row:
    """One setting: what the model says, what was measured, what became of it.

    Attributes:
        predicted_s: seconds per batch; None if the model was not asked.
        bottleneck: the term of the model that sets it.
        rate: samples/s; None if not measured.
        ratio: of its rate to that of the recommended setting, if both were measured.
        start_up_s: from ``iter(loader)`` to the first batch.
        memory_bytes: what it costs, at most.
        fate: in words.
    """

    setting: Setting
    predicted_s: float
    bottleneck: str
    rate: Estimate | None
    ratio: Ratio | None
    start_up_s: float | None
    memory_bytes: int
    fate: str


@dataclass(frozen=True, repr=False)
class Recommendation:
    """Settings for a loader, how sure they are, and everything that was tried.

    Attributes:
        setting: the recommended one.
        current: the reader's own.
        status: ``verified``, ``too noisy to tell``, ``unverified`` or ``no room
            for workers``.
        reason: of the status, a sentence.
        rows: of the grid, the cheapest first.
        samples: per batch.
        costs: per batch, in seconds, for the epoch that was asked for.
        arguments: of a DataLoader, those that are recommended.
        code: a call of DataLoader with them.
        hints: about other arguments, sentences.
        notes: what to know about how it was measured, sentences.
        seconds: that all this took.
    """

    setting: Setting
    current: Setting
    status: str
    reason: str
    rows: tuple[Row, ...]
    samples: float
    costs: BatchCosts
    arguments: dict[str, object]
    code: str
    hints: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float

    @property
    def verified(self) -> bool:
        """It was measured well enough."""
        return self.status == VERIFIED

    @property
    def chosen(self) -> Row:
        """The row of the recommended setting."""
        return self.row(self.setting)

    @property
    def memory_bytes(self) -> int:
        """What the recommended setting costs in workers and batches, at most."""
        return self.chosen.memory_bytes

    def row(self, setting: Setting) -> Row:
        """The row of a setting.

        Raises:
            KeyError: it was not considered.
        """
        for row in self.rows:
            if row.setting == setting:
                return row
        raise KeyError(f"{setting} was not considered")

    def rate(self, row: Row) -> float:
        """Samples/s, measured where it was measured, else predicted."""
        if row.rate is not None:
            return row.rate.value
        return self.samples / row.predicted_s

    @property
    def table(self) -> pd.DataFrame:
        """One row per setting: predicted and measured samples/s, and its fate.

        ``ratio`` is the rate against that of the recommended setting, from paired
        blocks, with its 95 % interval.
        """
        return pd.DataFrame([self._columns(row) for row in self.rows])

    def _columns(self, row: Row) -> dict[str, object]:
        rate = row.rate or Estimate(math.nan, math.nan, math.nan)
        ratio = row.ratio or Ratio(math.nan, math.nan, math.nan, 0)
        return {
            "workers": row.setting.workers,
            "prefetch": row.setting.prefetch,
            "predicted": self.samples / row.predicted_s,
            "rate": rate.value,
            "low": rate.low,
            "high": rate.high,
            "ratio": ratio.value,
            "ratio_low": ratio.low,
            "ratio_high": ratio.high,
            "blocks": ratio.rounds,
            "start_up_s": math.nan if row.start_up_s is None else row.start_up_s,
            "memory_mib": row.memory_bytes / _MIB,
            "fate": row.fate,
        }

    def headline(self) -> str:
        """The answer in one line."""
        words = ", ".join(f"{k}={v!r}" for k, v in self.setting.arguments.items())
        return f"{words} ({self.status}: {self.reason})"

    def about_current(self) -> str:
        """How the reader's own setting compares, in one sentence."""
        if self.current == self.setting:
            return "That is your current setting: keep it."
        row = next((row for row in self.rows if row.setting == self.current), None)
        if row is None or row.ratio is None:
            return f"Your current setting ({self.current}) was not measured."
        share = row.ratio.value
        interval = _with_interval(row.ratio, ".2f")
        if share >= 0.95:
            return (
                f"Your current setting ({self.current}) is already within 5 % of the "
                f"best: {interval} of this one's rate."
            )
        return (
            f"Your current setting ({self.current}) reaches {interval} of this "
            "one's rate."
        )

    def figure(self) -> Figure:
        """Predicted curve, measured points with intervals, the recommended one."""
        return recommendation_chart.draw(self)

    def alt(self) -> str:
        """The figure in words and numbers."""
        return recommendation_chart.alt(self)

    def to_dict(self) -> dict[str, object]:
        """Everything in plain types, for JSON."""
        table = self.table.astype(object).where(self.table.notna(), None)
        return {
            "status": self.status,
            "reason": self.reason,
            "arguments": self.arguments,
            "code": self.code,
            "current": self.current.arguments,
            "about_current": self.about_current(),
            "samples_per_batch": self.samples,
            "memory_bytes": self.memory_bytes,
            "costs_s": asdict(self.costs),
            "tried": table.to_dict("records"),
            "hints": list(self.hints),
            "notes": list(self.notes),
            "seconds": self.seconds,
        }

    def _lines(self) -> list[str]:
        chosen = self.chosen
        speed = f"{self.samples / chosen.predicted_s:,.4g} samples/s predicted"
        if chosen.rate is not None:
            measured = _with_interval(chosen.rate, ",.4g")
            speed = f"{measured} samples/s measured, {speed}"
        return [
            f"{speed}; limit: {chosen.bottleneck}; memory up to "
            f"{self.memory_bytes / _MIB:,.0f} MiB",
            self.about_current(),
            *(f"Hint: {hint}" for hint in self.hints),
            *(f"Note: {note}" for note in self.notes),
            f"Found in {duration(self.seconds)}.",
        ]

    def _short_table(self) -> pd.DataFrame:
        """What was measured, for reading."""
        rows = [row for row in self.rows if row.rate is not None]
        return pd.DataFrame(
            {
                "predicted": [f"{self.samples / r.predicted_s:,.4g}" for r in rows],
                "samples/s": [_with_interval(r.rate, ",.4g") for r in rows],
                "against this one": [
                    _with_interval(r.ratio, ".2f") if r.ratio else "" for r in rows
                ],
                "MiB": [f"{r.memory_bytes / _MIB:,.0f}" for r in rows],
                "": [r.fate for r in rows],
            },
            index=pd.Index([str(r.setting) for r in rows], name="setting"),
        )

    def __repr__(self) -> str:
        first, *rest = self._lines()
        parts = [self.headline(), f"  {self.code}", first]
        table = self._short_table()
        if len(table):
            parts += ["", table.to_string(), ""]
        return "\n".join([*parts, *rest])

    def _repr_html_(self) -> str:
        paragraphs = "".join(f"<li>{html.escape(line)}</li>" for line in self._lines())
        table = self._short_table()
        return (
            f"<p><b>{html.escape(self.headline())}</b></p>"
            f"<pre>{html.escape(self.code)}</pre>"
            f"{table.to_html() if len(table) else ''}<ul>{paragraphs}</ul>"
        )


def _with_interval(value: Estimate | Ratio, form: str) -> str:
    """A value with its interval; one block gives none."""
    if not (math.isfinite(value.low) and math.isfinite(value.high)):
        return f"{value.value:{form}} (one block)"
    return f"{value.value:{form}} ({value.low:{form}} to {value.high:{form}})"
