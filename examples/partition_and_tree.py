"""
A Mondrian tree
===============

One tree on iris, two of its features: the blocks it cuts the plane into, and the same cuts as a
tree, drawn at the times they were made.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_iris

from onlineforest import MondrianForestClassifier, plot

X, y = load_iris(return_X_y=True, as_frame=True)
X = X[["petal length (cm)", "petal width (cm)"]]
forest = MondrianForestClassifier(n_estimators=1, feature_weights=None, random_state=1)

# %%
# Fifteen samples at first. A cut ends at the box around the samples of its node: beyond, the tree
# has not made up its mind.

forest.partial_fit(X[::10], y[::10])
plot.partition(forest, X[::10], y[::10])
plt.show()

# %%
# The tree of these cuts. Height is time: a cut is the later the smaller the box is. Blocks of one
# class are not cut yet.

plot.tree(forest)
plt.show()

# %%
# As many samples more. Cuts stay where they are, boxes grow, and new cuts come in between.
# (Weights of the features that are learned would be learned anew now and then, and the tree grown
# afresh; with ``feature_weights=None`` there are none.)

forest.partial_fit(X[2::10], y[2::10])
plot.partition(forest, pd.concat([X[::10], X[2::10]]), pd.concat([y[::10], y[2::10]]))
plt.show()
