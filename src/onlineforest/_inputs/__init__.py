"""Checks of data and parameters that users give, and their conversion to arrays."""
