"""
Streaming classification
========================

Handwritten digits arrive in batches of 50. Three forests predict each batch before they learn it.
One forest learns online. The others are batch forests (scikit-learn's random forest and
extra-trees) that are trained again on all digits so far.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from onlineforest import OnlineForestClassifier, plot

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(X))
X, y = X[order], y[order]

forests = {
    "online": OnlineForestClassifier(n_estimators=50, random_state=0),
    "random forest, retrained": RandomForestClassifier(n_estimators=50, random_state=0),
    "extra-trees, retrained": ExtraTreesClassifier(n_estimators=50, random_state=0),
}
right = {name: [] for name in forests}

for name, forest in forests.items():
    begin = time.perf_counter()
    for start in range(0, len(X), 50):
        batch, labels = X[start : start + 50], y[start : start + 50]
        if start:
            right[name].extend(forest.predict(batch) == labels)
        if name == "online":
            forest.partial_fit(batch, labels)
        else:
            forest.fit(X[: start + 50], y[: start + 50])
    print(f"{name}: {np.mean(right[name]):.3f} right, {time.perf_counter() - begin:.1f} s")

# %%
# Accuracy over all digits so far. All forests improve as they learn, but only the online forest
# learns each digit once.

n_predicted = np.arange(50, len(right["online"]) + 1, 50)
curves = {name: [np.mean(hits[:n]) for n in n_predicted] for name, hits in right.items()}
plot.learning_curve(n_predicted, curves, ylabel="accuracy so far")
plt.show()
