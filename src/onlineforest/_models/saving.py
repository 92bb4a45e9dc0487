"""An estimator as the contents of a model file, and back.

The arrays are the state of the core forest, less what follows from the parameters, and the ids of
samples. Everything else is metadata: strings of JSON.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

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
from onlineforest._models.core import CoreForest, CoreKind, CoreSpec, LocalCores, State
from onlineforest._models.ids import Ids

if TYPE_CHECKING:
    from onlineforest._models.base import BaseMondrianForest

_VERSION = version("onlineforest")
_NOTHING_MISSING: State = {
    "missing.features": np.empty(0, dtype=np.int32),
    "missing.words": np.empty(0, dtype=np.uint64),
}
_IDS = frozenset({"ids.text", "ids.ends", "ids.serials"})
_OPTIONS = "options."  # what arrays of the core's state begin with that follow from parameters


@dataclass(frozen=True)
class Model:
    """What a model file holds: an estimator, and where in its stream it was."""

    forest: Any
    position: Any


def write_model(
    forest: BaseMondrianForest, file: str | os.PathLike[str] | BinaryIO, position: Any = None
) -> None:
    """Write a fitted estimator to a path, whole or not at all, or into an open file."""
    arrays, metadata = _contents_of(forest)
    if position is not None:
        metadata["position"] = _checked_position(position)
    if not isinstance(file, str | os.PathLike) and not hasattr(file, "write"):
        raise TypeError(f"A path or a file to write to was wanted. Got {file!r} instead.")
    if isinstance(file, str | os.PathLike):
        with replacing(file) as target:
            write(target, arrays, metadata)
    else:
        write(file, arrays, metadata)


def read_model(
    source: str | os.PathLike[str] | BinaryIO,
    kinds: Mapping[str, type[BaseMondrianForest]],
    max_bytes: int | None,
) -> Model:
    """Read an estimator, one of `kinds`, and check all of it."""
    where = os.fspath(source) if isinstance(source, str | os.PathLike) else "the file"
    return model_of(read(source), where, kinds, max_bytes)


def model_of(
    contents: Contents,
    where: str,
    kinds: Mapping[str, type[BaseMondrianForest]],
    max_bytes: int | None,
) -> Model:
    """The estimator, one of `kinds`, whose contents came from a file; all of it is checked."""
    try:
        name = contents.metadata.get("estimator", "")
        if name not in kinds:
            _refuse(f"it holds a {name[:100]!r}, which is not known")
        forest = _restored(kinds[name], contents, max_bytes)
        has_position = "position" in contents.metadata
        position = from_json(contents.metadata, "position") if has_position else None
    except TooLargeError as error:
        raise ModelTooLargeError(
            f"{where} holds a forest of more than {max_bytes} bytes."
        ) from error
    except (ValueError, TypeError, OverflowError) as error:
        raise ModelFileError(f"{where} is not a valid model file: {_one_line(error)}") from error
    return Model(forest, position)


def _one_line(error: Exception) -> str:
    """What an error says, of which a stranger may have written part."""
    text = "".join(c if c.isprintable() else " " for c in str(error))
    return text if len(text) <= 500 else f"{text[:500]}…"


def _refuse(why: str) -> NoReturn:
    raise ModelFileError(f"{why}.")


def _checked_position(position: Any) -> str:
    """A position in a stream as JSON, from which the very same can be read."""
    try:
        text = to_json(position)
        if from_json({"position": text}, "position") == position:
            return text
    except (TypeError, ValueError, RecursionError):
        pass
    raise ValueError(
        "position must be what JSON can hold: a number, a string, or lists of such or dicts with "
        f"strings for keys. Got {position!r} instead."
    )


def _contents_of(forest: BaseMondrianForest) -> tuple[State, dict[str, str]]:
    _check_is_ours(forest)
    with forest._locked():
        state: State = forest._forest.get_state()
        ids, texts = contents_beside_core(
            forest, state["serials"], int(state[f"{_OPTIONS}seed"][0])
        )
    arrays = arrays_of_core(state, forest.n_features_in_) | ids
    return arrays, with_counts(texts, arrays)


def _check_is_ours(forest: BaseMondrianForest) -> None:
    from sklearn.utils.validation import check_is_fitted  # here: shards do without scikit-learn

    check_is_fitted(forest)
    check_can_be_saved(type(forest))


def check_can_be_saved(kind: type[BaseMondrianForest]) -> None:
    """Raise if a file could not say what kind of estimator it holds."""
    if "_saved_as" not in vars(kind):
        raise TypeError(
            f"A model file can hold a forest of this library, but not of the subclass "
            f"{kind.__name__}, which would be lost."
        )


def arrays_of_core(state: State, n_features: int) -> State:
    """The state of a core forest as a file holds it, without what follows from the parameters."""
    arrays = {name: array for name, array in state.items() if not name.startswith(_OPTIONS)}
    arrays["rows"] = arrays["rows"].reshape(-1, n_features)
    return arrays


def contents_beside_core(
    forest: BaseMondrianForest, serials: NDArray[np.int64], seed: int
) -> tuple[State, dict[str, str]]:
    """What a file holds besides the core forest, which has samples of these serials."""
    _check_is_ours(forest)
    with forest._locked():
        forest._check_parameters_unchanged()
        ids = forest._ids.only_of(serials)
        metadata = forest._own_metadata()
        n_features, names = forest.n_features_in_, getattr(forest, "feature_names_in_", None)
        parameters = forest.get_params(deep=False)
        # As they were when the forest was built: a 2.0 that was a 2 is not another value.
        kept = {name: value for name, value in forest._built_with.items() if np.ndim(value) == 0}
    of_serials = np.argsort(ids.serials())  # the same ids give the same file
    all_ids = ids.names()
    text, ends = encode_ids(all_ids[i] for i in of_serials)
    arrays: State = {"ids.text": text, "ids.ends": ends, "ids.serials": ids.serials()[of_serials]}
    values = {
        "parameters": encode_parameters(parameters | kept),
        "seed": seed,
        "features": {
            "count": n_features,
            "dtype": "float32",
            "names": None if names is None else [str.__str__(name) for name in names],
        },
        **metadata,
    }
    texts = {key: to_json(value) for key, value in values.items()}
    _check_loadable(type(forest), texts, n_features)
    return arrays, {"library_version": _VERSION, "estimator": forest._saved_as, **texts}


def with_counts(texts: dict[str, str], arrays: State) -> dict[str, str]:
    """Metadata, and among it what there is of everything in a file that holds these arrays."""
    names = list(texts)
    place = names.index("features") + 1
    return (
        {name: texts[name] for name in names[:place]}
        | {"counts": to_json(_counts_of(arrays))}
        | {name: texts[name] for name in names[place:]}
    )


def _check_loadable(
    kind: type[BaseMondrianForest], metadata: dict[str, str], n_features: int
) -> None:
    """Raise rather than write, in the place of a good file perhaps, what could not be loaded."""
    try:
        twin = _blank_estimator(kind, metadata)
        twin._core_options(n_features)
        twin._n_threads()
        if "classes" in metadata:
            decode_labels(from_json(metadata, "classes"))
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"This forest cannot be saved: {error}") from error


def _blank_estimator(
    kind: type[BaseMondrianForest], metadata: Mapping[str, str]
) -> BaseMondrianForest:
    """An estimator of the parameters in a file, which are checked."""
    encoded = from_json(metadata, "parameters", dict)
    forest = kind(**decode_parameters(encoded, kind._get_param_names()))
    forest._validate_params()
    return forest


def _counts_of(arrays: State) -> dict[str, int]:
    """What there is of everything, for those who look at a file without loading it."""
    return {
        "samples_seen": int(arrays["n_seen"][0]),
        "samples_stored": len(arrays["values"]),
        "ids": len(arrays["ids.serials"]),
        "trees": len(arrays["trees.measure"]),
        "nodes": len(arrays["trees.left"]),
    }


def _restored(
    kind: type[BaseMondrianForest], contents: Contents, max_bytes: int | None
) -> BaseMondrianForest:
    arrays = contents.arrays
    if contents.format_version == 1:  # before values could be missing
        arrays = {**_NOTHING_MISSING, **arrays}
    n_threads = min(_blank_estimator(kind, contents.metadata)._n_threads(), os.cpu_count() or 1)
    source = LocalCores(n_threads, max_bytes)

    def make_core(spec: CoreSpec[Any]) -> CoreForest:
        core: CoreForest = source.restore(spec, state_from_arrays(spec, arrays, _IDS))
        if core.n_trees != spec.n_trees:
            _refuse(f"it has {core.n_trees} trees, but n_estimators is {spec.n_trees}")
        if from_json(contents.metadata, "counts") != _counts_of(arrays):
            _refuse("its counts are not those of what it holds")
        return core

    return estimator_from(kind, contents, make_core)


def estimator_from(
    kind: type[BaseMondrianForest],
    contents: Contents,
    make_core: Callable[[CoreSpec[Any]], CoreForest],
) -> BaseMondrianForest:
    """The estimator in a model file, around the core forest that `make_core` gives.

    Parameters
    ----------
    kind : type
        The class of the estimator.
    contents : Contents
        The metadata and ids of the estimator; arrays of a core forest are not looked at.
    make_core : callable
        Called once with the spec of the core forest; returns the core forest, with its samples.
    """
    metadata = contents.metadata
    forest = _blank_estimator(kind, metadata)
    n_features = _take_features(forest, from_json(metadata, "features", dict))
    seed = from_json(metadata, "seed", int)
    if not 0 <= seed < 2**64:
        _refuse(f"its seed is {seed}")
    forest._forest = make_core(forest._core_spec(n_features, seed))
    forest._ids = _restored_ids(contents.arrays, forest._forest)
    forest._built_with = forest._built_with_now(n_features)
    forest._take_own_metadata(metadata)
    return forest


def estimator_around(
    kind: type[BaseMondrianForest],
    contents: Contents,
    core_of: Callable[[BaseMondrianForest, int, int], Any],
) -> BaseMondrianForest:
    """Superseded by `estimator_from`."""
    blank = _blank_estimator(kind, contents.metadata)
    return estimator_from(kind, contents, lambda spec: core_of(blank, spec.n_features, spec.seed))


def _take_features(forest: BaseMondrianForest, features: dict[str, Any]) -> int:
    match features:
        case {"count": int(count), "dtype": "float32", "names": names, **others} if not others:
            if not isinstance(count, bool) and 0 < count < 2**31:
                forest.n_features_in_ = count
                if names is not None:
                    forest.feature_names_in_ = _checked_names(names, count)
                return count
    _refuse("its features cannot be read")


def _checked_names(names: Any, count: int) -> NDArray[np.object_]:
    if not isinstance(names, list) or len(names) != count:
        _refuse(f"it does not name each of its {count} features")
    if not all(type(name) is str for name in names) or len(set(names)) != count:
        _refuse("the names of its features are not distinct strings")
    array = np.empty(count, dtype=object)
    array[:] = names
    return array


def state_from_arrays(spec: CoreSpec[Any], arrays: State, others: Set[str] = frozenset()) -> State:
    """The state of a core forest of this spec, from the arrays of a file.

    The file must hold the arrays that `arrays_of_core` gives and the arrays named in `others`, and
    no more; `others` do not belong to the core forest.
    """
    # The options' arrays are those of an empty forest with the same options.
    blank = spec.kind.make(1, spec.n_features, **spec.options).get_state()
    state = {name: array for name, array in blank.items() if name.startswith(_OPTIONS)}
    expected = (blank.keys() - state.keys()) | others
    if arrays.keys() != expected:
        name = min(arrays.keys() ^ expected)
        problem = "array {!r} is missing" if name in expected else "unexpected array {!r}"
        _refuse(problem.format(name[:100]))
    for name, array in arrays.items():
        width = (spec.n_features,) if name == "rows" else ()
        if array.shape != (*array.shape[:1], *width):
            _refuse(f"its {name!r} has shape {array.shape}")
        if name not in others:
            state[name] = array.reshape(-1)
    return state


def state_of_core(
    core: type[Any], n_features: int, options: Mapping[str, Any], arrays: State
) -> State:
    """Superseded by `state_from_arrays`."""
    kind: CoreKind[Any] = CoreKind(core.__name__, core, core.from_state)
    return state_from_arrays(CoreSpec(kind, 1, n_features, options), arrays)


def _restored_ids(arrays: State, core: CoreForest) -> Ids:
    text, ends, serials = (arrays[f"ids.{part}"] for part in ("text", "ends", "serials"))
    if text.dtype != np.uint8 or ends.dtype != np.uint64 or serials.dtype != np.int64:
        _refuse("its ids are of other types")
    if not len(ends) == len(serials) == len(np.unique(serials)):
        _refuse("its ids are not one for each of their samples")
    if not core.are_stored(serials).all():
        _refuse("one of its ids is that of no stored sample")
    return Ids.of(decode_ids(text, ends), serials)
