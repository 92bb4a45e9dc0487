"""Small order-free classifiers of Iris, and the data sets that their tests share."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits, load_iris

from onlineforest import OnlineForestClassifier

X, Y = load_iris(return_X_y=True)  # has duplicates
NAMES = np.array(["setosa", "versicolor", "virginica"])
SHUFFLED = np.random.default_rng(0).permutation(len(Y))
DIGITS, DIGIT = load_digits(return_X_y=True)


def small(**parameters):
    return OnlineForestClassifier(**{"n_estimators": 5, "random_state": 0, **parameters})


def fitted(rows=slice(None), **parameters):
    return small(**parameters).fit(X[rows], Y[rows])


WHOLE = fitted().digest_  # the forest of all rows
