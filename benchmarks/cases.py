"""The list of cases, with their data sets and targets.

Ours is the order-free forest. The name of a case of the Mondrian forest begins with `MONDRIAN`.
To add a case, write what it measures in `benchmarks.measurements` and a line here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from benchmarks.data import (
    COVTYPE,
    DIGITS,
    ELEC2,
    NOISE,
    REGRESSION,
    SYNTHETIC,
    SYNTHETIC_REGRESSION,
)
from benchmarks.files import model_file
from benchmarks.forgetting import forget_by_learn, soak, window_by_learn
from benchmarks.measurements import (
    batch_stream,
    calibration,
    calibration_of_stream,
    grown_then_learned,
    learned,
    learning_overhead,
    long_stream,
    longest_call,
    memory,
    one_river_sample,
    one_row,
    one_sample,
    predicted_and_learned,
    predicting_overhead,
    side_by_side,
    stream,
    threads,
)
from benchmarks.ours import (
    grown_order_free,
    mondrian,
    order_free,
    order_free_regressor,
    river_order_free,
    river_order_free_regressor,
)
from benchmarks.peers import AMF, AMF_REGRESSOR, ARF, ERT, ERT_1, ERT_K, MOA_ARF, RF
from benchmarks.settings import Case, Measure
from benchmarks.tasks import (
    Task,
    built_mini_batches,
    fitting,
    learn_alone,
    mini_batches,
    predict_and_learn,
    predicted_mini_batches,
    predicting,
    predicting_numbers,
    retraining,
    row_by_row_moa,
)

MONDRIAN = "Mondrian: "


def of_mondrian(cases: Iterable[Case]) -> list[Case]:
    """The cases under names that tell them from those of the order-free forest."""
    return [replace(case, name=f"{MONDRIAN}{case.name}") for case in cases]


def compared(names: Iterable[str], targets: dict[str, dict[str, float]]) -> list[Case]:
    """Cases of the Mondrian forest on several data sets; targets by case and data set."""
    names = list(names)

    def each(name: str, measure: Measure, most_runs: int | None = None) -> list[Case]:
        wanted = targets.get(name, {})
        return [Case(name, data, measure, wanted.get(data), most_runs=most_runs) for data in names]

    return [
        *each("fit / ERT-k", side_by_side(fitting, ERT_K, ours=mondrian)),
        *each("fit / ERT-1", side_by_side(fitting, ERT_1, ours=mondrian), most_runs=3),
        *each("fit / RF", side_by_side(fitting, RF, ours=mondrian), most_runs=3),
        *each("stream / ERT-k", stream(learned)),
        *each("predict / ERT-k", side_by_side(predicting, ERT_K, ours=mondrian)),
    ]


def on_one(data: str) -> list[Case]:
    """Cases of the Mondrian forest on one data set."""
    return [
        Case("one sample / River AMF", data, one_sample(AMF, mondrian), 50.0, most_runs=3),
        Case("one sample / River ARF", data, one_sample(ARF, mondrian), most_runs=1),
        Case("one-row overhead, learn", data, learning_overhead, 5.0, any_data=True),
        Case("one-row overhead, predict", data, predicting_overhead, 5.0, any_data=True),
        Case("long stream", SYNTHETIC, long_stream(learned), 2.5),
    ]


def thread_cases(data: str, *numbers: int) -> list[Case]:
    """Speed-up by some numbers of threads, of both kinds of forest."""
    targets = {2: (1.9, 1.9, 1.9), 16: (13.0, 12.0, 13.0)}
    return [
        Case(f"{kind}{n_threads} threads, {way}", data, threads(n_threads, task, forest), target)
        for kind, forest in (("", order_free), (MONDRIAN, mondrian))
        for n_threads in numbers
        for (way, task), target in zip(
            (
                ("fit", fitting),
                ("batches of 1,000", predicted_mini_batches),
                ("predict", predicting),
            ),
            targets[n_threads],
            strict=True,
        )
    ]


def one_row_cases(data: str) -> list[Case]:
    """Microseconds of calls with one row, of both kinds of forest."""
    return [
        Case("one row", data, one_row(order_free, 600.0, 30.0), most_runs=3),
        Case(f"{MONDRIAN}one row", data, one_row(mondrian, 200.0, 60.0), most_runs=3),
    ]


def mini_batch_cases(names: Iterable[str]) -> list[Case]:
    """Mini-batches of the Mondrian forest beside re-training, which takes minutes."""
    measure = side_by_side(mini_batches, ERT_K, retraining, mondrian)
    name = "mini-batches / re-trained ERT-k"
    return [Case(name, data, measure, 0.02, most_runs=1) for data in names]


def memory_cases(targets: dict[str, float | None]) -> list[Case]:
    """Memory of the Mondrian forest after `fit` and after mini-batches; targets by data set."""
    return [
        Case(f"memory, {way}", data, memory(way, "Mondrian"), target)
        for data, target in targets.items()
        for way in ("fit", "mini-batches")
    ]


def forgetting_cases(names: Iterable[str]) -> list[Case]:
    """Mondrian: forgetting and windows relative to learning, and memory of a long stream."""
    names = list(names)
    return [
        *(Case("forget / learn, one call", data, forget_by_learn(False), 1.5) for data in names),
        *(Case("forget / learn, one by one", data, forget_by_learn(True), 1.5) for data in names),
        *(Case("window / learn, one by one", data, window_by_learn(1), 2.5) for data in names),
        *(Case("window / learn, batches of 50", data, window_by_learn(50), 2.5) for data in names),
        Case("memory of a long stream through a window", SYNTHETIC, soak, 2.0),
    ]


def river_cases(classes: str, numbers: str) -> list[Case]:
    """Our models for River compared with River's own, on classes and on numbers."""
    return [
        Case(f"{name} / River AMF", data, one_river_sample(peer, ours), most_runs=3)
        for name, data, peer, ours in (
            ("model of River", classes, AMF, river_order_free),
            ("model of River, numbers", numbers, AMF_REGRESSOR, river_order_free_regressor),
        )
    ]


