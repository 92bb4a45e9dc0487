"""
Concept drift and windows
=========================

The label says on which side of a line a sample lies. After 2,000 and 4,000 samples the line turns.
A forest that keeps all samples learns the average of three concepts. A forest with a window forgets
the earlier concepts.
"""

import matplotlib.pyplot as plt
import numpy as np

from onlineforest import OnlineForestClassifier, plot

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (6000, 2))
angles = np.repeat(np.deg2rad([0, 120, 240]), 2000)
y = X[:, 0] * np.cos(angles) + X[:, 1] * np.sin(angles) > 0
y ^= rng.random(6000) < 0.05  # 5 % of the labels are wrong

forests = {
    "all samples": OnlineForestClassifier(n_estimators=20, random_state=0),
    "window of 500": OnlineForestClassifier(n_estimators=20, window=500, random_state=0),
}
right = {name: [] for name in forests}
for start in range(0, 6000, 50):
    batch, labels = X[start : start + 50], y[start : start + 50]
    for name, forest in forests.items():
        if start:
            right[name].extend(forest.predict(batch) == labels)
        forest.partial_fit(batch, labels)

# %%
# Accuracy over the latest 300 samples, each predicted before it was learned. The optimum is 0.95.

latest = 300
n_samples = np.arange(latest, len(right["all samples"]) + 1, 50)
curves = {name: [np.mean(hits[n - latest : n]) for n in n_samples] for name, hits in right.items()}
axes = plot.learning_curve(n_samples, curves, ylabel="accuracy of the latest 300")
for change in (2000, 4000):
    axes.axvline(change, color="0.6", lw=1, ls=":")
plt.show()

# %%
# Predictions of both forests at the end. The forest with the window holds only the last concept.

figure, panels = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for axes, (name, forest) in zip(panels, forests.items(), strict=True):
    plot.decision_surface(forest, X[-100:], y[-100:], resolution=100, ax=axes)
    if axes is panels[0]:
        axes.get_legend().remove()  # one legend is enough
    axes.set_title(f"{name}: {forest.nbytes_ / 2**20:.1f} MiB")
plt.show()

# %%
# :doc:`/drift` compares windows, reservoirs, a drift detector and River's adaptive random forest.
