"""The mean that benchmarks share covers the truth as often as its interval says."""

from __future__ import annotations

import numpy as np

from evenhand.stats.clustered_means import clustered_mean


def test_the_interval_of_a_mean_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        effects = rng.normal(0, 1, 12)
        values = (effects[:, None] + rng.normal(0, 0.3, (12, 5))).ravel()
        row = clustered_mean(values, np.repeat(np.arange(12), 5), resamples=200, samples=99)
        hits += row.low <= 0 <= row.high
    assert 0.90 <= hits / 200 <= 0.99
