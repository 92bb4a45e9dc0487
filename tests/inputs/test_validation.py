"""An object keeps its attributes if a change of them fails."""

from __future__ import annotations

import pytest

from onlineforest._inputs.validation import unchanged_on_error


def test_unchanged_on_error():
    class Thing:
        pass

    thing = Thing()
    thing.kept = 1
    with pytest.raises(KeyError), unchanged_on_error(thing):  # noqa: PT012
        thing.kept = 2
        thing.new = 3
        raise KeyError
    assert vars(thing) == {"kept": 1}
    with unchanged_on_error(thing):
        thing.kept = 2
    assert thing.kept == 2
    with pytest.raises(KeyError), unchanged_on_error(thing) as keep:  # noqa: PT012
        thing.kept = 3
        keep()
        raise KeyError
    assert thing.kept == 3
