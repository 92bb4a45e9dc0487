"""Files of other kinds, damaged files and hostile headers are refused with one line."""

from __future__ import annotations

import contextlib
import io
import json
import pickle
from importlib.metadata import version

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from onlineforest._files.container import (
    MAX_HEADER_BYTES,
    ModelFileError,
    read,
    read_header,
)
from support.containers import (
    DIGEST,
    FIRST,
    SMALL,
    WHOLE,
    assert_refused,
    entry,
    file_of,
    sealed,
    with_tensors,
)
from support.json_values import COUNTS, JSON

# Other files, and damage


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it is empty"),
        (b"short", "it has only 5 bytes"),
        (SMALL[:140], "it has only 140 bytes"),
        (pickle.dumps(list(range(300))), "it looks like a pickle"),
        (save({"a": np.zeros(99)}), "it looks like a safetensors file of another kind"),
        (save({"a": np.zeros(9)}, {"format": "pt"}), "it looks like a safetensors file of another"),
        (b"Some text.\n" * 99, "it begins with the bytes b'Some tex'"),
        (b"\x89PNG\r\n\x1a\n" + bytes(500), "it begins with the bytes b'\\x89PNG"),
        (b"\xff" * 8 + b"{" * 500, "it begins with the bytes b'\\xff"),
        (SMALL.replace(b"onlineforest", b"offlineforst"), "it looks like a safetensors file"),
        (SMALL.replace(b'"4"', b'"0"'), "it looks like a safetensors file"),
    ],
)
def test_files_of_other_kinds_are_refused(data, why):
    assert_refused(data, f"is not a model file of onlineforest: {why}")


def test_the_message_names_the_path_as_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "it's.model").write_bytes(b"")
    with pytest.raises(ModelFileError, match=r"^\./it's\.model is not a model file"):
        read("./it's.model")


def test_a_wrong_digest_is_named_in_the_error():
    damaged = SMALL[:-1] + b"\x00"
    is_, says = sealed(damaged)[DIGEST].decode(), SMALL[DIGEST].decode()
    words = f"the file is damaged: its SHA-256 is {is_}, but it says {says}."
    assert_refused(damaged, words, by_header_too=False)
    assert read_header(io.BytesIO(damaged)).sha256 == says


@pytest.mark.parametrize("digit", [b"A", b"g", b"\x00", b'"', b"\xff"])
def test_a_digest_that_is_not_hexadecimal_is_refused(digit):
    place = DIGEST.start + 7
    damaged = SMALL[:place] + digit + SMALL[place + 1 :]
    words = "is damaged: its SHA-256 must be 64 hexadecimal digits"
    assert_refused(damaged, f"{words}. Got the byte {digit!r} at position 7 instead.")


@pytest.mark.parametrize("flip", [0x01, 0x20, 0x80, 0xFF])
def test_any_changed_byte_is_detected(flip):
    for i in range(len(SMALL)):
        damaged = bytearray(SMALL)
        damaged[i] ^= flip
        with pytest.raises(ModelFileError):
            read(io.BytesIO(damaged))


def test_any_truncation_is_detected(tmp_path):
    for n in range(len(SMALL)):
        with pytest.raises(ModelFileError):
            read(io.BytesIO(SMALL[:n]))
        with pytest.raises(ModelFileError):
            read_header(io.BytesIO(SMALL[:n]))
    path = tmp_path / "model"
    for n in range(0, len(SMALL), 10):
        path.write_bytes(SMALL[:n])
        for reader in (read, read_header):
            with pytest.raises(ModelFileError):
                reader(path)


@pytest.mark.parametrize("more", [b"\0", b" ", b"more bytes", SMALL])
def test_any_added_byte_is_detected(more):
    assert_refused(SMALL + more, "is damaged", by_header_too=False)
    words = f"its tensors have 35 bytes, but its data {35 + len(more)}"
    assert_refused(sealed(SMALL + more), words)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 999_999_999])
def test_other_formats_are_refused_with_both_numbers(n):
    # The header of another format is unknown: nothing of it but the number is looked at.
    data = file_of(f'{FIRST}"{n}"}},"a":{{"dtype":"F8","new":[[[{{NaN', b"data")
    words = (
        f"the file has format {n}, but this version of onlineforest "
        f"({version('onlineforest')}) reads format 4 alone. "
        f"{'A newer' if n > 4 else 'An older'} version of onlineforest can read it."
    )
    assert_refused(data, words)
    assert_refused(data + b"?", "is damaged", by_header_too=False)


