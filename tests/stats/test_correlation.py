"""Correlations against scipy, its random stream, theory and a published table."""

from __future__ import annotations

import csv
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as sps

from evenhand.errors import DataError, SpecError
from evenhand.stats.correlation import correlate_table

ORACLES = {"spearman": sps.spearmanr, "pearson": sps.pearsonr, "kendall": sps.kendalltau}
METHODS = list(ORACLES)


def correlate(x, y, **options):
    """The one cell of a table of one pair."""
    found = correlate_table(x, y, **options)
    cell = {name: getattr(found, name)[0, 0] for name in ("coefficient", "p", "low", "high")}
    return SimpleNamespace(**cell, reason=found.reasons[0][0], method=found.p_method,
                           n_permutations=found.n_permutations)  # fmt: skip


def tied_pair(seed, n=24):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 9, n).astype(float)
    return x, x + rng.integers(0, 14, n)


@pytest.mark.parametrize("method", METHODS)
def test_coefficient_and_p_against_scipy_with_ties(method):
    for seed in range(3):
        x, y = tied_pair(seed)
        oracle = ORACLES[method](x, y)
        result = correlate(x, y, method=method, bootstrap=0)
        assert result.coefficient == pytest.approx(oracle.statistic, abs=1e-12)
        assert result.p == pytest.approx(oracle.pvalue, abs=0.03)
        assert result.n_permutations == 9_999


@pytest.mark.parametrize("method", METHODS)
def test_scipy_stream_gives_scipys_p_exactly(method):
    x, y = tied_pair(4, 15)
    oracle = sps.permutation_test(
        (x,),
        lambda a: ORACLES[method](a, y).statistic,
        permutation_type="pairings",
        n_resamples=200,
        random_state=5,
    )
    ours = correlate(x, y, method=method, resamples=200, seed=5, scipy_stream=True)
    assert ours.p == oracle.pvalue


def test_scipy_stream_lists_all_permutations_when_scipy_does():
    x, y = np.array([1.0, 5.0, 2.0, 4.0]), np.array([2.0, 3.0, 1.0, 9.0])
    oracle = sps.permutation_test(
        (x,), lambda a: sps.pearsonr(a, y).statistic, permutation_type="pairings", n_resamples=99
    )
    ours = correlate(x, y, method="pearson", resamples=99, scipy_stream=True)
    assert (ours.p, ours.method, ours.n_permutations) == (oracle.pvalue, "exact", 24)


@pytest.mark.parametrize("method", METHODS)
def test_exact_p_against_sampled(method):
    x, y = tied_pair(6, 7)
    exact = correlate(x, y, method=method, bootstrap=0)
    sampled = correlate(x, y, method=method, bootstrap=0, max_exact=0, resamples=20_000)
    assert (exact.method, exact.n_permutations, sampled.method) == ("exact", 5_040, "sampled")
    assert sampled.p == pytest.approx(exact.p, abs=0.015)


@pytest.mark.parametrize("method", METHODS)
def test_interval_against_a_plain_loop(method):
    x, y = tied_pair(7, 30)
    rng = np.random.default_rng(8)
    picks = rng.integers(0, 30, (1_500, 30))
    plain = [ORACLES[method](x[i], y[i]).statistic for i in picks]
    result = correlate(x, y, method=method, resamples=9)
    low, high = np.quantile(plain, [0.025, 0.975])
    assert result.low == pytest.approx(low, abs=0.06)
    assert result.high == pytest.approx(high, abs=0.06)


