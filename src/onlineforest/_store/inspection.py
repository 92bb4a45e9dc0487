"""Describes and verifies model files. Must not know how they are printed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from onlineforest._files.errors import ModelFileError
from onlineforest._files.header import FORMAT_VERSION
from onlineforest._files.reading import read_header
from onlineforest._files.strict_json import parse_json
from onlineforest._store.loading import load

_TEXTS = ("library_version", "estimator")  # all other metadata are JSON
_SHOWN = 10  # entries of a list


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The header of a file as a dict. Neither checks the digest nor reads the arrays."""
    header = read_header(path)
    facts: dict[str, Any] = {}
    for key, text in header.metadata.items():
        what = f"{os.fspath(path)}: its {ascii(key)[1:-1][:40]}"
        facts[key] = text if key in _TEXTS else parse_json(text, what)
    facts["file_bytes"] = header.n_bytes
    facts["format_version"] = FORMAT_VERSION  # `read_header` refuses others
    facts["sha256"] = header.sha256
    facts["tensors"] = {
        name: {"dtype": str(tensor.dtype), "shape": list(tensor.shape)}
        for name, tensor in header.tensors.items()
    }
    return facts


def verify_file(path: str | os.PathLike[str], max_bytes: int | None = None) -> str:
    """Check a file and the forest in it; return a short description."""
    forest = load(path, max_bytes=max_bytes)
    # `load` checks what is in the file; this checks the trees, which it builds or grows from it.
    forest._check_trees()
    return (
        f"{type(forest).__name__} of {forest.n_samples_stored_:,} samples in "
        f"{forest.n_estimators:,} trees"
    )


def lines_about(path: str | os.PathLike[str], tensors: bool = False) -> Iterator[str]:
    """A description of a file, line by line."""
    facts = describe(path)
    try:
        estimator, lines = _printable(facts["estimator"]), list(_lines(facts))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ModelFileError(
            f"{os.fspath(path)} is not a valid model file: its metadata cannot be read ({error!r})."
        ) from error
    width = max(len(label) for label, _ in lines)
    yield f"{os.fspath(path)}: {estimator}"
    for label, text in lines:
        yield f"  {label:{width}}  {_printable(text)}"
    if tensors:
        yield "  arrays"
        for name, tensor in facts["tensors"].items():
            shape = " x ".join(str(n) for n in tensor["shape"])
            yield f"    {_printable(name)}: {tensor['dtype']}, {shape}"


def _lines(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    counts, features = facts["counts"], facts["features"]
    yield "size", _size(facts["file_bytes"])
    yield "format", f"{facts['format_version']}, by onlineforest {facts['library_version']}"
    yield (
        "samples",
        f"{counts['samples_stored']:,} stored of {counts['samples_seen']:,} seen, "
        f"{counts['ids']:,} with an id",
    )
    if "nodes" in counts:
        yield "trees", f"{counts['trees']:,} with {counts['nodes']:,} nodes"
    else:
        n_trees = facts["parameters"]["n_estimators"]
        yield "trees", f"{n_trees:,}, grown from {counts['samples_distinct']:,} distinct samples"
    names = "without names" if features["names"] is None else _some(features["names"])
    yield "features", f"{features['count']:,} of {features['dtype']}, {names}"
    if "classes" in facts:
        classes = facts["classes"]
        yield (
            "classes",
            f"{len(classes['values']):,} of {classes['dtype']}, {_some(classes['values'])}",
        )
    if "position" in facts:
        yield "position", _clipped(repr(facts["position"]))
    yield (
        "parameters",
        ", ".join(f"{name}={_parameter(value)}" for name, value in facts["parameters"].items()),
    )
    yield "SHA-256", f"{facts['sha256']} (not checked; `verify` checks it)"


def _size(n_bytes: int) -> str:
    size, unit = float(n_bytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"


def _some(values: list[Any]) -> str:
    shown = ", ".join(_clipped(str(value)) for value in values[:_SHOWN])
    return shown + (", …" if len(values) > _SHOWN else "")


def _parameter(value: Any) -> str:
    match value:
        case {"float": text}:
            return str(text)
        case {"RandomState": _}:
            return "RandomState(…)"
        case {"list": list(values)} | {"array": list(values)}:
            return f"[{_some(values)}]"
    return _clipped(repr(value))


def _clipped(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"


def _printable(text: str) -> str:
    """Text without control characters, which could change the state of a terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
