"""Which settings of a shortlist are measured: what fits in memory and in time."""

from collections.abc import Sequence
from dataclasses import dataclass

from helpers.advise.tuning.grid import Setting
from helpers.advise.tuning.room import Room, Weight
from helpers.advise.tuning.verify import MOST_OPEN, Timetable


@dataclass(frozen=True)
class Entrants:
    """What is measured, and what is not.

    Attributes:
        settings: in the order of the shortlist; empty if the time is too short.
        left_out: the others -> why.
        needed_s: seconds to decide between the first two of the shortlist.
    """

    settings: tuple[Setting, ...]
    left_out: dict[Setting, str]
    needed_s: float


def admit(
    shortlist: Sequence[Setting],
    room: Room,
    weight: Weight,
    timetable: Timetable,
    window_s: float,
    time_left_s: float,
    keep_open: bool,
) -> Entrants:
    """As much of a shortlist as can be open at once and decided in time.

    Args:
        shortlist: the most telling first.
        room: free memory.
        weight: of batches and workers.
        timetable: how long each takes.
        window_s: seconds per setting and block.
        time_left_s: seconds until a decision is due.
        keep_open: they stay open between blocks, so only a few may enter.
    """
    admitted: list[Setting] = []
    left_out: dict[Setting, str] = {}
    for setting in shortlist:
        objection = room.objection([*admitted, setting], weight)
        if objection is not None:
            left_out[setting] = f"too much memory: {objection}"
        elif keep_open and len(admitted) == MOST_OPEN:
            left_out[setting] = f"at most {MOST_OPEN} are kept open at once"
        else:
            admitted.append(setting)
    least = max(1, min(2, len(admitted)))
    while len(admitted) > least:
        if timetable.race_s(admitted, window_s) <= time_left_s:
            break
        left_out[admitted.pop()] = "no time left"
    needed = timetable.race_s(admitted, window_s) if admitted else 0.0
    if needed > time_left_s:
        left_out |= dict.fromkeys(admitted, "no time left")
        admitted = []
    return Entrants(tuple(admitted), left_out, needed)
