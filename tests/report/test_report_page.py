"""The report as a page, without a browser: size, words, escapes, charts of unknown tables."""

from __future__ import annotations

import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

import made_runs
from evenhand.charts import base as charts
from evenhand.charts import marks
from evenhand.charts.base import About, Chart, Listing
from evenhand.cli.first_screen import print_first_screen
from evenhand.report import sources
from evenhand.report.build import as_json, render
from evenhand.runs.drawing import charts_of
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import kind_of
from evenhand.runs.record import Run
from evenhand.runs.safe_text import readable

MEGABYTE = 1_000_000


def screen(run: Run, width: int = 100, *, whole: bool = True) -> str:
    out = io.StringIO()
    print_first_screen(run, Console(file=out, width=width, force_terminal=False), whole=whole)
    return out.getvalue()


def test_a_page_is_under_three_megabytes_even_with_hostile_text(
    ordinary: Run, hostile: Run
) -> None:
    assert ordinary.report.stat().st_size < MEGABYTE
    assert hostile.report.stat().st_size < 3 * MEGABYTE


def test_the_same_run_gives_the_same_page(ordinary: Run) -> None:
    assert render(ordinary) == render(Run.open(ordinary.folder))


def test_no_address_outside_the_page_is_loaded(ordinary: Run) -> None:
    page = ordinary.report.read_text()
    body = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.findall(r"""(?:src|href)=["']?(?:https?:)?//""", body)
    assert "@import" not in body
    assert "sourceMappingURL" not in page


def test_chart_data_cannot_close_its_script_element() -> None:
    text = str(as_json({"a": "</script><!--", "b": "\u2028"}))
    assert "<" not in text
    assert json.loads(text) == {"a": "</script><!--", "b": "\u2028"}


def test_hostile_text_never_becomes_markup(hostile: Run) -> None:
    page = hostile.report.read_text()
    assert "<script>window.owned" not in page
    assert "<img src=x" not in page
    assert "<b onmouseover" not in page
    assert len(re.findall(r"<script[ >]", page)) == 5  # data, three of Vega, ours


def test_a_lone_surrogate_is_written_as_valid_utf8(hostile: Run) -> None:
    hostile.report.read_bytes().decode("utf-8")
    assert readable("\ud800") == "\ufffd"


def test_the_terminal_gets_no_control_or_direction_characters(hostile: Run) -> None:
    text = screen(hostile)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert "�[31mred" in text
    assert max(map(len, text.splitlines())) < 1_000
    assert len(text) < 20_000


def test_commands_to_copy_are_quoted_for_the_shell(tmp_path: Path) -> None:
    run = made_runs.ordinary(tmp_path / "run", model="x; rm -rf ~")
    story = kind_of(run.facts).story(run)
    assert any("'x; rm -rf ~'" in step.command for step in story.steps)
    assert "'x; rm -rf ~'" in kind_of(run.facts).command(run.facts)[0]


def test_the_terminal_gives_the_same_answers_as_the_page(ordinary: Run) -> None:
    text = " ".join(screen(ordinary).split())
    story = kind_of(ordinary.facts).story(ordinary)
    assert story.problem in text
    for line in story.sure:
        assert line in text
    for place in story.where:
        assert place.sentence in text
    for line in (*story.exact, *(h.sentence for h in story.harmed)):
        assert line in text
    assert "lean γ +0.312 [0.200, 0.410] q < 0.001 n 48" in text
    assert "Not run: association (a causal model cannot answer embed)" in text


def test_a_claim_that_was_not_detected_is_not_stated_as_one(ordinary: Run) -> None:
    page = ordinary.report.read_text()
    assert "leans to the male name" not in page
    assert "leans to the male name" not in screen(ordinary)
    assert "hunter (female / male)" in page


def test_undefined_numbers_keep_their_reason(ordinary: Run) -> None:
    assert "no cell had both names" in ordinary.report.read_text()


