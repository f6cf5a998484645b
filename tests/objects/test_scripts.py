"""The six scripts of docs/python.md: at most ten lines each, run as they stand."""

from __future__ import annotations

import ast
import re
import runpy
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "examples" / "python"
NAMES = sorted(p.stem for p in SCRIPTS.glob("*.py"))
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def run_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Any:
    """Runs a script in an empty folder and gives what it printed."""
    monkeypatch.chdir(tmp_path)

    def go(name: str, *given: str) -> str:
        monkeypatch.setattr(sys, "argv", [name, *given])
        runpy.run_path(str(SCRIPTS / f"{name}.py"), run_name="__main__")
        return str(capsys.readouterr().out)

    return go


@pytest.mark.parametrize("name", NAMES)
def test_each_has_at_most_ten_lines_and_stands_on_the_page(name: str) -> None:
    text = (SCRIPTS / f"{name}.py").read_text()
    tree = ast.parse(text)
    places = {i for node in ast.walk(tree) for i in [getattr(node, "lineno", 0)] if i}
    lines = [k for k, line in enumerate(text.splitlines(), start=1) if line.strip() and k in places]
    code = [k for k in lines if k > 1]  # the first line says what it is for
    imports = [k for k in code if re.match(r"(import|from) ", text.splitlines()[k - 1])]
    assert len(code) - len(imports) <= 10
    body = text.split('"""\n', 1)[1].strip()
    assert body in (ROOT / "docs" / "python.md").read_text()


def test_an_object_in_memory(run_script: Any, tiny: Any) -> None:
    printed = run_script("object_in_memory", tiny("causal"))
    assert "underspecified/" in printed
    # Random weights leave the options next to nothing, so the gate must not call them even.
    assert printed.splitlines()[-1].startswith("No probe can judge this model: underspecified")


def test_keyed_vectors(run_script: Any, tmp_path: Path) -> None:
    pytest.importorskip("gensim", reason="needs the train extra")
    import numpy as np

    from evenhand.words.lexicons import weat

    words = {
        w for name in ("weat6", "weat7", "weat8") for k in "xyab" for w in getattr(weat(name), k)
    }
    rng = np.random.default_rng(0)
    rows = [f"{w} {' '.join(f'{x:.4f}' for x in rng.normal(size=6))}" for w in sorted(words)]
    (tmp_path / "words.txt").write_text("\n".join([f"{len(rows)} 6", *rows]) + "\n")
    printed = run_script("keyed_vectors", "words.txt")
    assert "[" in printed


def test_a_classifier_on_names(run_script: Any, tiny: Any) -> None:
    run_script("classifier_on_names", tiny("classifier"), "LABEL_1")
    run = eh.Run("runs/classifier")
    assert {f.probe for f in run.findings} == {"counterfactual"}
    assert run.facts["models"][run.facts["work"]["model"]]["labels"][1] == "LABEL_1"


def test_two_checkpoints_in_a_training_loop(run_script: Any, tiny: Any) -> None:
    printed = run_script("training_loop", tiny("classifier"))
    assert re.search(r"(Better|Worse|Same|Cannot tell): of \d+ findings", printed)
    prints = {
        next(iter(eh.Run(f"runs/epoch-{k}").facts["models"].values()))["fingerprint"]
        for k in (0, 1)
    }
    assert len(prints) == 2


def test_a_custom_probe_that_resumes(
    run_script: Any, tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenhand.runs.record import RunWriter

    def killed(self: RunWriter, *given: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RunWriter, "findings", killed)  # after the model was asked
        with pytest.raises(KeyboardInterrupt):
            run_script("custom_probe", tiny("causal"))
    assert eh.Run("runs/praise").status == "interrupted"
    printed = run_script("custom_probe", tiny("causal"))
    assert "attempts: 2" in printed
    shards = eh.Run("runs/praise").facts["shards"]["scored_by_attempt"]
    assert set(shards) == {"1"}  # nothing was asked again
    assert eh.gate("runs/praise").outcome in ("passed", "failed")
    assert len(eh.Run("runs/praise").plot("praise")) == 1


def test_a_sentence_transformer_mitigated_and_tested_again(
    run_script: Any, tiny: Any, tmp_path: Path
) -> None:
    pytest.importorskip("sentence_transformers", reason="needs the dev extra")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    modules = [Transformer(tiny("encoder")), Pooling(32, "cls"), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save_pretrained(str(tmp_path / "st"))
    printed = run_script("sentence_transformer", "st")
    assert "of" in printed
    before, after = eh.Run("runs/before"), eh.Run("runs/after")
    assert before.facts["work"]["suite"] == after.facts["work"]["suite"]
    values = [[f.value for f in run.findings] for run in (before, after)]
    assert values[0] != values[1]
    shutil.rmtree(tmp_path / "st")
