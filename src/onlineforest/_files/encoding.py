"""Encodes parameters, labels and ids for model files. Must not know forests.

Each `encode_…` has a `decode_…`, which trusts nothing: it returns the encoded value or raises
`ModelFileError`. Numbers of numpy become numbers of Python, and other array-likes become arrays.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from onlineforest._files.errors import ModelFileError
from onlineforest._files.strict_json import parse_json

_WIDE_ENOUGH = 4096  # characters of an array of strings that are always accepted
_MAX_LABEL_BYTES = 2**28  # for all labels of a classifier: one long string widens the whole array
_NUMBERS_OR_TEXT = re.compile(r"[<>|](b1|[iu][1248]|f(2|4|8|16)|U[1-9][0-9]{0,7})")
_TIMES = re.compile(r"[<>][mM]8\[[0-9]{0,6}(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\]")
_MERSENNE_WORDS = 624
_INFINITIES = (math.inf, -math.inf)
_OF_FEATURES = ("feature_weights", "offsets")  # parameters of one number per feature
_DICTS = ("class_weight", "offsets")


def _refuse(why: str) -> NoReturn:
    raise ModelFileError(f"{why}.")


def to_json(value: Any) -> str:
    """JSON in ASCII, which can represent any string."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def from_json(metadata: Mapping[str, str], key: str, kind: type | None = None) -> Any:
    """The JSON value of a key of a file's metadata; an error if it is missing or not a `kind`."""
    if key not in metadata:
        _refuse(f"it has no {key}")
    value = parse_json(metadata[key], f"its {key}")
    if kind is not None and type(value) is not kind:
        _refuse(f"its {key} is {type(value).__name__}, not {kind.__name__}")
    return value


# Parameters of an estimator


