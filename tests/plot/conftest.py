"""The forests that several pictures show."""

from __future__ import annotations

import pytest

from onlineforest import (
    MondrianForestClassifier,
    OnlineForestRegressor,
)
from support.pictures import (
    CLASSIFIERS,
    DIABETES,
    IRIS,
    NAMES,
    PETALS,
)


@pytest.fixture(scope="module", params=CLASSIFIERS)
def kind(request):
    """Each kind of classifier."""
    return request.param


@pytest.fixture(scope="module")
def petals(kind):
    """A classifier of two features without names, its classes strings."""
    return kind(5, random_state=0).fit(PETALS, NAMES)


@pytest.fixture(scope="module")
def iris(kind):
    """A classifier of four features with names."""
    return kind(5, random_state=0).fit(IRIS.data, NAMES)


@pytest.fixture(scope="module")
def plain_iris(kind):
    """A classifier of four features without names."""
    return kind(5, random_state=0).fit(IRIS.data.to_numpy(), NAMES)


@pytest.fixture(scope="module")
def mondrian_petals():
    """A Mondrian forest of two features."""
    return MondrianForestClassifier(5, random_state=0).fit(PETALS, NAMES)


@pytest.fixture(scope="module")
def mondrian_iris():
    """A Mondrian forest of four features with names."""
    return MondrianForestClassifier(5, random_state=0).fit(IRIS.data, NAMES)


@pytest.fixture(scope="module")
def diabetes():
    """A regressor of two features."""
    X = DIABETES.data[:300, [2, 8]]
    return OnlineForestRegressor(5, random_state=0).fit(X, DIABETES.target[:300])