# Hostile headers; their digests are right


def test_files_made_by_hand_are_read():
    """A valid handmade file is read, so other handmade files fail for their own defects."""
    contents = read(io.BytesIO(with_tensors(entry(), b"abcd")))
    assert contents.arrays["a"].tolist() == list(b"abcd") and contents.metadata == {}


@pytest.mark.parametrize("n_bytes", [MAX_HEADER_BYTES + 1, 2**32, 2**63, 2**64 - 1])
def test_headers_that_claim_to_be_too_long_are_refused(n_bytes):
    data = sealed(n_bytes.to_bytes(8, "little") + SMALL[8:])
    assert_refused(data, f"its header has {n_bytes} bytes, but may have {MAX_HEADER_BYTES}")


@pytest.mark.parametrize("n_bytes", [len(SMALL) - 7, len(SMALL), MAX_HEADER_BYTES])
def test_headers_longer_than_the_file_are_refused(n_bytes):
    data = sealed(n_bytes.to_bytes(8, "little") + SMALL[8:])
    words = f"its header ends at byte {8 + n_bytes}, but the file at byte {len(SMALL)}"
    assert_refused(data, words)


@pytest.mark.parametrize("n_bytes", [0, 1, 2, 15, 100, 150, 300])
def test_headers_that_end_too_early_are_refused(n_bytes):
    data = sealed(n_bytes.to_bytes(8, "little") + SMALL[8:])
    assert_refused(data, "is not a valid model file: its header ")


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ((WHOLE + ',"k":"\xff"}}').encode("latin-1"), "its header is not UTF-8"),
        (WHOLE + ',"k":"\ud800"}}', "its header is not UTF-8"),
        (WHOLE + ',"k":"\\ud800"}}', r"the string '\ud800', which is not Unicode"),
        (WHOLE + ',"\\udc00":""}}', r"the string '\udc00', which is not Unicode"),
        (WHOLE + '},"\\udfff":1}', r"the string '\udfff', which is not Unicode"),
        (WHOLE + "}}\n", r"its header must end with } and spaces, but it ends with '\n'"),
        (WHOLE + "}}\0", r"its header must end with } and spaces, but it ends with '\x00'"),
        (WHOLE + "}}  \t ", r"its header must end with } and spaces, but it ends with '\t'"),
        (WHOLE + "}}x}", "its header is not JSON (Extra data"),
        (WHOLE + "}", "its header is not JSON"),
        (WHOLE + ',"k":"\n"}}', "its header is not JSON (Invalid control character"),
        (WHOLE + ',"k":"1","k":"1"}}', "its header has the key 'k' twice"),
        (WHOLE + ',"format_version":"1"}}', "its header has the key 'format_version' twice"),
        (WHOLE + '},"__metadata__":{}}', "its header has the key '__metadata__' twice"),
        (WHOLE + '},"a":{"shape":[],"shape":[]}}', "its header has the key 'shape' twice"),
        (WHOLE + '},"a":1,"a":2}', "its header has the key 'a' twice"),
        (WHOLE + '},"a":NaN}', "its header has the number NaN, which is not finite"),
        (WHOLE + '},"a":-Infinity}', "has the number -Infinity, which is not finite"),
        (WHOLE + '},"a":1e400}', "its header has the number 1e400, which is not finite"),
        (WHOLE + '},"a":' + "1" * 41 + "}", "has a number of 41 characters, more than 40"),
        (WHOLE + '},"a":' + "1" * 10**5 + "}", "has a number of 100000 characters"),
        (WHOLE + '},"a":0.' + "1" * 39 + "}", "has a number of 41 characters, more than 40"),
        (
            WHOLE + '},"a":' + "[" * 10**5 + "]" * 10**5 + "}",
            "nested 100001 levels deep, more than 32",
        ),
        (WHOLE + '},"a":' + '{"a":' * 40 + "1" + "}" * 41, "nested 41 levels deep, more than 32"),
        (WHOLE + '},"a":' + "[" * 10**6 + "}", "nested 1000001 levels deep, more than 32"),
        (WHOLE + ',"k":1}}', "its metadata have 1, which is not a string"),
        (WHOLE + ',"k":null}}', "its metadata have None, which is not a string"),
        (WHOLE + ',"k":{"a":"b"}}}', "its metadata have {'a': 'b'}, which is not a string"),
    ],
)
def test_hostile_headers_are_refused(header, words):
    assert_refused(file_of(header), words)


