"""River's own checks of models, divided by whether their samples lack keys."""

from __future__ import annotations

import pytest

from onlineforest.river import OnlineForestClassifier, OnlineForestRegressor
from river import checks

MODELS = [OnlineForestClassifier, OnlineForestRegressor]
LACKING_KEYS = {
    "check_disappearing_features",
    "check_emerging_features",
    "check_learn_many_matches_learn_one",
    "check_radically_disappearing_features",
}


def river_checks(*, lacking_keys):
    """All checks of all models, with or without missing keys, each with a model and a name."""
    return [
        pytest.param(model, check, id=f"{kind.__name__}-{place}-{check.__name__}")
        for kind in MODELS
        for model in (kind(**parameters) for parameters in kind._unit_test_params())
        for place, check in enumerate(checks.yield_checks(model))
        if (check.__name__ in LACKING_KEYS) == lacking_keys
    ]
