"""`measure correlation`: the published study, strata, and missing values."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.corpora.tables import Table, from_columns, read_table
from evenhand.errors import DataError, SpecError
from told import told

QUICK = {"resamples": 199}


def made() -> Table:
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    y = x + rng.normal(scale=0.3, size=40)
    y[3] = np.nan
    kind = np.repeat(["p", "q"], 20)
    return from_columns({"x": x, "y": y, "flat": np.ones(40), "kind": kind, "all": ["z"] * 40}, "t")


def test_a_row_for_each_value_and_pair() -> None:
    found = told("correlation", made(), x=["x", "flat"], y=["y"], by="kind", **QUICK)
    assert [(r["x"], r["by"], r["n"], r["n_missing"]) for r in found["rows"]] == [
        ("x", "p", 19, 1), ("flat", "p", 19, 1), ("x", "q", 20, 0), ("flat", "q", 20, 0),
    ]  # fmt: skip
    good, flat = found["rows"][:2]
    assert good["low"] < good["spearman"] < good["high"]
    assert 0 < good["p"] <= good["q"] <= 1
    assert good["reason"] is None
    assert [flat[k] for k in ("spearman", "p", "q", "pearson", "kendall")] == [None] * 5
    assert flat["reason"] == "x is constant"


def test_coefficients_agree_with_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    table = made()
    row = told("correlation", table, x=["x"], y=["y"], **QUICK)["rows"][0]
    keep = ~np.isnan(table.numbers("y"))
    x, y = table.numbers("x")[keep], table.numbers("y")[keep]
    assert row["by"] is None
    assert row["spearman"] == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert row["pearson"] == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)
    assert row["kendall"] == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)


def test_strata_can_tell_another_story_than_the_pooled_number() -> None:
    up = np.arange(20.0)
    table = from_columns(
        {"x": np.r_[up, up + 30], "y": np.r_[-up, 60 - up], "family": ["m"] * 20 + ["n"] * 20}, "t"
    )
    row = told("correlation", table, x=["x"], y=["y"], strata="family", **QUICK)["rows"][0]
    assert row["spearman"] > 0.4
    assert [(part["stratum"], part["n"]) for part in row["strata"]] == [("m", 20), ("n", 20)]
    assert [part["spearman"] for part in row["strata"]] == pytest.approx([-1, -1])
    assert row["p_families"] is None
    assert row["reason_families"].startswith("families: 2 with a correlation, 6 are needed")
    alone = told("correlation", table, x=["x"], y=["y"], **QUICK)["rows"][0]
    assert "p_families" not in alone
    assert [alone[k] for k in ("spearman", "p", "q")] == [row[k] for k in ("spearman", "p", "q")]


def test_families_decide_where_a_pooled_p_is_fooled() -> None:
    """Families lie at their own levels: pooled, columns that have nothing in common go together."""
    rng = np.random.default_rng(0)
    family = np.repeat(np.arange(6), 20)
    pooled, over = 0, 0
    for _ in range(60):
        x, y = (rng.normal(0, 2, 6)[family] + rng.normal(size=120) for _ in range(2))
        table = from_columns({"x": x, "y": y, "family": [f"f{k}" for k in family]}, "t")
        row = told("correlation", table, x="x", y="y", strata="family", **QUICK)["rows"][0]
        pooled += row["p"] <= 0.05
        over += row["p_families"] <= 0.05
        outside = row["low_families"] > 0 or row["high_families"] < 0
        assert (row["p_families"] <= 0.05) == outside
    assert pooled > 25
    assert over <= 7


def test_same_seed_same_result() -> None:
    one = told("correlation", made(), x=["x"], y=["y"], seed=1, **QUICK)
    assert one == told("correlation", made(), x=["x"], y=["y"], seed=1, **QUICK)
    assert one != told("correlation", made(), x=["x"], y=["y"], seed=2, **QUICK)


def test_too_few_pairs_are_a_reason() -> None:
    table = from_columns({"x": [1.0, 2.0], "y": [2.0, 1.0]}, "t")
    row = told("correlation", table, x=["x"], y=["y"], **QUICK)["rows"][0]
    assert row["spearman"] is None
    assert "too few" in row["reason"]


def test_wrong_columns() -> None:
    with pytest.raises(DataError, match="Missing: z"):
        told("correlation", made(), x=["z"], y=["y"])
    with pytest.raises(DataError, match="row 1, column kind: 'p' is not a number"):
        told("correlation", made(), x=["kind"], y=["y"])
    with pytest.raises(SpecError, match="no column is named"):
        told("correlation", made(), x=[], y=["y"])


def repeated() -> Table:
    """Thirty models with one run each, and ten runs of one more."""
    rng = np.random.default_rng(3)
    x = np.r_[rng.normal(size=30), np.zeros(10)]
    y = np.r_[x[:30] + rng.normal(scale=0.2, size=30), rng.normal(scale=0.2, size=10)]
    noise = rng.normal(size=40)
    kind = ["changed"] * 30 + ["same"] * 10
    return from_columns({"x": x, "y": y, "noise": noise, "kind": kind}, "t")


def test_repeated_runs_become_one_point_and_give_the_ceiling() -> None:
    table = repeated()
    found = told("correlation", table, x="x", y="y,noise", replicates="kind=same", **QUICK)
    good, bad = found["rows"]
    assert (good["n"], bad["n"]) == (31, 31)
    y = table.numbers("y")
    wanted = 1 - y[30:].var(ddof=1) / y[:30].var(ddof=1)
    assert good["reliability_x"] == 1.0
    assert good["reliability_y"] == pytest.approx(wanted, abs=1e-12)
    assert good["ceiling"] == pytest.approx(np.sqrt(wanted), abs=1e-12)
    assert good["note"] is None
    assert bad["ceiling"] < 0.8
    trust = {row["column"]: row for row in found["reliability"]}
    assert (trust["y"]["n_replicates"], trust["y"]["n_points"]) == (10, 30)
    assert trust["y"]["p"] < 0.001 < trust["noise"]["p"]
    assert trust["y"]["low"] < wanted < trust["y"]["high"]


def test_a_gap_that_is_noise_says_so() -> None:
    table = repeated()
    quiet = table.numbers("noise").copy()
    quiet[:30] *= 0.3
    columns = {"x": table.numbers("x"), "y": quiet, "kind": list(table.labels("kind"))}
    row = told(
        "correlation", from_columns(columns, "t"), x=["x"], y=["y"], replicates="kind=same", **QUICK
    )["rows"][0]
    assert row["reliability_y"] < 0
    assert row["ceiling"] == 0
    assert "leaves room for |rho| up to about 0.00" in row["note"]


def test_wrong_replicates() -> None:
    with pytest.raises(SpecError, match="'kind' does not say which rows"):
        told("correlation", repeated(), x=["x"], y=["y"], replicates="kind")
    with pytest.raises(SpecError, match="no row has 'other' in column 'kind'"):
        told("correlation", repeated(), x=["x"], y=["y"], replicates="kind=other")


def test_several_columns_may_part_the_table() -> None:
    found = told("correlation", made(), x=["x"], y=["y"], by=["all", "kind"], **QUICK)
    assert [row["by"] for row in found["rows"]] == ["z / p", "z / q"]
    alone = told("correlation", made(), x=["x"], y=["y"], by="kind", **QUICK)
    assert [r["spearman"] for r in found["rows"]] == [r["spearman"] for r in alone["rows"]]


def test_pairs_that_share_permutations_get_the_numbers_of_pairs_alone() -> None:
    table = repeated()
    both = told("correlation", table, x=["x"], y=["y", "noise"], seed=4, **QUICK)["rows"]
    alone = told("correlation", table, x=["x"], y=["noise"], seed=4, **QUICK)["rows"]
    for key in ("spearman", "p", "low", "high", "pearson", "kendall"):
        assert both[1][key] == pytest.approx(alone[0][key], abs=1e-12)


KEYS = ("task", "algorithm", "modification_wordset")


@pytest.fixture(scope="module")
def study(shared: Path) -> dict[str, Any]:
    """Every correlation of the published study from its 648 runs."""
    table = read_table(shared / "data" / "kato" / "kato_runs.parquet")
    found = told(
        "correlation",
        table,
        x=[c for c in table.columns if c.startswith(("weat_es_", "rnsb_"))],
        y=[c for c in table.columns if c.endswith("_diff")],
        by=KEYS, strata="modification", replicates="modification=none",
        seed=20240401, as_published=True,
    )  # fmt: skip
    rows = {(row["by"], row["x"], row["y"]): row for row in found["rows"]}
    trust = {(row["by"], row["column"]): row for row in found["reliability"]}
    return {"rows": rows, "trust": trust}


def lines(shared: Path, name: str) -> list[dict[str, str]]:
    with (shared / "golden" / "kato" / name).open() as file:
        return list(csv.DictReader(file))


@pytest.mark.shared
def test_all_published_correlations_and_their_p(shared: Path, study: dict[str, Any]) -> None:
    wanted = lines(shared, "kato_expected_correlations.csv")
    assert len(wanted) == 216
    for line in wanted:
        by = " / ".join(line[key] for key in KEYS)
        row = study["rows"][by, f"{line['intrinsic']}_{line['eval_wordset']}", line["extrinsic"]]
        assert row["n"] == int(line["n"])
        assert row["spearman"] == pytest.approx(float(line["spearman"]), abs=1e-12)
        assert row["p"] == pytest.approx(float(line["p_perm_9999_seed20240401"]), abs=1e-12)
        assert row["pearson"] == pytest.approx(float(line["pearson"]), abs=1e-12)


@pytest.mark.shared
def test_reliability_and_strata_of_the_published_study(shared: Path, study: dict[str, Any]) -> None:
    wanted = lines(shared, "kato_reliability.csv")
    checked = 0
    for line in wanted:
        by = " / ".join(line[key] for key in KEYS)
        row = study["trust"][by, line["extrinsic"]]
        for ours, theirs in (
            ("noise_sd", "seed_noise_sd_10_originals"),
            ("spread_sd", "sd_across_all_modified"),
            ("reliability", "reliability_1_minus_noisevar_over_var"),
        ):
            assert row[ours] == pytest.approx(float(line[theirs]), abs=1e-12)
        for key, value in line.items():
            if not key.startswith("rho_") or not value:
                continue
            part, x = key.removeprefix("rho_").rstrip("]").split("[")
            pair = study["rows"][by, x, line["extrinsic"]]
            strata = {p["stratum"]: p["spearman"] for p in pair["strata"]} | {
                "pooled": pair["spearman"]
            }
            assert strata[part] == pytest.approx(float(value), abs=1e-12)
            checked += 1
    assert len(wanted) == 60
    assert checked == 3 * 216
