"""Results one can work with: by id and pattern, as tables, as plots, as HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
import made_runs
from evenhand.errors import RunError, SpecError
from evenhand.probes.underspecified.probe import Underspecified
from evenhand.runs.finding import Findings

WORDS = "nurse pilot doctor teacher hunter mechanic dancer engineer".split()


class Praise(eh.Contrast):
    """A probe as a user writes it."""

    name, title, groups = "praise", "Whose work is praised?", ("women", "men")
    harm, margin = "{second} are praised less", 0.1

    def pairs(self) -> Any:
        for word in (" excellent", " poor"):
            for job in WORDS:
                yield f"She was a {job}. Her work was", f"He was a {job}. His work was", word


def scripted(lean: float, name: str = "leaning") -> eh.ScriptedModel:
    def answer(prefix: str, continuation: str) -> float:
        noise = len(prefix) % 5 / 50
        return lean * (continuation == " excellent" and prefix.startswith("She")) + noise

    return eh.ScriptedModel({"continuation": answer}, name=name, version=str(lean))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[eh.Run, eh.Run]:
    folder = tmp_path_factory.mktemp("results")
    one, two = (
        eh.audit(scripted(lean), [Praise()], out=folder / name)
        for name, lean in (("before", 0.8), ("after", 0.1))
    )
    return one, two


def test_a_run_is_opened_by_its_folder(runs: tuple[eh.Run, eh.Run], tmp_path: Path) -> None:
    run = runs[0]
    assert eh.Run(str(run.folder)) == eh.Run(run.folder) == run
    with pytest.raises(RunError, match="so it is not a run folder"):
        eh.Run(str(tmp_path))


def test_findings_by_id_and_pattern(runs: tuple[eh.Run, eh.Run]) -> None:
    run = runs[0]
    one = run["praise/gap/excellent"]
    assert one.id == "praise/gap/excellent"
    assert one.value == pytest.approx(0.8, abs=0.05)
    assert [f.id for f in run["praise/*"]] == ["praise/gap/excellent", "praise/gap/poor"]
    assert isinstance(run["praise/*"], Findings)
    assert "praise/gap/poor" in run
    assert "praise/nothing" not in run
    assert run.get("praise/nothing", 3) == 3
    assert [f.id for f in run] == [f.id for f in run.findings]
    with pytest.raises(SpecError, match="Did you mean 'praise/gap/excellent'"):
        run["praise/gap/excelent"]


@pytest.mark.parametrize("place", ["prais/*", "praise", "prase/gap"])
def test_a_mistyped_pattern_gets_a_pattern(runs: tuple[eh.Run, eh.Run], place: str) -> None:
    wanted = "praise/gap/poor" if place == "prase/gap" else r"praise/\*"
    with pytest.raises(SpecError, match=f"unknown finding '.*'. Did you mean .*'{wanted}'"):
        runs[0][place]


@pytest.mark.parametrize("given", [None, 3, ["runs/a", "runs/b"]])
@pytest.mark.parametrize("asked", [eh.Run, eh.gate, eh.compare])
def test_what_is_no_run_is_named(asked: Any, given: Any) -> None:
    with pytest.raises(RunError, match=f"{type(given).__name__}.: expected a run folder"):
        asked(given)


def test_what_is_no_result_becomes_no_run(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="None .NoneType.: expected what a function of evenhand"):
        eh.as_run(None, tmp_path / "run")  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


def test_a_probe_needs_no_settings() -> None:
    assert eh.make_probe("association") == eh.make_probe("association", {})


def test_tables(runs: tuple[eh.Run, eh.Run]) -> None:
    pandas = pytest.importorskip("pandas", reason="needs the pandas extra")
    run = runs[0]
    frame = run.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.loc["praise/gap/excellent", "value"] == run["praise/gap/excellent"].value
    assert frame.loc["praise/gap/excellent", "groups"] == ("women", "men")
    assert run["praise/gap/*"].to_pandas().shape[0] == 2
    assert run.to_arrow().num_rows == len(run.findings)
    items = run.to_pandas("praise")
    assert len(items) == 16
    gap = items["score_first"] - items["score_second"]
    assert gap[items["continuation"] == " excellent"].mean() == pytest.approx(
        run["praise/gap/excellent"].value
    )
    assert eh.gate(run).to_pandas()["outcome"].tolist() == [c.outcome for c in eh.gate(run).checks]
    decided = eh.compare(*runs).to_pandas()
    assert decided.set_index("finding").loc["praise/gap/excellent", "verdict"] == "better"
    with pytest.raises(RunError, match="unknown table 'nothing'. Known: .*items"):
        run.to_pandas("praise", "nothing")
    with pytest.raises(RunError, match="unknown probe 'prais'. Did you mean 'praise'"):
        run.to_pandas("prais")


def test_plots(runs: tuple[eh.Run, eh.Run], tmp_path: Path) -> None:
    run = runs[0]
    plots = run.plot()
    assert [p.title for p in run.plot("praise")] == [p.title for p in plots]
    bundle = plots[0]._repr_mimebundle_()
    assert bundle["application/vnd.vegalite.v5+json"]["title"]["text"] == plots[0].title
    assert "<svg" in bundle["text/html"]
    assert len(plots[:1]) == 1
    for name in ("chart.svg", "chart.json"):
        assert plots[0].save(tmp_path / name).stat().st_size > 500
    with pytest.raises(SpecError, match=r"ends in \.svg"):
        plots[0].save(tmp_path / "chart.doc")
    with pytest.raises(SpecError, match="unknown chart 'nothing'"):
        run.plot("nothing")


def test_a_run_without_charts_says_so(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="none of its probes draws a chart"):
        made_runs.write(tmp_path / "run", made_runs.facts(), made_runs.findings(), {}).plot()


def test_a_comparison_is_plotted_in_margins(runs: tuple[eh.Run, eh.Run], tmp_path: Path) -> None:
    compared = eh.compare(*runs)
    (plot,) = compared.plot("change in*")
    known = {d.finding: d for d in compared.changes[0].decisions if d.margin > 0}
    shown = {row["finding"]: row for row in plot.chart.rows}
    assert set(shown) == set(known)
    for name, row in shown.items():
        assert row["margins"] == pytest.approx(known[name].change / known[name].margin)
        assert row["low"] <= row["margins"] <= row["high"]
    assert shown["praise/gap/excellent"]["margins"] < 0  # which became better
    assert "after" in plot.caption
    with pytest.raises(SpecError, match="unknown chart 'nothing'"):
        compared.plot("nothing")


def test_several_plots_are_saved_under_numbers(runs: tuple[eh.Run, eh.Run], tmp_path: Path) -> None:
    one, several = runs[0].plot(), eh.compare(*runs).plot()
    assert one.save(tmp_path / "a.json") == [tmp_path / "a.json"]
    made = several.save(tmp_path / "b.json")
    assert len(several) > 1
    assert [p.name for p in made] == [f"b-{k}.json" for k in range(1, len(several) + 1)]
    assert all(p.stat().st_size > 500 for p in made)


def test_results_print_in_a_few_lines(runs: tuple[eh.Run, eh.Run]) -> None:
    gate, compared = eh.gate(runs[0]), eh.compare(*runs)
    assert repr(gate) == f"Gate {gate.outcome}: {gate.reason}"
    assert repr(compared).startswith("Comparison of before, after: after against before: ")
    assert compared.changes[0].headline in repr(compared)
    assert repr(runs[0].plot()[0]) in repr(runs[0].plot())
    assert max(len(repr(r)) for r in (gate, compared, compared.plot())) < 1_000


def test_a_plot_without_the_drawing_package_is_a_table(
    runs: tuple[eh.Run, eh.Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "vl_convert", None)
    page = runs[0].plot()[0]._repr_html_()
    assert "<table>" in page
    assert "excellent" in page


def test_everything_shows_itself_as_html(runs: tuple[eh.Run, eh.Run], tmp_path: Path) -> None:
    one, two = runs
    pages = {
        "run": one, "finding": one["praise/gap/excellent"], "findings": one["praise/*"],
        "gate": eh.gate(one), "comparison": eh.compare(one, two), "plots": one.plot(),
    }  # fmt: skip
    html = {name: thing._repr_html_() for name, thing in pages.items()}
    assert "May it ship?" in html["run"]
    assert "men" in html["finding"]
    assert "2 findings" in html["findings"]
    assert "Gate: failed" in html["gate"]
    assert "after against before" in html["comparison"].replace("<strong>", "")
    assert all("<" in page for page in html.values())


def test_model_text_cannot_become_markup(tmp_path: Path) -> None:
    class Sly(Praise):
        name, groups = "sly", ("<script>alert(1)</script>", "men")

    run = eh.audit(scripted(0.8, "<img src=x>"), [Sly()], out=tmp_path / "run")
    shown = [run._repr_html_(), run["sly/*"]._repr_html_(), run["sly/gap/poor"]._repr_html_()]
    assert all("<script>" not in page and "<img" not in page for page in shown)
    assert any("&lt;script&gt;" in page for page in shown)


def test_a_fitted_mitigation_shows_itself() -> None:
    rng = np.random.default_rng(0)
    from evenhand.words.lexicons import weat

    sets = [weat(n) for n in ("kato_winobias", "weat6", "weat7", "weat8")]
    words = {w for s in sets for key in "xyab" for w in getattr(s, key)}
    held = {w: rng.normal(size=8) for w in sorted(words)}
    fitted = eh.mitigate(held, "hard-projection", name="made")
    page = fitted._repr_html_()
    assert "made + hard-projection gender" in page
    assert "Bolukbasi" in page


def test_an_unfinished_run_says_how_to_resume_it(tmp_path: Path) -> None:
    def broken(prefix: str, continuation: str) -> float:
        raise KeyboardInterrupt

    model = eh.ScriptedModel({"continuation": broken}, name="broken")
    with pytest.raises(KeyboardInterrupt):
        eh.audit(model, [Praise()], out=tmp_path / "run")
    assert "evenhand resume" in eh.Run(tmp_path / "run")._repr_html_()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([3], r"probe\[1\]: 3: expected a probe"),
        ([], "there is nothing to run"),
        ([{"settings": 1}], "expected a probe, its name"),
        (["underspecifed"], "Did you mean 'underspecified'"),
    ],
)
def test_lists_that_are_no_probes(given: Any, told: str) -> None:
    with pytest.raises(SpecError, match=told):
        eh.audit(scripted(0.1), given)


def test_a_probe_must_say_what_it_is() -> None:
    class Nameless(eh.Probe):
        title, needs = "?", ("continuation",)

    with pytest.raises(SpecError, match="has no name"):
        eh.audit(scripted(0.1), [Nameless()])

    class Taken(Praise):
        name = "underspecified"

    with pytest.raises(SpecError, match="the name belongs to"):
        eh.audit(scripted(0.1), [Taken()])


@pytest.mark.parametrize(
    ("pairs", "told"),
    [
        ([("a", "b")] * 8, "expected two texts and a continuation"),
        ([("a", "b", "c")] * 3, "3 pairs, which is too few to tell anything"),
    ],
)
def test_pairs_that_cannot_be_used(pairs: Any, told: str, tmp_path: Path) -> None:
    class Wrong(Praise):
        name = "wrong"

        def pairs(self) -> Any:
            return pairs

    with pytest.raises(SpecError, match=told):
        eh.audit(scripted(0.1), [Wrong()], out=tmp_path / "run")


def test_a_contrast_of_a_classifier(tmp_path: Path) -> None:
    class Calls(Praise):
        name, needs, label = "calls", ("classify",), "remove"

        def pairs(self) -> Any:
            return [(f"she is a {job}", f"he is a {job}") for job in WORDS]

    def classify(texts: list[str]) -> list[dict[str, float]]:
        return [{"allow": 1 - s, "remove": s} for s in (0.7 if "she" in t else 0.2 for t in texts)]

    run = eh.audit(classify, [Calls()], out=tmp_path / "run")
    assert run["calls/gap"].value == pytest.approx(0.5)
    Calls.label = "nothing"
    with pytest.raises(SpecError, match="is none of"):
        eh.audit(classify, [Calls()], out=tmp_path / "other")


def test_a_probe_class_words_wrong_settings_as_make_probe_does() -> None:
    told = "probe 'underspecified': unknown setting 'groups'"
    with pytest.raises(SpecError, match=told):
        Underspecified(groups="female")
    with pytest.raises(SpecError, match=told):
        eh.make_probe("underspecified", {"groups": "female"})
    with pytest.raises(SpecError, match="'underspecified': unknown social_class 'x'"):
        Underspecified(social_class="x")
