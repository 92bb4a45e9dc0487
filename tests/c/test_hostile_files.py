"""Whatever the bytes of a file, the C library refuses it or holds the forest that Python holds."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import currently_in_test_context, event, given, settings

from onlineforest import ModelFileError, OnlineForestClassifier, OnlineForestRegressor, load
from support.c_library import CError
from support.examples import examples
from support.hostile_files import FILES, ROWS, damaged, rewritten
from support.model_files import changed, header_of, saved, signed, with_header

quick = settings(max_examples=examples(300))
OURS = [data for data in FILES if b'"estimator":"Online' in data]
CLASSIFIER = OURS[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


def loaded(library, data, folder):
    """The forest of a file; None if it is refused, with an error of one line."""
    forest, status, message = None, "OK", ""
    try:
        forest = library.load_bytes(data, folder, 2**26)
    except CError as error:
        status, message = error.status, str(error)
    if currently_in_test_context():
        event(status)
    if forest is None:
        assert status in ("BAD_FILE", "UNSUPPORTED", "TOO_LARGE")
        assert message.startswith(str(folder)) and message.isprintable()
    return forest


def check_refused_or_sound(library, data, folder):
    theirs = loaded(library, data, folder)
    if theirs is None:
        return
    ours = load(io.BytesIO(data), max_bytes=2**26)  # Python accepts what C accepts
    assert theirs.n_samples_stored == ours.n_samples_stored_
    n_features = ours.n_features_in_
    rows = np.resize(ROWS, (9, n_features))
    if theirs.n_samples_stored:
        np.testing.assert_array_equal(
            theirs.predict_proba(rows) if theirs.is_classifier else theirs.predict(rows),
            ours.predict_proba(rows) if theirs.is_classifier else ours.predict(rows),
        )
    n_classes = theirs.n_classes
    if n_classes or not theirs.is_classifier:
        y = np.arange(9) % n_classes if n_classes else np.arange(9.0)
        theirs.learn(rows, y)
        ours.partial_fit(rows, np.array(ours.classes_)[y] if n_classes else y)
    if b'"position"' in header_of(data):
        return
    theirs.save(folder / "saved.safetensors")
    assert load(folder / "saved.safetensors").digest_ == ours.digest_


@quick
@given(case=damaged(OURS))
def test_a_damaged_file_is_refused(case, library, folder):
    original, data = case
    assert loaded(library, data, folder) is None or data == original


@quick
@given(case=damaged(OURS))
def test_a_damaged_file_with_a_valid_digest_is_refused_or_sound(case, library, folder):
    data = signed(case[1]) if len(case[1]) > 99 else case[1]
    check_refused_or_sound(library, data, folder)


@quick
@given(data=rewritten(OURS))
def test_a_file_with_a_rewritten_header_is_refused_or_sound(data, library, folder):
    check_refused_or_sound(library, data, folder)


@pytest.mark.parametrize("data", FILES)
def test_an_undamaged_file_is_accepted_unless_it_is_a_mondrian_forest(data, library, folder):
    if data in OURS:
        assert loaded(library, data, folder) is not None
        check_refused_or_sound(library, data, folder)
    else:
        with pytest.raises(CError, match="holds a 'MondrianForest") as caught:
            library.load_bytes(data, folder)
        assert caught.value.status == "UNSUPPORTED"


@pytest.mark.parametrize("n", [0, 1, 8, 60, 143, 151, 500, -1])
def test_a_truncated_file_is_refused(n, library, folder):
    assert loaded(library, CLASSIFIER[:n], folder) is None


HEADER = header_of(CLASSIFIER).decode()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"seed":"', '"seed":"-', "its seed is not a whole number in [0, 2^64)"),
        ('"seed":"', '"seed":"[', "seed is not JSON at its byte"),
        ('"seed":"', '"seed":"\\ud800', "not Unicode"),
        ('"seed":', '"sead":', "it has no seed"),
        ('"rows":', '"serials":', "has the key 'serials' twice"),
        ('"rows":', '"crows":', "array 'rows' is missing"),
        ('"F32","shape":[40,3]', '"F32","shape":[60,2]', "does not have 3 columns"),
        ('"F32","shape":[40,3]', '"I32","shape":[40,3]', "'rows' has type I32 instead of F32"),
        ('"F32","shape":[40,3]', '"F32","shape":[40,4]', "which is not what its shape"),
        ('"F32","shape":[40,3]', '"F32","shape":[40,3,4294967296,4294967296]', "its shape"),
        ('\\"count\\":3', '\\"count\\":0', "its features cannot be read"),
        ('\\"count\\":3', '\\"count\\":1e9', "its features cannot be read"),
        ('\\"n_estimators\\":2', '\\"n_estimators\\":2.5', "'n_estimators' is '2.5', not a whole"),
        ('\\"n_estimators\\":2', '\\"n_estimators\\":2147483647', "memory limit"),
        ('\\"max_samples\\":0.8', '\\"max_samples\\":1e400', "is not finite"),
        ('\\"max_samples\\":0.8', '\\"max_samples\\":1.5', "max_samples must be in (0, 1]"),
        ('\\"smoothing\\":0.2', '\\"smoothness\\":0.2', "parameter 'smoothness' is unknown"),
        ('\\"window\\":null', '\\"window\\":20', "there are 49 points, the capacity is 20"),
        ('\\"half_life\\":null', '\\"half_life\\":20', "half_life, but no reservoir"),
        ('\\"maybe\\"', '\\"mayor\\"', "the hash of its class 'mayor' is wrong"),
        ('\\"maybe\\",\\"no\\"', '\\"no\\",\\"maybe\\"', "not sorted"),
        ('"declared_codes":"[0,1,2]"', '"declared_codes":"[0,1]"', "declared_codes"),
        ('"declared_codes":"[0,1,2]"', '"declared_codes":"[0,1,3]"', "not all in [0, 3)"),
        ('\\"samples_seen\\":49', '\\"samples_seen\\":48', "its counts"),
        ('"calibration":"null"', '"calibration":"[1,2.0]"', "its calibration"),
        ('"calibration":"null"', '"calibration":"[1,0.01,0.5]"', "power must be in"),
        ('"format_version":"3"', '"format_version":"4"', "reads formats up to 3"),
        ('"format_version":"3"', '"format_version":"2"', "order-free forests have format 3"),
        ('"seed":', '"mood":"1","seed":', "metadata 'mood', which are unknown"),
        ('"library_version":"', '"library_version":"' + "[" * 40, None),
        ('"parameters":"', '"parameters":"' + "[" * 40, "more than 32 levels"),
    ],
)  # fmt: skip
def test_an_error_names_the_problem(old, new, message, library, folder):
    assert old in HEADER
    data = with_header(CLASSIFIER, HEADER.replace(old, new, 1).encode())
    if message is None:
        assert loaded(library, data, folder) is not None
        return
    with pytest.raises(CError) as caught:
        library.load_bytes(data, folder, 2**26)
    assert message in str(caught.value)
    newer = "format" in message or "mood" in message
    expected = "TOO_LARGE" if "limit" in message else "UNSUPPORTED" if newer else "BAD_FILE"
    assert caught.value.status == expected


def test_categories_and_times_are_refused_by_name(library, folder):
    mixed = np.array([[1, "a"], [2, "b"], [3, "a"]], dtype=object)
    forest = OnlineForestClassifier(2, categorical_features=[1]).fit(mixed, [0, 1, 1])
    days = np.array(["2020-01-01", "2020-01-02", "2020-01-02"], dtype="M8[D]")
    others = OnlineForestClassifier(2).fit([[1.0], [2.0], [3.0]], days)
    for each, message in ((forest, "1 categorical features"), (others, "the type '<M8[D]'")):
        with pytest.raises(CError) as caught:
            library.load_bytes(saved(each), folder)
        assert caught.value.status == "UNSUPPORTED" and message in str(caught.value)


def test_a_position_is_never_lost(library, folder):
    data = header_of(CLASSIFIER).decode().replace('"seed":', '"position":"7","seed":')
    forest = library.load_bytes(with_header(CLASSIFIER, data.encode()), folder)
    with pytest.raises(CError, match="position in its stream") as caught:
        forest.save(folder / "new.safetensors")
    assert caught.value.status == "UNSUPPORTED" and not (folder / "new.safetensors").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [("ids.text", b"x" * 90), ("ids.ends", np.arange(40, dtype=np.uint64)), ("ids.serials", None)],
)
def test_bad_ids_are_refused(name, text, library, folder):
    array = np.frombuffer(text, np.uint8) if isinstance(text, bytes) else text
    data = changed(CLASSIFIER, arrays={name: array})
    with pytest.raises(ModelFileError):
        load(io.BytesIO(data))
    assert loaded(library, data, folder) is None


def test_a_limit_holds_before_a_file_is_read_and_before_trees_are_made(library, folder):
    data = saved(OnlineForestRegressor(100).fit(ROWS, ROWS[:, 0].astype(float)))
    for limit in (100, len(data) + 1000):
        with pytest.raises(CError) as caught:
            library.load_bytes(data, folder, limit)
        assert caught.value.status == "TOO_LARGE"
    assert library.load_bytes(data, folder, 10**7).n_samples_stored == 40
