"""Converts estimators to the contents of model files, and back.

The arrays of a model file are the state of the core forest, except its options, which follow from
the parameters, and the ids of samples. Everything else is metadata: strings of JSON.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from onlineforest._core import TooLargeError
from onlineforest._files.atomic import replacing
from onlineforest._files.encoding import (
    decode_ids,
    decode_labels,
    decode_parameters,
    encode_ids,
    encode_parameters,
    from_json,
    to_json,
)
from onlineforest._files.errors import ModelFileError, ModelTooLargeError
from onlineforest._files.reading import Contents, read
from onlineforest._files.writing import write
from onlineforest._forests.base import BaseForest
from onlineforest._forests.core import CoreForest, CoreSpec, LocalCores, State
from onlineforest._forests.law import VERSION, check_law, law_of
from onlineforest._inputs.ids import Ids
from onlineforest._inputs.rows import names_of, restored_format

_IDS = frozenset({"ids.text", "ids.ends", "ids.serials"})
_OPTIONS = "options."  # prefix of the state's arrays that follow from the parameters


@dataclass(frozen=True)
class Model:
    """The contents of a model file: an estimator, and its position in its stream."""

    forest: Any
    position: Any


def write_model(
    forest: BaseForest[Any], file: str | os.PathLike[str] | BinaryIO, position: Any = None
) -> None:
    """Write a fitted estimator to a path, whole or not at all, or into an open file."""
    arrays, metadata = _contents_of(forest)
    if position is not None:
        metadata["position"] = _checked_position(position)
    if not isinstance(file, str | os.PathLike) and not hasattr(file, "write"):
        raise TypeError(f"file must be a path or a writable binary file. Got {file!r} instead.")
    if isinstance(file, str | os.PathLike):
        with replacing(file) as target:
            write(target, arrays, metadata)
    else:
        write(file, arrays, metadata)


def read_model(
    source: str | os.PathLike[str] | BinaryIO,
    kinds: Mapping[str, type[BaseForest[Any]]],
    max_bytes: int | None,
) -> Model:
    """Read and check an estimator of one of `kinds`."""
    where = os.fspath(source) if isinstance(source, str | os.PathLike) else "the file"
    contents = read(source)
    try:
        name = contents.metadata.get("estimator", "")
        if name not in kinds:
            _refuse(f"it holds a {name[:100]!r}, which is unknown")
        forest = _restored(kinds[name], contents, max_bytes)
        has_position = "position" in contents.metadata
        position = from_json(contents.metadata, "position") if has_position else None
    except TooLargeError as error:
        raise ModelTooLargeError(
            f"{where} holds a forest of more than {max_bytes} bytes."
        ) from error
    except (ValueError, TypeError, OverflowError) as error:
        raise ModelFileError(f"{where} is not a valid model file: {_one_line(error)}") from error
    except MemoryError:  # says nothing about the file
        raise
    except Exception as error:  # a check is missing: still, callers must learn that the file is bad
        why = f"{type(error).__name__}: {_one_line(error)}"
        raise ModelFileError(f"{where} is not a valid model file: {why}") from error
    return Model(forest, position)


def _one_line(error: Exception) -> str:
    """The message of an error, which may contain text of an untrusted file."""
    text = "".join(c if c.isprintable() else " " for c in str(error))
    return text if len(text) <= 500 else f"{text[:500]}…"


def _refuse(why: str) -> NoReturn:
    raise ModelFileError(f"{why}.")


def _checked_position(position: Any) -> str:
    """A position in a stream as JSON; an error if JSON cannot represent it."""
    try:
        text = to_json(position)
        if from_json({"position": text}, "position") == position:
            return text
    except (TypeError, ValueError, RecursionError):
        pass
    raise ValueError(
        "position must be a value that JSON can represent: a number, a string, a list of such "
        f"values, or a dict of them with strings as keys. Got {position!r} instead."
    )


def _contents_of(forest: BaseForest[Any]) -> tuple[State, dict[str, str]]:
    """The arrays and the metadata of a model file."""
    check_is_fitted(forest)
    kind = type(forest)
    check_can_be_saved(kind)
    with forest._locked():
        forest._check_parameters_unchanged()
        forest._drop_unused_names()
        state: State = forest._forest.get_state()
        ids = forest._ids.only_of(state["serials"])
        metadata = forest._own_metadata()
        n_features, names = forest.n_features_in_, getattr(forest, "feature_names_in_", None)
        parameters = forest.get_params(deep=False)
        # The values when the forest was built: 2 and 2.0 are equal, but give different files.
        kept = {name: value for name, value in forest._built_with.items() if np.ndim(value) == 0}
        state, changed = forest._targets.in_file_order(state)
    arrays = _arrays_of_core(state) | _arrays_of_ids(ids)
    values = law_of(kind._core_kind) | {
        "parameters": encode_parameters(parameters | kept),
        "seed": int(state[f"{_OPTIONS}seed"][0]),
        "features": {
            "count": n_features,
            "dtype": "float32",
            "names": None if names is None else [str.__str__(name) for name in names],
            **forest._rows.described(),
        },
        "counts": _counts_of(arrays),
        **metadata,
        **changed,
    }
    texts = {key: to_json(value) for key, value in values.items()}
    _check_loadable(kind, texts, n_features)
    return arrays, {"library_version": VERSION, "estimator": forest._saved_as, **texts}


def check_can_be_saved(kind: type[BaseForest[Any]]) -> None:
    """Raise if a model file has no name for this class."""
    if "_saved_as" not in vars(kind):
        raise TypeError(
            "A model file can hold an estimator of onlineforest, but not of the subclass "
            f"{kind.__name__}, which would be lost."
        )


def _arrays_of_core(state: State) -> State:
    """The arrays of a model file for the state of a core forest: all but its options."""
    arrays = {name: array for name, array in state.items() if not name.startswith(_OPTIONS)}
    width = int(state["options.n_features"][0]) + int(state.get("options.n_categorical", [0])[0])
    arrays["rows"] = arrays["rows"].reshape(-1, width)
    return arrays


def _arrays_of_ids(ids: Ids) -> State:
    of_serials = np.argsort(ids.serials())  # equal ids give equal files
    names = ids.names()
    text, ends = encode_ids(names[i] for i in of_serials)
    return {"ids.text": text, "ids.ends": ends, "ids.serials": ids.serials()[of_serials]}


def _check_loadable(kind: type[BaseForest[Any]], metadata: dict[str, str], n_features: int) -> None:
    """Raise if a file with these metadata could not be loaded: it might replace a good one."""
    try:
        twin = _blank_estimator(kind, metadata)
        twin.n_features_in_ = n_features
        twin._core_options()
        twin._n_threads()
        if "classes" in metadata:
            decode_labels(from_json(metadata, "classes"), n_least=0)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"This forest cannot be saved: {error}") from error


def _blank_estimator(kind: type[BaseForest[Any]], metadata: Mapping[str, str]) -> BaseForest[Any]:
    """An estimator of the parameters in a file, after their check."""
    encoded = from_json(metadata, "parameters", dict)
    forest = kind(**decode_parameters(encoded, kind().get_params(deep=False)))
    forest._check_parameters()
    return forest


def _counts_of(arrays: State) -> dict[str, int]:
    """Counts for readers of a file's header alone."""
    counts = {
        "samples_seen": int(arrays["n_seen"][0]),
        "samples_stored": len(arrays["serials"]),
        "ids": len(arrays["ids.serials"]),
    }
    if "trees.left" in arrays:
        return counts | {"trees": len(arrays["trees.measure"]), "nodes": len(arrays["trees.left"])}
    return counts | {"samples_distinct": len(arrays["values"])}


