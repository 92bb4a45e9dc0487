"""
Calibration of probabilities
============================

Are 80 % of the predictions with probability 0.8 correct? The digits are predicted before they are
learned.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

from onlineforest import MondrianForestClassifier, OnlineForestClassifier, plot

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(X))
X, y = X[order], y[order]

forests = {
    "order-free": OnlineForestClassifier(n_estimators=50, random_state=0),
    "Mondrian": MondrianForestClassifier(n_estimators=50, random_state=0),
    "the paper's model": MondrianForestClassifier(
        n_estimators=50, feature_weights="range", leaf_discount=0.0, random_state=0
    ),
}
probabilities = {}
for name, forest in forests.items():
    forest.partial_fit(X[:300], y[:300], classes=np.arange(10))
    predicted = []
    for start in range(300, len(X), 50):
        predicted.append(forest.predict_proba(X[start : start + 50]))
        forest.partial_fit(X[start : start + 50], y[start : start + 50])
    probabilities[name] = np.vstack(predicted)
    print(f"{name}: log loss {log_loss(y[300:], probabilities[name]):.2f}")

plot.reliability(y[300:], probabilities)
plt.show()

# %%
# Above the diagonal, a forest is underconfident, like most averages of many trees. The effect is
# strong with many classes. The order-free forest is calibrated: :doc:`/classification` says how.
