"""Estimators: validation, saving, checkpoints, merging. Knows no Ray, River or terminal."""