def test_table_equals_the_single_pairs():
    rng = np.random.default_rng(9)
    x, y = rng.normal(size=(20, 3)), rng.normal(size=(20, 2)) * [1e-9, 1e9]
    for method in METHODS:
        table = correlate_table(x, y, method=method, resamples=300, bootstrap=200)
        for i in range(3):
            for j in range(2):
                one = correlate(x[:, i], y[:, j], method=method, resamples=300, bootstrap=200)
                assert table.coefficient[i, j] == pytest.approx(one.coefficient)
                assert (table.p[i, j], table.n) == (one.p, 20)
                assert (table.low[i, j], table.high[i, j]) == pytest.approx((one.low, one.high))


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_correlation_is_symmetric_and_ranks_ignore_monotone_maps(seed):
    x, y = np.random.default_rng(seed).normal(size=(2, 6))
    one = correlate(x, y, bootstrap=0)
    assert correlate(y, x, bootstrap=0).p == one.p
    assert correlate(np.exp(x), y, bootstrap=0).coefficient == pytest.approx(one.coefficient)
    flipped = correlate(-x, y, bootstrap=0)
    assert (flipped.coefficient, flipped.p) == pytest.approx((-one.coefficient, one.p))


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], "x is constant"),
        ([1.0, 2.0, 3.0], [2.0, 2.0, 2.0], "y is constant"),
        ([1.0, np.nan, 3.0], [2.0, 1.0, 2.0], "x: 1 of 3 values are not finite"),
        ([1.0, 2.0], [2.0, 1.0], "2 pairs are too few, 3 are needed"),
        ([], [], "0 pairs are too few, 3 are needed"),
    ],
)
def test_undefined_input_gives_nan_with_a_reason(x, y, reason):
    result = correlate(x, y)
    assert np.isnan([result.coefficient, result.p, result.low, result.high]).all()
    assert result.reason == reason


def test_a_bad_column_leaves_the_rest_of_the_table_alone():
    rng = np.random.default_rng(10)
    x, y = rng.normal(size=(15, 2)), rng.normal(size=(15, 2))
    clean = correlate_table(x, y, resamples=99)
    spoiled = np.column_stack([x, np.ones(15)])
    result = correlate_table(spoiled, y, resamples=99)
    assert (result.p[:2] == clean.p).all()
    assert np.isnan(result.p[2]).all()
    assert result.reasons[2] == ("x is constant", "x is constant")


def test_p_never_zero_and_same_seed_same_result():
    x = np.arange(40.0)
    result = correlate(x, x, resamples=99)
    assert (result.coefficient, result.p) == (pytest.approx(1.0), pytest.approx(0.01))
    noisy = x + np.random.default_rng(0).normal(0, 40, 40)
    assert correlate(x, noisy, seed=2).p == correlate(x, noisy, seed=2).p
    assert correlate(x, noisy, seed=2).low == correlate(x, noisy, seed=2).low


def test_false_positive_rate_against_theory():
    rng = np.random.default_rng(11)
    x, y = rng.exponential(size=(25, 20)), rng.normal(size=(25, 20))
    table = correlate_table(x, y, resamples=999, bootstrap=0)
    assert 0.02 <= np.mean(table.p <= 0.05) <= 0.08


def test_wrong_options_name_what_is_accepted():
    with pytest.raises(SpecError, match="method: unknown value 'cosine'"):
        correlate([1.0], [2.0], method="cosine")
    with pytest.raises(DataError, match="y: 2 values for 3 of x"):
        correlate([1.0, 2.0, 3.0], [2.0, 1.0])
    with pytest.raises(SpecError, match="bootstrap: 1 is too few"):
        correlate([1.0, 2.0, 3.0], [2.0, 1.0, 5.0], bootstrap=1)


@pytest.mark.shared
def test_all_published_correlations_and_p_values_are_reproduced(shared_folder):
    parquet = pytest.importorskip("pyarrow.parquet")
    file = shared_folder / "golden/kato/kato_expected_correlations.csv"
    with file.open(newline="") as handle:
        expected = list(csv.DictReader(handle))
    points = parquet.read_table(shared_folder / "data/kato/kato_points.parquet").to_pylist()
    keys = ("task", "algorithm", "bias_kind", "modification_wordset")
    checked = 0
    for experiment in {tuple(row[k] for k in keys) for row in expected}:
        rows = [r for r in expected if tuple(r[k] for k in keys) == experiment]
        here = [q for q in points if tuple(q[k] for k in keys) == experiment]
        inner = sorted({f"{r['intrinsic']}_{r['eval_wordset']}" for r in rows})
        outer = sorted({r["extrinsic"] for r in rows})
        result = correlate_table(
            [[q[c] for c in inner] for q in here],
            [[q[c] for c in outer] for q in here],
            seed=20240401,
            scipy_stream=True,
        )
        for row in rows:
            at = (
                inner.index(f"{row['intrinsic']}_{row['eval_wordset']}"),
                outer.index(row["extrinsic"]),
            )
            assert result.coefficient[at] == pytest.approx(float(row["spearman"]), abs=1e-12)
            p = float(row["p_perm_9999_seed20240401"])
            assert result.p[at] == pytest.approx(p, abs=1e-12)
            checked += 1
    assert checked == 216