def test_padding_and_space_within_the_header_are_allowed():
    assert read(io.BytesIO(file_of(WHOLE + "} \n}     "))).arrays == {}


KEYS = "its tensor 'a' must have exactly the keys dtype, shape and data_offsets"
SHAPE = "instead of a list of at most 8 counts"
OFFSETS = "instead of a begin and an end"
SIZE = "dtype U8 need "
LARGEST = "more than 9223372036854775807"


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ('"a":1', KEYS),
        ('"a":[]', KEYS),
        ('"a":null', KEYS),
        ('"a":{}', KEYS),
        ('"a":{"dtype":"U8","shape":[4]}', KEYS),
        (entry()[:-1] + ',"more":1}', KEYS),
        (entry(dtype='"F16"'), "its tensor 'a' has dtype 'F16', which is unknown"),
        (entry(dtype='"f8"'), "has dtype 'f8', which is unknown"),
        (entry(dtype="[]"), "has dtype [], which is unknown"),
        (entry(dtype="{}"), "has dtype {}, which is unknown"),
        (entry(dtype="null"), "has dtype None, which is unknown"),
        (entry(shape="4"), SHAPE),
        (entry(shape="null"), SHAPE),
        (entry(shape='"4"'), SHAPE),
        (entry(shape='{"4":4}'), SHAPE),
        (entry(shape="[-4]"), SHAPE),
        (entry(shape="[-2,-2]"), SHAPE),
        (entry(shape="[4.0]"), SHAPE),
        (entry(shape="[true,4]"), SHAPE),
        (entry(shape='["4"]'), SHAPE),
        (entry(shape="[[4]]"), SHAPE),
        (entry(shape="[4,1,1,1,1,1,1,1,1]"), SHAPE),
        (entry(shape=str([1] * 10**5)), SHAPE),
        (entry(offsets="[0]"), OFFSETS),
        (entry(offsets="[0,4,4]"), OFFSETS),
        (entry(offsets="4"), OFFSETS),
        (entry(offsets="null"), OFFSETS),
        (entry(offsets="[0,4.0]"), OFFSETS),
        (entry(offsets="[false,4]"), OFFSETS),
        (entry(offsets="[-4,0]"), OFFSETS),
        (entry(offsets="[4,0]"), OFFSETS),
        (entry(shape="[3]"), "has 4 bytes, but its shape [3] and dtype U8 need 3"),
        (entry(shape="[]"), SIZE),
        (entry(shape="[0]"), SIZE),
        (entry(dtype='"F32"'), "has 4 bytes, but its shape [4] and dtype F32 need 16"),
        (entry(shape=f"[{2**62},4]", offsets="[0,0]"), SIZE),  # 2**64 is 0 in 64 bits
        (entry(shape=f"[{2**32},{2**32},4]", offsets="[0,4]"), SIZE),
        (entry(shape=f"[0,{2**63}]", offsets="[0,0]"), LARGEST),
        (entry(shape=f"[0,{2**40},{2**40}]", offsets="[0,0]"), LARGEST),
        (entry(dtype='"F64"', shape=f"[{2**60},0]", offsets="[0,0]"), LARGEST),
        (entry(shape=f"[{10**30}]", offsets=f"[0,{10**30}]"), LARGEST),
        (entry(shape=f"[{2**50}]", offsets=f"[0,{2**50}]"), "but its data 4"),
        (entry(shape="[0]", offsets="[0,0]"), "its tensors have 0 bytes, but its data 4"),
        (entry(shape="[3]", offsets="[0,3]"), "its tensors have 3 bytes, but its data 4"),
        (entry(shape="[5]", offsets="[0,5]"), "its tensors have 5 bytes, but its data 4"),
        (entry(shape="[3]", offsets="[1,4]"), "'a' begins at byte 1 of the data instead of 0"),
        (entry() + "," + entry("b"), "'b' begins at byte 0 of the data instead of 4"),
        (
            entry(shape="[3]", offsets="[0,3]") + "," + entry("b", shape="[2]", offsets="[2,4]"),
            "'b' begins at byte 2 of the data instead of 3",
        ),
        (
            entry(shape="[1]", offsets="[0,1]") + "," + entry("b", shape="[2]", offsets="[2,4]"),
            "'b' begins at byte 2 of the data instead of 1",
        ),
        (
            entry() + "," + entry("b", shape="[0]", offsets="[2,2]"),
            "'b' begins at byte 2 of the data instead of 4",
        ),
        (
            entry() + "," + entry("b", shape="[0]", offsets="[5,5]"),
            "'b' begins at byte 5 of the data instead of 4",
        ),
    ],
)
def test_hostile_tensors_are_refused(tensors, words):
    assert_refused(with_tensors(tensors, b"abcd"), words)


