"""The settings that come into question, and those worth a measurement.

An exhaustive sweep would measure 16 of them: 0 workers once, and 1, 2, 3, 4 and
8 workers with a prefetch factor of 1, 2 and 4 each.
"""

from collections.abc import Mapping
from dataclasses import dataclass

WORKERS = (0, 1, 2, 3, 4, 8)
PREFETCH = (1, 2, 4)

#: What torch takes if nothing is said.
USUAL_PREFETCH = 2

#: Settings predicted this close to the best are as good as the best.
CLOSE = 0.03

#: 0 workers are measured if predicted this close to the best: with them the
#: model adds two measured times, and was never seen further off.
WORTH_A_TRY = 0.30


@dataclass(frozen=True, order=True)
class Setting:
    """``num_workers`` and ``prefetch_factor``; the cheaper one sorts first.

    ``prefetch`` is 0 without workers, where there is no such thing.
    """

    workers: int
    prefetch: int

    @property
    def in_flight(self) -> int:
        """Batches that are asked for and not yet taken, at most."""
        return self.workers * self.prefetch

    @property
    def arguments(self) -> dict[str, int]:
        """As arguments of a DataLoader, which takes no prefetch without workers."""
        if not self.workers:
            return {"num_workers": 0}
        return {"num_workers": self.workers, "prefetch_factor": self.prefetch}

    def __str__(self) -> str:
        if not self.workers:
            return "0 workers"
        plural = "" if self.workers == 1 else "s"
        return f"{self.workers} worker{plural}, prefetch {self.prefetch}"


ALONE = Setting(0, 0)


def grid(cores: float) -> list[Setting]:
    """All settings for so many usable cores, the cheapest first.

    The 16 points, and on machines with more than 8 cores also 16, 32, ...
    workers up to the number of cores.
    """
    counts = list(WORKERS[1:])
    while counts[-1] * 2 <= cores:
        counts.append(counts[-1] * 2)
    return [ALONE, *(Setting(w, p) for w in counts for p in PREFETCH)]


def pick(predicted: Mapping[Setting, float]) -> Setting:
    """The fewest workers within 3 % of the predicted best.

    Args:
        predicted: seconds per batch. The model knows no effect of prefetching,
            so among equals the prefetch factor nearest the usual one is taken.
    """
    best = min(predicted.values())
    near = [s for s, seconds in predicted.items() if seconds <= best * (1 + CLOSE)]
    return _usual(near, min(setting.workers for setting in near))


def shortlist(predicted: Mapping[Setting, float], current: Setting) -> list[Setting]:
    """What is worth a measurement, the most telling first.

    The model's pick, the reader's own setting, the pick's neighbours in the
    number of workers, the pick with more prefetching, and 0 workers if the model
    says that they come close.

    Args:
        predicted: seconds per batch of every setting that may be measured.
        current: the reader's own.
    """
    chosen = pick(predicted)
    counts = sorted({setting.workers for setting in predicted})
    place = counts.index(chosen.workers)
    neighbours = counts[place + 1 : place + 2] + counts[max(0, place - 1) : place]
    wanted = [chosen, current]
    wanted += [_usual(predicted, workers) for workers in neighbours if workers]
    wanted.append(Setting(chosen.workers, max(PREFETCH)))
    close = (1 + WORTH_A_TRY) * min(predicted.values())
    if predicted.get(ALONE, close) < close:
        wanted.append(ALONE)
    return [setting for setting in dict.fromkeys(wanted) if setting in predicted]


def _usual(settings: Mapping[Setting, float] | list[Setting], workers: int) -> Setting:
    same = [setting for setting in settings if setting.workers == workers]
    return min(same, key=lambda s: abs(s.prefetch - USUAL_PREFETCH))