def order_free_cases(
    names: Sequence[str],
    long: Sequence[str],
    retrained: Sequence[str] = (),
    stored: Sequence[str] = (),
    streams: Sequence[str] = (),
    numbers: Sequence[str] = (),
) -> list[Case]:
    """The order-free forest beside ERT-k, itself and River.

    `long` are generated streams, `retrained` data sets on which ERT-k is trained again and again,
    `stored` those whose memory is measured, `streams` those that River learns, too, and `numbers`
    those of regression.
    """

    def each(
        name: str,
        measure: Measure,
        target: float | None,
        data: Sequence[str],
        most_runs: int | None = None,
    ) -> list[Case]:
        return [Case(name, one, measure, target, most_runs=most_runs) for one in data]

    def mini_batch(name: str, task: Task) -> list[Case]:
        measure = side_by_side(task, ERT_K, retraining)
        return each(f"{name} / re-trained ERT-k", measure, 0.08, retrained, most_runs=1)

    def memory_after(way: str) -> list[Case]:
        return each(f"memory, {way}", memory(way, beside_rows=True), 100.0, stored)

    long_streams = long_stream(grown_then_learned, n_late=20_000, n_quick=5_000)
    forgetting = forget_by_learn(True, grown_order_free)
    with_predictions = forget_by_learn(True, grown_order_free, predicts=True)
    beside_river = one_sample(ARF, n_rows=10_000)
    beside_moa = one_sample(MOA_ARF, n_rows=10_000, peer_task=row_by_row_moa)

    def of_numbers(task: Task) -> Measure:
        return side_by_side(task, ERT, ours=order_free_regressor)

    return [
        *each("fit / ERT-k", side_by_side(fitting, ERT_K), 0.5, names),
        *each("fit / RF", side_by_side(fitting, RF), None, names, most_runs=3),
        *each("stream / ERT-k", stream(predicted_and_learned), 6.0, names, most_runs=3),
        *mini_batch("mini-batches, built at the end", built_mini_batches),
        *mini_batch("mini-batches, each predicted", predicted_mini_batches),
        *each("predict / ERT-k", side_by_side(predicting, ERT_K), 0.9, names),
        *each("forget / learn, one by one", forgetting, 1.5, names),
        *each("forget / learn, one by one, each predicted", with_predictions, 1.5, names),
        *each("long stream", long_streams, 2.5, long),
        Case("longest call", SYNTHETIC, longest_call, most_runs=3),
        *memory_after("fit"),
        *memory_after("mini-batches, built at the end"),
        *each("one sample / River ARF", beside_river, 20.0, streams, most_runs=3),
        *each("one sample / MOA ARF", beside_moa, 4.0, streams, most_runs=3),
        *each("numbers, fit / ERT", of_numbers(fitting), 0.9, numbers),
        *each("numbers, predict / ERT", of_numbers(predicting_numbers), 0.4, numbers),
    ]


