"""The result of :func:`helpers.advise.diagnose.diagnose`: where the time goes."""

import html
from dataclasses import asdict, dataclass

import pandas as pd
from matplotlib.figure import Figure

from helpers.advise import diagnosis_chart
from helpers.advise.model import CONSUMER, CORES, IN_TURN, WORKERS, BatchCosts
from helpers.advise.tuning import grid
from helpers.advise.tuning.grid import Setting
from helpers.measure.timeline_summary import duration

#: A predicted gain below this is not worth a change.
WORTHWHILE = 1.15


@dataclass(frozen=True)
class Forecast:
    """Predicted seconds per batch with so many workers, and the error band."""

    workers: int
    seconds: float
    low: float
    high: float
    bottleneck: str


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """Where the time of a training loop goes; times in seconds per batch.

    Attributes:
        current: the loader's setting.
        cores: usable.
        samples: per batch.
        parts: stages of a batch in their order -> seconds.
        costs: of the model.
        seconds: from batch to batch, measured with the current setting; None if
            the loop was not run.
        wait_share: share of it that the loop waits for batches.
        start_up_s: from ``iter(loader)`` to the first batch; None likewise.
        forecasts: of the model, for several numbers of workers.
        duplicated: workers deliver the same stream twice, proven.
        notes: what to know about how it was measured, sentences.
    """

    current: Setting
    cores: float
    samples: float
    parts: dict[str, float]
    costs: BatchCosts
    seconds: float | None
    wait_share: float | None
    start_up_s: float | None
    forecasts: tuple[Forecast, ...]
    duplicated: bool
    notes: tuple[str, ...]

    def forecast(self, workers: int) -> Forecast:
        """What is predicted for so many workers.

        Raises:
            KeyError: nothing is.
        """
        for forecast in self.forecasts:
            if forecast.workers == workers:
                return forecast
        raise KeyError(f"nothing is predicted for {workers} workers")

    @property
    def bottleneck(self) -> str:
        """What limits the loop, in one sentence with numbers."""
        costs, workers = self.costs, self.current.workers
        kind = costs.predict(workers, self.cores).bottleneck
        sentence = _SENTENCES[kind](costs, workers, self.cores)
        if self.wait_share is None or not costs.step:
            return f"{sentence}."
        if kind == CONSUMER and self.wait_share > 0.5:
            return (
                f"{sentence}; yet the loop waited {self.wait_share:.0%} of its time, "
                "so something slowed the workers meanwhile: try again on a quiet "
                "machine."
            )
        return f"{sentence}; the loop waits {self.wait_share:.0%} of its time."

    @property
    def best_workers(self) -> int:
        """The fewest workers within 3 % of the best prediction."""
        predicted = {Setting(f.workers, 0): f.seconds for f in self.forecasts}
        return grid.pick(predicted).workers

    @property
    def advice(self) -> str:
        """The first thing to change, one sentence."""
        if self.duplicated:
            return (
                "First divide the stream: workers 0 and 1 deliver the same data; let "
                "__iter__ look at torch.utils.data.get_worker_info()."
            )
        now = self.forecast(self.current.workers)
        best = self.forecast(self.best_workers)
        if now.seconds > WORTHWHILE * best.seconds:
            return (
                f"Try num_workers={best.workers}: predicted "
                f"{self.samples / best.seconds:,.4g} samples/s instead of "
                f"{self.samples / now.seconds:,.4g}; recommend() would measure it."
            )
        return self._cheaper()

    def _cheaper(self) -> str:
        """What to do when another number of workers brings nothing."""
        kind = self.costs.predict(self.current.workers, self.cores).bottleneck
        if kind == CONSUMER and self.costs.step > self.costs.main:
            return (
                "The loader keeps up: only a faster step makes the loop faster "
                f"(it takes {duration(self.costs.step)} per batch)."
            )
        name = max(self._loading, key=self._loading.get)
        return (
            f"Another number of workers brings little; make batches cheaper: {name} "
            f"is the largest part ({duration(self._loading[name])} per batch)."
        )

    @property
    def _loading(self) -> dict[str, float]:
        """The parts that the loader is responsible for."""
        others = ("transfer", "step")
        return {name: value for name, value in self.parts.items() if name not in others}

    @property
    def table(self) -> pd.DataFrame:
        """The forecasts: workers, samples/s with band, bottleneck."""
        return pd.DataFrame(
            {
                "workers": [f.workers for f in self.forecasts],
                "samples_per_s": [self.samples / f.seconds for f in self.forecasts],
                "low": [self.samples / f.high for f in self.forecasts],
                "high": [self.samples / f.low for f in self.forecasts],
                "limit": [f.bottleneck for f in self.forecasts],
            }
        )

    def figure(self) -> Figure:
        """The parts of a batch, and the predicted rate by number of workers."""
        return diagnosis_chart.draw(self)

    def alt(self) -> str:
        """The figure in words and numbers."""
        return diagnosis_chart.alt(self)

    def to_dict(self) -> dict[str, object]:
        """Everything in plain types, for JSON."""
        return {
            "bottleneck": self.bottleneck,
            "advice": self.advice,
            "current": self.current.arguments,
            "samples_per_batch": self.samples,
            "parts_s": self.parts,
            "seconds_per_batch": self.seconds,
            "wait_share": self.wait_share,
            "start_up_s": self.start_up_s,
            "costs_s": asdict(self.costs),
            "usable_cores": self.cores,
            "forecasts": self.table.to_dict("records"),
            "duplicated_stream": self.duplicated,
            "notes": list(self.notes),
        }

    def _shown(self) -> dict[str, str]:
        """Label -> value, for text and HTML."""
        shown = {f"{name}": duration(value) for name, value in self.parts.items()}
        if self.seconds is not None:
            shown["from batch to batch"] = duration(self.seconds)
        if self.start_up_s is not None:
            shown["start-up, once per epoch"] = duration(self.start_up_s)
        return shown

    def _forecast_table(self) -> pd.DataFrame:
        rows = self.table
        return pd.DataFrame(
            {
                "samples/s": [
                    f"{row.samples_per_s:,.4g} ({row.low:,.4g} to {row.high:,.4g})"
                    for row in rows.itertuples()
                ],
                "limit": rows["limit"].to_list(),
            },
            index=pd.Index(rows["workers"], name="workers"),
        )

    def __repr__(self) -> str:
        parts = [f"  {name:<26}{value}" for name, value in self._shown().items()]
        return "\n".join(
            [
                f"{self.current}: {self.bottleneck}",
                self.advice,
                "",
                "Per batch:",
                *parts,
                "",
                "Predicted:",
                self._forecast_table().to_string(),
                *(f"Note: {note}" for note in self.notes),
            ]
        )

    def _repr_html_(self) -> str:
        parts = pd.DataFrame({"per batch": self._shown()}).to_html()
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        first = html.escape(f"{self.current}: {self.bottleneck}")
        return (
            f"<p><b>{first}</b></p><p>{html.escape(self.advice)}</p>"
            f"{parts}{self._forecast_table().to_html()}<ul>{notes}</ul>"
        )


