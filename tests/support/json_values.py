"""Random values of JSON, with counts that a hostile header may claim."""

from __future__ import annotations

from hypothesis import strategies as st

COUNTS = st.integers(-1, 5) | st.sampled_from([35, 2**31, 2**62, 2**63, 2**64, 10**30, True, 2.0])
JSON = st.recursive(
    st.none() | st.booleans() | COUNTS | st.floats() | st.text(max_size=3),
    lambda each: (
        st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=3), each, max_size=3)
    ),
    max_leaves=5,
)
