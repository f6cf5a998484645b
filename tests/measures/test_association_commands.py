"""`evenhand measure association|correlation` from the command line, bad input first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from evenhand.cli.main import app
from evenhand.errors import DataError

WORDS = ("math", "algebra", "poetry", "art", "he", "him", "she", "her")
ROWS = [" ".join([word, *(f"{v:.4f}" for v in row)])
        for word, row in zip(WORDS, np.random.default_rng(0).normal(size=(8, 4)))]  # fmt: skip
SETS = {"x": ["math", "algebra"], "y": ["poetry", "art"], "a": ["he", "him"], "b": ["she", "her"]}


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["measure", *arguments])


def associate(folder: Path, lines: list[str], sets: dict[str, Any], *more: str) -> Any:
    (folder / "v.txt").write_text("\n".join(lines) + "\n")
    (folder / "t.json").write_text(json.dumps({"t": sets}))
    vectors, tests = str(folder / "v.txt"), str(folder / "t.json")
    return run("association", "--vectors", vectors, "--tests", tests, *more)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([*ROWS[:3], ROWS[3].rsplit(" ", 1)[0]], "line 4: 3 numbers where 4 were expected"),
        (["9 4", *ROWS], "the header promises 9 words, the file holds 8"),
        (["8 5", *ROWS], "line 2: 4 numbers where 5 were expected"),
        (["4 x", *ROWS], "line 1: '4 x' is neither a header"),
    ],
)  # fmt: skip
def test_wrong_vector_files(tmp_path: Path, lines: list[str], message: str) -> None:
    result = associate(tmp_path, lines, SETS)
    assert isinstance(result.exception, DataError)
    assert message in str(result.exception)
    assert "v.txt" in str(result.exception)


def test_repeated_words_are_noted_and_the_first_counts(tmp_path: Path) -> None:
    other = ROWS[0].replace(" ", " 9", 1)
    result = associate(tmp_path, [*ROWS, other], SETS, "--json", "-")
    assert result.exit_code == 0
    assert result.stderr.startswith("note: ")
    assert "v.txt: 1 repeated words; the first vector of each was kept." in result.stderr
    plain = associate(tmp_path, ROWS, SETS, "--json", "-")
    rows = [json.loads(r.stdout)["tests"][0]["effect_size"] for r in (result, plain)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("key", "xyab")
def test_a_set_without_any_vector_is_a_reason(tmp_path: Path, key: str) -> None:
    """A missing attribute set would leave RNSB with one class: not measured, and said so."""
    sets = SETS | {key: ["gone", "lost"]}
    result = associate(tmp_path, ROWS, sets, "--missing", "keep", "--json", "-")
    assert result.exit_code == 0
    row = json.loads(result.stdout)["tests"][0]
    assert row["reason"] == f"set {key}: none of its 2 words has a vector"
    assert (row["rnsb"], row["effect_size"], row["words_missing"]) == (None, None, ["gone", "lost"])


def test_further_metrics_are_printed(tmp_path: Path) -> None:
    result = associate(tmp_path, ROWS, SETS, "--also", "rnd,mac,ect,ripa")
    assert result.exit_code == 0
    for name in ("rnd", "mac", "ect", "ripa"):
        assert f"t  {name}: " in result.stdout


def test_correlations_with_ceilings_are_printed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = ["weat,gap,kind"]
    lines += [f"{x},{x + rng.normal(0, 0.1)},changed" for x in rng.normal(size=12)]
    lines += [f"0.5,{0.5 + rng.normal(0, 0.1)},same" for _ in range(4)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    common = (
        "correlation",
        str(tmp_path / "t.csv"),
        "--x",
        "weat",
        "--y",
        "gap",
        "--resamples",
        "199",
    )
    shown = run(*common, "--replicates", "kind=same", "--strata", "kind")
    assert shown.exit_code == 0, shown.output
    assert "ceiling" in shown.stdout
    assert "ceiling" not in run(*common).stdout
    found = json.loads(run(*common, "--replicates", "kind=same", "--json", "-").stdout)
    assert found["rows"][0]["n"] == 13
    assert {row["column"] for row in found["reliability"]} == {"weat", "gap"}
