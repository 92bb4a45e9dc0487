"""Errors of the command line that are about its options."""

from __future__ import annotations


class OptionError(ValueError):
    """Options contradict each other, the table, or the forest of an earlier run."""
