"""The command `evaluate`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from onlineforest._cli.commands import command, option
from onlineforest._cli.options import (
    FILE,
    FIRST_BATCH_SIZE,
    REPORT,
    check_output_file,
    curve_option,
    learning_options,
)
from onlineforest._extras import require

if TYPE_CHECKING:
    from onlineforest._cli.scores import ClassScores
    from onlineforest._cli.training import Training


@command(
    "evaluate",
    "onlineforest evaluate flowers.csv --target species --task classify",
    "onlineforest evaluate patients.csv --target progression --task regress --drop patient \\\n"
    "      --batch-size 10 --picture curve.png",
    "onlineforest evaluate new-flowers.csv --target species --from flowers.safetensors --no-learn",
)
@learning_options
@option(
    "--coverage",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.9,
    show_default=True,
    metavar="SHARE",
    section=REPORT,
    help="For numbers: the nominal coverage of the intervals.",
)
@option(
    "--no-learn",
    is_flag=True,
    section=REPORT,
    help="With --from: predict without learning, to measure how good the model is on these data.",
)
@option(
    "--picture",
    type=FILE,
    metavar="FILE",
    callback=check_output_file,
    section=REPORT,
    help="Draw the learning curve: .png, .svg or .pdf.",
)
@curve_option
@option("--json", "as_json", is_flag=True, section=REPORT, help="Print the metrics as JSON.")
@option("-q", "--quiet", is_flag=True, section=REPORT, help="Show no progress.")
def evaluate(**given: Any) -> None:
    """Predict each batch of DATA, then learn it, and report how good the predictions were.

    This prequential evaluation shows how well a forest predicts a stream that it learns: no
    sample is predicted after it was learned. The first batch cannot be predicted and does not
    count, unless --from names a model. Nothing is saved. DATA is a file of CSV, JSON lines or
    Parquet, or - for standard input: see `train --help`.

    For classes: accuracy, log loss in nats (a probability counts as 0.001 at least), the expected
    calibration error (how far the probability of the predicted class is from the share of correct
    predictions, on average over 15 bins of this probability), AUC (with more than two classes the
    mean of each class against the rest), F1 (the mean of the classes), and the confusion matrix.
    For numbers, on the scale of the target: the root mean squared error (RMSE), the mean absolute
    error, and the coverage and mean width of intervals.

    With --from and an order-free model, a warning says how many rows are equal to samples that the
    model holds: if these rows were learned, the metrics are too good.
    """
    if given["picture"] is not None:
        require("matplotlib", "plot")
    if given["no_learn"] and given["from_"] is None:
        raise click.UsageError("--no-learn needs a model: name one with --from.")
    from onlineforest._cli.forests import HeldSamples, learns_categories, load_previous
    from onlineforest._cli.metrics import LearningCurve
    from onlineforest._cli.run import open_run
    from onlineforest._cli.scores import ClassScores
    from onlineforest._cli.training import Training

    with open_run({**given, "id_": None}) as run:
        previous = load_previous(given["from_"])
        start = run.start(previous)
        scores, curve = ClassScores(), LearningCurve()
        has_samples = previous is not None and start.forest.n_samples_stored_ > 0
        is_held = has_samples and learns_categories(start.forest)
        held = HeldSamples(start.forest) if is_held else None
        training = Training(
            start.forest,
            start.position,
            coverage=given["coverage"],
            learn=not given["no_learn"],
            scores=scores,
            held=held,
        )
        run.learn(training, None, given["curve"], curve)
        run.reporter.say(run.bad_rows.summary())
        if training.metrics.n == 0:
            size = start.position.batch_size or FIRST_BATCH_SIZE
            raise ValueError(
                f"{run.table.name} has {training.n_rows:,} rows, and the first batch (--batch-size "
                f"{size:,}) is not predicted: choose a smaller --batch-size."
            )
        if held is not None and held.n_equal:
            run.reporter.say(
                f"Warning: {held.n_equal:,} of {training.n_rows:,} rows have the features and the "
                f"target of a sample in {given['from_']}. If the model has learned these rows, the "
                "metrics are too good."
            )
        facts = {} if held is None else {"learned_before": held.n_equal}
        _print_metrics(
            training, scores, {"seconds": round(run.reporter.seconds, 3), **facts}, given
        )
        if given["picture"] is not None:
            from onlineforest._cli.plot import save_curve

            save_curve(given["picture"], curve.samples, curve.values)
        if given["curve"] is not None:
            run.reporter.say(f"Saved {given['curve']}")


def _print_metrics(
    training: Training, scores: ClassScores, facts: dict[str, Any], given: dict[str, Any]
) -> None:
    from onlineforest._cli.metrics import METRIC_LABELS

    means, n_predicted, n_rows = training.metrics.means(), training.metrics.n, training.n_rows
    of_classes = scores.as_json() if scores.classes else {}
    if given["as_json"]:
        counts = {"samples": n_rows, "predicted": n_predicted, **facts}
        click.echo(json.dumps({**counts, **means, **of_classes}, indent=2))
        return
    lines = [("samples", f"{n_rows:,}"), ("of these predicted", f"{n_predicted:,}")]
    labels = {**METRIC_LABELS, "coverage": f"coverage of intervals for {given['coverage']:g}"}
    lines += [(labels.get(name, name), f"{value:.4g}") for name, value in means.items()]
    if of_classes:
        auc, is_binary = of_classes["auc"], len(of_classes["classes"]) == 2
        label = "AUC" if is_binary else "AUC, mean of each class against the rest"
        lines += [(label, f"{auc:.4g}")] if auc is not None else []
        lines += [("F1, mean of the classes", f"{of_classes['f1']:.4g}")]
    width = max(len(label) for label, _ in lines)
    for label, value in lines:
        click.echo(f"{label:{width}}  {value:>10}")
    if of_classes:
        click.echo(
            "\n".join(["", "Samples of each true class by predicted class:", *scores.lines()])
        )