def encode_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as values of JSON."""
    return {name: _encode_parameter(name, value) for name, value in parameters.items()}


def _encode_parameter(name: str, value: Any) -> Any:
    if isinstance(value, np.bool_):
        return bool(value)
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integral) and abs(int(value)) < 2**63:
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, np.random.RandomState):
        return {"RandomState": _encode_random_state(name, value)}
    if name == "categorical_features":
        return {"list": [_encode_key(name, each) for each in value]}
    if isinstance(value, dict):
        return {"dict": [[_encode_key(name, key), float(each)] for key, each in value.items()]}
    kind = "list" if isinstance(value, list) else "array"
    try:
        return {kind: np.asarray(value, dtype=np.float64).tolist()}
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is {value!r}, which cannot be saved.") from error


def _encode_key(name: str, key: Any) -> str | int | float | bool:
    plain = key.item() if isinstance(key, np.generic) else key
    if type(plain) not in (str, int, float, bool) or plain != plain or plain in _INFINITIES:
        raise ValueError(f"{name} has the key {key!r}, which cannot be saved.")
    return plain  # type: ignore[no-any-return]


def decode_parameters(encoded: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    """The parameters, which must be exactly those `known`: none may fall back to its default."""
    known = set(known)
    for name in sorted(encoded.keys() ^ known):
        _refuse(f"its parameter {name[:40]!r} is {'missing' if name in known else 'unknown'}")
    return {name: _decode_parameter(name, value) for name, value in encoded.items()}


def _decode_parameter(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    match value:
        case {"float": "inf" | "-inf" | "nan" as text, **others} if not others:
            return float(text)
        case {"list": list(numbers), **others} if not others and name in _OF_FEATURES:
            if _are_numbers(numbers):
                return numbers
        case {"array": list(numbers), **others} if not others and name in _OF_FEATURES:
            if _are_numbers(numbers):
                return np.array(numbers, dtype=np.float64)
        case {"list": list(names), **others} if not others and name == "categorical_features":
            if all(type(each) in (str, int, bool) for each in names):
                return names
        case {"dict": list(items), **others} if not others and name in _DICTS:
            if all(_is_item(item) for item in items):
                return dict(items)
        case {"RandomState": dict(state), **others} if not others and name == "random_state":
            return _decode_random_state(name, state)
    _refuse(f"its parameter {name!r} cannot be read")


def _is_item(item: Any) -> bool:
    return (
        type(item) is list
        and len(item) == 2
        and type(item[0]) in (str, int, float, bool)
        and type(item[1]) in (int, float)
    )


def _are_numbers(values: list[Any]) -> bool:
    return all(type(value) in (int, float) for value in values)


def _encode_random_state(name: str, source: np.random.RandomState) -> dict[str, Any]:
    state: Any = source.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        raise ValueError(
            f"{name} is a RandomState of {state['bit_generator']}, which cannot be saved. Set it "
            "to None, an integer or a RandomState of MT19937, the default."
        )
    key, position = state["state"]["key"].tolist(), int(state["state"]["pos"])
    gauss = float(state["gauss"]).hex() if state["has_gauss"] else None
    return {"key": key, "pos": position, "gauss": gauss}


def _decode_random_state(name: str, state: dict[str, Any]) -> np.random.RandomState:
    # RandomState checks none of this: it would read beyond its key.
    key, position, gauss = (state.get(part) for part in ("key", "pos", "gauss"))
    if (
        state.keys() == {"key", "pos", "gauss"}
        and isinstance(key, list)
        and len(key) == _MERSENNE_WORDS
        and all(type(word) is int and 0 <= word < 2**32 for word in key)
        and type(position) is int
        and 0 <= position <= _MERSENNE_WORDS
        and (gauss is None or _is_finite_hex(gauss))
    ):
        cached = 0.0 if gauss is None else float.fromhex(gauss)
        random_state = np.random.RandomState()
        words = np.array(key, dtype=np.uint32)
        random_state.set_state(("MT19937", words, position, int(gauss is not None), cached))
        return random_state
    _refuse(f"its parameter {name!r} is not a RandomState")


def _is_finite_hex(text: Any) -> bool:
    try:
        return isinstance(text, str) and len(text) < 64 and math.isfinite(float.fromhex(text))
    except (ValueError, OverflowError):
        return False


# Labels of a classifier


def encode_labels(labels: NDArray[Any]) -> dict[str, Any]:
    """Labels as values of JSON: numbers, bools, strings or times."""
    dtype = "object" if labels.dtype == object else labels.dtype.str
    if _TIMES.fullmatch(dtype):
        values = labels.astype(np.int64).tolist()
    elif dtype == "object" and all(isinstance(label, str) for label in labels):
        values = [str.__str__(label) for label in labels]
    elif _NUMBERS_OR_TEXT.fullmatch(dtype):
        values = [v if isinstance(v, bool | int | str) else float(v) for v in labels.tolist()]
        if values != labels.tolist():
            raise ValueError(f"Labels of dtype {labels.dtype} cannot be saved: they are too long.")
    else:
        raise ValueError(f"Labels of dtype {labels.dtype} cannot be saved.")
    if _is_too_wide(labels.dtype, values):
        raise ValueError(
            f"The labels take {labels.nbytes} bytes as an array, which cannot be saved. Use an "
            "array of objects for strings of very different lengths."
        )
    return {"dtype": dtype, "values": values}


def _is_too_wide(dtype: np.dtype[Any], values: list[Any]) -> bool:
    """Whether an array of the labels would take far more memory than the labels."""
    if dtype.kind == "U":
        width = dtype.itemsize // np.dtype("U1").itemsize
        if width > max(_WIDE_ENOUGH, max(map(len, values), default=0)):
            return True
    return dtype.itemsize * len(values) > _MAX_LABEL_BYTES


def decode_labels(encoded: Any, *, n_least: int = 1) -> NDArray[Any]:
    """At least `n_least` labels, sorted and distinct."""
    match encoded:
        case {"dtype": str(dtype), "values": list(values), **others} if (
            not others and len(values) >= n_least
        ):
            labels = _decode_labels(dtype, values)
            if np.all(labels[1:] > labels[:-1]):
                return labels
            _refuse("its classes are not sorted, or not distinct")
    _refuse("its classes cannot be read")


def _decode_labels(dtype: str, values: list[Any]) -> NDArray[Any]:
    if dtype == "object":
        if all(type(value) is str for value in values):
            labels = np.empty(len(values), dtype=object)
            labels[:] = values
            return labels
    elif _TIMES.fullmatch(dtype):
        if all(type(value) is int and abs(value) < 2**63 for value in values):
            return np.array(values, dtype=np.int64).astype(dtype)
    elif _NUMBERS_OR_TEXT.fullmatch(dtype):
        kind = {"b": bool, "f": float, "U": str}.get(dtype[1], int)
        are_right = all(type(value) is kind for value in values)
        if kind is float:
            are_right = are_right and all(value.is_integer() for value in values)
        elif kind is int:  # NumPy 1 would cut a number that is too large
            limits = np.iinfo(dtype)
            are_right = are_right and all(limits.min <= value <= limits.max for value in values)
        if are_right and not _is_too_wide(np.dtype(dtype), values):
            with np.errstate(over="ignore"):
                labels = np.array(values, dtype=dtype)
            if labels.tolist() == values:  # nothing was cut off
                return labels
    _refuse(f"its classes are not all of type {dtype[:20]!r}")


# Ids of samples


def encode_ids(names: Iterable[int | str]) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    """All ids in one text, and the end of each.

    An id is an s and a string, or an i and an integer in hexadecimal.
    """
    texts = [
        b"s" + name.encode("utf-8", "surrogatepass") if isinstance(name, str) else b"i%x" % name
        for name in names
    ]
    ends = np.cumsum([len(text) for text in texts], dtype=np.uint64)
    return np.frombuffer(b"".join(texts), np.uint8), ends


def decode_ids(text: NDArray[np.uint8], ends: NDArray[np.uint64]) -> list[int | str]:
    """The ids, all distinct."""
    bounds = np.concatenate([np.zeros(1, np.uint64), ends])
    if np.any(bounds[1:] <= bounds[:-1]) or int(bounds[-1]) != len(text):
        _refuse("the ends of its ids do not fit their text")
    data, places = text.tobytes(), bounds.tolist()
    names = [_decode_id(data[a:b]) for a, b in pairwise(places)]
    if len(set(names)) != len(names):
        _refuse("two of its ids are equal")
    return names


def _decode_id(text: bytes) -> int | str:
    try:
        if text.startswith(b"s"):
            return text[1:].decode("utf-8", "surrogatepass")
        number = int(text[1:], 16)
        if text == b"i%x" % number:  # rejects spaces, plus signs and the like
            return number
    except ValueError:
        pass
    _refuse("one of its ids cannot be read")
