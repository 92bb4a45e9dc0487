"""When the fitted part of a forest is fitted: at the arrival that makes an eighth new."""

import pytest

from onlineforest._forests.orderfree.fitted import Fitted, check_fitted


def arrivals(n_held, capacity, n):
    """The arrivals at which it is fitted, by counting, for a forest that has just been fitted."""
    fitted_at, held, found = 0, n_held, []
    for arrival in range(1, n + 1):
        held = held + 1 if capacity is None else min(held + 1, capacity)
        if 8 * (arrival - fitted_at) >= held:
            fitted_at = arrival
            found.append(arrival)
    return found


@pytest.mark.parametrize("capacity", [None, 1, 7, 8, 9, 100, 1000])
@pytest.mark.parametrize("n_held", [0, 1, 6, 7, 8, 100, 700])
def test_it_is_fitted_when_an_eighth_of_the_samples_are_new(n_held, capacity):
    n_held = n_held if capacity is None else min(n_held, capacity)
    fitted, found = Fitted(0, n_held, capacity, found="something"), []
    for n_seen in range(1, 2000):
        later = fitted.after(n_seen)
        if later is not fitted:
            assert later.arrival == n_seen and later.found is None
            found.append(n_seen)
        fitted = later
    assert found == arrivals(n_held, capacity, 1999)


@pytest.mark.parametrize("capacity", [None, 1, 8, 50, 300])
@pytest.mark.parametrize("n_held", [0, 8, 50])
def test_batches_do_not_matter(n_held, capacity):
    n_held = n_held if capacity is None else min(n_held, capacity)
    for n_seen in (1, 2, 17, 300, 5000):
        by_one = whole = Fitted(0, n_held, capacity)
        for arrival in range(1, n_seen + 1):
            by_one = by_one.after(arrival)
        assert whole.after(n_seen) == by_one
        assert by_one.after(n_seen) is by_one


def test_a_small_window_takes_no_longer_for_a_large_batch():
    assert Fitted(0, 0, 1).after(10**15).arrival == 10**15


def test_samples_leave_when_more_come_than_are_kept():
    assert not Fitted(0, 0, None).loses(10**6, 10**6)
    assert not Fitted(0, 0, 10).loses(4, 6)
    assert Fitted(0, 0, 10).loses(4, 7)


@pytest.mark.parametrize(
    ("fitted", "n_seen"),
    [
        (Fitted(-1, 0, None), 5),
        (Fitted(6, 6, None), 5),
        (Fitted(5, 6, None), 5),
        (Fitted(5, -1, None), 5),
        (Fitted(50, 11, 10), 50),
        (Fitted(70, 70, None), 80),
    ],
)
def test_an_impossible_one_is_refused(fitted, n_seen):
    with pytest.raises(ValueError, match="fitted"):
        check_fitted(fitted, n_seen)


def test_a_possible_one_is_accepted():
    check_fitted(Fitted(70, 70, None), 79)
    check_fitted(Fitted(0, 0, None), 0)
    check_fitted(Fitted(50, 10, 10), 51)
