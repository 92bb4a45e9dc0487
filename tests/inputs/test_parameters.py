"""The checks of parameters: what each constraint takes, and what the error says."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Integral, Real

import numpy as np
import pytest
import sklearn

from onlineforest import MondrianForestClassifier, OnlineForestClassifier
from onlineforest._inputs.parameters import (
    ARRAY_LIKE,
    BOOLEAN,
    RANDOM_STATE,
    InvalidParameterError,
    check_parameters,
    instance_of,
    interval,
)

HUGE = 10**400  # greater than any float but inf


@pytest.mark.parametrize(
    ("constraint", "taken", "refused"),
    [
        (interval(Integral, 1, 9), [1, np.int8(9), 5], [0, 10, 5.0, np.float64(5), "5", None, []]),
        (interval(Integral, 1, math.inf, "[)"), [1, HUGE], [0, math.inf, math.nan]),
        (
            interval(Real, 0, 1),
            [0, 1, 0.5, np.float32(1), Fraction(1, 2)],
            [-1e-300, 1.1, math.nan],
        ),
        (interval(Real, 0, 1, "(]"), [1e-300, 1], [0, -0.0, 1 + 1e-9]),
        (interval(Real, 0, 1, "[)"), [0, 1 - 1e-9], [1, np.float64(1), 1j]),
        (interval(Real, 0, math.inf), [math.inf, HUGE], [-1, math.nan, np.float64("nan")]),
        (interval(Real, 0, math.inf, "()"), [1e300], [0, math.inf, math.nan, np.ones(1)]),
        (ARRAY_LIKE, [[1], (), np.ones(2), np.array(1.0)], [1, np.float64(1), "text", b"b", None]),
        (BOOLEAN, [True, np.bool_(False)], [0, 1, None, "True"]),
        (instance_of(dict, "a dict"), [{}], [[], None]),
        ("learned", ["learned", np.str_("learned")], ["Learned", None, np.array(["learned"])]),
        (None, [None], [0, "", "None", np.array(None)]),
    ],
)
def test_a_constraint_takes_what_it_says(constraint, taken, refused):
    for value in taken:
        check_parameters("Forest", {"p": value}, {"p": [constraint]})
    for value in refused:
        with pytest.raises(InvalidParameterError):
            check_parameters("Forest", {"p": value}, {"p": [constraint]})


@pytest.mark.parametrize(
    ("constraints", "wanted"),
    [
        ([interval(Integral, 1, 9)], "an int in the range [1, 9]"),
        (
            [interval(Real, 0, math.inf, "()"), "learned"],
            "a number in the range (0, inf) or 'learned'",
        ),
        (["a", "b", ARRAY_LIKE, None], "'a', 'b', an array-like or None"),
        (
            RANDOM_STATE,
            "an int in the range [0, 4294967295], a numpy.random.RandomState or None",
        ),
    ],
)
def test_the_error_names_parameter_value_and_bound(constraints, wanted):
    with pytest.raises(InvalidParameterError) as caught:
        check_parameters("Forest", {"other": 1, "p": -1}, {"p": constraints})
    assert str(caught.value) == f"The 'p' parameter of Forest must be {wanted}. Got -1 instead."


def test_the_error_is_a_value_error_and_a_type_error_as_that_of_scikit_learn():
    for kind in (ValueError, TypeError):
        with pytest.raises(kind, match="'n_estimators' parameter of OnlineForestClassifier"):
            OnlineForestClassifier(n_estimators=0).fit([[0.0]], [0])


def test_parameters_of_a_subclass_are_not_checked():
    class Subclass(MondrianForestClassifier):
        def __init__(self, depth=None, n_estimators=3):
            super().__init__(n_estimators=n_estimators)
            self.depth = depth

    assert Subclass(depth="deep").fit([[0.0], [1.0]], [0, 1]).predict([[0.0]]) == 0
    with pytest.raises(ValueError, match="'n_estimators' parameter of Subclass must be an int"):
        Subclass(n_estimators=0).fit([[0.0]], [0])


def test_parameters_are_checked_whatever_scikit_learn_is_told():
    """Its switch saves time, which these checks hardly take; the core needs valid parameters."""
    with (
        sklearn.config_context(skip_parameter_validation=True),
        pytest.raises(ValueError, match="'n_estimators' parameter"),
    ):
        OnlineForestClassifier(n_estimators=-1).fit([[0.0]], [0])
