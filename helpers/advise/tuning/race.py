"""Which of several settings wins, from their rates in blocks: no clock in here.

Every setting runs once per block and is compared with the others only within
blocks. What is clearly slower leaves early, so that the time goes to those that
are hard to tell apart.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from helpers.advise.tuning.grid import Setting
from helpers.measure.intervals import (
    ROUNDS_TO_DECIDE,
    TIE_BAND,
    Estimate,
    Ratio,
    median_estimate,
    paired_ratio,
)

#: The promise of a recommendation: this close to the best.
GOAL = 0.95

#: So much slower in each of two undisturbed blocks, and a setting leaves.
HOPELESS = 0.80

#: Less than this share of the others' rates guaranteed, and it was too noisy.
NOISY = 0.90


class Race:
    """Rates of settings, block by block, and what follows from them.

    Args:
        settings: those that run.
    """

    def __init__(self, settings: Sequence[Setting]) -> None:
        self.rates: dict[Setting, list[float]] = {setting: [] for setting in settings}
        self.running = list(settings)
        self._accepted: list[bool] = []

    def add(self, rates: Mapping[Setting, float], accepted: Sequence[bool]) -> None:
        """Take in a block.

        Args:
            rates: samples/s of every setting that is still running.
            accepted: what the guard said to each window.
        """
        for setting in self.running:
            self.rates[setting].append(rates[setting])
        self._accepted += accepted
        leader = self.leader
        self.running = [s for s in self.running if not self._is_beaten(s, leader)]

    def remove(self, setting: Setting) -> None:
        """A setting cannot be measured."""
        self.running.remove(setting)
        del self.rates[setting]

    @property
    def blocks(self) -> int:
        """Blocks so far."""
        return max(map(len, self.rates.values()), default=0)

    @property
    def leader(self) -> Setting:
        """The fastest of those that still run."""
        return max(self.running, key=lambda s: np.log(self.rates[s]).mean())

    def ratio(self, setting: Setting, reference: Setting) -> Ratio:
        """Rate of one setting divided by another's, in the blocks both ran in."""
        both = min(len(self.rates[setting]), len(self.rates[reference]))
        return paired_ratio(
            self.rates[setting][:both],
            self.rates[reference][:both],
            trusted=self.trusted,
        )

    def estimate(self, setting: Setting) -> Estimate:
        """Median rate with its interval."""
        return median_estimate(self.rates[setting])

    @property
    def choice(self) -> Setting:
        """The cheapest of those within the tie band below the leader."""
        leader = self.leader
        tied = [s for s in self.running if self._is_tied(s, leader)]
        return min(tied)

    @property
    def guaranteed(self) -> float:
        """Share of every other's rate that the choice reaches with certainty.

        The lowest end of its intervals against those still running; 1 if it is
        the only one.
        """
        choice = self.choice
        others = [setting for setting in self.running if setting != choice]
        return min([1.0, *(self.ratio(choice, other).low for other in others)])

    @property
    def decided(self) -> bool:
        """The choice is shown to be within 5 % of every other."""
        if len(self.running) == 1:
            return True
        return self.blocks >= ROUNDS_TO_DECIDE and self.guaranteed >= GOAL

    @property
    def trusted(self) -> bool:
        """The guard accepted at least half of the windows."""
        return bool(np.mean(self._accepted) >= 0.5)

    def _is_tied(self, setting: Setting, leader: Setting) -> bool:
        return setting == leader or self.ratio(setting, leader).value >= TIE_BAND[0]

    def _is_beaten(self, setting: Setting, leader: Setting) -> bool:
        if setting == leader or self.blocks < 2:
            return False
        high = self.ratio(setting, leader).high
        if self.blocks < ROUNDS_TO_DECIDE:
            return self.trusted and high < HOPELESS
        return high < TIE_BAND[0]
