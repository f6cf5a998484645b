"""Correlations with their reliability: planted relations are found, noise is called noise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import spearmanr

from evenhand.runs.finding import Finding
from evenhand.study.analysis import PAIR, analyse, as_table
from evenhand.study.claims import findings, judged
from evenhand.study.correlation import Row, Trust
from evenhand.study.points import columns_of, points_table
from evenhand.study.recipe import Correlating, Recipe, parse_recipe
from evenhand.study.story import answer

RECIPE = parse_recipe(
    {"corpus": {"files": ["a"]}, "correlation": {"resamples": 999}}, "here", "tiny"
)


QUICK = RECIPE.model_copy(update={"correlation": Correlating(resamples=99)})
TWO = ("balancing", "attract_repel")
SIX = (*TWO, "one", "two", "three", "four")


def made_runs(
    noise: float = 0.01, seed: int = 0, families: Sequence[str] = TWO, slope: float = 0.1
) -> pa.Table:
    """3 originals and families of 8; the gap follows the metric inside each family."""
    rng = np.random.default_rng(seed)
    family = ["original"] * 3 + [name for name in families for _ in range(8)]
    strength = np.r_[np.zeros(3), np.tile(np.linspace(-1, 1, 8), len(families))]
    n = len(family)
    return pa.table({
        "cell": [f"c{i}" for i in range(n)],
        "point": ["o"] * 3 + [f"p{i}" for i in range(n - 3)],
        "algorithm": ["word2vec"] * n,
        "family": family,
        "direction": [""] * n, "share": pa.nulls(n, pa.float64()),
        "regularisation": pa.nulls(n, pa.float64()),
        "attract_margin": pa.nulls(n, pa.float64()), "repel_margin": pa.nulls(n, pa.float64()),
        "intrinsic:weat kato_weat7": strength + noise * rng.standard_normal(n),
        "hate_speech:gender f1 gap": slope * strength + 0.1 * noise * rng.standard_normal(n),
    })  # fmt: skip


def analysed(
    tmp_path: Path, runs: pa.Table, recipe: Recipe = RECIPE
) -> tuple[list[Row], list[Trust]]:
    path = tmp_path / "runs.parquet"
    pq.write_table(runs, path)
    return analyse(path, columns_of(runs), recipe)


def test_replicates_become_one_point_at_their_mean_with_their_deviation() -> None:
    runs = made_runs()
    points = points_table(runs)
    values = runs.column("intrinsic:weat kato_weat7").to_numpy()[:3]
    assert points.num_rows == 17
    assert points.column("n").to_pylist()[0] == 3
    name = "intrinsic:weat kato_weat7"
    assert points.column(name).to_pylist()[0] == pytest.approx(values.mean(), abs=1e-15)
    assert points.column(f"sd {name}").to_pylist()[0] == pytest.approx(values.std(ddof=1))
    assert points.column(f"sd {name}").to_pylist()[1] is None


def test_a_planted_relation_is_found_with_scipys_coefficient(tmp_path: Path) -> None:
    runs = made_runs()
    (pair,) = analysed(tmp_path, runs)[0]
    points = points_table(runs)
    columns = columns_of(runs)
    x = points.column(columns.intrinsic[0]).to_numpy()
    y = points.column(columns.extrinsic[0]).to_numpy()
    assert pair.spearman == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)
    assert pair.q < 0.01
    assert {s.stratum: s.n for s in pair.strata} == {"balancing": 8, "attract_repel": 8}
    assert all(s.spearman > 0.9 for s in pair.strata)
    assert pair.trust.ceiling > 0.99


def verdict(tmp_path: Path, *, seed: int, families: Sequence[str], slope: float) -> Finding:
    pairs, known = analysed(tmp_path, made_runs(0.3, seed, families, slope), QUICK)
    (claim,) = [f for f in judged(findings(pairs, known), 0.05) if f.metric == "spearman"]
    assert (claim.n, claim.units) == (len(families), "families of embeddings")
    assert claim.generalises_over == ("families of embeddings",)
    assert claim.details["embeddings"] == 8 * len(families) + 1
    assert claim.otherwise == ""
    return claim


@pytest.mark.parametrize(("slope", "least", "most"), [(0.1, 38, 40), (0.0, 0, 6)])
def test_the_verdict_is_over_families_of_changes(
    tmp_path: Path, slope: float, least: int, most: int
) -> None:
    """A planted relation is found in six families; without one, alarms are as rare as they say.

    Of 40 tables at 0.05 more than 6 alarms come in 1 of 70 such checks.
    """
    claims = [verdict(tmp_path, seed=k, families=SIX, slope=slope) for k in range(40)]
    assert least <= sum(bool(c.detected) for c in claims) <= most
    for claim in claims:
        assert (claim.p <= 0.05) == (claim.low > 0 or claim.high < 0) == claim.detected
        assert ("no relation of" in claim.sentence) != claim.detected
        assert not claim.detected or slope == 0 or "rises with" in claim.sentence


def test_from_two_families_nothing_can_be_told(tmp_path: Path) -> None:
    claim = verdict(tmp_path, seed=0, families=TWO, slope=0.1)
    assert claim.detected is None
    assert np.isnan([claim.p, claim.low, claim.high]).all()
    assert "cannot be told from 2 families" in claim.sentence
    assert claim.reason.startswith("families: 2 with a correlation, 6 are needed")
    assert answer([claim]).startswith("No verdict (families: 2 with a correlation")


def test_as_published_the_verdict_is_over_embeddings(tmp_path: Path) -> None:
    recipe = RECIPE.model_copy(
        update={"correlation": Correlating(resamples=999, scipy_stream=True)}
    )
    (pair,) = analysed(tmp_path, made_runs(), recipe)[0]
    (claim,) = findings([pair], [])
    assert claim.as_published
    assert (claim.value, claim.p, claim.q) == pytest.approx((pair.spearman, pair.p, pair.q))
    assert "Over 17 word2vec embeddings WEAT (kato_weat7) rises with" in claim.sentence


def test_reliability_is_one_minus_the_ratio_of_variances(tmp_path: Path) -> None:
    runs = made_runs(noise=0.5)
    found = analysed(tmp_path, runs)[1][0]
    values = runs.column("intrinsic:weat kato_weat7").to_numpy()
    expected = 1 - values[:3].var(ddof=1) / values[3:].var(ddof=1)
    assert found.found.reliability == pytest.approx(expected, abs=1e-12)
    assert (found.found.n_replicates, found.found.n_points) == (3, 16)


def test_without_replicates_reliability_is_undefined_with_a_reason(tmp_path: Path) -> None:
    found = analysed(tmp_path, made_runs().slice(2))[1][0]
    assert np.isnan(found.found.reliability)
    assert found.reason.startswith("1 replicates are too few")


def test_a_noisy_column_leaves_no_room_and_the_sentence_says_so(tmp_path: Path) -> None:
    runs = made_runs()
    noisy = np.r_[np.array([-5.0, 0.0, 5.0]), np.linspace(-0.1, 0.1, 16)]
    at = runs.column_names.index("hate_speech:gender f1 gap")
    runs = runs.set_column(at, "hate_speech:gender f1 gap", pa.array(noisy))
    (pair,) = analysed(tmp_path, runs)[0]
    assert pair.trust.reliability_y < 0
    assert pair.trust.ceiling == 0.0
    (claim,) = findings([pair], [])
    assert "cannot be told from no relation at all" in claim.sentence


def test_the_sentence_holds_the_numbers_of_the_finding(tmp_path: Path) -> None:
    runs = made_runs(families=SIX)
    (pair,) = analysed(tmp_path, runs)[0]
    (claim,) = findings([pair], [])
    assert f"{claim.value:+.2f} [{claim.low:+.2f}, {claim.high:+.2f}]" in claim.sentence
    assert "Inside 6 families of word2vec embeddings WEAT (kato_weat7) rises" in claim.sentence
    assert f"over all 49 embeddings {pair.spearman:+.2f}" in claim.sentence


def test_an_unfinished_task_leaves_no_pairs(tmp_path: Path) -> None:
    runs = made_runs().drop_columns(["hate_speech:gender f1 gap"])
    pairs, trust = analysed(tmp_path, runs)
    assert pairs == []
    assert [t.column for t in trust] == ["intrinsic:weat kato_weat7"]


def test_pair_rows_become_columns_with_one_per_family(tmp_path: Path) -> None:
    runs = made_runs()
    table = as_table(analysed(tmp_path, runs)[0], PAIR)
    assert {"spearman", "spearman_balancing", "spearman_attract_repel", "ceiling"} <= set(
        table.column_names
    )