def test_too_many_tensors_are_refused():
    """Each tensor takes microseconds, and the largest header could name a million."""
    tensors = ",".join(entry(str(i), shape="[0]", offsets="[0,0]") for i in range(1001))
    assert_refused(with_tensors(tensors, b""), "it has 1001 tensors, more than 1000")


def test_tensors_may_come_in_any_order():
    tensors = ",".join(
        [
            entry("b", shape="[2]", offsets="[2,4]"),
            entry("end", shape="[0,3]", offsets="[4,4]"),
            entry("between", shape="[0]", offsets="[2,2]"),
            entry("a", shape="[2,1]", offsets="[0,2]"),
            entry("start", shape=f"[{2**62},0]", offsets="[0,0]"),
        ]
    )
    arrays = read(io.BytesIO(with_tensors(tensors, b"abcd"))).arrays
    assert {name: array.tobytes() for name, array in arrays.items()} == {
        "b": b"cd",
        "end": b"",
        "between": b"",
        "a": b"ab",
        "start": b"",
    }
    assert arrays["start"].shape == (2**62, 0)


def test_a_long_name_is_cut_in_the_message():
    assert_refused(with_tensors(f'"{"x" * 10**5}":1'), "must have exactly the keys")


@pytest.mark.parametrize("shift", range(1, 8))
def test_unaligned_tensors_are_copied(shift):
    values = np.array([1.5, -2.0])
    tensors = entry("pad", shape=f"[{shift}]", offsets=f"[0,{shift}]")
    tensors += "," + entry("a", '"F64"', "[2]", f"[{shift},{shift + 16}]")
    header = f"{WHOLE}}},{tensors}}}"
    header += " " * (-len(header) % 8)
    array = read(io.BytesIO(file_of(header, bytes(shift) + values.tobytes()))).arrays["a"]
    assert array.tolist() == values.tolist()
    assert array.flags.aligned and not array.flags.writeable


@pytest.mark.parametrize("byte", [2, 0x80, 0xFF])
def test_bools_are_0_or_1(byte):
    data = with_tensors(entry(dtype='"BOOL"'), bytes([0, 1, byte, 1]))
    words = f"the bools of its tensor 'a' must be 0 or 1, but it has {byte} at position 2"
    assert_refused(data, words, by_header_too=False)
    assert read_header(io.BytesIO(data)).tensors["a"].dtype == bool


# Any damage at all

BITS_OF_JSON = st.sampled_from(
    rb'" { } [ ] , : \ - 0 99999999999999999999 1e999 true null NaN "U8" "F64" \ud800 [] {}'.split()
)


def only_model_file_errors(data):
    for reader in (read, read_header):
        with contextlib.suppress(ModelFileError):
            reader(io.BytesIO(data))
            assert b'"format_version":"4"' in data[:155]


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.integers(0, len(SMALL)), st.integers(0, 30), st.binary(max_size=9) | BITS_OF_JSON
        ),
        max_size=4,
    )
)
@example([(len(SMALL) - 1, 1, b"\x02")])
def test_damaged_files_with_a_valid_digest_never_crash(changes):
    data = SMALL
    for place, n_removed, new in changes:
        data = data[:place] + new + data[place + n_removed :]
    only_model_file_errors(sealed(data))
    # Mostly that is no JSON any more; so again, with the length of the header corrected.
    n_header = max(0, len(data) - 8 - 35)
    only_model_file_errors(sealed(n_header.to_bytes(8, "little") + data[8:]))


ENTRIES = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F64", "F32", "U8", "BOOL", "F16"]) | JSON,
        "shape": st.lists(COUNTS, max_size=9) | JSON,
        "data_offsets": st.lists(COUNTS, min_size=2, max_size=2) | JSON,
    }
)


@settings(max_examples=50)  # slow to draw
@given(
    st.dictionaries(st.text(max_size=3), ENTRIES | JSON, max_size=3),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3) | JSON, max_size=2),
    st.binary(max_size=40),
)
def test_random_headers_with_a_valid_digest_never_crash(entries, metadata, data):
    ours = {"sha256": "0" * 64, "format": "onlineforest", "format_version": "4"}
    header = json.dumps({"__metadata__": ours | metadata} | entries, separators=(",", ":"))
    only_model_file_errors(file_of(header, data))
