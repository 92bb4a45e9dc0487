"""A league of stream learners: each sample is predicted, then learned.

This file imports nothing: a process of MOA, which has an environment of its own, imports it.
"""