def _restored(
    kind: type[BaseForest[Any]], contents: Contents, max_bytes: int | None
) -> BaseForest[Any]:
    """The estimator of this kind in the contents of a file."""
    metadata, arrays = contents.metadata, contents.arrays
    check_law(kind._core_kind, from_json(metadata, "law") if "law" in metadata else None, "it")
    forest = _blank_estimator(kind, metadata)
    _take_features(forest, from_json(metadata, "features", dict))
    seed = from_json(metadata, "seed", int)
    if not 0 <= seed < 2**64:
        _refuse(f"its seed is {seed}")
    spec = forest._core_spec(seed)
    n_threads = min(forest._n_threads(), os.cpu_count() or 1)
    core: CoreForest = LocalCores(n_threads, max_bytes).restore(spec, _state_in(arrays, spec))
    if core.n_trees != spec.n_trees:
        _refuse(f"it has {core.n_trees} trees, but n_estimators is {spec.n_trees}")
    if from_json(metadata, "counts") != _counts_of(arrays):
        _refuse("its counts are not those of its arrays")
    forest._forest = core
    forest._ids = _restored_ids(arrays, core)
    forest._built_with = forest._built_with_now()
    forest._take_own_metadata(metadata)
    return forest


def _take_features(forest: BaseForest[Any], features: dict[str, Any]) -> None:
    """Restore the number of features, their names and the format of rows."""
    match features:
        case {"count": int(count), "dtype": "float32", "names": names, **others}:
            if not isinstance(count, bool) and 0 < count < 2**31:
                forest.n_features_in_ = count
                if names is not None:
                    forest.feature_names_in_ = _checked_names(names, count)
                wish = getattr(forest, "categorical_features", None)
                rows = restored_format(forest, others, wish, forest._numeric_format)
                offsets = getattr(forest, "offsets", None)
                forest._rows = rows.with_offsets(offsets, names_of(forest))
                return
    _refuse("its features cannot be read")


