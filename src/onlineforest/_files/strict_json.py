"""JSON from untrusted files. Must not know what the JSON describes."""

from __future__ import annotations

import json
import math
import reprlib
from typing import Any, NoReturn

import numpy as np

from onlineforest._files.errors import ModelFileError

_MAX_DIGITS = 40
_MAX_DEPTH = 32


def parse_json(text: str, what: str) -> Any:
    """The value of an untrusted JSON text; error messages begin with `what`.

    Stricter than `json.loads`: duplicate keys, infinite numbers, numbers with too many digits and
    deep nesting are errors.
    """

    def refuse(why: str) -> NoReturn:
        raise ModelFileError(f"{what} {why}.")

    def check_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, value in pairs:
            if key in values:
                refuse(f"has the key {reprlib.repr(key)} twice")
            values[key] = value
        return values

    def check_digits(literal: str) -> str:
        if len(literal) > _MAX_DIGITS:
            refuse(f"has a number of {len(literal)} characters, more than {_MAX_DIGITS}")
        return literal

    def finite(literal: str) -> float:
        number = float(check_digits(literal))
        if not math.isfinite(number):
            refuse(f"has the number {literal}, which is not finite")
        return number

    # The parser recurses once per level. The depth at which it raises, or crashes the process,
    # depends on the thread's stack and on the recursion limit.
    depth = nesting_depth(text)
    if depth > _MAX_DEPTH:
        refuse(f"is nested {depth} levels deep, more than {_MAX_DEPTH}")
    try:
        return json.loads(
            text,
            object_pairs_hook=check_pairs,
            parse_int=lambda literal: int(check_digits(literal)),
            parse_float=finite,
            parse_constant=finite,
        )
    except json.JSONDecodeError as error:
        refuse(f"is not JSON ({error})")


def nesting_depth(text: str) -> int:
    """Nesting depth of a JSON text, up to its first syntax error."""
    unescaped = text.replace("\\\\", "").replace('\\"', "")
    outside = "".join(unescaped.split('"')[::2])  # text outside of strings
    characters = np.frombuffer(outside.encode(errors="replace"), np.uint8)
    brackets = characters[np.isin(characters, list(b"[]{}"))]
    steps = np.where(np.isin(brackets, list(b"[{")), np.int8(1), np.int8(-1))
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))
