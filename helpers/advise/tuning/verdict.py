"""From what was measured to a recommendation and how sure it is."""

from dataclasses import dataclass

from helpers.advise.tuning.grid import Setting
from helpers.advise.tuning.outlook import Outlook
from helpers.advise.tuning.race import GOAL, NOISY
from helpers.advise.tuning.verify import Verified
from helpers.measure.intervals import ROUNDS_TO_DECIDE

VERIFIED, TOO_NOISY, UNVERIFIED = "verified", "too noisy to tell", "unverified"
NO_ROOM = "no room for workers"


@dataclass(frozen=True)
class Verdict:
    """A setting, how sure it is, and why: a sentence without a full stop."""

    setting: Setting
    status: str
    reason: str


def by_model(outlook: Outlook, reason: str) -> Verdict:
    """The model's pick, with why it was not measured."""
    if outlook.only_alone:
        return Verdict(outlook.pick, NO_ROOM, next(iter(outlook.no_room.values())))
    return Verdict(outlook.pick, UNVERIFIED, reason)


def by_measurement(outlook: Outlook, found: Verified) -> Verdict:
    """The race's choice, and whether the race says enough."""
    race = found.race
    if not race.blocks or outlook.pick in found.too_short:
        why = found.too_short.get(outlook.pick) or "the stream ends"
        return by_model(outlook, f"with that many workers {why}")
    choice = race.choice
    if outlook.only_alone:
        return Verdict(choice, NO_ROOM, next(iter(outlook.no_room.values())))
    if len(race.rates) == 1:
        return Verdict(choice, UNVERIFIED, "nothing else could be measured beside it")
    blocks = f"{race.blocks} block{'' if race.blocks == 1 else 's'}"
    if race.blocks < ROUNDS_TO_DECIDE and not race.decided:
        reason = f"the budget allowed {blocks}, and {ROUNDS_TO_DECIDE} are needed"
        return Verdict(choice, UNVERIFIED, reason)
    if not race.trusted:
        return Verdict(choice, TOO_NOISY, _disturbed(found))
    if not race.decided and race.guaranteed < NOISY:
        reason = (
            f"after {blocks} it may still be {1 - race.guaranteed:.0%} slower than "
            "another setting: the rates vary too much from block to block"
        )
        return Verdict(choice, TOO_NOISY, reason)
    return Verdict(choice, VERIFIED, _proven(race.guaranteed, blocks))


def _proven(guaranteed: float, blocks: str) -> str:
    slower = max(1 - GOAL, 1 - guaranteed)
    return f"at most {slower:.0%} slower than any other tried, {blocks}"


def _disturbed(found: Verified) -> str:
    mean = sum(found.foreign) / len(found.foreign)
    return (
        f"other programs used {mean:.1f} cores on average while this was measured, "
        "and disturbed more than half of the windows"
    )
