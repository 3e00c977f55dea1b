"""Puts a recommendation together from everything that was found."""

from collections.abc import Mapping

from torch.utils.data import DataLoader

from helpers.advise.model import WORKERS, BatchCosts
from helpers.advise.tuning import grid, paste
from helpers.advise.tuning.grid import Setting
from helpers.advise.tuning.hints import Hint, epoch_batches, hints
from helpers.advise.tuning.outlook import Outlook
from helpers.advise.tuning.probes import Probes
from helpers.advise.tuning.recommendation import Recommendation, Row
from helpers.advise.tuning.verdict import Verdict
from helpers.advise.tuning.verify import Verified
from helpers.measure.intervals import TIE_BAND
from helpers.measure.timeline_summary import duration


def recommendation(
    loader: DataLoader,
    seen: Probes,
    view: Outlook,
    found: Verified | None,
    verdict: Verdict,
    left_out: Mapping[Setting, str],
    epoch: str,
    seconds: float,
) -> Recommendation:
    """The result.

    Args:
        loader: the reader's.
        seen: by the probes.
        view: of the model on the grid.
        found: by measuring; None if nothing was measured.
        verdict: the recommended setting.
        left_out: settings worth a measurement that got none -> why.
        epoch: "first" or "later".
        seconds: that all this took.
    """
    rows = tuple(
        _row(setting, seen, view, found, verdict, left_out)
        for setting in view.predicted
    )
    chosen = next(row for row in rows if row.setting == verdict.setting)
    period = seen.samples / chosen.rate.value if chosen.rate else chosen.predicted_s
    advice = hints(loader, verdict.setting, period, chosen.start_up_s, seen)
    arguments = _arguments(loader, verdict.setting, advice)
    return Recommendation(
        setting=verdict.setting,
        current=view.current,
        status=verdict.status,
        reason=verdict.reason,
        rows=rows,
        samples=seen.samples,
        costs=view.costs,
        arguments=arguments,
        code=paste.call(loader, arguments),
        hints=tuple(hint.text for hint in advice),
        notes=tuple(_notes(loader, seen, view, found, left_out, epoch)),
        seconds=seconds,
    )


def _row(
    setting: Setting,
    seen: Probes,
    view: Outlook,
    found: Verified | None,
    verdict: Verdict,
    left_out: Mapping[Setting, str],
) -> Row:
    prediction = view.costs.predict(setting.workers, view.cores)
    race, rate, ratio = found.race if found else None, None, None
    if race is not None and race.rates.get(setting):
        rate = race.estimate(setting)
        if race.rates.get(verdict.setting):
            ratio = race.ratio(setting, verdict.setting)
    return Row(
        setting=setting,
        predicted_s=prediction.seconds,
        bottleneck=prediction.bottleneck,
        rate=rate,
        ratio=ratio,
        start_up_s=found.start_up_s.get(setting) if found else None,
        memory_bytes=seen.weight.total(setting),
        fate=_fate(setting, view, ratio, verdict, left_out),
    )


def _fate(
    setting: Setting,
    view: Outlook,
    ratio: object,
    verdict: Verdict,
    left_out: Mapping[Setting, str],
) -> str:
    if setting == verdict.setting:
        words = "recommended"
    elif setting in left_out:
        words = left_out[setting]
    elif setting in view.no_room:
        words = "too much memory"
    elif ratio is None:
        words = "predicted only"
    elif ratio.high < TIE_BAND[0]:
        words = "slower"
    elif ratio.value < TIE_BAND[0]:
        words = "probably slower"
    elif setting > verdict.setting:
        words = "no faster, and dearer"
    else:
        words = "not clearly different"
    return f"{words} (current)" if setting == view.current else words


def _arguments(
    loader: DataLoader, setting: Setting, advice: list[Hint]
) -> dict[str, object]:
    """The recommended arguments, and those of the reader that go with them."""
    arguments: dict[str, object] = dict(setting.arguments)
    if loader.pin_memory:
        arguments["pin_memory"] = True
    if setting.workers and loader.persistent_workers:
        arguments["persistent_workers"] = True
    for hint in advice:
        arguments |= dict([hint.argument] if hint.argument else [])
    return arguments


def _notes(
    loader: DataLoader,
    seen: Probes,
    view: Outlook,
    found: Verified | None,
    left_out: Mapping[Setting, str],
    epoch: str,
) -> list[str]:
    notes = _about_epochs(seen, view, epoch) if seen.epochs_differ else []
    batches = epoch_batches(loader)
    if found and batches and found.most_taken > batches:
        notes.append(
            f"an epoch has only {batches} batches: epochs repeat; caches warm from "
            "the second"
        )
    if seen.disturbed:
        notes.append("other programs disturbed the probes: predictions may be off")
    if left_out:
        each = "; ".join(f"{setting} ({why})" for setting, why in left_out.items())
        notes.append(f"not measured: {each}")
    if view.no_room and not view.only_alone:
        setting, why = next(iter(view.no_room.items()))
        notes.append(f"{len(view.no_room)} settings do not fit here; {why}")
    most = max(setting.workers for setting in view.predicted)
    if view.costs.predict(most, view.cores).bottleneck == WORKERS:
        notes.append(
            f"even with {most} workers the workers would be the limit, by the model: "
            f"up to {view.costs.workers_needed(view.cores)} may bring more"
        )
    return notes


def _about_epochs(seen: Probes, view: Outlook, epoch: str) -> list[str]:
    def pick(costs: BatchCosts) -> str:
        predicted = {s: costs.predict(s.workers, view.cores).seconds for s in view.open}
        return str(grid.pick(predicted))

    first, later = seen.first, seen.later
    return [
        f"a batch takes {duration(first.fetch)} to read for the first time and "
        f"{duration(later.fetch)} later; this recommendation is for "
        f"{'the first epoch' if epoch == 'first' else 'later epochs'}",
        f"by the model the first epoch needs {pick(first)}, later ones {pick(later)}",
    ]
