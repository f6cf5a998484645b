"""Audits in other languages: suites, what a model knows of a language, forms that agree."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evenhand import ScriptedModel, audit, check
from evenhand.audit.choosing import choose_suite
from evenhand.audit.fluency import fluency
from evenhand.audit.suites import load_suite, parse_suite
from evenhand.cli.main import app
from evenhand.errors import ModelError, SpecError
from evenhand.probes.association.probe import Association
from evenhand.probes.underspecified.probe import Underspecified
from evenhand.runner.ask import Ask
from evenhand.words.packs import load_pack, pack_lists, pack_places

WOMEN = {s.term for p in pack_places() for s in pack_lists(load_pack(p), "gender", "qa").subjects
         if s.group == "female"}  # fmt: skip
HERS = ("enfermería", "enfermera", "간호사", "护士", "Pflege", "infirmiers", "infermeria")


def shares(first: float) -> dict[str, Any]:
    return {"probabilities": [first, 1 - first], "mass": 1.0, "refused": 0.0, "unread": 0.0}


def leaning(prompt: str, options: str) -> dict[str, Any]:
    """Gives nursing to women in every language, and everything else to nobody."""
    women = options.split("\t")[0] in WOMEN
    mine = any(word in prompt for word in HERS)
    return shares((0.9 if women else 0.1) if mine else 0.5)


def knowing(factor: float) -> Any:
    """Sentences cost by their letters, those of other languages so many times as much."""

    def score(prefix: str, continuation: str) -> dict[str, Any]:
        english = continuation.split()[0] in ("The", "It", "My", "We", "After")
        return {"logprob": -1.0 if english else -factor, "n_tokens": 1}

    return score


def model(factor: float = 1.0, choose: Any = leaning, name: str = "made") -> ScriptedModel:
    told = {"choose": choose, "continuation": knowing(factor)}
    return ScriptedModel(told, name=name, version=str(factor))


@pytest.mark.parametrize("language", ["es", "ca", "fr", "de", "ko", "zh"])
def test_a_planted_lean_is_found_in_every_language(language: str) -> None:
    few = ("nurse", "doctor", "engineer", "teacher", "cook")
    probe = Underspecified(language=language, pairs=12, templates=2, attributes=few)
    found = probe.run(Ask(model()), 0)
    lean = {f.attribute: f for f in found.findings if f.metric == "lean"}
    assert lean["nurse"].value > 0.2
    assert lean["nurse"].p < 0.01
    assert all(abs(lean[name].value) < lean["nurse"].value / 2 for name in few[1:])
    assert lean["nurse"].groups == ("female", "male")
    assert "Asked who is a nurse when the text does not say" in lean["nurse"].sentence


def agreeing(prompt: str, options: str) -> dict[str, Any]:
    """Follows grammar alone: a woman where the last word is feminine, a man where masculine."""
    word = prompt.rstrip("?").split()[-1]
    form = 1 if word.endswith("a") else -1 if word.endswith("o") else 0
    if "dedica" in prompt or "dedicarse" in prompt:
        form = 0
    side = 1 if options.split("\t")[0] in WOMEN else -1
    return shares(0.5 + 0.4 * form * side)


def test_grammar_is_told_and_is_no_finding() -> None:
    few = ("nurse", "cook", "lawyer", "engineer", "secretary")
    found = Underspecified(language="es", pairs=12, templates=2, attributes=few).run(
        Ask(model(choose=agreeing)), 0
    )
    assert found.summary["agreement"]["moved"] == pytest.approx(0.8)
    assert any("that is grammar" in line for line in found.summary["trust"])
    assert not any(f.p < 0.05 for f in found.findings if f.p == f.p)
    assert not any("agreement" in f.metric for f in found.findings)


def test_a_language_that_is_not_known_is_refused_unless_insisted_on(tmp_path: Path) -> None:
    small = parse_suite(
        {"name": "s", "probe": [{"name": "underspecified", "pairs": 6, "templates": 1,
                                 "attributes": ["nurse", "doctor"]}]}, "s", "s",
    )  # fmt: skip
    stranger = model(3.0, name="stranger")
    with pytest.raises(ModelError, match=r"This model hardly knows Korean: .* 3\.0 times"):
        audit(stranger, small, language="ko", out=tmp_path / "no")
    assert not (tmp_path / "no").exists()
    run = audit(stranger, small, language="ko", out=tmp_path / "yes", force=True)
    entry = run.facts["probes"]["underspecified"]
    assert entry["summary"]["fluency"]["fit"] is False
    assert "hardly knows" in entry["summary"]["trust"][0]
    assert run.facts["forced"] is True
    assert "hardly knows" in (tmp_path / "yes" / "report.html").read_text(encoding="utf-8")
    notes = check(stranger, small, language="ko")[0].notes
    assert "An audit would be refused; ask anyway with: --force" in notes
    assert audit(model(), small, language="ko", out=tmp_path / "fine").facts["status"] == "finished"


def test_signs_of_a_language_are_told_apart() -> None:
    def heeding(prompt: str, options: str) -> dict[str, Any]:
        context, question = prompt.rsplit("\n", 1)
        place = question.rstrip("?").split()[-1]
        told = [s for s in context.split(". ") if place in s]
        return shares(0.9 if options.split("\t")[0] in told[0] else 0.1)

    found = fluency(model(1.5, heeding), "es")
    assert (found.surprise, found.heeds, found.fit) == (1.5, 1.0, True)
    assert [n for n in found.notes() if "less well than English" in n]
    assert found.fertility != found.fertility  # a script has no vocabulary
    lost = fluency(model(1.0, lambda prompt, options: shares(0.5)), "es")
    assert lost.heeds == 0.5
    assert [n for n in lost.notes() if "in 50 of 100 cases" in n]


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_pieces_of_other_scripts_are_counted(kind: str, tiny: Any) -> None:
    from evenhand.models.loading.resolver import resolve

    found = fluency(resolve(tiny(kind)), "ko")
    assert found.fertility > 0
    assert found.unknown > 0.5  # bytes of the one, unknown words of the other


def test_suites_take_a_language_from_their_file_or_from_who_asks(tmp_path: Path) -> None:
    file = tmp_path / "es.toml"
    file.write_text('language = "es"\n[[probe]]\nname = "underspecified"\npairs = 6\n')
    assert load_suite(file).languages == ("es",)
    again = parse_suite(load_suite(file).as_dict(), "again", "again")
    assert again.as_dict()["probe"] == load_suite(file).as_dict()["probe"]
    chosen = choose_suite(model(), language="de")
    assert (chosen.name, chosen.languages) == ("languages", ("de",))
    assert choose_suite(model()).name == "quick"
    quick = choose_suite(model(), "quick", language="fr")
    assert [e.label for e in quick.entries] == ["underspecified"]
    assert quick.left_out == ("divergence", "discovery", "decision")
    with pytest.raises(SpecError, match="asks in the language that is asked for"):
        choose_suite(model(), "languages")
    with pytest.raises(SpecError, match="unknown language 'tlh'"):
        choose_suite(model(), language="tlh")
    with pytest.raises(SpecError, match="in English only, and language is 'es'"):
        choose_suite(model(), "sodapop", language="es")


def test_settings_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(ValueError, match="the pack of Korean: unknown social_class 'age'"):
        Underspecified(language="ko", social_class="age")
    with pytest.raises(ValueError, match=r"brings its own words: leave 'mine.toml'"):
        Underspecified(language="ko", lexicon="mine.toml")
    with pytest.raises(ValueError, match="'bleached' sentences are English"):
        Association(language="ko", templates=("bleached",))


def test_association_takes_the_tests_of_the_language() -> None:
    def vector(text: str) -> dict[str, Any]:
        kinds = {t.name: t for t in Association(language="zh").word_sets()}
        test = kinds["gender_science"]
        side = 1.0 if text in (*test.x, *test.a) else -1.0 if text in (*test.y, *test.b) else 0.0
        return {"vector": [side + 0.01 * (hash(text) % 7), 1.0, 0.02 * len(text)]}

    found = Association(language="zh").run(Ask(ScriptedModel({"embed": vector})), 0)
    by = {f.id.rpartition("/")[2]: f for f in found.findings}
    assert set(by) == {"flowers_insects", "gender_career", "gender_science", "gender_valence"}
    assert by["gender_science"].value > 1
    assert by["flowers_insects"].control
    assert Association(language="zh").lexicons() == ["zh/words"]


def test_a_new_language_takes_a_folder_and_no_code(tmp_path: Path) -> None:
    place = tmp_path / "xx"
    shutil.copytree(pack_places()["es"], place)
    for path in place.glob("*.toml"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace('language = "es"', 'language = "xx"'), encoding="utf-8")
    for name in ("people", "acts", "swaps"):
        (place / f"{name}.toml").unlink()
    text = (place / "questions.toml").read_text(encoding="utf-8")
    kept = text.split("nationality = [")[0] + text[text.index("[asked.gender") :]
    (place / "questions.toml").write_text(kept.split("[asked.nationality")[0], encoding="utf-8")
    runner = CliRunner()
    given = runner.invoke(app, ["lexicon", "check", str(place), "--json", "-"])
    assert given.exit_code == 0, given.output
    assert json.loads(given.output)["faults"] == []
    found = Underspecified(language=str(place), pairs=6, attributes=("nurse", "doctor", "cook"))
    assert found.run(Ask(model()), 0).findings
    (place / "names.toml").write_text(
        (place / "names.toml").read_text(encoding="utf-8").replace('"Lucía"', '"Hugo"'),
        encoding="utf-8",
    )
    broken = runner.invoke(app, ["lexicon", "check", str(place)])
    assert broken.exit_code == 1
    assert "'Hugo' is in two groups" in broken.output.replace("\n", " ")
