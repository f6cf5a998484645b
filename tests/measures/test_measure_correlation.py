"""`measure correlation`: the published study, strata, and missing values."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from evenhand.errors import DataError, SpecError
from evenhand.measures import correlation
from evenhand.measures.tables import Table, from_columns, read_table

QUICK = {"resamples": 199}


def made() -> Table:
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    y = x + rng.normal(scale=0.3, size=40)
    y[3] = np.nan
    kind = np.repeat(["p", "q"], 20)
    return from_columns({"x": x, "y": y, "flat": np.ones(40), "kind": kind, "all": ["z"] * 40}, "t")


def test_a_row_for_each_value_and_pair() -> None:
    found = correlation.measure(made(), x=["x", "flat"], y=["y"], by="kind", **QUICK)
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
    row = correlation.measure(table, x=["x"], y=["y"], **QUICK)["rows"][0]
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
    row = correlation.measure(table, x=["x"], y=["y"], strata="family", **QUICK)["rows"][0]
    assert row["spearman"] > 0.4
    assert [(part["stratum"], part["n"]) for part in row["strata"]] == [("m", 20), ("n", 20)]
    assert [part["spearman"] for part in row["strata"]] == pytest.approx([-1, -1])


def test_same_seed_same_result() -> None:
    one = correlation.measure(made(), x=["x"], y=["y"], seed=1, **QUICK)
    assert one == correlation.measure(made(), x=["x"], y=["y"], seed=1, **QUICK)
    assert one != correlation.measure(made(), x=["x"], y=["y"], seed=2, **QUICK)


def test_too_few_pairs_are_a_reason() -> None:
    table = from_columns({"x": [1.0, 2.0], "y": [2.0, 1.0]}, "t")
    row = correlation.measure(table, x=["x"], y=["y"], **QUICK)["rows"][0]
    assert row["spearman"] is None
    assert "too few" in row["reason"]


def test_wrong_columns() -> None:
    with pytest.raises(DataError, match="Missing: z"):
        correlation.measure(made(), x=["z"], y=["y"])
    with pytest.raises(DataError, match="row 1, column kind: 'p' is not a number"):
        correlation.measure(made(), x=["kind"], y=["y"])
    with pytest.raises(SpecError, match="no column is named"):
        correlation.measure(made(), x=[], y=["y"])


@pytest.mark.shared
def test_published_correlations_and_their_p(shared: Path) -> None:
    table = read_table(shared / "data" / "kato" / "kato_points.parquet")
    keep = np.array(table.columns["modification_wordset"].to_pylist()) == "winobias"
    columns = {name: np.array(c.to_pylist())[keep] for name, c in table.columns.items()
               if name in ("algorithm", "weat_es_extracted", "rnsb_extracted",
                           "winobias_type1_precision_diff", "modification")}  # fmt: skip
    found = correlation.measure(
        from_columns({k: v.tolist() for k, v in columns.items()}, "kato"),
        x=["weat_es_extracted", "rnsb_extracted"], y=["winobias_type1_precision_diff"],
        by="algorithm", strata="modification", seed=20240401, as_published=True,
    )  # fmt: skip
    rows = {(row["x"], row["by"]): row for row in found["rows"]}
    with (shared / "golden" / "kato" / "kato_expected_correlations.csv").open() as file:
        wanted = [
            line for line in csv.DictReader(file)
            if line["modification_wordset"] == "winobias" and line["eval_wordset"] == "extracted"
            and line["extrinsic"] == "winobias_type1_precision_diff"
        ]  # fmt: skip
    assert len(wanted) == len(rows) == 4
    for line in wanted:
        row = rows[(f"{line['intrinsic']}_extracted", line["algorithm"])]
        assert row["n"] == int(line["n"])
        assert row["spearman"] == pytest.approx(float(line["spearman"]), abs=1e-12)
        assert row["p"] == pytest.approx(float(line["p_perm_9999_seed20240401"]), abs=1e-9)
