"""
Prove that a sample is forgotten
================================

Patients ask for their data to be deleted. After ``forget``, the digest of the forest is that of the
forest that never saw them. Anybody can check this claim.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from onlineforest import OnlineForestClassifier

X, y = load_breast_cancer(return_X_y=True)
patients = np.arange(len(X))
leaving = [7, 250, 400]
others = np.setdiff1d(patients, leaving)


def new_forest():
    return OnlineForestClassifier(n_estimators=50, random_state=0)


# %%
# The forest learns all patients in batches of 100, and then forgets three.

forest = new_forest()
for start in range(0, len(X), 100):
    batch = patients[start : start + 100]
    forest.partial_fit(X[batch], y[batch], ids=batch)
before, p_before = forest.digest_, forest.predict_proba(X)[:, 1]

forest.forget(ids=leaving)
after, p_after = forest.digest_, forest.predict_proba(X)[:, 1]

# %%
# Another forest never saw the three. It learns all others at once, without ids.

never = new_forest().fit(X[others], y[others])

# %%
# A third forest has a different history: another order, other batches, and other samples that it
# learned and forgot in between.

rng = np.random.default_rng(0)
order = rng.permutation(others)
strangers = rng.normal(X.mean(axis=0), X.std(axis=0), (40, X.shape[1]))
detour = new_forest().partial_fit(X[order[:200]], y[order[:200]])
detour.partial_fit(strangers, rng.integers(0, 2, 40), ids=[f"stranger {i}" for i in range(40)])
for i in order[200:]:
    detour.learn_one(X[i], y[i])
detour.forget(ids=[f"stranger {i}" for i in range(40)])

# %%
# The digest is SHA-256 of the whole forest: seed, parameters, samples, all splits and leaves. It
# changes when the patients are forgotten, and then equals that of the forests that never saw them.

print(f"before forgetting   {before[:16]}…")
print(f"after forgetting    {after[:16]}…")
print(f"never saw them      {never.digest_[:16]}…")
print(f"another history     {detour.digest_[:16]}…")
assert before != after
assert after == never.digest_ == detour.digest_

# %%
# Equal digests mean equal predictions. After forgetting, the difference to the forest that never
# saw the patients is exactly zero, for all rows. Before, it was largest for patient 7.

p_never = never.predict_proba(X)[:, 1]
figure, panels = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True, layout="constrained")
for axes, p, title in zip(panels, (p_before, p_after), ("before", "after"), strict=True):
    axes.plot(others, (p - p_never)[others], ".", ms=3, color="0.5", label="other patients")
    axes.plot(leaving, (p - p_never)[leaving], "o", color="C3", label="forgotten patients")
    axes.set(title=f"{title} forgetting", xlabel="patient")
panels[0].set_ylabel("difference of probability")
panels[0].legend()
plt.show()
print("largest difference:", np.abs(p_before - p_never).max(), "before,", end=" ")
print(np.abs(p_after - p_never).max(), "after")

# %%
# ``verify`` grows a second forest from the stored samples and compares. If you publish the digest
# of a forest, anybody with the remaining samples, the seed and the parameters can compute it again.

print("the trees are those of the stored samples:", forest.verify())
print("patient 7 is stored:", 7 in forest.ids_)

# %%
# This does not prove that no copy of the samples exists elsewhere. Files that were saved before
# ``forget`` still hold them. :doc:`/forget` lists what to delete, and :doc:`/order-free` explains
# why the order has no influence.
