"""What the model expects of every setting, and which of them this machine holds."""

from dataclasses import dataclass

from helpers.advise.model import BatchCosts
from helpers.advise.tuning import grid
from helpers.advise.tuning.grid import ALONE, Setting
from helpers.advise.tuning.room import Room, Weight


@dataclass(frozen=True)
class Outlook:
    """The grid before anything but the probes was measured.

    Attributes:
        costs: per batch, in seconds.
        cores: usable.
        current: the reader's own setting.
        predicted: seconds per batch of every setting.
        no_room: settings that this machine cannot hold -> why.
        open: settings that may be measured or recommended.
    """

    costs: BatchCosts
    cores: float
    current: Setting
    predicted: dict[Setting, float]
    no_room: dict[Setting, str]
    open: tuple[Setting, ...]

    @property
    def pick(self) -> Setting:
        """The model's choice; 0 workers if nothing else is possible."""
        if not self.open:
            return ALONE
        return grid.pick(self._possible())

    @property
    def shortlist(self) -> list[Setting]:
        """What is worth a measurement, the most telling first."""
        return grid.shortlist(self._possible(), self.current) if self.open else []

    @property
    def only_alone(self) -> bool:
        """No setting with workers fits into memory."""
        return not any(setting.workers for setting in self.open)

    def _possible(self) -> dict[Setting, float]:
        return {setting: self.predicted[setting] for setting in self.open}


def outlook(
    costs: BatchCosts,
    cores: float,
    current: Setting,
    room: Room,
    weight: Weight,
    in_process: bool,
) -> Outlook:
    """Ask the model about every setting of the grid and the reader's own.

    Args:
        costs: per batch, in seconds.
        cores: usable.
        current: the reader's own setting.
        room: free memory.
        weight: of batches and workers.
        in_process: 0 workers are possible.
    """
    settings = sorted({*grid.grid(cores), current})
    predicted = {s: costs.predict(s.workers, cores).seconds for s in settings}
    objections = {s: room.objection([s], weight) for s in settings}
    no_room = {setting: why for setting, why in objections.items() if why}
    possible = [s for s in settings if s not in no_room and (s.workers or in_process)]
    return Outlook(costs, cores, current, predicted, no_room, tuple(possible))