def _in_turn(costs: BatchCosts, workers: int, cores: float) -> str:
    if not costs.step:
        made = duration(costs.fetch)
        return f"The one process is the limit: it makes a batch in {made}"
    return (
        f"Loading and computing take turns: {duration(costs.fetch)} to make a batch, "
        f"then {duration(costs.step)} for the step"
    )


def _workers(costs: BatchCosts, workers: int, cores: float) -> str:
    terms = costs.terms(workers, cores)
    plural = "" if workers == 1 else "s"
    return (
        f"The workers are the limit: each takes {duration(costs.worker)} per batch, so "
        f"{workers} worker{plural} deliver{'' if plural else 's'} one every "
        f"{duration(terms[WORKERS])}, and the loop could take one every "
        f"{duration(terms[CONSUMER])}"
    )


def _cores(costs: BatchCosts, workers: int, cores: float) -> str:
    return (
        "The cores are the limit: a batch needs "
        f"{duration(costs.cpu + costs.step_cpu)} of CPU time, and {cores:g} cores give "
        "that every "
        f"{duration(costs.terms(workers, cores)[CORES])}"
    )


def _consumer(costs: BatchCosts, workers: int, cores: float) -> str:
    terms = costs.terms(workers, cores)
    makes = max(terms[WORKERS], terms[CORES])
    if not costs.step:
        return (
            "The main process is the limit: it needs "
            f"{duration(costs.main)} to take over a batch, and the workers could make "
            f"one every {duration(makes)}"
        )
    return (
        f"The training step is the limit: it takes {duration(terms[CONSUMER])} per "
        f"batch, and the workers could make one every {duration(makes)}"
    )


_SENTENCES = {
    IN_TURN: _in_turn,
    WORKERS: _workers,
    CORES: _cores,
    CONSUMER: _consumer,
}
