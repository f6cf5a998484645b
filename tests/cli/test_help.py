"""Help in groups, whole sentences, words for values; quiet; lm-eval's options; what is piped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from evenhand.cli import output
from evenhand.cli.dressing import App
from evenhand.cli.foreign import OURS, translated
from evenhand.cli.main import GROUPS, app
from in_process import evenhand
from made_runs import ordinary

ROOT = Path(__file__).resolve().parents[2]


def every_command() -> Iterator[list[str]]:
    """The words of every command, groups walked through."""

    def walk(command: Any, words: list[str]) -> Iterator[list[str]]:
        if not hasattr(command, "list_commands"):
            yield words
            return
        for name in command.list_commands(None):
            yield from walk(command.get_command(None, name), [*words, name])

    yield from walk(typer.main.get_command(app), [])


def helped(*words: str) -> str:
    done = CliRunner().invoke(app, [*words, "-h"], env={"COLUMNS": "80"})
    assert done.exit_code == 0, (words, done.output)
    return done.output


def test_commands_stand_in_groups_and_none_is_left_over() -> None:
    shown = helped()
    heads = [line[:-1] for line in shown.splitlines() if line.endswith(":") and line[0] != " "]
    assert heads == ["Options", *GROUPS]
    assert list(GROUPS) == [
        "Audit", "Read", "Decide", "Mitigate", "Measure", "Catalogue", "Research",
    ]  # fmt: skip
    listed = shown.partition("\nAudit:")[2]
    for words in every_command():
        assert f"\n  {words[0]} " in listed or words[0] == "check"
    assert "..." not in listed


def test_every_help_has_whole_sentences_and_words_for_values() -> None:
    every = list(every_command())
    assert len(every) > 50
    for words in every:
        usage, _, body = helped(*words).partition("\n\n")
        assert usage.startswith("Usage: ")
        assert "..." not in body, (words, body)
        for type_name in ("<str>", "<path>", "<int", "<float", "TEXT...", "INTEGER"):
            assert type_name not in body, (words, body)
        assert "--quiet" in body
        assert "-h, --help" in body


def test_completion_offers_commands_and_lists() -> None:
    def offered(line: str, place: int) -> list[str]:
        env = {**os.environ, "_EVENHAND_COMPLETE": "complete_bash", "COMP_WORDS": line}
        env |= {"COMP_CWORD": str(place), "PYTHONPATH": str(ROOT / "src")}
        code = "from evenhand.cli.main import main; import sys; sys.argv[0] = 'evenhand'; main()"
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, encoding="utf-8"
        )
        return done.stdout.split()

    assert offered("evenhand mea", 1) == ["measure"]
    assert offered("evenhand ls mod", 2) == ["models"]
    assert "stereoset" in offered("evenhand measure st", 2)
    assert offered("evenhand audit smol", 2) == ["smollm2-135m"]
    assert "quick" in offered("evenhand audit m --suite ", 4)
    assert offered("evenhand probe unders", 2) == ["underspecified"]
    assert "ko" in offered("evenhand audit m --language ", 4)
    assert offered("evenhand audit m --executor ", 4) == ["local", "ray"]
    assert offered("evenhand show ", 2) == []  # names of files, which the shell knows


def test_quiet_leaves_result_and_errors(tmp_path: Path, capsys: Any) -> None:
    small = App()

    @small.command()
    def work(n: int = 3) -> None:
        """Do it."""
        import warnings

        with output.notes():
            warnings.warn("a note", stacklevel=1)
        output.console(stderr=True).print("progress")
        output.console(stderr=True, always=True).print("error")
        output.console().print(f"result {n}")

    assert CliRunner().invoke(small, []).exit_code == 0
    for words, seen in (([], "note: a note\nprogress\nerror\n"), (["-q"], "error\n"),
                        (["--quiet"], "error\n")):  # fmt: skip
        done = CliRunner().invoke(small, words)
        assert done.stdout == "result 3\n"
        assert done.stderr == seen


def test_options_of_lm_eval_are_answered_with_ours(tmp_path: Path) -> None:
    theirs = ["--model", "hf", "--model_args", "pretrained=gpt2,dtype=float32", "--tasks",
              "hellaswag", "--limit", "10", "--output_path", "out"]  # fmt: skip
    for words in (["audit", *theirs], theirs, ["audit", "gpt2", "--tasks=x", "--limit", "3"]):
        done = evenhand(*words, cwd=tmp_path)
        assert done.returncode == 2, done.stdout
        assert "LM Evaluation Harness" in done.stderr
        assert "--suite SUITE" in done.stderr
        assert "--budget 5m" in done.stderr
        assert "Try: evenhand audit" in done.stderr
    assert "Try: evenhand audit gpt2 --dtype float32 --out out" in evenhand(
        *theirs, cwd=tmp_path
    ).stderr  # fmt: skip
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("flag", [w for w in OURS if w.startswith("--")])
def test_each_of_them_is_answered(flag: str, tmp_path: Path) -> None:
    done = evenhand("audit", "gpt2", flag, "x", cwd=tmp_path)
    assert done.returncode == 2
    assert f"instead of {flag}: {OURS[flag]}" in done.stderr


def test_options_that_are_ours_are_not_theirs(tmp_path: Path) -> None:
    """--limit of show and of trainings counts; a wrong value is about that."""
    done = evenhand("show", "nowhere", "--limit", "3", cwd=tmp_path)
    assert "no run.json there" in done.stderr
    assert translated(["audit"]) == "evenhand audit MODEL"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ordinary(tmp_path_factory.mktemp("runs") / "a").folder


def test_findings_are_named_with_wildcards(run: Path, tmp_path: Path) -> None:
    whole = json.loads(evenhand("show", str(run), "--json", "-", cwd=tmp_path).stdout)["findings"]
    some = [f["id"] for f in whole if f["id"].startswith("underspecified/gamma/")]
    assert some
    one = evenhand(
        "show", str(run), "--only", "underspecified/gamma/*", "--json", "-", cwd=tmp_path
    )
    assert [f["id"] for f in json.loads(one.stdout)["findings"]] == some
    limited = evenhand("show", str(run), "--only", "*", "--limit", "2", "--json", "-", cwd=tmp_path)
    assert json.loads(limited.stdout)["findings"] == whole[:2]
    told = evenhand("show", str(run), "--only", "*", "--limit", "2", cwd=tmp_path)
    assert f"and {len(whole) - 2} more (--limit {len(whole)})" in told.stderr
    wrong = evenhand("show", str(run), "--only", "underspecified/gama/*", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "unknown finding 'underspecified/gama/*'" in wrong.stderr
    gated = evenhand("gate", str(run), "--within", "underspecified/gamma/*=2", "--json", "-",
                     cwd=tmp_path)  # fmt: skip
    old = evenhand("gate", str(run), "--limit", "underspecified/gamma/*=2", "--json", "-",
                   cwd=tmp_path)  # fmt: skip
    assert gated.stdout == old.stdout
    assert {c["id"] for c in json.loads(gated.stdout)["checks"]} <= set(some)
    bad = evenhand("gate", str(run), "--within", "x=much", cwd=tmp_path)
    assert "--within 'x=much': expected ID=NUMBER, 0 or more." in bad.stderr


def test_ids_are_whole_where_there_is_no_terminal(run: Path, tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    env["PYTHONPATH"] = str(ROOT / "src")
    done = subprocess.run(
        [sys.executable, "-m", "evenhand", "show", str(run), "--only", "*"],
        capture_output=True, encoding="utf-8", env=env,
    )  # fmt: skip
    whole = json.loads((run / "findings.json").read_text(encoding="utf-8"))["findings"]
    for finding in whole:
        assert finding["id"] in done.stdout
        assert finding["sentence"] in done.stdout
    assert len(done.stdout.strip().splitlines()) == len(whole) + 1


def test_plan_and_its_old_name_forecast_and_size(tmp_path: Path, tiny: Any) -> None:
    made = tiny("causal")
    suite = tmp_path / "s.toml"
    suite.write_text(
        'name = "s"\n[[probe]]\nname = "underspecified"\npairs = 4\ntemplates = 1\n'
        'attributes = ["nurse", "doctor"]\nresamples = 50\n', encoding="utf-8",
    )  # fmt: skip
    one = evenhand("plan", made, "--suite", str(suite), "--json", "-", cwd=tmp_path)
    two = evenhand("check", made, "--suite", str(suite), "--json", "-", cwd=tmp_path)
    for done in (one, two):
        (row,) = json.loads(done.stdout)["probes"]
        assert row["rows"] > 0, done.stderr
    sized = evenhand("plan", made, "--suite", str(suite), "--margin", "0.1", "--budget", "5s",
                     "--json", "-", cwd=tmp_path)  # fmt: skip
    assert json.loads(sized.stdout)["power"] == 0.8, sized.stderr
