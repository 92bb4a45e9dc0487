"""The report of a league: one HTML file that needs no other. It computes no scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from benchmarks.machine import describe_machine
from experiments.league.models import MODELS, N_TREES
from experiments.league.pictures import ranks_picture
from experiments.league.ranks import LEVEL, critical_difference
from experiments.league.results import Results, Table
from experiments.league.streams import STREAMS
from experiments.league.trial import ACCURACY, LEAST_PROBABILITY, LOG_LOSS

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1200px; margin: 2em auto; padding: 0 1em }
table { border-collapse: collapse; margin: 1em 0; font-variant-numeric: tabular-nums }
div.table { overflow-x: auto }
th, td { border-bottom: 1px solid #ddd; padding: .2em .7em; text-align: right; white-space: nowrap }
th:first-child, td:first-child, td.text { text-align: left }
td.text { white-space: normal }
svg { max-width: 100%; height: auto }
"""
PROTOCOL = (
    "Each sample is predicted, then learned, one at a time and on one thread. Accuracy counts all "
    "samples. Kappa temporal is (a − b) / (1 − b) for the accuracies a of the model and b of the "
    "label before. In the log loss, a probability below {least:g} counts as {least:g}. A model "
    "without an answer is wrong; its classes count as equally probable, its number as 0. The "
    "processor seconds are those of predicting and learning, without making rows; MOA's include "
    "Java's compiler and its calls from Python. The memory is how far the process rose over its "
    "memory before the first sample: the model with all its garbage, Java's above all. All have "
    "{trees} trees, unless a model's line below says otherwise."
)


@dataclass(frozen=True)
class Setting:
    """The settings of a league."""

    n_seeds: int
    hours: float | None
    asked: Mapping[str, int]  # the length of each stream before the budget
    absent: Sequence[str]  # a line for each model or stream that cannot take part


def html_of(results: Results, setting: Setting) -> str:
    """The whole report."""
    parts = [
        "<h1>A league of stream learners</h1>",
        paragraph(PROTOCOL.format(least=LEAST_PROBABILITY, trees=N_TREES)),
        *rank_parts(results),
        "<h2>Where ours loses</h2>",
        paragraph("Each of our models beside the best of the others, mean over seeds:"),
        bullets(results.defeats()),
        "<h2>Not run, or failed</h2>",
        bullets([*setting.absent, *results.failures()]),
        *score_parts(results),
        "<h2>Streams</h2>",
        stream_table(results, setting),
        "<h2>Models</h2>",
        model_table(results),
        "<h2>Machine</h2>",
        bullets(machine_lines(results, setting)),
    ]
    head = f'<!doctype html><meta charset="utf-8"><title>League</title><style>{STYLE}</style>'
    return "\n".join([head, *parts]) + "\n"


def paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def bullets(lines: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines) or '<li>none</li>'}</ul>"


def table_of(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells, which are HTML."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(row)}</tr>\n" for row in rows)
    return f'<div class="table"><table><tr>{head}</tr>\n{body}</table></div>'


def cell(text: str, bold: bool = False, prose: bool = False) -> str:
    inside = f"<b>{escape(text)}</b>" if bold else escape(text)
    return f'<td class="text">{inside}</td>' if prose else f"<td>{inside}</td>"


def rank_parts(results: Results) -> list[str]:
    """Mean ranks with their critical difference, for accuracy and log loss."""
    parts = ["<h2>Mean ranks</h2>"]
    for measure in (ACCURACY, LOG_LOSS):
        table = results.table(measure)
        if len(table.models) < 2 or not table.streams:
            continue
        ranks = table.ranks()
        difference = critical_difference(len(ranks), len(table.streams))
        text = (
            f"Over {len(table.streams)} streams of labels; a model that failed is last. Nemenyi's "
            f"test at the level {LEVEL:g}: bars join models whose ranks differ by less than "
            f"{difference:.2f}."
        )
        rows = [[cell(name), cell(f"{rank:.2f}")] for name, rank in ranks.items()]
        parts += [f"<h3>{measure}</h3>", paragraph(text), ranks_picture(ranks, difference)]
        parts.append(table_of(["model", "mean rank"], rows))
    return parts


def score_parts(results: Results) -> list[str]:
    """A table for each measure."""
    parts = []
    for table in results.tables():
        title = f"{'Numbers' if table.numbers else 'Labels'}: {table.measure}"
        parts += [f"<h2>{escape(title)}</h2>", score_table(table)]
    return parts


def score_table(table: Table) -> str:
    """Streams down, models across; the best is bold."""
    rows = []
    for i, stream in enumerate(table.streams):
        best = table.best(i)
        cells = [cell(table.text(i, j), bold=j in best) for j in range(len(table.models))]
        rows.append([cell(stream), *cells])
    return table_of(["stream", *table.models], rows)


def stream_table(results: Results, setting: Setting) -> str:
    """Each stream with its change and its length, and whether the budget shortened it."""
    rows = []
    for name, n in results.n_samples().items():
        planned = next(task.n_samples for task in results.tasks if task.stream == name)
        short = f"{n:,} of {setting.asked[name]:,}" if planned < setting.asked[name] else "no"
        rows.append(
            [cell(name), cell(STREAMS[name].about, prose=True), cell(f"{n:,}"), cell(short)]
        )
    return table_of(["stream", "what changes", "samples", "shortened by the budget"], rows)


def model_table(results: Results) -> str:
    """The settings and the versions of each model."""
    versions: dict[str, dict[str, None]] = {}
    for result in results.found:
        for package, version in result.get("versions", {}).items():
            versions.setdefault(result["task"]["model"], {})[f"{package} {version}"] = None
    rows = [
        [cell(name), cell(MODELS[name].about, prose=True), cell(", ".join(found), prose=True)]
        for name, found in versions.items()
    ]
    return table_of(["model", "settings", "versions"], rows)


def machine_lines(results: Results, setting: Setting) -> list[str]:
    """The machine, the seeds and the budget."""
    known = {key: value for key, value in describe_machine().items() if value is not None}
    budget = "no budget" if setting.hours is None else f"a budget of {setting.hours:g} hours"
    return [
        ", ".join(f"{key} {value}" for key, value in known.items()),
        f"seeds {', '.join(map(str, range(setting.n_seeds)))}: of the models, and of the streams "
        "that are generated or shuffled",
        f"{results.seconds / 3600:.2f} hours, {budget}",
    ]
