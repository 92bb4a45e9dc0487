"""Model files that were cut, flipped, spliced or rewritten, as strategies of hypothesis."""

from __future__ import annotations

import re
import struct

import numpy as np
from hypothesis import strategies as st

from onlineforest import MondrianForestClassifier, OnlineForestClassifier, OnlineForestRegressor
from support.model_files import header_of, saved, with_header

rng = np.random.default_rng(0)
ROWS = rng.random((40, 3)).astype(np.float32)
LABELS = np.where(ROWS[:, 0] > 0.5, "yes", "no")
FILES = [
    saved(forest)
    for forest in (
        MondrianForestClassifier(2, random_state=0).fit(ROWS, LABELS, ids=range(40)),
        MondrianForestClassifier(2, window=20, random_state=0).fit(ROWS, np.arange(40) * 2),
        MondrianForestClassifier(1, lifetime=1.0, reservoir=9, random_state=0).fit(
            ROWS, LABELS, ids=[f"person {i}" for i in range(40)]
        ),
        MondrianForestClassifier(1, random_state=0).fit(ROWS, LABELS).keep_latest(0),
        MondrianForestClassifier(1, reservoir=30, half_life=9, random_state=0).fit(
            np.vstack([ROWS, ROWS]), np.arange(80)
        ),
        OnlineForestClassifier(2, max_samples=0.8, random_state=0)
        .partial_fit(ROWS, LABELS, classes=["maybe", "no", "yes"], ids=range(40))
        .partial_fit(ROWS[:9], LABELS[:9]),
        OnlineForestClassifier(2, window=20, random_state=0).fit(ROWS, np.arange(40) * 2),
        OnlineForestClassifier(1, reservoir=30, half_life=9, random_state=0).fit(
            np.vstack([ROWS, ROWS]), np.arange(80) % 3, ids=[f"person {i}" for i in range(80)]
        ),
        OnlineForestClassifier(1, random_state=0).fit(ROWS, LABELS).keep_latest(0),
        OnlineForestRegressor(2, random_state=0).fit(
            np.where(ROWS > 0.9, np.nan, ROWS), np.arange(40) * 0.5
        ),
        OnlineForestRegressor(1, max_samples=0.8, reservoir=9, calibrate=False, random_state=0).fit(
            ROWS, ROWS[:, 1], ids=[f"person {i}" for i in range(40)]
        ),
    )
]
ODD_NUMBERS = [
    struct.pack(kind, value)
    for kind, values in {
        "<i": (0, 1, -1, 2, 39, 40, 2**31 - 1, -(2**31)),
        "<q": (0, 1, -1, 40, 2**62, -(2**63)),
        "<f": (0.0, 1.0, -1.0, 1e38, float("nan"), float("inf")),
        "<d": (0.0, 1.0, -1.0, 1e300, 5e-324, float("nan"), float("-inf")),
    }.items()
    for value in values
]
ODD_TEXTS = ["", "0", "-1", "1e999", "2147483648", "9" * 50, "null", "true", "1.5", "NaN"]
ODD_TEXTS += ["[]", "{}", "[" * 100, '\\"x\\"', '"x"']


@st.composite
def damaged(draw, files=FILES):
    """A file, and a damaged copy."""
    original = data = draw(st.sampled_from(files))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        way = draw(st.sampled_from(["flip", "number", "cut", "grow", "splice", "drop"]))
        if way == "flip" and at < len(data):
            data = data[:at] + bytes([data[at] ^ (1 << draw(st.integers(0, 7)))]) + data[at + 1 :]
        elif way == "number":
            number = draw(st.sampled_from(ODD_NUMBERS))
            at -= at % 4
            data = data[:at] + number[: len(data) - at] + data[at + len(number) :]
        elif way == "cut":
            data = data[:at]
        elif way == "grow":
            data = data[:at] + draw(st.binary(max_size=20)) + data[at:]
        elif way == "splice":
            other = draw(st.sampled_from(files))
            n = draw(st.integers(0, 200))
            data = data[:at] + other[at : at + n] + data[at + n :]
        else:
            data = data[:at] + data[at + draw(st.integers(1, 16)) :]
    return original, data


@st.composite
def rewritten(draw, files=FILES):
    """A file with some words of its header replaced."""
    data = draw(st.sampled_from(files))
    header = header_of(data).decode()
    for _ in range(draw(st.integers(1, 2))):
        words = [
            m.span() for m in re.finditer(r"-?\d+\.?\d*|\\?\"[^\"\\]*\\?\"|[\[\]{}:,]", header)
        ]
        begin, end = draw(st.sampled_from(words[4:]))  # the first four are the digest's
        first, last = draw(st.sampled_from(words[4:]))
        new = draw(st.sampled_from([*ODD_TEXTS, header[first:last]]))
        header = header[:begin] + new + header[end:]
    return with_header(data, header.encode())
