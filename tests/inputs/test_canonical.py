"""Equal values have equal bytes, whatever their types."""

from __future__ import annotations

import numpy as np
import pytest

from onlineforest._inputs.canonical import canonical_bytes


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ([1, True, 1.0, np.int8(1), np.uint64(1), np.float32(1), np.bool_(True)], b"number 1"),
        ([-3, -3.0, np.int64(-3)], b"number -3"),
        ([2**63, np.uint64(2**63), 2.0**63], b"number 9223372036854775808"),
        ([0, -0.0, False], b"number 0"),
        (["1", np.str_("1")], b"text 1"),
        (["ä\ud800"], "text ä".encode() + b"\xed\xa0\x80"),
        (
            [np.datetime64("1970-01-02"), np.datetime64("1970-01-02T00", "ns")],
            b"date 86400000000000000000000",
        ),
        ([np.datetime64("1970-01"), np.datetime64("1970")], b"date 0"),
        ([np.timedelta64(1, "s"), np.timedelta64(1000, "ms")], b"duration 1000000000000000000"),
        ([np.timedelta64(1, "Y"), np.timedelta64(12, "M")], b"months 12"),
    ],
)
def test_equal_labels_have_equal_bytes(labels, text):
    assert {canonical_bytes(label) for label in labels} == {text}


@pytest.mark.parametrize("label", [1.5, None, np.datetime64("NaT", "s"), (1, 2), b"1", 1j])
def test_what_has_no_value_is_no_label(label):
    with pytest.raises(ValueError, match="label"):
        canonical_bytes(label)
