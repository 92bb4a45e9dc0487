"""
A Mondrian tree
===============

One tree on two features of iris: its partition of the plane, and its nodes, drawn at their split
times.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_iris

from onlineforest import MondrianForestClassifier, plot

X, y = load_iris(return_X_y=True, as_frame=True)
X = X[["petal length (cm)", "petal width (cm)"]]
forest = MondrianForestClassifier(n_estimators=1, feature_weights=None, random_state=1)

# %%
# First, the tree learns fifteen samples. A cut ends at the box around the samples of its node.
# Outside the box, the partition is still undetermined.

forest.partial_fit(X[::10], y[::10])
plot.partition(forest, X[::10], y[::10])
plt.show()

# %%
# The tree of these cuts. The height of a node is the time of its cut: smaller boxes are cut later.
# A leaf with a single class is paused: its block is not cut yet.

plot.tree(forest)
plt.show()

# %%
# Then it learns fifteen more samples. Cuts stay where they are, boxes grow, and new cuts are
# inserted. (With learned feature weights, the tree would be grown again from time to time;
# ``feature_weights=None`` learns none.)

forest.partial_fit(X[2::10], y[2::10])
plot.partition(forest, pd.concat([X[::10], X[2::10]]), pd.concat([y[::10], y[2::10]]))
plt.show()