def weat(name: str, groups: tuple[str, str], model: str = "vectors") -> Finding:
    return Finding(
        f"association/{name}", "association", "effect_size", 1.5, f"{name} said so.", 1.0, 1.9,
        0.0001, 0.0002, 32, groups=groups, attribute="pleasant / unpleasant", model=model,
        detected=True,
    )  # fmt: skip


def test_method_checks_count_nowhere_and_other_models_are_told_apart(tmp_path: Path) -> None:
    known = made_runs.facts()
    known["models"]["vectors"] = {"name": "vectors", "kind": "vectors", "fingerprint": "cd"}
    known["probes"]["association"] = {
        "probe": "association", "title": "Words?", "model": "vectors",
        "settings": {}, "summary": {},
    }  # fmt: skip
    claims = made_runs.findings()[1:]  # nothing detected in the audited model
    claims += [weat("weat1", ("flowers", "insects")), weat("weat6", ("men", "women"))]
    run = made_runs.write(tmp_path / "run", known, claims, made_runs.tables())
    story = kind_of(run.facts).story(run)
    assert story.problem.startswith("Yes, by the default policy: none of 2 findings")
    assert story.problem.endswith(
        "Also tested: the word vectors vectors, with a difference in 1 of 1 test."
    )
    assert not story.strongest
    assert not run.strongest
    assert [f.id for f in story.controls] == ["association/weat1"]
    assert {f.id: f.counts for f in run.findings}["association/weat6"] is False


def test_a_run_without_any_detection_says_what_it_could_have_seen(tmp_path: Path) -> None:
    claims = [f for f in made_runs.findings() if not f.detected]
    run = made_runs.write(tmp_path / "run", made_runs.facts(), claims, made_runs.tables())
    text = " ".join(screen(run).split())
    assert "No difference between groups was detected in tiny-model (2 tests)." in text
    assert "No difference detected does not mean that there is none." in text
    assert "A true lean γ of 0.057 or more would have been seen in 80 of 100 such runs" in text
    assert "None: no difference between groups was detected." in render(run)


def test_an_interval_that_reaches_the_ideal_is_pointed_out(tmp_path: Path) -> None:
    first, *rest = made_runs.findings()
    shaky = Finding(**{**first.__dict__, "low": -0.1})
    run = made_runs.write(tmp_path / "run", made_runs.facts(), [shaky, *rest], {})
    assert "The interval reaches 0: it was detected for these words" in render(run)
    assert "interval reaches 0" in screen(run)


@pytest.mark.parametrize("name", ["underspecified", "divergence"])
def test_charts_hold_the_numbers_of_their_tables(ordinary: Run, name: str) -> None:
    for drawn in charts_of(ordinary, name):
        assert isinstance(drawn, Chart)
        value = "value" if name == "divergence" else "gamma"
        table = {"Lean by attribute": "gamma_group", "Lean by term": "gamma_term"}.get(drawn.title)
        table = table or ("swaps" if name == "divergence" else "gamma")
        known = ordinary.table(name, table).column(value).to_pylist()
        assert sorted(r[value] for r in drawn.rows) == sorted(known)


def about(table: str = "thing") -> About:
    return About("new-probe", "new-probe", table, 0.05)


def test_an_unknown_table_with_intervals_becomes_a_dot_plot() -> None:
    table = pa.table(
        {"word": ["a", "b"], "score": [0.1, -0.4], "score_low": [0.0, -0.5], "score_high": [0.2, 0]}
    )
    (drawn,) = charts.generic(table, about())
    assert isinstance(drawn, Chart)
    assert [r["score"] for r in drawn.rows] == [0.1, -0.4]
    assert drawn.columns == ("label", "score", "score_low", "score_high")


def test_an_unknown_table_without_intervals_is_listed() -> None:
    table = pa.table({"word": ["a"] * 500, "count": list(range(500))})
    (drawn,) = charts.generic(table, about())
    assert isinstance(drawn, Listing)
    assert drawn.caption == "200 of 500 rows."


