"""Settings for a reader's own loader: the cheapest that are as fast as any.

The model (:mod:`helpers.advise.model`) predicts a grid of 16 settings from three
probes, and only where it matters is measured: its pick and what is near it, and
always the reader's own setting. Of those that cannot be told apart from the
fastest, the cheapest is recommended.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch.utils.data import DataLoader
from tqdm import tqdm

from helpers import machine
from helpers.advise.replay import Step, waited
from helpers.advise.tuning import assemble, entrants, grid, probes, variants, verify
from helpers.advise.tuning.conditions import quiet_conditions
from helpers.advise.tuning.entrants import Entrants
from helpers.advise.tuning.kept import restored
from helpers.advise.tuning.outlook import Outlook, outlook
from helpers.advise.tuning.probes import BudgetTooShort, Probes
from helpers.advise.tuning.recommendation import Recommendation
from helpers.advise.tuning.room import Room
from helpers.advise.tuning.verdict import by_measurement, by_model
from helpers.advise.tuning.verify import Timetable, Verified
from helpers.measure import copies

#: An exhaustive sweep as :func:`helpers.measure.timing.compare` would do it:
#: rounds, and seconds per window. A recommendation may use a quarter of its time.
SWEEP_ROUNDS, SWEEP_WINDOW_S = 6, 0.8
SHARE_OF_SWEEP = 0.25

EPOCHS = ("first", "later")


def recommend(
    loader: DataLoader,
    step: Callable[[object], object] | None = None,
    budget_s: float = 30.0,
    *,
    keep: Sequence[object] = (),
    in_process: bool = True,
    epoch: str = "later",
    threads: int | None = None,
    seed: int = 0,
) -> Recommendation:
    """Find ``num_workers`` and ``prefetch_factor`` for a loader.

    The loader and the random states are left as they were, workers are ended,
    also on Ctrl-C. The dataset is called in this process, and what it changes
    in itself there (caches, counters, a stream that can be read once) stays
    changed; so do effects outside of the process.

    Args:
        loader: any DataLoader.
        step: what the training loop does with a batch; it is run on dozens of
            real batches and waited for. Default: nothing.
        budget_s: seconds to spend, roughly. At most a quarter of the time of an
            exhaustive sweep is used.
        keep: model, optimizer, scheduler: restored to their state of now.
        in_process: False never calls the dataset in this process; 0 workers are
            then predicted from one worker and not measured.
        epoch: recommend for the "first" epoch or for "later" ones, if reading
            for the first time is slower.
        threads: intra-op threads of this process meanwhile; default those it has.
        seed: of the order of measurements.

    Raises:
        TypeError: not a DataLoader, or something in ``keep`` has no state.
        ValueError: ``budget_s`` or ``epoch`` out of range, or the loader yields
            no batch.
        SampleError: the dataset raised; the message names the sample.
        StreamEnded: an iterable dataset is too short for a steady period.
    """
    copies.require_loader(loader)
    if budget_s <= 0:
        raise ValueError(f"budget_s must be above 0, got {budget_s}")
    if epoch not in EPOCHS:
        raise ValueError(f"epoch must be one of {EPOCHS}, got {epoch!r}")
    threads = torch.get_num_threads() if threads is None else threads
    request = _Request(loader, step, budget_s, in_process, epoch, threads, seed)
    with restored(keep), quiet_conditions(loader, threads), _progress() as bar:
        return _Search(request, bar).run()


@dataclass(frozen=True)
class _Request:
    loader: DataLoader
    step: Step | None
    budget_s: float
    in_process: bool
    epoch: str
    threads: int
    seed: int

    @property
    def window_s(self) -> float:
        """Of a probe: all probes together take a quarter of the budget."""
        return min(SWEEP_WINDOW_S, self.budget_s / 15)


class _Search:
    """One recommendation in the making."""

    def __init__(self, request: _Request, bar: tqdm) -> None:
        self.request, self.bar = request, bar
        self.began = time.perf_counter()
        self.room = Room.now()

    def run(self) -> Recommendation:
        self.bar.set_description("probing")
        seen, reason = self._probe()
        view = self._outlook(seen)
        found, left_out = None, {}
        if reason is None:
            self.bar.set_description("verifying")
            admitted = self._admit(seen, view)
            left_out = admitted.left_out
            reason = f"verifying needs about {admitted.needed_s:.0f} s more"
            if admitted.settings:
                found = self._verify(admitted)
                left_out |= found.too_short
        if found is None:
            verdict = by_model(view, reason)
        else:
            verdict = by_measurement(view, found)
        return assemble.recommendation(
            self.request.loader,
            seen,
            view,
            found,
            verdict,
            left_out,
            self.request.epoch,
            time.perf_counter() - self.began,
        )

    def _probe(self) -> tuple[Probes, str | None]:
        """The probes, and why nothing can be measured after them, if so."""
        request = self.request
        plan = probes.Plan(
            request.window_s, request.budget_s, in_process=request.in_process
        )
        try:
            seen = probes.probe(request.loader, request.step, plan)
        except BudgetTooShort as short:
            return short.probes, (
                f"the probes need about {short.needed_s:.0f} s and the budget is "
                f"{request.budget_s:g} s; this is what the model makes of the first "
                "batches"
            )
        if seen.epochs_differ and request.epoch == "first":
            return seen, "reading for the first time cannot be repeated"
        return seen, None

    def _outlook(self, seen: Probes) -> Outlook:
        request = self.request
        return outlook(
            seen.first if request.epoch == "first" else seen.later,
            machine.usable_cores(),
            variants.current(request.loader),
            self.room,
            seen.weight,
            request.in_process,
        )

    def _admit(self, seen: Probes, view: Outlook) -> Entrants:
        timetable = Timetable(view.predicted, seen.start_up_s, view.cores)
        # At most a quarter of the time that an exhaustive sweep would take.
        settings = grid.grid(view.cores)
        sweep = SWEEP_ROUNDS * timetable.sweep_s(settings, SWEEP_WINDOW_S)
        allowed = min(self.request.budget_s, SHARE_OF_SWEEP * sweep)
        self.deadline = self.began + allowed
        return entrants.admit(
            view.shortlist,
            self.room,
            seen.weight,
            timetable,
            self._window_s,
            self.deadline - time.perf_counter(),
            self._keep_open,
        )

    def _verify(self, admitted: Entrants) -> Verified:
        request = self.request
        plan = verify.Plan(
            window_s=self._window_s,
            deadline=self.deadline,
            in_process=request.in_process,
            keep_open=self._keep_open,
            threads=request.threads,
            seed=request.seed,
        )
        return verify.verify(
            request.loader,
            waited(request.step),
            admitted.settings,
            plan,
            self.bar.update,
        )

    @property
    def _window_s(self) -> float:
        """Per setting and block: half a probe's, because there are many."""
        return self.request.window_s / 2

    @property
    def _keep_open(self) -> bool:
        """Workers start too slowly to be started anew for every block."""
        return variants.start_method(self.request.loader) != "fork"


def _progress() -> tqdm:
    return tqdm(desc="probing", unit="block", leave=False, disable=None)
