"""
Prediction intervals
====================

A regressor learns Friedman's function with noise in batches, and predicts an interval for each new
value. 90 % of the values should lie in their intervals.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1

from onlineforest import OnlineForestRegressor, plot

X, y = make_friedman1(1400, noise=1.0, random_state=0)
X_new, y_new = X[1000:], y[1000:]

forest = OnlineForestRegressor(n_estimators=50, random_state=0)
for start in range(0, 1000, 200):
    forest.partial_fit(X[start : start + 200], y[start : start + 200])
    low, high = forest.predict_interval(X_new, coverage=0.9).T
    inside = np.mean((low <= y_new) & (y_new <= high))
    n = forest.n_samples_seen_
    print(f"{n:4} learned: {inside:.2f} inside, mean width {np.mean(high - low):.1f}")

# %%
# Intervals become narrower with more samples, though not at each step, and contain about 90 % of
# the values. New values, sorted by predicted mean:

plot.intervals(forest, X_new, y_new, coverage=0.9)
plt.show()

# %%
# The coverage holds on average over new samples from the same distribution, not at each point, and
# not under drift. :doc:`/regression` has the details.
