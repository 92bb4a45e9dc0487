"""
Decision surface and novelty
============================

The predictions of a classifier on two moons, and the novelty of each point of the plane.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from onlineforest import MondrianForestClassifier, plot

X, y = make_moons(300, noise=0.15, random_state=0)
forest = MondrianForestClassifier(n_estimators=100, random_state=0).fit(X, y)

figure, panels = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
plot.decision_surface(forest, X, y, resolution=120, ax=panels[0])
plot.novelty_map(forest, X, resolution=120, ax=panels[1])
plt.show()

# %%
# Left: paler colours mean lower probability. Far from the samples, the probabilities return to the
# prior, one half here. Right: novelty is 0 at the samples and grows with the distance from their
# boxes.
#
# Far away from the data, a batch forest would be as certain as at its border. This forest is not:

far = [[0.0, 1.0], [3.0, 5.0], [100.0, 100.0]]
print(forest.predict_proba(far).round(2))
print(forest.novelty(far).round(2))
