"""
Outlier detection compared with IsolationForest
===============================================

:meth:`novelty <onlineforest.MondrianForestClassifier.novelty>` measures how far a sample is from
all learned samples. This example compares it with scikit-learn's ``IsolationForest`` on two kinds
of outliers:

- **a class held out** of training, one class after the other;
- **permuted columns**: test rows whose columns are shuffled independently. Every single value is
  usual, only the combination is unusual.

All forests have 100 trees. ``IsolationForest`` is shown with its default parameters, and with trees
of all samples. A Mondrian forest can use labels if there are any. Without labels, it learns random
ones, with weights by the ranges of the features: then, as in ``IsolationForest``, y has no effect.
The score is the area under the ROC curve: 0.5 is chance, 1 is perfect.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from onlineforest import MondrianForestClassifier

N_SEEDS = int(sys.argv[1]) if len(sys.argv) > 1 else 1
N_CLASSES = 10 if N_SEEDS > 1 else 4  # held out, at most
DATA = {"digits": load_digits, "breast cancer": load_breast_cancer, "wine": load_wine}


def with_labels(X, y, queries, seed):
    """Novelty of a classifier; None if only one class is left to learn."""
    if len(np.unique(y)) == 1:
        return None
    return MondrianForestClassifier(random_state=seed).fit(X, y).novelty(queries)


def without_labels(X, y, queries, seed):
    """Novelty of a forest that has learned random labels."""
    forest = MondrianForestClassifier(feature_weights="range", leaf_discount=0.0, random_state=seed)
    return forest.fit(X, np.random.default_rng(seed).integers(64, size=len(X))).novelty(queries)


def isolation(X, y, queries, seed):
    """The negative score of scikit-learn, so that outliers have high values."""
    return -IsolationForest(random_state=seed).fit(X).score_samples(queries)


def isolation_of_all(X, y, queries, seed):
    """IsolationForest with trees of all samples; the default is 256 samples."""
    return -IsolationForest(max_samples=1.0, random_state=seed).fit(X).score_samples(queries)


COLOURS = ["#0072B2", "#56B4E9", "#D55E00", "#E69F00"]
METHODS = {
    "novelty, with labels": with_labels,
    "novelty, without": without_labels,
    "IsolationForest": isolation,
    "IsolationForest, all samples": isolation_of_all,
}


# %%
# The two kinds of outliers, for one split into training and test data.


def held_out_classes(X, y, seed):
    """For each class: training data without it, and test data in which it is the outlier."""
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=seed)
    for held_out in np.unique(y)[:N_CLASSES]:
        kept = y_train != held_out
        yield X_train[kept], y_train[kept], X_test, y_test == held_out


def permuted_columns(X, y, seed):
    """Test data, and test data with every column shuffled."""
    X_train, X_test, y_train, _ = train_test_split(X, y, test_size=0.3, random_state=seed)
    shuffled = np.random.default_rng(seed).permuted(X_test, axis=0)
    yield X_train, y_train, np.vstack([X_test, shuffled]), np.repeat([False, True], len(X_test))


# %%
# All methods on all tasks. This page uses one seed and at most four held-out classes; ``python
# examples/outliers.py 5`` uses five seeds and all classes.

results = {}
for data, load in DATA.items():
    X, y = load(return_X_y=True)
    for task in (held_out_classes, permuted_columns):
        for seed in range(N_SEEDS):
            for X_train, y_train, queries, is_strange in task(X, y, seed):
                for name, method in METHODS.items():
                    scores = method(X_train, y_train, queries, seed)
                    if scores is not None:
                        key = f"{data}, {task.__name__.replace('_', ' ')}", name
                        results.setdefault(key, []).append(roc_auc_score(is_strange, scores))

for (task, name), areas in results.items():
    print(f"{task:32} {name:28} {np.mean(areas):.3f} (least {min(areas):.3f}, {len(areas)} runs)")

# %%
# Each dot is a run. Each line is the mean of the runs.

tasks = list(dict.fromkeys(task for task, _ in results))
figure, axes = plt.subplots(figsize=(8, 4.8), layout="constrained")
for shift, (name, colour) in enumerate(zip(METHODS, COLOURS, strict=True)):
    for row, task in enumerate(tasks):
        areas = results.get((task, name), [])
        height = np.full(len(areas), row + 0.2 * (shift - 1.5))
        axes.plot(areas, height, "o", ms=5, mew=0, color=colour, alpha=0.45)
        if areas:
            axes.plot(np.mean(areas), height[0], "|", ms=14, mew=2.5, color=colour)
    axes.plot([], [], "o", color=colour, label=name)
axes.axvline(0.5, color="0.6", lw=1, ls=":")
axes.set(xlabel="area under the ROC curve", yticks=range(len(tasks)), yticklabels=tasks)
axes.invert_yaxis()
axes.spines[["top", "right"]].set_visible(False)
figure.legend(loc="outside upper center", ncols=2, frameon=False)
plt.show()

# %%
# **Interpretation.** If single values are usual and only their combination is unusual,
# ``IsolationForest`` detects little: it counts the splits on one feature that isolate a sample.
# A Mondrian tree stores the box around the samples of each node, and compares all features of a row
# with it. This helps much on digits. On tables with few features, in some of which an unknown class
# has extreme values, both are about equal. With labels, features that do not separate the *known*
# classes have small feature weights. This can hide a class that differs only in these (*wine*).
#
# ``IsolationForest`` finds outliers *within* the training data. ``novelty`` does not, because the
# novelty of a learned sample is 0. Compute it before a sample is learned, or hold the sample out.
