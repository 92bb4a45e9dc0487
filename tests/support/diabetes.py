"""Small order-free regressors of the diabetes data, and the numbers that their tests share."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1

from onlineforest import OnlineForestRegressor

X, Y = load_diabetes(return_X_y=True)
X = X[:300].round(2)  # has ties
Y = Y[:300]
SHUFFLED = np.random.default_rng(0).permutation(len(Y))
LEVELS = np.linspace(0.01, 0.99, 30)


def small(**parameters):
    return OnlineForestRegressor(**{"n_estimators": 5, "random_state": 0, **parameters})


def fitted(rows=slice(None), **parameters):
    return small(**parameters).fit(X[rows], Y[rows])


def friedman(n, seed=0):
    return make_friedman1(n, n_features=7, noise=1.0, random_state=seed)


WHOLE = fitted().digest_  # the forest of all rows
