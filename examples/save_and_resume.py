"""
Stop, save, go on
=================

A consumer of a stream is stopped in the middle and started again from its checkpoint. It ends
with the very forest it would have had undisturbed.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from onlineforest import Checkpointer, MondrianForestClassifier, plot

X, y = load_digits(return_X_y=True)
folder = tempfile.TemporaryDirectory()


def consume(until, folder):
    """Go on from the newest checkpoint; return the forest and what it predicted on the way."""
    checkpoints = Checkpointer(folder, every_samples=200)
    found = checkpoints.open()
    if found is None:
        forest, start = MondrianForestClassifier(n_estimators=20, random_state=0), 0
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
# One is stopped at 950 samples; its newest checkpoint is from 800. The other runs through.

_, before = consume(950, folder.name)
resumed, after = consume(1750, folder.name)
with tempfile.TemporaryDirectory() as another:
    undisturbed, all_the_time = consume(1750, another)

print("resumed at", min(after))
print(
    "the same, to the last bit:",
    np.array_equal(resumed.predict_proba(X), undisturbed.predict_proba(X)),
)

# %%
# Accuracy in each batch of fifty. Where both overlap, the samples between 800 and 950 were
# learned a second time.

axes = plot.learning_curve(list(all_the_time), {"undisturbed": list(all_the_time.values())})
axes.plot(before.keys(), before.values(), "o", ms=8, mfc="none", label="before the stop")
axes.plot(after.keys(), after.values(), "x", ms=6, label="resumed")
axes.get_lines()[0].set_label("undisturbed")
axes.legend()
plt.show()
folder.cleanup()

# %%
# :doc:`/model-files` tells what a checkpoint holds and what it survives.
