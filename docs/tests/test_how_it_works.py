"""The pictures of `how-it-works.md` show what the library does."""

from __future__ import annotations

import numpy as np
import pytest

from docs.pictures import law
from onlineforest import OnlineForestClassifier


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("n", [20, 64, 300])
def test_the_proposals_of_the_pictures_lead_to_the_cut_of_the_library(seed, n):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)), np.arange(n) % 3
    tree = OnlineForestClassifier(1, random_state=seed).fit(X, y).trees_[0]
    proposals = law.proposals(law.ranked(X, y, seed), seed)
    best = proposals[law.winner(proposals, min(n, law.MOST_DECIDING))]
    assert (best.feature, best.threshold) == (tree.split_dimension[0], tree.split_location[0])
