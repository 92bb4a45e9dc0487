"""How notebooks show an estimator: scikit-learn's diagram, and below it a table of facts.

Must not know which facts there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from html import escape
from itertools import islice
from typing import Any

from sklearn.base import BaseEstimator

_MOST_NAMES = 10
_LONGEST_NAME = 30


def table_of(facts: Mapping[str, str]) -> str:
    """Facts as a table of HTML; an empty text if there are none."""
    if not facts:
        return ""
    rows = "".join(
        f'<tr><th scope="row" style="text-align: left">{escape(name)}</th>'
        f'<td style="text-align: left">{escape(fact)}</td></tr>'
        for name, fact in facts.items()
    )
    return f'<table class="onlineforest-facts"><tbody>{rows}</tbody></table>'


def some_of(names: Iterable[Any]) -> str:
    """The first of some names, shortened if they are long."""
    first = [str(name) for name in islice(names, _MOST_NAMES + 1)]
    shown = [
        name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
        for name in first[:_MOST_NAMES]
    ]
    return ", ".join(shown) + (", …" if len(first) > _MOST_NAMES else "")


def size_of(n_bytes: int) -> str:
    """A number of bytes for people, such as 3.2 MB."""
    size = float(n_bytes)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


class ShownInNotebooks(BaseEstimator):
    """An estimator with a table of facts in notebooks.

    `sklearn.set_config(display="text")` switches diagram and table off.
    """

    def _facts(self) -> dict[str, str]:
        """Rows of the table. Computing them must be cheap and change nothing."""
        raise NotImplementedError

    @property
    def _repr_html_(self) -> Callable[[], str]:
        diagram: Callable[[], str] = super()._repr_html_  # AttributeError if it is switched off
        return lambda: diagram() + table_of(self._facts())

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] += table_of(self._facts())
        return bundle

    def _get_fitted_attr_html(self, doc_link: str = "") -> dict[str, Any]:  # noqa: ARG002
        """No attributes in scikit-learn's diagram.

        It would compute all of them, among them digests and left-out predictions, which need all
        trees and all samples.
        """
        return {}
