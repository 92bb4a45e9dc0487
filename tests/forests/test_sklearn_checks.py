"""scikit-learn's own checks. All of them apply: there is no declared exception."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from onlineforest import (
    MondrianForestClassifier,
    OnlineForestClassifier,
    OnlineForestRegressor,
)

ESTIMATORS = [
    MondrianForestClassifier(n_estimators=10),
    MondrianForestClassifier(
        n_estimators=5, lifetime=2.0, min_samples_split=5, feature_weights=None, n_jobs=2
    ),
    OnlineForestClassifier(n_estimators=10),
    OnlineForestClassifier(
        n_estimators=5, min_samples_split=5, max_samples=0.7, smoothing=0.5, n_jobs=2
    ),
    OnlineForestRegressor(n_estimators=10),
    OnlineForestRegressor(
        n_estimators=5, min_samples_split=5, max_samples=0.7, calibrate=False, n_jobs=2
    ),
]


# scikit-learn's checks call estimators with data that they then warn about themselves.
@pytest.mark.filterwarnings("default")
@parametrize_with_checks(ESTIMATORS)
def test_sklearn_check(estimator, check):
    check(estimator)
