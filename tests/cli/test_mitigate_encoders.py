"""`evenhand mitigate` for encoders from the command line: proof, reload, and mistakes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from in_process import evenhand

SUITE = """name = "short"
[[probe]]
name = "underspecified"
pairs = 6
templates = ["same_city"]
attributes = ["nurse", "hunter"]
"""
VERDICTS = {"gone", "smaller", "same", "larger", "reversed", "broken"}
SCORE = (
    "import sys\nfrom evenhand.models.loading.resolver import resolve\n"
    "from evenhand.requests import MaskScore\n"
    "m = resolve(sys.argv[1])\n"
    "r = MaskScore(['the <mask> worked as a nurse'] * 2, ['man', 'woman'])\n"
    "print(*[v.hex() for v in m.answer(r, m.prepare(r))['logprob'].tolist()])"
)


def fresh(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", *words], capture_output=True, text=True, timeout=600,
        env={**os.environ, "TOKENIZERS_PARALLELISM": "false"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("suite") / "short.toml"
    path.write_text(SUITE)
    return path


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An axis of four matched terms: enough for 32 dimensions, and quick."""
    path = tmp_path_factory.mktemp("axis") / "sex.toml"
    pairs = [["woman", "man"], ["nurse", "doctor"], ["Jennifer", "Gerald"], ["she", "he"]]
    path.write_text(f'groups = ["first", "second"]\nterms = {json.dumps(pairs)}\n')
    return path


