"""The forests as models of River: samples are dicts, learned one at a time or in mini-batches."""

from onlineforest.river.models import MondrianForestClassifier, MondrianForestRegressor

__all__ = ["MondrianForestClassifier", "MondrianForestRegressor"]
