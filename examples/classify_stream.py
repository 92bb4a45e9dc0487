"""
Classify a stream
=================

Handwritten digits arrive in batches of 50. Two forests predict each batch before they learn it:
one learns online, the other is a batch forest (scikit-learn's extra-trees) that is trained again on
all digits so far.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier

from onlineforest import MondrianForestClassifier, plot

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(X))
X, y = X[order], y[order]

online = MondrianForestClassifier(n_estimators=50, random_state=0).partial_fit(X[:50], y[:50])
batch = ExtraTreesClassifier(n_estimators=50, random_state=0).fit(X[:50], y[:50])
right = {"online": [], "re-trained": []}
seconds = dict.fromkeys(right, 0.0)

for start in range(50, len(X), 50):
    end = start + 50
    right["online"].extend(online.predict(X[start:end]) == y[start:end])
    right["re-trained"].extend(batch.predict(X[start:end]) == y[start:end])

    begin = time.perf_counter()
    online.partial_fit(X[start:end], y[start:end])
    seconds["online"] += time.perf_counter() - begin

    begin = time.perf_counter()
    batch.fit(X[:end], y[:end])
    seconds["re-trained"] += time.perf_counter() - begin

for name, hits in right.items():
    print(f"{name}: {np.mean(hits):.3f} right, {seconds[name]:.2f} s of learning")

# %%
# Accuracy over all digits so far. Both forests improve as they learn, but only the online forest
# learns each digit once.

n_predicted = np.arange(50, len(right["online"]) + 1, 50)
curves = {name: [np.mean(hits[:n]) for n in n_predicted] for name, hits in right.items()}
plot.learning_curve(n_predicted, curves, ylabel="accuracy so far")
plt.show()
