"""
Forget wrong samples
====================

A stream contains a group of wrong samples. ``forget`` removes them. The result is the forest that
never learned them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from onlineforest import OnlineForestClassifier, plot

X, y = make_moons(300, noise=0.2, random_state=0)
rng = np.random.default_rng(0)
wrong = rng.normal([0.0, 1.0], 0.12, (40, 2))  # in the upper moon, but labelled as the lower

forest = OnlineForestClassifier(n_estimators=50, random_state=0)
forest.partial_fit(X, y)
forest.partial_fit(wrong, np.ones(40, dtype=int), ids=[f"wrong {i}" for i in range(40)])

# %%
# The forest with the wrong samples, after forgetting them, and one that learned only the others.

figure, panels = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained")


def draw(axes, forest, X, y, title):
    plot.decision_surface(forest, X, y, resolution=100, ax=axes)
    if axes is not panels[-1]:
        axes.get_legend().remove()  # one legend is enough
    axes.set(title=title, xlim=(-1.7, 2.7), ylim=(-1.2, 1.7))


draw(panels[0], forest, np.vstack([X, wrong]), np.append(y, np.ones(40, dtype=int)), "learned all")
forest.forget(ids=[f"wrong {i}" for i in range(40)])
draw(panels[1], forest, X, y, "forgot the wrong ones")
never = OnlineForestClassifier(n_estimators=50, random_state=0).fit(X, y)
draw(panels[2], never, X, y, "never saw them")
plt.show()

print(forest.n_samples_stored_, "samples stored,", len(forest.ids_), "with an id")
print("the same forest, bit for bit:", forest.digest_ == never.digest_)

# %%
# The last two forests are equal to the last bit. Mondrian forests would be equal in distribution.
# :doc:`/forget` explains which traces of a forgotten sample remain.
