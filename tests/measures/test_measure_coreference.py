"""Coreference and gaps from files, and their commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evenhand.cli.main import app
from evenhand.errors import DataError
from evenhand.probes.shared import coreference as job
from evenhand.train.coreference_data import HeadMatch
from evenhand.words.conll import Document, write_conll
from told import told


def documents(n: int, wrong: int = 0) -> list[Document]:
    """n sentences of one cluster; the first `wrong` have it elsewhere."""
    tokens = ("The", "cook", "met", "the", "maid", "as", "he", "left")
    right, other = ((0, 2), (6, 7)), ((3, 5), (6, 7))
    return [Document(f"d{k}", tokens, (8,), ((other if k < wrong else right),)) for k in range(n)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, wrong in (("gold", 0), ("pro", 2), ("anti", 6)):
        write_conll(documents(12, wrong), tmp_path / f"{name}.conll")
    return tmp_path


def test_scores_and_gap_of_files(folder: Path) -> None:
    gold = folder / "gold.conll"
    anti = {"anti_gold": gold, "anti_predictions": folder / "anti.conll"}
    found = told("coreference", folder / "pro.conll", gold=gold, **anti)
    rows = {(r["metric"], r["part"]): r for r in found["gaps"]}
    assert found["accuracy"] == pytest.approx(10 / 12)
    assert rows["muc", "recall"]["pro"] == pytest.approx(10 / 12)
    assert rows["muc", "recall"]["gap"] == pytest.approx(4 / 12)
    assert rows["accuracy", "accuracy"]["gap"] == pytest.approx(4 / 12)
    assert rows["muc", "f1"]["low"] <= 4 / 12 <= rows["muc", "f1"]["high"]
    scores = {r["metric"]: r for r in found["scores"]}
    assert scores["mean"]["f1_low"] < scores["mean"]["f1"] < scores["mean"]["f1_high"]


def test_equal_sides_have_no_gap() -> None:
    counts = job.counts_of([(d, d) for d in documents(5)])
    assert {row.gap for row in job.gaps(counts, counts)} == {0.0}
    assert {row.p for row in job.gaps(counts, counts)} == {1.0}
    with pytest.raises(DataError, match="pair by pair"):
        job.gaps(counts, counts[:3])


def test_a_missing_or_other_document_is_named(folder: Path) -> None:
    gold, gold_file = documents(2), folder / "gold.conll"
    with pytest.raises(DataError, match="no document 'd1'"):
        job.aligned(gold, gold[:1])
    with pytest.raises(DataError, match="3 tokens, the gold one 8"):
        job.aligned(gold[:1], [Document("d0", ("a", "b", "c"))])
    with pytest.raises(DataError, match="belong together"):
        told("coreference", folder / "pro.conll", gold=gold_file, anti_gold=gold_file)


def test_the_command_prints_one_json_object(folder: Path) -> None:
    gold, pro = str(folder / "gold.conll"), str(folder / "pro.conll")
    made = CliRunner().invoke(app, ["measure", "coreference", pro, "--gold", gold, "--json", "-"])
    assert made.exit_code == 0
    assert json.loads(made.stdout)["n_documents"] == 12


def test_gaps_of_a_prediction_table(tmp_path: Path) -> None:
    table = tmp_path / "p.csv"
    rows = [f"{k % 2},{int(k % 2 and (k % 4 == 1 or k < 40))},{'ab'[k // 40]}" for k in range(80)]
    table.write_text("label,predicted,group\n" + "\n".join(rows) + "\n")
    command = ["measure", "gaps", str(table), "--first", "a", "--second", "b", "--json", "-"]
    found = json.loads(CliRunner().invoke(app, command).stdout)
    gaps = {r["metric"]: r["gap"] for r in found["gaps"]}
    assert gaps["recall"] == pytest.approx(0.5)
    assert gaps["precision"] == 0.0
    with pytest.raises(DataError, match="unknown group 'c'"):
        CliRunner().invoke(app, [*command[:4], "c", *command[5:]], catch_exceptions=False)


def test_the_baseline_joins_equal_heads_and_pronouns() -> None:
    tokens = "See the cook . Then the cook , alone , slept . He saw him .".split()
    (made,) = HeadMatch().predict([Document("d", tuple(tokens), (4, 12, 16))])
    assert made.clusters == (((1, 3), (5, 7), (12, 13), (14, 15)),)
    (bare,) = HeadMatch().predict([Document("d", ("Nothing", "here"), (2,))])
    assert bare.clusters == ()
