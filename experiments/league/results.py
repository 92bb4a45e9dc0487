"""The results of a league as tables: means over seeds, ranks, and where ours loses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from experiments.league.models import OURS, Task
from experiments.league.ranks import mean_ranks
from experiments.league.run import Result
from experiments.league.streams import STREAMS
from experiments.league.trial import ACCURACY, KAPPA, LOG_LOSS, MEGABYTES, RMSE, SECONDS

# Measures with their digits; of the first ones more is better, of all others less.
MORE_IS_BETTER = (ACCURACY, KAPPA)
DIGITS = {ACCURACY: 3, KAPPA: 3, LOG_LOSS: 3, RMSE: 3, SECONDS: 1, MEGABYTES: 1}
OF_LABELS = (ACCURACY, KAPPA, LOG_LOSS, SECONDS, MEGABYTES)
OF_NUMBERS = (RMSE, SECONDS, MEGABYTES)


@dataclass(frozen=True)
class Table:
    """A measure: a row for each stream, a column for each model, a cell for each seed.

    Parameters
    ----------
    measure, numbers
        The measure, and whether targets are numbers.
    streams, models
        Their names.
    cells : ndarray of shape (n_streams, n_models, n_seeds)
        NaN: it failed, or was not run.
    """

    measure: str
    numbers: bool
    streams: tuple[str, ...]
    models: tuple[str, ...]
    cells: NDArray[np.float64]

    def means(self) -> NDArray[np.float64]:
        """The mean over the seeds that were run; NaN if none was."""
        n = np.sum(~np.isnan(self.cells), axis=2)
        return np.divide(
            np.nansum(self.cells, axis=2), n, out=np.full(n.shape, np.nan), where=n > 0
        )

    def losses(self) -> NDArray[np.float64]:
        """The means, or their negatives where more is better."""
        return -self.means() if self.measure in MORE_IS_BETTER else self.means()

    def ranks(self) -> dict[str, float]:
        """The mean rank of each model, the best first."""
        ranks = dict(zip(self.models, mean_ranks(self.losses()).tolist(), strict=True))
        return dict(sorted(ranks.items(), key=lambda item: item[1]))

    def text(self, stream: int, model: int) -> str:
        """The mean and, of several seeds, the standard deviation."""
        found = self.cells[stream, model]
        found, digits = found[~np.isnan(found)], DIGITS[self.measure]
        if not len(found):
            return "-"
        deviation = f" ± {found.std():.{digits}f}" if len(found) > 1 else ""
        return f"{found.mean():.{digits}f}{deviation}"

    def best(self, stream: int) -> list[int]:
        """The best models of a stream."""
        losses = np.round(self.losses()[stream], DIGITS[self.measure])
        known = losses[~np.isnan(losses)]
        return np.flatnonzero(losses == known.min()).tolist() if len(known) else []


@dataclass
class Results:
    """The tasks of a league, the results of those that were run, and the seconds that passed."""

    tasks: Sequence[Task]
    found: Sequence[Result]
    seconds: float = 0.0

    @cached_property
    def complete(self) -> set[tuple[str, int]]:
        """The streams and seeds that all models were run on, with success or without."""
        asked = Counter((task.stream, task.seed) for task in self.tasks)
        run = Counter((each["task"]["stream"], each["task"]["seed"]) for each in self.found)
        return {pair for pair, n in asked.items() if run[pair] == n}

    def table(self, measure: str, numbers: bool = False) -> Table:
        """A measure on the streams that have a complete seed, of these seeds."""
        tasks = [task for task in self.tasks if STREAMS[task.stream].numbers == numbers]
        whole = {stream for stream, _ in self.complete}
        streams = [name for name in dict.fromkeys(task.stream for task in tasks) if name in whole]
        models = list(dict.fromkeys(task.model for task in tasks))
        n_seeds = 1 + max((task.seed for task in tasks), default=0)
        cells = np.full((len(streams), len(models), n_seeds), np.nan)
        for result in self.found:
            name, model, seed = (result["task"][key] for key in ("stream", "model", "seed"))
            if name in streams and (name, seed) in self.complete and "scores" in result:
                cells[streams.index(name), models.index(model), seed] = result["scores"][measure]
        return Table(measure, numbers, tuple(streams), tuple(models), cells)

    def tables(self) -> list[Table]:
        """All tables that have rows."""
        of_labels = [self.table(measure) for measure in OF_LABELS]
        of_numbers = [self.table(measure, numbers=True) for measure in OF_NUMBERS]
        return [table for table in (*of_labels, *of_numbers) if table.streams]

    def n_samples(self) -> dict[str, int]:
        """The length of each stream that was run."""
        done = [result for result in self.found if "scores" in result]
        return {result["task"]["stream"]: result["n_samples"] for result in done}

    def defeats(self) -> list[str]:
        """A sentence on each of our models and measure: where another's model is better."""
        tables = [self.table(ACCURACY), self.table(LOG_LOSS), self.table(RMSE, numbers=True)]
        return [
            defeats_of(table, model)
            for table in tables
            for model in table.models
            if model in OURS and table.streams and set(table.models) - set(OURS)
        ]

    def failures(self) -> list[str]:
        """A line on each model and stream that failed, and on each stream that lacks trials."""
        lines = {
            f"{result['task']['model']} on {result['task']['stream']}: {result['error']}": None
            for result in self.found
            if "error" in result
        }
        asked = Counter(task.stream for task in self.tasks)
        run = Counter(result["task"]["stream"] for result in self.found)
        left = [
            f"{stream}: {n - run[stream]} of {n} trials were not run"
            for stream, n in asked.items()
            if run[stream] < n
        ]
        return [*lines, *left]


def defeats_of(table: Table, model: str) -> str:
    """Where the best of the others' models is better than one of ours."""
    losses, ours = table.losses(), table.models.index(model)
    others = [i for i, name in enumerate(table.models) if name not in OURS]
    places = []
    for i, stream in enumerate(table.streams):
        of_others = np.where(np.isnan(losses[i]), np.inf, losses[i])[others]
        if not losses[i, ours] <= of_others.min():
            best = others[int(of_others.argmin())]
            cells = f"{table.text(i, ours)}, {table.models[best]} {table.text(i, best)}"
            places.append(f"{stream} ({cells})")
    where = f": {'; '.join(places)}" if places else ""
    return f"{model}, {table.measure}: behind on {len(places)} of {len(table.streams)}{where}."