def _checked_names(names: Any, count: int) -> NDArray[np.object_]:
    if not isinstance(names, list) or len(names) != count:
        _refuse(f"it does not name each of its {count} features")
    if not all(type(name) is str for name in names) or len(set(names)) != count:
        _refuse("the names of its features are not distinct strings")
    array = np.empty(count, dtype=object)
    array[:] = names
    return array


def _state_in(arrays: State, spec: CoreSpec[Any]) -> State:
    """The state of a core forest of this spec in the arrays of a file.

    They must be those of `_arrays_of_core` and of the ids, and no more but those that are optional.
    """
    blank = _blank_state(spec)
    state = {name: array for name, array in blank.items() if name.startswith(_OPTIONS)}
    expected = (blank.keys() - state.keys()) | _IDS
    wrong = (arrays.keys() ^ expected) - (arrays.keys() & spec.kind.optional_arrays)
    if wrong:
        name = min(wrong)
        problem = "array {!r} is missing" if name in expected else "unexpected array {!r}"
        _refuse(problem.format(name[:100]))
    for name, array in arrays.items():
        width = (spec.width,) if name == "rows" else ()
        if array.ndim == 0 or array.shape[1:] != width:
            _refuse(f"its {name!r} has shape {array.shape}")
        if name not in _IDS:
            state[name] = array.reshape(-1)
    return state


def _blank_state(spec: CoreSpec[Any]) -> State:
    """The state of an empty core forest with the options of this spec, which is small."""
    has_trees = spec.kind.has_trees_in_state
    if has_trees:
        narrow: CoreForest = spec.kind.make(1, spec.n_features, **spec.options)
        return narrow.get_state()
    empty: CoreForest = spec.kind.make(1, 1, **{**spec.options, "n_categorical": 0})
    blank = empty.get_state()
    sizes = {
        "options.n_trees": spec.n_trees,
        "options.n_features": spec.n_features,
        "options.n_categorical": spec.options.get("n_categorical", 0),
    }
    return blank | {name: np.array([size], dtype=np.uint64) for name, size in sizes.items()}


def _restored_ids(arrays: State, core: CoreForest) -> Ids:
    text, ends, serials = (arrays[f"ids.{part}"] for part in ("text", "ends", "serials"))
    if text.dtype != np.uint8 or ends.dtype != np.uint64 or serials.dtype != np.int64:
        _refuse("the arrays of its ids have wrong types")
    if not len(ends) == len(serials) == len(np.unique(serials)):
        _refuse("it does not have exactly one id for each serial of an id")
    if not core.are_stored(serials).all():
        _refuse("one of its ids belongs to no stored sample")
    return Ids.of(decode_ids(text, ends), serials)
