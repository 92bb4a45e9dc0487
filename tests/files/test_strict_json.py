"""JSON from untrusted files: what is parsed, and what is refused."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings

from onlineforest._files.errors import ModelFileError
from onlineforest._files.strict_json import nesting_depth, parse_json
from support.json_values import JSON


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -1, 2**64, 1.5, -1e-300, "", 'ä\ud800"\\', [], {}, [{"a": [1, {"b": ""}]}]],
)
def test_json_is_parsed(value):
    assert parse_json(json.dumps(value), "X") == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "X is not JSON (Expecting value: line 1 column 1 (char 0))."),
        ("[1,]", "X is not JSON ("),
        ("\ufeff1", "X is not JSON ("),
        ("NaN", "X has the number NaN, which is not finite."),
        ("[-1e999]", "X has the number -1e999, which is not finite."),
        ('[{"a":1,"b":2,"a":1}]', "X has the key 'a' twice."),
        ("-" + "1" * 40, "X has a number of 41 characters, more than 40."),
        ("[" * 33 + "]" * 33, "X is nested 33 levels deep, more than 32."),
        ('{"a":[' * 17 + "1" + "]}" * 17, "X is nested 34 levels deep, more than 32."),
        ("[]" * 99 + '"]]]]]]"' + "[" * 33, "X is nested 33 levels deep, more than 32."),
        ("[" * 10**6, "X is nested 1000000 levels deep, more than 32."),
    ],
)
def test_json_is_refused(text, words):
    with pytest.raises(ModelFileError, match=f"^{re.escape(words)}"):
        parse_json(text, "X")


@pytest.mark.parametrize(
    "value",
    [
        ["[" * 99, "{" * 99],
        ['"' + "[" * 99],
        ["\\", "[" * 99],
        ['\\"', "[" * 99, '\\\\"' + "{" * 99],
        [[]] * 99,
        [{"[" * 50: "{" * 50}] * 9,
    ],
)
def test_brackets_in_strings_and_side_by_side_are_not_deep(value):
    assert parse_json(json.dumps(value), "X") == value


@settings(max_examples=50)
@given(JSON)
def test_the_depth_is_measured(value):
    def depth(value):
        if not isinstance(value, list | dict):
            return 0
        inner = value.values() if isinstance(value, dict) else value
        return 1 + max(map(depth, inner), default=0)

    assert nesting_depth(json.dumps(value)) == depth(value)
    assert nesting_depth(json.dumps(value, ensure_ascii=False)) == depth(value)
