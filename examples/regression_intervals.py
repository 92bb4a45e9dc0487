"""
Intervals for numbers
=====================

A regressor learns Friedman's function with noise, batch by batch, and gives an interval for each
new value that nine in ten should fall into.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1

from onlineforest import MondrianForestRegressor, plot

X, y = make_friedman1(1400, noise=1.0, random_state=0)
X_new, y_new = X[1000:], y[1000:]

forest = MondrianForestRegressor(n_estimators=50, random_state=0)
for start in range(0, 1000, 200):
    forest.partial_fit(X[start : start + 200], y[start : start + 200])
    low, high = forest.predict_interval(X_new, coverage=0.9).T
    inside = np.mean((low <= y_new) & (y_new <= high))
    n = forest.n_samples_seen_
    print(f"{n:4} learned: {inside:.2f} inside, mean width {np.mean(high - low):.1f}")

# %%
# Intervals get narrower as more is learned, and still hold about nine in ten. New values, sorted
# by what was predicted:

plot.intervals(forest, X_new, y_new, coverage=0.9)
plt.show()

# %%
# It is promised on average over new samples, if these are like the old ones; not at each place,
# and not when the world changes. :doc:`/regression` says more.
