"""Data frames of pandas, polars and pyarrow: mini-batches in, answers out. Must not know forests.

Answers are of the library of the mini-batch, and have its index if it has one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.stable.v2.dependencies import is_into_dataframe, is_into_series
from numpy.typing import NDArray

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoDataFrame, IntoSeries

_LIBRARIES = "pandas, polars or pyarrow"


def frame_of(X: IntoDataFrame) -> nw.DataFrame[Any]:
    """A mini-batch of samples."""
    if not is_into_dataframe(X):
        raise TypeError(f"X must be a data frame of {_LIBRARIES}. Got one of type {type(X)}.")
    return nw.from_native(X, eager_only=True)


def series_of(y: IntoSeries) -> nw.Series[Any]:
    """A mini-batch of targets."""
    if not is_into_series(y):
        raise TypeError(f"y must be a series of {_LIBRARIES}. Got one of type {type(y)}.")
    return nw.from_native(y, series_only=True)


def holds_numbers(frame: nw.DataFrame[Any]) -> bool:
    """Whether all columns of a frame are numbers or bools."""
    return all(dtype.is_numeric() or dtype == nw.Boolean for dtype in frame.schema.values())


def numbers_in(frame: nw.DataFrame[Any]) -> NDArray[np.float64]:
    """The cells of a frame that holds numbers, NaN for a missing one."""
    cells = frame.to_numpy()
    if cells.dtype.kind == "O":  # numbers and bools together, or pandas.NA
        columns = [column.cast(nw.Float64).to_numpy() for column in frame.iter_columns()]
        cells = np.stack(columns, axis=1)
    return cells.astype(np.float64, copy=False)


def native_series(values: NDArray[Any] | Sequence[Any], like: nw.DataFrame[Any]) -> Any:
    """One value for each row of a frame."""
    name: Any = None  # the type of the parameter is str, but all libraries take None
    return _with_index_of(like, nw.new_series(name, values, backend=like.implementation))


def native_frame(columns: Mapping[Hashable, NDArray[Any]], like: nw.DataFrame[Any]) -> Any:
    """Columns with one value for each row of a frame; only pandas takes names of any type."""
    are_names_free = like.implementation.is_pandas_like()
    named: Any = columns if are_names_free else {str(key): columns[key] for key in columns}
    return _with_index_of(like, nw.from_dict(named, backend=like.implementation))


def _with_index_of(like: nw.DataFrame[Any], answer: nw.DataFrame[Any] | nw.Series[Any]) -> Any:
    native: Any = answer.to_native()
    index = nw.maybe_get_index(like)
    if index is not None:
        native.index = index
    return native
