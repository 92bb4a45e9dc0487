"""Forests in files: loading, checkpoints, descriptions."""
