"""
Save and resume with checkpoints
================================

A consumer of a stream is stopped and restarted from its checkpoint. It ends with the forest of an
uninterrupted run, bit for bit.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from onlineforest import Checkpointer, OnlineForestClassifier, plot

X, y = load_digits(return_X_y=True)
folder = tempfile.TemporaryDirectory()


def consume(until, folder):
    """Continue from the newest checkpoint; return the forest and the accuracy of each batch."""
    checkpoints = Checkpointer(folder, every_samples=200)
    found = checkpoints.open()
    if found is None:
        forest, start = OnlineForestClassifier(n_estimators=20, random_state=0), 0
    else:
        forest, start = found.forest, found.position
    right = {}
    for i in range(start, until, 50):
        if i:
            right[i] = np.mean(forest.predict(X[i : i + 50]) == y[i : i + 50])
        forest.partial_fit(X[i : i + 50], y[i : i + 50])
        checkpoints.update(forest, position=i + 50)
    return forest, right


# %%
# One consumer is stopped at 950 samples; its newest checkpoint is at 800. The other is not stopped.

_, before = consume(950, folder.name)
resumed, after = consume(1750, folder.name)
with tempfile.TemporaryDirectory() as another:
    uninterrupted, all_the_time = consume(1750, another)

print("resumed at", min(after))
print("equal, bit for bit:", resumed.digest_ == uninterrupted.digest_)

# %%
# Accuracy in each batch of 50. The samples between 800 and 950 were learned a second time after the
# restart.

axes = plot.learning_curve(list(all_the_time), {"uninterrupted": list(all_the_time.values())})
axes.plot(before.keys(), before.values(), "o", ms=8, mfc="none", label="before the stop")
axes.plot(after.keys(), after.values(), "x", ms=6, label="resumed")
axes.get_lines()[0].set_label("uninterrupted")
axes.legend()
plt.show()
folder.cleanup()

# %%
# :doc:`/save-and-load` explains what a checkpoint contains.
