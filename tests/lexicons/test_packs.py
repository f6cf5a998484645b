"""Language packs: agreement, the checks that find planted faults, and none in ours."""

from __future__ import annotations

import csv
import json
import lzma
import re
import shutil
from pathlib import Path

import pytest

import evenhand as eh
from evenhand.errors import SpecError
from evenhand.words.packs import load_pack, pack_lists, pack_places, packs, social_classes
from evenhand.words.packs.check import check_pack
from evenhand.words.packs.grammar import Grammar
from in_process import evenhand

LANGUAGES = ["ca", "de", "es", "fr", "ko", "zh"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_our_packs_have_no_faults(language: str) -> None:
    checked = check_pack(language)
    assert [str(f) for f in checked.faults] == []
    assert checked.texts > 1_000


def test_every_file_names_its_source_and_licence_and_none_is_share_alike() -> None:
    for pack in packs():
        for held in (pack.head, *pack.parts.values()):
            assert all((held.source, held.licence, held.caveats)), held.path
            assert not re.search(r"BY-SA|GPL", held.licence), held.path
    place = pack_places()["es"].parent
    text = "".join(p.read_text(encoding="utf-8") for p in sorted(place.rglob("*.toml")))
    assert "NAME1" not in text
    assert "holistic" not in text.lower()


def texts(language: str, social_class: str = "gender") -> set[str]:
    lists = pack_lists(load_pack(language), social_class, "qa")
    people, asked = lists.subjects, lists.attributes
    contexts = {t.context: t for t in lists.templates}.values()
    made = {t.context_for(a, b) for t in contexts for a in people for b in people}
    return made | {t.question_for(a, negated=n) for t in lists.templates for a in asked
                   for n in (False, True) if t.slot in a.forms}  # fmt: skip


@pytest.mark.parametrize(
    ("language", "social_class", "text"),
    [
        ("es", "gender", "¿Quién se dedica al transporte?"),
        ("ca", "gender", "L'Anna va escriure una carta al Biel."),
        ("ca", "gender", "El despatx de l'Albert és al costat del despatx de l'Aina."),
        ("fr", "gender", "Le bureau d'Emma est à côté de celui d'Olivier."),
        ("fr", "gender", "Claire habite dans la même ville qu'Antoine."),
        ("de", "religion", "Ein christlicher Mann teilte sich ein Taxi mit einem atheistischen "
                           "Mann."),
        ("ko", "gender", "민지는 성민과 같은 도시에 삽니다."),
        ("ko", "gender", "누가 절대로 소방관이 될 수 없습니까?"),
        ("ko", "nationality", "한 독일인이 미국인과 나란히 줄을 섰습니다."),
        ("zh", "ethnicity", "一名黑人女子和一名拉丁裔女子同乘一辆出租车。"),
    ],
)  # fmt: skip
def test_filled_texts_agree(language: str, social_class: str, text: str) -> None:
    made = texts(language, social_class)
    near = [t for t in made if t[:6] == text[:6]]
    assert text in made, near[:20]


def test_spanish_and_and_or_change_before_their_own_sound() -> None:
    grammar = load_pack("es").grammar
    assert grammar.agreed("Ana y Irene, Luis y Ana, siete o ocho, hierro y hielo") == (
        "Ana e Irene, Luis y Ana, siete u ocho, hierro y hielo"
    )


def test_korean_particles_follow_names_numbers_and_foreign_words() -> None:
    korean = load_pack("ko").grammar
    topic = {"민지": "는", "서준": "은", "하늘": "은", "Anna": "는", "Tom": "은", "Mark": "는",
             "Jack": "은", "Robert": "는", "Zoé": "는", "7": "은", "2": "는", "서준(24)": "는",
             "‘서준’": "은"}  # fmt: skip
    assert {w: korean.particle(w, "은/는") for w in topic} == topic
    road = {"하늘": "로", "Karl": "로", "서준": "으로", "민지": "로", "Berlin": "으로", "1": "로"}
    assert {w: korean.particle(w, "으로/로") for w in road} == road


def test_both_forms_of_every_occupation_are_asked_in_every_context() -> None:
    for pack in packs():
        lists = pack_lists(pack, "gender", "qa")
        by_context: dict[str, set[str]] = {}
        for template in lists.templates:
            by_context.setdefault(template.id.split("/")[0], set()).add(template.slot)
        wanted = {*pack.genders} or {"plain"}
        assert all(wanted <= slots for slots in by_context.values())
        assert all(wanted <= a.forms.keys() for a in lists.attributes)


def copied(tmp_path: Path, language: str) -> Path:
    place = tmp_path / "broken"
    shutil.copytree(pack_places()[language], place)
    return place


def test_a_pack_that_cannot_be_read_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no pack.toml is there, so it is not a language pack"):
        load_pack(tmp_path)
    place = copied(tmp_path, "es")
    (place / "answers.toml").unlink()
    with pytest.raises(SpecError, match="the pack lacks answers.toml"):
        load_pack(place)
    place = copied(tmp_path / "more", "es")
    (place / "words.toml").unlink()
    with pytest.raises(SpecError, match="the pack of Spanish has no words.toml. It has: names"):
        load_pack(place).part("words")
    (place / "names.toml").write_text("title = 'x'\n")
    with pytest.raises(SpecError, match="header field 'kind' is missing"):
        load_pack(place)
    with pytest.raises(SpecError, match="unknown social class 'age'. Known: ethnicity"):
        pack_lists(load_pack("es"), "age", "qa")
    with pytest.raises(SpecError, match="there is no form ''"):
        Grammar().filled("{first}", first={"plain": "Ana"})


def test_a_wrong_expression_names_its_file(tmp_path: Path) -> None:
    place = copied(tmp_path, "es")
    text = (place / "pack.toml").read_text(encoding="utf-8")
    (place / "pack.toml").write_text(text.replace("find = '''", "find = '''(", 1), encoding="utf-8")
    with pytest.raises(SpecError, match="is not a regular expression"):
        assert load_pack(place).grammar


def test_social_classes_are_those_with_contexts() -> None:
    every = ("gender", "nationality", "religion", "ethnicity")
    assert all(social_classes(pack) == every for pack in packs())


@pytest.mark.shared
def test_names_come_from_the_lists_that_are_named_as_their_source(shared: Path) -> None:
    place = shared / "data" / "names_world"
    with (place / "wikipedia_forenames_by_country.csv").open(encoding="utf-8-sig") as file:
        listed = {(r["Gender"], r["Localized Name"]) for r in csv.DictReader(file)}
    with lzma.open(place / "faker_names.json.xz", "rt", encoding="utf-8") as file:
        for held in json.load(file).values():
            for gender in ("female", "male"):
                known = held.get(f"first_names_{gender}", ())
                listed |= {(gender[0].upper(), name) for name in known}
    for pack in packs():
        for group in ("female", "male"):
            names = pack.part("names").words("groups", group, "terms")
            assert {(group[0].upper(), name) for name in names} <= listed, (pack.name, group)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (r"letters = '.*'", "letters = ']z-a'", "'[^]z-a]' is not a regular expression"),
        (r"masculine = '\(.*", "masculine = '('", "'(' is not a regular expression"),
        (r"find = .*", "find = '('", "'(' is not a regular expression"),
        (r"find = .*", "find = '(\\\\w|\\\\w\\\\w|\\\\s)+!$'", "does not end"),
    ],
)
def test_patterns_of_a_foreign_pack_are_whole_and_end_in_its_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, told: str
) -> None:
    monkeypatch.setattr("evenhand.cli.lexicon.MOST", 0.5)
    folder = Path(shutil.copytree(load_pack("es").folder, tmp_path / "es"))
    head = folder / "pack.toml"
    changed = re.sub(old, new, head.read_text(), count=1)
    assert changed != head.read_text()
    head.write_text(changed)
    done = evenhand("lexicon", "check", str(folder), cwd=tmp_path)
    assert done.returncode in (1, 2)
    said = " ".join((done.stdout + done.stderr).split())
    assert told in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("key", "new", "told"),
    [
        ("find", r"find = '(\\w|\\w\\w|\\s)+!$'", "takes more than 0.2 seconds"),
        ("put", r"put = '\\7'", "invalid group reference 7"),
    ],
)
def test_patterns_of_a_foreign_pack_are_stopped_in_an_audit_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, new: str, told: str
) -> None:
    monkeypatch.setattr("evenhand.systems.SECONDS", 0.2)
    folder = Path(shutil.copytree(load_pack("es").folder, tmp_path / "es"))
    head = folder / "pack.toml"
    head.write_text(re.sub(rf"{key} = .*", new, head.read_text(), count=1))
    model = eh.ScriptedModel({"continuation": lambda prefix, word: -1.0}, name="even")
    with pytest.raises(SpecError, match=f"pack.toml: a rule of joins .*{told}"):
        eh.audit(model, "languages", language=str(folder), out=tmp_path / "run")