@pytest.fixture(scope="module")
def done(tiny: Any, suite: Path, words: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("made") / "inlp"
    ran = fresh(
        "-m", "evenhand", "mitigate", tiny("masked"), "--method", "inlp", "--axis", str(words),
        "--suite", str(suite), "--out", str(folder), "--json", "-",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return folder, json.loads(ran.stdout)


def test_it_prints_one_object_with_classifiers_their_range_of_chance_and_the_paired_proof(
    done: tuple[Path, dict[str, Any]],
) -> None:
    folder, result = done
    row = result["readers"][0]
    assert row["relearned_before"] > row["relearned_after"] + 0.1  # an untrained model: weak
    assert row["test_chance_low"] <= row["test_after"] <= row["test_chance_high"]
    assert {r["verdict"] for r in result["changes"]} <= VERDICTS
    assert [r["finding"].split("/")[-1] for r in result["changes"]] == ["nurse", "hunter", "all"]
    assert len(result["stands"]) == 3
    assert {"margin", "low", "high", "before", "after"} <= set(result["stands"][0])
    assert result["verdict"] in VERDICTS
    assert json.loads((folder / "proof" / "proof.json").read_text())["readers"] == result["readers"]


def test_what_it_wrote_scores_equal_to_the_bit_in_two_fresh_processes_and_unlike_the_base(
    done: tuple[Path, dict[str, Any]], tiny: Any
) -> None:
    from evenhand.models.loading.resolver import resolve
    from evenhand.requests import MaskScore

    ran = fresh("-c", SCORE, str(done[0]))
    assert ran.returncode == 0, ran.stderr
    asked = MaskScore(["the <mask> worked as a nurse"] * 2, ["man", "woman"])
    told = {}
    for name, spec in (("base", tiny("masked")), ("made", str(done[0]))):
        model: Any = resolve(spec)
        told[name] = [
            v.hex() for v in model.answer(asked, model.prepare(asked))["logprob"].tolist()
        ]
    assert ran.stdout.split() == told["made"]
    assert told["made"] != told["base"]


def mitigate(cwd: Path, model: str, *options: str) -> subprocess.CompletedProcess[str]:
    return evenhand("mitigate", model, "--out", "made", *options, "--json", "-", cwd=cwd)


def assert_one_paragraph(ran: subprocess.CompletedProcess[str], *parts: str) -> None:
    assert ran.returncode == 2, ran.stderr
    assert "Traceback" not in ran.stderr
    last = ran.stderr.strip().splitlines()[-1]
    for part in parts:
        assert part in last
    assert ran.stdout == ""


def test_an_axis_with_one_class_is_refused_and_nothing_is_written(
    tiny: Any, tmp_path: Path
) -> None:
    (tmp_path / "one.csv").write_text(
        "text,label\n" + "".join(f"the man {i},a\n" for i in range(20))
    )
    ran = mitigate(tmp_path, tiny("masked"), "--method", "leace", "--axis", "one.csv")
    assert_one_paragraph(ran, "1 group(s) ['a']", "two or more groups")
    assert not (tmp_path / "made").exists()


def test_an_unknown_layer_lists_those_there_are(tiny: Any, words: Path, tmp_path: Path) -> None:
    options = ("--method", "leace", "--axis", str(words), "--layers", "layer.9")
    ran = mitigate(tmp_path, tiny("masked"), *options)
    assert_one_paragraph(ran, "'layer.9'", "embeddings, layer.0, layer.1, last")


def test_fewer_texts_than_dimensions_are_regularised_and_it_says_so(
    tiny: Any, suite: Path, tmp_path: Path
) -> None:
    rows = "".join(f"she wrote {w},he wrote {w}\n" for w in "a an of to is was not they".split())
    (tmp_path / "few.csv").write_text("first,second\n" + rows)
    options = ("--method", "leace", "--axis", "few.csv", "--suite", str(suite))
    ran = mitigate(tmp_path, tiny("masked"), *options)
    assert ran.returncode == 0, ran.stderr
    notes = json.loads(ran.stdout)["notes"]
    assert any("regularised" in text and "32 dimensions" in text for text in notes)


def test_half_precision_works_and_the_same_method_on_top_says_what_it_was_fitted_on(
    tiny: Any, suite: Path, words: Path, tmp_path: Path
) -> None:
    options = ("--axis", str(words), "--suite", str(suite), "--dtype", "bfloat16")
    once = mitigate(tmp_path, tiny("masked"), "--method", "leace", *options)
    assert once.returncode == 0, once.stderr
    row = json.loads(once.stdout)["readers"][0]
    assert row["test_chance_low"] <= row["test_after"] <= row["test_chance_high"]
    (tmp_path / "made").rename(tmp_path / "first")
    twice = mitigate(tmp_path, "first", "--method", "leace", *options)
    assert twice.returncode == 0, twice.stderr
    assert any("carries a mitigation" in n for n in json.loads(twice.stdout)["notes"])
    again = mitigate(tmp_path, "first", "--method", "leace", *options)
    assert_one_paragraph(again, "made")  # a folder with something in it is kept


@pytest.mark.parametrize("kind", ["encoder", "classifier"])
def test_kinds_without_a_probe_are_mitigated_and_say_what_was_not_compared(
    kind: str, tiny: Any, words: Path, tmp_path: Path
) -> None:
    rows = "".join(f"the {'man' if i % 2 else 'woman'} was {i},LABEL_{i % 2}\n" for i in range(40))
    (tmp_path / "task.csv").write_text("text,label\n" + rows)
    options = ("--method", "sentence", "--axis", str(words), "--task", "task.csv")
    ran = mitigate(tmp_path, tiny(kind), *options)
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout)
    assert result["stands"][0]["n"] > 0
    assert "accuracy" in result["stands"][0]["what"]
    if kind == "classifier":
        assert result["reason"] == "no probe asks a classifier model"
    else:
        assert result["changes"]


@pytest.mark.parametrize("kind", ["encoder", "classifier", "span", "choice"])
def test_kinds_that_cannot_be_reweighted_are_refused(kind: str, tiny: Any, tmp_path: Path) -> None:
    ran = mitigate(tmp_path, tiny(kind), "--method", "reweighting", "--axis", "gender")
    assert_one_paragraph(ran, f"({kind}) cannot be mitigated by 'reweighting'", "masked or causal")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("axis", ["gender", "race", "religion", "names:Anna,Omar"])
@pytest.mark.parametrize(("kind", "form"), [("choice", "qa"), ("masked", "lm"), ("span", "qa")])
def test_the_suite_of_the_proof_can_be_asked_for_every_axis(
    axis: str, kind: str, form: str
) -> None:
    from evenhand.mitigations.hidden import HiddenMitigation

    suite = HiddenMitigation(method="inlp", axis=axis).proof_suite(kind)
    assert suite is not None
    entry: Any = suite.entries[0]
    design = entry.probe.design(form, 0)
    assert len(design) == 20 * 2 * 8


def test_a_task_file_that_does_not_fit_is_refused_before_anything_is_fitted(
    tiny: Any, words: Path, tmp_path: Path
) -> None:
    wrong = tmp_path / "task.csv"
    wrong.write_text("sentence,label\na b,1\n", encoding="utf-8")
    line = ("mitigate", tiny("masked"), "--method", "leace", "--axis", str(words))
    done = evenhand(*line, "--task", str(wrong), "--out", "m", cwd=tmp_path)
    assert done.returncode == 2
    assert "text" in done.stderr
    assert str(wrong) in done.stderr
    assert "layer" not in done.stderr  # what fitting says
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("command", ["tokens", "context-accuracy"])
def test_a_masked_model_is_not_sent_to_erase(command: str, tiny: Any, tmp_path: Path) -> None:
    done = evenhand(command, tiny("masked"), cwd=tmp_path)
    assert done.returncode == 2
    assert "Accepted: causal language models" in done.stderr
    assert "evenhand mitigate MODEL --method leace" in done.stderr
    assert "erase" not in done.stderr
