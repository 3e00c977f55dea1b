"""Intervals: coverage by simulation, and the rule that tells settings apart."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.measure.intervals import (
    Ratio,
    bootstrap_interval,
    median_estimate,
    paired_ratio,
)


@pytest.mark.parametrize("rounds", [5, 6, 10])
def test_interval_of_a_mean_covers_the_truth_about_95_times_in_100(rounds):
    rng = np.random.default_rng(1)
    trials = 400
    hits = 0
    for _ in range(trials):
        low, high = bootstrap_interval(rng.normal(0, 1, rounds), np.mean)
        hits += low <= 0 <= high
    assert 0.90 <= hits / trials <= 0.985


def test_one_value_tells_nothing():
    assert bootstrap_interval([3.0], np.mean) == (-math.inf, math.inf)
    assert paired_ratio([2.0], [1.0]).verdict == "too few rounds (1)"


def test_paired_ratio_cancels_drift_that_hits_both():
    drift = np.array([1.0, 3.0, 0.5, 2.0, 1.5])
    ratio = paired_ratio(2 * drift, drift)
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((2, 2, 2))
    assert ratio.verdict == "larger"


@given(
    st.lists(st.floats(0.1, 10), min_size=4, max_size=8),
    st.floats(0.1, 10),
)
def test_ratio_follows_a_change_of_unit(values, unit):
    other = list(reversed(values))
    plain = paired_ratio(values, other)
    scaled = paired_ratio([unit * value for value in values], other)
    assert scaled.value == pytest.approx(unit * plain.value)
    assert scaled.low == pytest.approx(unit * plain.low)
    assert plain.low <= plain.value * (1 + 1e-9)
    assert plain.value <= plain.high * (1 + 1e-9)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.04, 1.2, "larger"),
        (0.8, 0.96, "smaller"),
        (1.02, 1.2, "no difference detected"),
        (0.98, 1.02, "no difference detected"),
        (0.8, 0.98, "no difference detected"),
    ],
)
def test_settings_differ_only_outside_the_tie_band(low, high, verdict):
    assert Ratio(math.sqrt(low * high), low, high, 6).verdict == verdict


def test_foreign_load_forbids_a_verdict():
    ratio = Ratio(2.0, 1.9, 2.1, 6, trusted=False)
    assert not ratio.differs
    assert ratio.verdict == "too much foreign load"


def test_median_estimate_holds_its_median():
    estimate = median_estimate([5.0, 1.0, 3.0, 2.0, 4.0])
    assert estimate.value == 3
    assert 1 <= estimate.low < 3 < estimate.high <= 5


@pytest.mark.parametrize(
    ("top", "bottom", "message"),
    [
        ([1.0], [1.0, 2.0], "same rounds"),
        ([], [], "same rounds"),
        ([0.0], [1.0], "above 0"),
    ],
)
def test_bad_input_is_refused(top, bottom, message):
    with pytest.raises(ValueError, match=message):
        paired_ratio(top, bottom)