def calibration_cases(names: Sequence[str], streams: Sequence[str]) -> list[Case]:
    """The order-free classifier with calibration beside itself without, at once and in streams."""
    return [
        Case(f"calibration, {way}", data, measure, target, most_runs=most_runs)
        for way, measure, target, where, most_runs in (
            ("fit", calibration(fitting), 1.1, names, None),
            ("predict", calibration(predicting), 1.05, names, None),
            ("learn alone", calibration_of_stream(learn_alone), 1.1, streams, None),
            ("predict and learn", calibration_of_stream(predict_and_learn), 1.1, streams, 3),
        )
        for data in where
    ]


def full_cases() -> list[Case]:
    """The cases on the paper's data sets."""
    targets = {
        "fit / ERT-k": {"letter": 0.25, "satimages": 0.25, "dna": 0.45, "usps": 0.5},
        "stream / ERT-k": {"letter": 0.9, "satimages": 0.9, "dna": 0.9, "usps": 1.8},
        "predict / ERT-k": {"letter": 1.5, "satimages": 1.8, "dna": 2.5, "usps": 4.0},
    }
    paper = ("letter", "satimages", "dna", "usps")
    return [
        *order_free_cases(
            paper,
            (SYNTHETIC, NOISE),
            paper,
            ("letter", "usps"),
            (ELEC2, COVTYPE),
            REGRESSION,
        ),
        *calibration_cases(("letter", "satimages"), ("letter", ELEC2, COVTYPE)),
        Case("covtype stream", COVTYPE, batch_stream(order_free)),
        *thread_cases("letter", 2, 16),
        *one_row_cases("letter"),
        *river_cases("letter", "kin8nm"),
        *of_mondrian(
            [
                *compared(paper, targets),
                *mini_batch_cases(("letter", "satimages")),
                *on_one("letter"),
                Case("covtype stream", COVTYPE, batch_stream(mondrian)),
                *memory_cases({"letter": 100.0, "usps": 900.0}),
                *forgetting_cases(("letter", "usps")),
                *(Case("model file", data, model_file, 300.0) for data in ("letter", "usps")),
            ]
        ),
    ]


def quick_cases() -> list[Case]:
    """Cases on data that need no folder; only targets for any data apply."""
    cases = [
        *order_free_cases(
            [DIGITS], [SYNTHETIC], [DIGITS], [DIGITS], numbers=[SYNTHETIC_REGRESSION]
        ),
        *calibration_cases([DIGITS], [DIGITS]),
        Case("one sample / River AMF", DIGITS, one_sample(AMF)),
        Case("one sample / River ARF", DIGITS, one_sample(ARF)),
        Case("batch stream", SYNTHETIC, batch_stream(order_free)),
        *thread_cases(DIGITS, 2),
        *one_row_cases(DIGITS),
        *river_cases(DIGITS, SYNTHETIC_REGRESSION),
        *of_mondrian(
            [
                *compared([DIGITS], {}),
                *mini_batch_cases([DIGITS]),
                *on_one(DIGITS),
                Case("batch stream", SYNTHETIC, batch_stream(mondrian)),
                *memory_cases({DIGITS: None}),
                *forgetting_cases([DIGITS]),
                Case("model file", DIGITS, model_file),
            ]
        ),
    ]
    # Cases that take long have one run, to stay within two minutes.
    short = ("fit", "predict", "numbers", "2 threads")
    return [
        case if case.name.removeprefix(MONDRIAN).startswith(short) else replace(case, most_runs=1)
        for case in cases
    ]
