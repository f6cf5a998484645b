"""`evenhand measure`: one JSON object and nothing else, or a table to read."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evenhand.cli.measure import app
from evenhand.errors import DataError

from .conftest import write_csv

Rows = list[dict[str, Any]]


def call(*args: object) -> Any:
    return CliRunner().invoke(app, [str(arg) for arg in args], catch_exceptions=False)


@pytest.fixture
def scores(made_rows: Callable[..., Rows], tmp_path: Path) -> Path:
    return write_csv(tmp_path / "scores.csv", made_rows(lean=0.2))


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.txt"
    path.write_text("art 1 0.1\ndance 1 0.2\nmath 0.1 1\nlogic 0.2 1\nshe 1 0\nher 1 0.3\n"
                    "he 0 1\nhim 0.3 1\n")  # fmt: skip
    return path


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "tests.toml"
    path.write_text(
        '[mine]\nx = ["art", "dance"]\ny = ["math", "logic"]\na = ["she", "her"]\n'
        'b = ["he", "him"]\n[lost]\nx = ["gone"]\ny = ["math"]\na = ["she"]\nb = ["he"]\n'
    )
    return path


def test_underspecified(scores: Path, tmp_path: Path) -> None:
    result = call("underspecified", scores, "--json", "-", "--resamples", 20)
    found = json.loads(result.stdout)
    assert {"delta", "epsilon", "mean_score", "mu", "eta", "n_cells", "gamma", "gamma_term",
            "gamma_group", "mu_floor", "mu_low", "mu_high", "eta_floor", "delta_low",
            "coverage"} <= set(found)  # fmt: skip
    assert {"term", "attribute", "gamma", "eta", "n", "low", "high", "p", "q"} <= set(
        found["gamma"][0]
    )
    out = tmp_path / "out.json"
    quiet = call("underspecified", scores, "--json", out, "--resamples", 20)
    assert quiet.stdout == ""
    assert json.loads(out.read_text()) == found
    shown = call("underspecified", scores, "--resamples", 20).stdout
    assert "noise floor" in shown
    assert "job0" in shown


def test_association(vectors: Path, words: Path) -> None:
    found = json.loads(
        call("association", "--vectors", vectors, "--tests", words, "--json", "-").stdout
    )
    mine, lost = found["tests"]
    assert {"test", "statistic", "effect_size", "effect_size_ddof1", "p_right", "p_two_sided",
            "p_method", "n_partitions", "rnsb", "rnsb_kl", "words_used", "words_missing",
            "reason"} <= set(mine)  # fmt: skip
    assert mine["p_right"] == pytest.approx(1 / 6)
    assert mine["rnsb"] > 0
    assert lost["effect_size"] is None
    assert lost["reason"]
    shown = call("association", "--vectors", vectors, "--tests", words).stdout
    assert "lost: set x: none of its 1 words has a vector" in shown


def test_correlation(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("m,f,g\n" + "".join(f"{k},{k * k},{'ab'[k % 2]}\n" for k in range(12)))
    args = ("correlation", path, "--x", "m", "--y", "f", "--by", "g", "--resamples", 99)
    rows = json.loads(call(*args, "--json", "-").stdout)["rows"]
    assert [(row["by"], row["n"]) for row in rows] == [("a", 6), ("b", 6)]
    assert [row["spearman"] for row in rows] == pytest.approx([1, 1])
    assert {"x", "y", "by", "n", "spearman", "p", "low", "high", "q", "pearson", "kendall",
            "strata"} <= set(rows[0])  # fmt: skip
    assert "m ~ f" in call(*args).stdout


def test_errors_are_evenhand_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        call("underspecified", tmp_path / "gone.csv")


def test_start_up_loads_nothing_heavy() -> None:
    code = (
        "import sys, evenhand.cli.measure;"
        "print([m for m in ('torch', 'scipy', 'sklearn', 'numpy', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.shared
def test_golden_table_through_the_program(golden_rows: Callable[..., Any], tmp_path: Path) -> None:
    rows, expected = golden_rows("analysis_ethnicity.json")
    path = write_csv(tmp_path / "t.csv", rows)
    done = subprocess.run(
        [sys.executable, "-c", "from evenhand.cli.main import main; main()",
         "measure", "underspecified", str(path), "--json", "-"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["mu"] == pytest.approx(expected["mu"], abs=1e-12)
    assert found["eta"] == pytest.approx(expected["eta"], abs=1e-12)