def specs() -> dict[str, dict[str, Any]]:
    rng = np.random.default_rng(0)
    rows = [
        {"word": f"w{i}", "d": float(x), "q": float(q), "evidence": float(-np.log10(q)),
         "verdict": marks.VERDICTS[int(q > 0.05)], "named": i < 3, "x": float(x), "y": float(q),
         "group": "ab"[i % 2], "stage": ("before", "after")[i % 2], "low": x - 1, "high": x + 1}
        for i, (x, q) in enumerate(zip(rng.normal(size=20), rng.uniform(0.001, 1, 20)))
    ]  # fmt: skip
    titles = ("cost", "gain")
    return {
        "dot_plot": marks.dot_plot(rows, "d", "word", "difference"),
        "volcano": marks.volcano(rows, "d", "q", "word", "difference"),
        "scatter": marks.scatter(rows, "x", "y", titles, label="word", group="group"),
        "slope": marks.slope(rows, "word", "stage", "d", "gap"),
        "frontier": marks.frontier(rows, "x", "y", titles, label="word", group="group"),
        "heatmap": marks.heatmap(rows, "word", "group", "d", "rho", numbers=True),
    }


@pytest.mark.parametrize("name", list(specs()))
def test_every_builder_draws_its_rows_as_svg(name: str) -> None:
    convert = pytest.importorskip("vl_convert", reason="needs the report extra")
    spec = {**specs()[name], "width": 400, "autosize": "pad"}
    svg = convert.vegalite_to_svg(json.dumps(spec), vl_version="6.4")
    if name == "heatmap":
        assert svg.count("mark-text role-mark") == 2  # on weak and on strong colours
    else:
        kind = "line" if name == "slope" else "symbol"
        assert f"mark-{kind} role-mark" in svg


def test_undefined_numbers_are_left_out_of_charts() -> None:
    rows = [{"word": "a", "d": 0.1}, {"word": "b", "d": float("nan")}]
    spec = marks.dot_plot(charts.top(rows, "d", 10), "d", "word", "difference")
    assert [r["word"] for r in spec["data"]["values"]] == ["a"]
    json.dumps(spec, allow_nan=False)


def test_lexicon_sources_and_licences_are_printed(ordinary: Run) -> None:
    page = ordinary.report.read_text()
    for lexicon in sources.lexicons(ordinary.facts):
        assert lexicon.title.replace("'", "&#39;") in page
    names = {x.name for x in sources.lexicons(ordinary.facts)}
    assert {"unqover_names", "contexts", "divergence_controls"} <= names


def test_the_printed_suite_reads_back_as_the_same_suite(ordinary: Run) -> None:
    import tomllib

    command, text = kind_of(ordinary.facts).command(ordinary.facts)
    assert command == "evenhand audit tiny-model --suite suite.toml --seed 7"
    assert tomllib.loads(text) == ordinary.facts["work"]["suite"]


def test_tests_that_are_not_listed_one_by_one_count_in_the_headline(tmp_path: Path) -> None:
    known = made_runs.facts()
    first = next(label for label, entry in known["probes"].items() if not entry.get("skipped"))
    known["probes"][first].setdefault("summary", {})["tests_not_listed"] = 900
    before = kind_of(known).story(made_runs.ordinary(tmp_path / "plain"))
    run = made_runs.write(tmp_path / "run", known, made_runs.findings(), made_runs.tables())
    story = kind_of(run.facts).story(run)
    assert story.verdicts[0].tests == before.verdicts[0].tests + 900
    place = next(p for p in story.where if p.tests > 900)
    assert f"of {place.tests}" in place.sentence
    assert any(f"of {story.verdicts[0].tests:,} tests" in line for line in story.exact)


def test_the_next_command_keeps_the_settings_of_the_run() -> None:
    from evenhand.audit.story import changed_settings
    from evenhand.cli.run import parse_settings
    from evenhand.probes.registry import make_probe

    mine = {"pairs": 24, "templates": 1, "attributes": ["nurse", "it's"], "resamples": 50}
    words = shlex.split(changed_settings(make_probe("underspecified", mine)))
    assert words[::2] == ["--set"] * 4
    assert make_probe("underspecified", parse_settings(words[1::2])).model_dump() == (
        make_probe("underspecified", mine).model_dump()
    )
