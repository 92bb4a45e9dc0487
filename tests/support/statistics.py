"""Statistical comparisons with a known probability of failing by chance.

Every check fails by chance with probability at most `P_FAIL` under a new seed. The seeds are fixed,
so a check that passes once passes always. A failure prints n, the statistic, the bound and the
expected value.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

P_FAIL = 1e-6


def dkw_bound(n: int) -> float:
    """Distance of an empirical from its true distribution function (Dvoretzky, Kiefer, Wolfowitz;
    Massart 1990), exceeded with probability at most P_FAIL at every n."""
    return math.sqrt(math.log(2 / P_FAIL) / (2 * n))


def two_sample_bound(n: int) -> float:
    """Distance of two empirical distribution functions of n draws each (Wei and Dudley 2012,
    who show the constant 2 for n >= 458)."""
    assert n >= 458
    return math.sqrt(math.log(2 / P_FAIL) / n)


def check_distribution(name, sample, cdf):
    """`sample` is drawn from the continuous distribution with distribution function `cdf`.

    Finds a difference in the distribution function of twice the bound almost surely.
    """
    sample = np.sort(np.asarray(sample))
    n = len(sample)
    expected = cdf(sample)
    distance = max((np.arange(1, n + 1) / n - expected).max(), (expected - np.arange(n) / n).max())
    assert distance <= dkw_bound(n), (
        f"{name}: n = {n}, distance of distribution functions {distance:.4f}, "
        f"bound {dkw_bound(n):.4f}; mean {sample.mean():.5g} "
        f"± {sample.std() / math.sqrt(n):.2g}"
    )


def check_same_distribution(name, first, second):
    """Both samples, of equal size, are drawn from one distribution (continuous or not).

    Finds a difference in the distribution function of twice the bound almost surely.
    """
    first, second = np.sort(np.asarray(first)), np.sort(np.asarray(second))
    n = len(first)
    assert n == len(second)
    at = np.concatenate([first, second])
    distance = (
        np.abs(
            np.searchsorted(first, at, side="right") - np.searchsorted(second, at, side="right")
        ).max()
        / n
    )
    bound = two_sample_bound(n)
    error = math.sqrt((first.var() + second.var()) / n) if np.isfinite(at).all() else math.nan
    assert distance <= bound, (
        f"{name}: n = {n} each, distance of distribution functions {distance:.4f}, bound "
        f"{bound:.4f}; means {first.mean():.5g} and {second.mean():.5g}, standard error of the "
        f"difference {error:.2g}"
    )


def check_frequencies(name, sample, probabilities):
    """`sample` of integers 0, 1, … is drawn with these probabilities (chi-squared test)."""
    probabilities = np.asarray(probabilities)
    counts = np.bincount(sample, minlength=len(probabilities))
    assert not counts[probabilities == 0].any(), f"{name}: an impossible value was drawn"
    possible = probabilities > 0
    if possible.sum() == 1:
        return
    expected = probabilities[possible] * len(sample)
    p_value = stats.chisquare(counts[possible], expected).pvalue
    assert p_value >= P_FAIL, (
        f"{name}: n = {len(sample)}, p = {p_value:.2g}, counts {counts}, expected {expected}"
    )


def check_same_frequencies(name, first, second):
    """Two samples of category keys have one distribution (chi-squared test of homogeneity).

    Categories seen fewer than 20 times are merged. Frequencies around p that differ by
    14 sqrt(p / n) are found almost surely.
    """
    keys, inverse = np.unique(np.concatenate([first, second]), return_inverse=True)
    table = np.stack(
        [
            np.bincount(inverse[: len(first)], minlength=len(keys)),
            np.bincount(inverse[len(first) :], minlength=len(keys)),
        ]
    )
    rare = table.sum(axis=0) < 20
    if rare.any():
        table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    if table.shape[1] == 1:
        return
    p_value = stats.chi2_contingency(table, correction=False).pvalue
    assert p_value >= P_FAIL, (
        f"{name}: n = {len(first)} and {len(second)}, p = {p_value:.2g}, counts\n{table}"
    )


def check_mean(name, sample, expected, *, bounded=False):
    """The mean of `sample` is `expected`.

    By the normal approximation; for values in [0, 1] (`bounded`) by the empirical Bernstein bound
    of Maurer and Pontil (2009), which holds for rare values and small samples too.
    """
    sample = np.asarray(sample, dtype=float)
    error = sample.std(ddof=1) / math.sqrt(len(sample))
    if bounded:
        log = math.log(4 / P_FAIL)
        bound = math.sqrt(2 * log) * error + 7 * log / (3 * (len(sample) - 1))
    else:
        bound = stats.norm.isf(P_FAIL / 2) * error
    assert abs(sample.mean() - expected) <= bound, (
        f"{name}: n = {len(sample)}, mean {sample.mean():.6g}, standard error {error:.2g}, "
        f"expected {expected:.6g} within {bound:.2g}"
    )


def check_same_mean(name, first, second):
    """Two samples have the same mean (Student's t; the values are means themselves)."""
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    error = math.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
    bound = stats.t.isf(P_FAIL / 2, min(len(first), len(second)) - 1) * error
    assert abs(first.mean() - second.mean()) <= bound, (
        f"{name}: n = {len(first)} and {len(second)}, means {first.mean():.6g} and "
        f"{second.mean():.6g}, standard error of the difference {error:.2g}, bound {bound:.2g}"
    )
