"""Every measure that tests something can be told as a report, in the sentences of its probe."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.errors import SpecError
from evenhand.measured.writing import judged
from evenhand.probes.reading import Result, reader_of
from evenhand.probes.registry import probe_class, probe_names
from evenhand.runs.kinds import kind_of
from evenhand.runs.record import Run
from in_process import evenhand
from reader_cases import CASES


def made(name: str, folder: Path) -> Result:
    """The result of a reader's case, read without the command line."""
    reader = reader_of(name)
    assert reader is not None
    words, given = iter(CASES[name](folder)), {}
    places = iter(reader.positional)
    for word in words:
        if word.startswith("--"):
            key = word[2:].replace("-", "_")
            flag = reader.model_fields[key].annotation is bool
            given[key] = True if flag else next(words)
        else:
            given[next(places)] = word
    return reader(**given).read()


def every_p(value: Any) -> Iterator[float]:
    """Every p of a JSON contract."""
    if isinstance(value, dict):
        for key, part in value.items():
            if key == "p" and isinstance(part, float) and part == part:
                yield part
            yield from every_p(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from every_p(part)


PROBES = {name: reader for p in probe_names() for name, reader in probe_class(p).readers().items()}
NUMBERS_ONLY = {"implicit-link", "coreference", "guise-ratios"}
"""They test how two numbers go together, single files, or words as published: no groups."""


@pytest.mark.parametrize("name", sorted(PROBES))
def test_what_a_probe_reads_becomes_a_report(name: str, tmp_path: Path) -> None:
    result = made(name, tmp_path)
    claims = result.claims()
    if claims is None:
        assert name in NUMBERS_ONLY or not list(every_p(result.as_dict()))
        with pytest.raises(SpecError, match=f"measure {name}: gives numbers"):
            eh.as_run(result, tmp_path / "out")
        return
    assert claims.findings
    run = eh.as_run(result, tmp_path / "out", tmp_path / "page.html")
    assert all(f.sentence and f.id.startswith(f"{claims.name}/") for f in run.findings)
    assert all(f.probe == claims.name for f in run.findings)
    assert [f.value for f in run.findings] == pytest.approx(
        [f.value for f in judged(claims)], nan_ok=True
    )
    page = (tmp_path / "page.html").read_text()
    assert claims.source in page
    assert "items" in run.tables(claims.name)


def test_who_is_worse_off_is_said_by_the_card_of_the_probe(tmp_path: Path) -> None:
    rows = [f"t{k},{g},{(k * 7 % 10) / 20 + (0.3 if g == 'black' else 0) + k % 3 / 50}"
            for k in range(40) for g in ("white", "black")]  # fmt: skip
    table = tmp_path / "scores.csv"
    table.write_text("item,group,score\n" + "\n".join(rows) + "\n")
    out = tmp_path / "run"
    told = ["measure", "counterfactual", str(table), "--bad", "high", "--out", str(out)]
    done = evenhand(*told, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = Run.open(out)
    first = next(f for f in run.findings if f.id.endswith("/score"))
    assert first.detected
    assert first.value == pytest.approx(0.3)
    assert first.harm.startswith("Black people:")
    assert first.margin == first.margin
    shown = evenhand("show", str(out), cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "Black people" in shown.stdout
    line, _ = kind_of(run.facts).command(run.facts)
    assert line == "evenhand measure counterfactual scores.csv --bad high"


def test_refused_unread_and_unasked_answers_are_told(tmp_path: Path) -> None:
    rows = [f"s{k},{who},{'yes' if k % 3 else 'no'}" for k in range(12) for who in ("woman", "man")]
    rows += ["s1,woman,I'm sorry but I cannot help with that.", "s2,man,bananas", "s3,man,"]
    table = tmp_path / "t.csv"
    table.write_text("scenario,gender,answer\n" + "\n".join(rows) + "\n")
    claims = eh.measure.decision(table).claims()
    assert claims is not None
    assert {*claims.summary["trust"]} >= {
        "Answers declined: 1.", "Answers unread: 1.", "Answers unasked: 1.",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["table", "gest", "counterfactual", "stereoset", "ranking"])
def test_measured_runs_are_evidence(name: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = evenhand("measure", name, *CASES[name](tmp_path), "--out", str(out), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    held = tmp_path / "held.tar"
    made = evenhand("bundle", str(out), "--out", str(held), cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    checked = evenhand("verify", str(held), cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    kept = next(p for p in (out / "inputs").rglob("*") if p.is_file())
    lines = kept.read_text().splitlines(keepends=True)
    kept.write_text("".join(lines[: 2 * len(lines) // 3]))
    changed = evenhand("bundle", str(out), "--out", str(tmp_path / "other.tar"), cwd=tmp_path)
    assert changed.returncode == 2
    assert "Traceback" not in changed.stderr
