"""`measure underspecified`: golden tables, intervals that make sense, and messages."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenhand.corpora.tables import from_columns
from evenhand.errors import DataError
from evenhand.probes.underspecified.measure import ALSO, UnderspecifiedReader
from evenhand.strict import plain
from told import told

from .conftest import write_csv

Rows = list[dict[str, Any]]


def measured(rows: Rows, **options: Any) -> dict[str, Any]:
    table = from_columns({key: [row.get(key) for row in rows] for key in rows[0]}, "rows")
    return told("underspecified", table, **{"resamples": 100, "samples": 999, **options})


def by_key(rows: Rows, *keys: str) -> dict[tuple[str, ...], dict[str, Any]]:
    return {tuple(row[key] for key in keys): row for row in rows}


@pytest.mark.shared
def test_golden_ethnicity(golden_rows: Callable[..., Any], tmp_path: Path) -> None:
    rows, expected = golden_rows("analysis_ethnicity.json")
    found = told("underspecified", write_csv(tmp_path / "t.csv", rows), resamples=50)
    names = {"delta": "delta", "epsilon": "epsilon", "mean_score": "avgS", "mu": "mu", "eta": "eta"}
    for ours, theirs in names.items():
        assert found[ours] == pytest.approx(expected[theirs], abs=1e-12)
    assert found["n_cells"] == expected["example_pairs"]
    cells = by_key(found["gamma"], "term", "attribute")
    for term, attributes in expected["gamma_subj_attr"].items():
        for attribute, value in attributes.items():
            row = cells.pop((term, attribute))
            assert row["gamma"] == pytest.approx(value, abs=1e-12)
            assert row["eta"] == pytest.approx(
                expected["eta_subj_attr"][term][attribute], abs=1e-12
            )
            assert row["n"] == expected["n_subj_attr"][term][attribute]
    assert not cells
    for row in found["gamma_term"]:
        assert row["gamma"] == pytest.approx(expected["gamma_subj"][row["term"]], abs=1e-12)
        assert row["eta"] == pytest.approx(expected["eta_subj"][row["term"]], abs=1e-12)
        assert row["n"] == expected["n_subj"][row["term"]]


@pytest.mark.shared
def test_golden_paper_example(golden_rows: Callable[..., Any], tmp_path: Path) -> None:
    rows, expected = golden_rows("paper_example.json")
    found = told("underspecified", write_csv(tmp_path / "t.csv", rows))
    assert found["mu"] == pytest.approx(0.1575, abs=1e-12)
    assert found["delta"] == pytest.approx(expected["delta"], abs=1e-12)
    group = by_key(found["gamma_group"], "group")
    assert group[("male",)]["gamma"] == pytest.approx(expected["C_eq6"], abs=1e-12)
    assert group[("male",)]["low"] is None
    assert found["delta_low"] is None
    assert found["reason"] == "one pair of terms and one template: no interval"


def test_formats_and_row_order_do_not_matter(
    made_rows: Callable[..., Rows], tmp_path: Path
) -> None:
    rows = made_rows(lean=0.2)
    few = {"resamples": 20, "samples": 99}
    wanted = told("underspecified", write_csv(tmp_path / "t.csv", rows), **few)
    random.Random(1).shuffle(rows)
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    for name in ("t.jsonl", "t.parquet"):
        found = told("underspecified", tmp_path / name, **few)
        assert plain(found) == plain(wanted)


def test_a_known_lean_is_found_and_nothing_else(made_rows: Callable[..., Rows]) -> None:
    found = measured(made_rows(terms=8, lean=0.3))
    rows = by_key(found["gamma_group"], "group", "attribute")
    leaning = rows[("a", "job0")]
    assert leaning["gamma"] == pytest.approx(0.3, abs=0.02)
    assert leaning["low"] < leaning["gamma"] < leaning["high"]
    assert leaning["low"] > 0.2
    assert leaning["q"] < 0.05
    assert rows[("b", "job0")]["gamma"] == -leaning["gamma"]
    assert all(row["q"] > 0.05 for (_, job), row in rows.items() if job != "job0")
    assert found["mu_floor"] < found["mu_low"] < found["mu"] < found["mu_high"]
    assert found["mu_p"] < 0.05
    assert found["gamma"][0]["term"].startswith("a")
    assert found["gamma"][0]["gamma"] >= found["gamma"][1]["gamma"]


def test_without_a_lean_mu_is_at_its_noise_floor(made_rows: Callable[..., Rows]) -> None:
    found = measured(made_rows(terms=8))
    assert found["mu"] > 0
    assert found["mu"] == pytest.approx(found["mu_floor"], rel=0.25)
    assert found["eta"] == pytest.approx(found["eta_floor"], rel=0.25)
    assert found["mu_p"] > 0.05


def test_p_of_a_term_is_the_exact_sign_flip_over_partners(
    made_rows: Callable[..., Rows],
) -> None:
    import itertools

    rows = made_rows(terms=5, attributes=1, templates=2, lean=0.05, seed=3)
    found = measured(rows)
    sums: dict[str, float] = {}
    for row in rows:
        if "a0" not in (row["first"], row["second"]):
            continue
        partner = row["second"] if row["first"] == "a0" else row["first"]
        gap = row["score_first"] - row["score_second"]
        gap *= (1 if row["first"] == "a0" else -1) * (-1 if row["negated"] else 1)
        sums[partner] = sums.get(partner, 0.0) + gap
    values = np.array(list(sums.values()))
    flipped = [abs(np.dot(s, values)) for s in itertools.product((1, -1), repeat=len(values))]
    wanted = np.mean(np.array(flipped) >= abs(values.sum()) - 1e-12)
    assert by_key(found["gamma_term"], "term")[("a0",)]["p"] == pytest.approx(wanted)


def test_uneven_templates_give_the_micro_average() -> None:
    def cell(template: str, attribute: str, gap: float) -> Rows:
        return [
            {"template": template, "attribute": attribute, "first": f, "second": s,
             "negated": negated, "score_first": 0.5 + g, "score_second": 0.5 - g}
            for negated in (False, True)
            for f, s, sign in (("x", "y", 1), ("y", "x", -1))
            for g in [sign * gap * (-1 if negated else 1) / 2]
        ]  # fmt: skip

    rows = cell("1", "rude", 0.4) + cell("2", "rude", 0.4) + cell("3", "poor", -0.2)
    found = measured(rows)
    gamma = by_key(found["gamma_term"], "term")[("x",)]["gamma"]
    assert gamma == pytest.approx((0.4 + 0.4 - 0.2) / 3)
    by_attribute = by_key(found["gamma"], "term", "attribute")
    assert by_attribute[("x", "poor")]["n"] == 1
    assert "gamma_group" not in found


def test_case_is_kept_and_numbers_may_be_names() -> None:
    rows = [
        {"template": 1, "attribute": "Rich", "first": f, "second": s, "negated": n,
         "score_first": 0.5, "score_second": 0.4}
        for n in (0, 1) for f, s in (("Ann", "ann"), ("ann", "Ann"))
    ]  # fmt: skip
    found = measured(rows)
    assert {row["term"] for row in found["gamma"]} == {"Ann", "ann"}
    assert found["gamma"][0]["attribute"] == "Rich"
    assert found["gamma"][0]["eta"] == 0


def test_missing_inputs_are_listed_not_fatal(made_rows: Callable[..., Rows]) -> None:
    rows = made_rows()
    dropped = rows.pop(5)
    found = measured(rows)
    cover = found["coverage"]
    assert (cover["n_missing"], cover["n_complete"]) == (1, found["n_cells"])
    missing = cover["which"][0]
    assert missing["attribute"] == dropped["attribute"]
    assert missing["missing"] == [{key: dropped[key] for key in ("first", "second", "negated")}]


def test_only_half_cells_give_nulls_with_a_reason(made_rows: Callable[..., Rows]) -> None:
    found = measured([row for row in made_rows() if not row["negated"]])
    assert found["mu"] is None
    assert found["reason"] == "no cell has both orders and both questions"
    assert found["coverage"]["n_complete"] == 0
    assert found["gamma"] == []
    json.dumps(plain(found), allow_nan=False)


def test_an_interval_needs_a_second_partner_or_template() -> None:
    def rows(templates: int, attributes: int) -> Rows:
        return [
            {"template": f"t{t}", "attribute": f"a{a}", "first": f, "second": s, "negated": n,
             "score_first": 0.9 if (f == "x") != n else 0.1,
             "score_second": 0.1 if (f == "x") != n else 0.9}
            for t in range(templates) for a in range(attributes)
            for n in (False, True) for f, s in (("x", "y"), ("y", "x"))
        ]  # fmt: skip

    alone = measured(rows(1, 3))
    assert alone["eta_low"] is None
    assert alone["reason"]
    assert all(row["low"] is None and row["reason"] for row in alone["gamma_term"])
    twice = measured(rows(2, 3))
    assert (twice["eta_low"], twice["eta"], twice["eta_high"]) == (1, 1, 1)
    assert "reason" not in twice
    assert twice["reach"].startswith("no q of a lone difference can be below 1")
    assert all(row["low"] is not None for row in twice["gamma"] + twice["gamma_term"])


def test_same_seed_same_bytes(made_rows: Callable[..., Rows]) -> None:
    rows = made_rows(terms=9)
    assert plain(measured(rows, seed=4)) == plain(measured(rows, seed=4))
    assert plain(measured(rows, seed=4)) != plain(measured(rows, seed=5))


def test_a_report_of_three_groups_is_about_terms(made_rows: Callable[..., Rows]) -> None:
    """The probe compares two groups; gamma of more is in the tables."""
    third = {"b1": "c"}
    rows = [
        row
        | {f"group_{end}": third.get(row[end], row[f"group_{end}"]) for end in ("first", "second")}
        for row in made_rows(terms=3)
    ]
    result = UnderspecifiedReader(
        table=from_columns({name: [row[name] for row in rows] for name in rows[0]}, "made"),
        resamples=50,
        samples=99,
    ).read()
    claims = result.claims()
    assert claims is not None
    assert {row.group for row in result.gamma_group or ()} == {"a", "b", "c"}
    assert {row["group"] for row in claims.tables["gamma_group"].to_pylist()} == {"a", "b", "c"}
    leans = [f for f in claims.findings if f.metric == "lean"]
    assert {f.groups[0] for f in leans} == {"a0", "a1", "a2", "b0", "b1", "b2"}
    assert not [f for f in claims.findings if f.metric.startswith("gamma")]


def test_one_group_on_both_sides_compares_nothing(made_rows: Callable[..., Rows]) -> None:
    rows = [row | {"group_first": "g", "group_second": "g"} for row in made_rows()]
    assert measured(rows)["gamma_group"] == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score_first": 1.2}, r"row 4, column score_first: the score '1.2' is outside 0 to 1"),
        ({"score_second": -3.0}, r"row 4, column score_second: the score '-3' .*convert logits"),
        (
            {"score_first": float("nan")},
            r"row 4, column score_first: has no score .* 1 of 144 rows",
        ),
        ({"score_first": None}, r"row 4, column score_first: has no score"),
        ({"second": "a0", "first": "a0"}, r"row 4: 'a0' is compared with itself"),
        ({"negated": "perhaps"}, r"row 4, column negated: 'perhaps' is not a yes or no"),
        ({"first": ""}, r"row 4, column first: is empty"),
        ({"group_first": "c"}, r"row \d+: 'b0' is in group '[bc]' here and in '[bc]' elsewhere"),
    ],
)
def test_wrong_rows_are_named(
    made_rows: Callable[..., Rows], tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    rows = made_rows(terms=2)
    rows[3].update(change)
    with pytest.raises(DataError, match=message):
        told("underspecified", write_csv(tmp_path / "t.csv", rows))


def test_an_optional_column_without_any_value_is_as_good_as_absent(
    made_rows: Callable[..., Rows], tmp_path: Path
) -> None:
    rows = [
        {k: v for k, v in row.items() if not k.startswith("group_")} for row in made_rows(terms=2)
    ]
    wanted = plain(measured(rows))
    for blank in ("", None, float("nan")):
        filled = [row | dict.fromkeys(ALSO, blank) for row in rows]
        assert plain(measured(filled)) == wanted
        pq.write_table(pa.Table.from_pylist(filled), tmp_path / "t.parquet")
        found = told("underspecified", tmp_path / "t.parquet", resamples=100, samples=999)
        assert plain(found) == wanted


def test_repeated_rows_are_named(made_rows: Callable[..., Rows]) -> None:
    rows = made_rows(terms=2)
    with pytest.raises(DataError, match=r"rows 3 and 145: the same template.*1 such inputs"):
        measured([*rows, rows[2]])


def test_missing_columns_are_named(made_rows: Callable[..., Rows]) -> None:
    rows = [{k: v for k, v in row.items() if k != "negated"} for row in made_rows()]
    with pytest.raises(DataError, match="Missing: negated"):
        measured(rows)
    rows = [{k: v for k, v in row.items() if k != "group_second"} for row in made_rows()]
    with pytest.raises(DataError, match="Missing: group_second"):
        measured(rows)
