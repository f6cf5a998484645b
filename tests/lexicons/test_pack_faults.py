"""Faults planted in copies of our packs: each is found, as its own kind, with its file."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evenhand.cli.main import app
from evenhand.errors import EvenhandError
from evenhand.words.packs import load_pack, pack_places
from evenhand.words.packs.check import check_pack


def copied(tmp_path: Path, language: str) -> Path:
    place = tmp_path / "broken"
    shutil.copytree(pack_places()[language], place)
    return place


@pytest.mark.parametrize(
    ("language", "file", "old", "new", "kind", "says"),
    [
        ("es", "occupations", 'feminine = "enfermera"', 'feminine = "enfermero"', "agreement",
         "is the same in two genders"),
        ("es", "occupations", 'feminine = "cocinera"', 'feminine = "cocinario"', "agreement",
         "ends as another gender's does"),
        ("es", "occupations", 'masculine = "abogado"', 'masculine = "una abogado"', "agreement",
         "has the article of the feminine"),
        ("es", "occupations", 'masculine = "cazador", ', "", "missing", "has no form 'masculine'"),
        ("es", "questions", "Un hombre {first.masculine} compartió",
         "Un hombre {first.feminine} compartió", "agreement", "differ in gender"),
        ("es", "questions", "{first.masculine} hacía", "{first.neuter} hacía", "missing",
         "unknown form 'neuter'"),
        ("es", "questions", "vive en la misma ciudad que", "lives in the same city as",
         "untranslated", "'the' is an English word"),
        ("es", "questions", "no podría ser nunca {attribute}?", "es {attribute}?", "repeated",
         "the negated question is the question itself"),
        ("es", "questions", "¿Quién es {attribute}?", "Quién es {attribute}?", "agreement",
         "a question opens with ¿"),
        ("es", "people", 'feminine = "judía"', 'female = "judía"', "missing", "'feminine'"),
        ("es", "names", '"Lucía", ', '"Hugo", ', "repeated", "'Hugo' is in two groups"),
        ("es", "names", '"Lucía", ', "", "balance", "groups of unequal size"),
        ("es", "names", 'licence = "Apache', 'licence = "CC-BY-SA-4.0 AND Apache', "licence",
         "share-alike"),
        ("es", "words", 'science = "fmfmfmfm"', 'science = "ffffffmm"', "balance",
         "differ in gender"),
        ("es", "answers", "{passage}\\nPregunta", "Pregunta", "missing", "must hold {passage}"),
        ("es", "answers", '["La panadería abre', '["The bakery abre', "untranslated", "'The'"),
        ("es", "pack", "find = '''\\b([AaDd]e?) el", "find = '''\\b([XxYy]e?) el", "agreement",
         "contract to al and del"),
        ("es", "pack", 'direction = "ltr"', 'direction = "up"', "missing", "not a direction"),
        ("ko", "questions", "{second:과/와} 같은", "{second}와 같은", "agreement",
         "does not choose its particle"),
        ("ko", "questions", "{first:은/는} {second}에게", "{first:은/늠} {second}에게", "missing",
         "unknown particle '은/늠'"),
        ("ko", "questions", "편지를 썼습니다", "letter를 썼습니다", "untranslated",
         "letters of another script"),
        ("de", "questions", "mit einem {second.dative} Mann", "mit einem {second.masculine} Mann",
         "agreement", "in the dative takes -en"),
        ("fr", "pack", "([Qq]u|", "([Xx]u|", "agreement", "lose their vowel"),
        ("zh", "questions", "住在同一个城市。", "住在同一个城市.", "agreement",
         "punctuation is that of another script"),
        ("zh", "questions", "{first.plain}男子和", "{first}男子和", "repeated", "occurs twice"),
        # agreement
        ("es", "questions", "Una mujer {first", "Un mujer {first", "agreement", "article and noun"),
        ("es", "people", '"polaca"', '"polaco"', "agreement", "is the same in two genders"),
        ("es", "people", 'masculine = "polaco", feminine = "polaca"',
         'masculine = "polaca", feminine = "polaco"', "agreement", "noun and adjective"),
        ("es", "occupations", '"la enfermería"', '"ser enfermera"', "agreement",
         "the neutral wording has a gender ('enfermera')"),
        ("de", "occupations", '"in der Pflege"', '"als Krankenpflegerin"', "agreement",
         "the neutral wording has a gender"),
        ("de", "occupations", 'feminine = "Model", common', 'feminine = "Modelin", common',
         "agreement", "common = true, but the forms differ"),
        ("de", "people", 'masculine = "polnischer"', 'masculine = "polnischen"', "agreement",
         "after ein takes -er"),
        ("de", "people", 'dative = "polnischen"', 'dative = "polnischem"', "agreement",
         "in the dative takes -en"),
        ("de", "questions", "mit einem {", "mit einen {", "agreement", "take the dative"),
        ("ca", "names", '"la {}"', '"el {}"', "agreement", "has the article of the masculine"),
        ("ca", "questions", "{first.definite} viu", "{first} viu", "agreement",
         "is used without a form, which other contexts give"),
        ("fr", "pack", "|Hélène|Henri|Hugo", "|Zoé", "agreement", "lose their vowel"),
        ("es", "questions", 'una mujer {second.feminine}.", answer = "woman"',
         'una mujer {second.feminine}.", answer = "man"', "agreement", "is nobody in the context"),
        ("es", "questions", "{first} le escribió", "{first}, su padre, le escribió", "agreement",
         "the context says 'padre', which reveals a gender"),
        ("ko", "pack", '"은/는"', '"는/은"', "agreement", "after a consonant comes first"),
        ("ko", "answers", "{first:은/는} 부산에", "{first}는 부산에", "agreement",
         "does not choose its particle"),
        ("zh", "questions", "一名{first.plain}男子和", "一{first.plain}男子和", "agreement",
         "takes a measure word"),
        ("zh", "questions", "谁是", "誰是", "agreement", "a traditional character"),
        # missing
        ("es", "occupations", ', neutral = "la enfermería"', "", "missing",
         "has no form 'neutral'"),
        ("es", "occupations", 'neutral = "la danza"', 'neutre = "la danza"', "missing",
         "'neutre' is asked nowhere"),
        ("es", "questions", 'qa = "¿Quién es {attribute}?"', 'qa = "¿Quién es médico?"', "missing",
         "has no slot {attribute}"),
        ("es", "questions", 'lm = "{mask} es', 'lm = "Ella es', "missing", "has no slot {mask}"),
        ("es", "questions", "de la de {second}", "de la de {third}", "missing",
         "has no slot {second}"),
        ("es", "questions", "[asked.gender.neutral]", "[asked.gender.neuter]", "missing",
         "'neuter' is not a form of this language"),
        ("es", "pack", 'genders = ["masculine", "feminine"]', "", "missing",
         "write genders = [] if there are none"),
        ("es", "pack", "[[faults]]", "[[fault]]", "missing", "'fault' means nothing here"),
        ("es", "pack", "letters = 'a-zA-Z", "letters = 'z-aA-Z", "missing",
         "is not a regular expression"),
        ("es", "pack", 'language = "es"', 'language = "Spanish"', "missing", "not a language code"),
        ("es", "names", 'kind = "names"', 'kind = "attributes"', "missing", "of kind 'attributes'"),
        ("es", "names", '"Lucía"', '" Lucía"', "missing", "has spaces around it"),
        ("es", "answers", "open = [\n  '''", "open = [\n  '''(", "missing",
         "not a regular expression"),
        ("es", "answers", ',\n   "The bakery opens at seven in the morning."]', "]", "missing",
         "a sentence and the same in English"),
        ("es", "answers", "{second} bebe té", "Luis bebe té", "missing", "no such slot"),
        ("es", "swaps", '["rey", "reina", "monarca"]', '["rey"]', "missing", "two words and"),
        ("es", "words", 'x_label = "science"', 'x_label = "sciences"', "missing",
         "'science' is the label of no list"),
        # left in English, or in another script
        ("es", "occupations", '"ingeniero"', '"engineer"', "untranslated", "'engineer' is English"),
        ("de", "people", 'feminine = "polnische"', 'feminine = "Polish"', "untranslated",
         "'polish' is English"),
        ("fr", "acts", '"a volé un portefeuille"', '"stole a wallet"', "untranslated",
         "'stole' is English"),
        ("es", "swaps", '"hermana"', '"sister"', "untranslated", "'sister' is an English word"),
        ("es", "answers", '"No se sabe"', '"Unknown"', "untranslated", "is English"),
        ("es", "answers", "\\nRespuesta:", "\\nAnswer:", "untranslated", "'answer'"),
        ("ko", "words", '"실험"', '"lab"', "untranslated", "letters of another script"),
        ("zh", "words", '"实验"', '"실험"', "untranslated", "letters of another script"),
        # twice
        ("es", "occupations", 'name = "doctor"', 'name = "nurse"', "repeated", "have this name"),
        ("es", "occupations", '"médico", feminine = "médica"',
         '"enfermero", feminine = "enfermera"', "repeated", "two rows are worded alike"),
        ("es", "people", 'term = "France"', 'term = "Germany"', "repeated", "are about 'germany'"),
        ("es", "people", '"francés", feminine = "francesa"', '"alemán", feminine = "alemana"',
         "repeated", "two rows have the same 'masculine'"),
        ("es", "questions", 'id = "letter"', 'id = "same_city"', "repeated", "have the id"),
        ("es", "questions", "{first} le escribió una carta a {second}.",
         "{first} vive en la misma ciudad que {second}.", "repeated", "occurs twice"),
        ("es", "questions", "vive en la", "vive  en la", "repeated", "one space too many"),
        ("es", "names", '"Lucía"', '"HUGO"', "repeated", "is in two groups"),
        ("es", "names", '"male"', '"female"', "repeated", "two groups are 'female'"),
        ("ca", "words", '"Marc", "Pol"', '"Marc", "Pau"', "repeated", "'pau' is in both lists"),
        ("es", "words", 'positive = [\n  "paz"', 'positive = [\n  "odio"', "repeated",
         "'odio' occurs twice"),
        ("es", "swaps", '["padre", "madre"', '["padre", "mujer"', "repeated", "in two pairs"),
        ("es", "swaps", '["hombre", "mujer"', '["hombre", "hombre"', "repeated", "in a pair"),
        ("es", "answers", '"No lo sé", "No sé"', '"No lo sé", "No lo sé"', "repeated",
         "occurs twice"),
        ("es", "answers", '"¿Quién bebe té?"', '"¿Quién bebe café?"', "repeated",
         "both questions are the same"),
        # balance
        ("es", "words", '"ciencia", "laboratorio", ', '"ciencia", ', "balance", "of unequal size"),
        ("es", "words", 'science = "fmfmfmfm"\n', "", "balance", "does not say its words'"),
        # terms of use
        ("es", "people", 'licence = "Apache-2.0"', 'licence = "CC BY SA 4.0"', "licence",
         "share-alike"),
        ("es", "people", 'licence = "Apache-2.0"', 'licence = "ODbL-1.0"', "licence",
         "share-alike"),
        ("es", "people", 'licence = "Apache-2.0"', 'licence = "CC-BY-NC-4.0"', "licence",
         "do not let others use"),
        ("es", "people", 'licence = "Apache-2.0"', 'licence = "unknown"', "licence",
         "the licence is not given"),
        ("es", "people", 'source = "Written for evenhand."',
         'source = "From a set under CC BY-SA 4.0."', "licence", "share-alike"),
        # encoding
        ("es", "names", '"Lucía"', '"Luc\u00c3\u00ada"', "encoding", "letters of another encoding"),
        ("es", "names", '"Lucía"', '"Luci\u0301a"', "encoding", "NFC"),
        ("es", "names", '"Lucía"', '"Lu\u200bcía"', "encoding", "cannot be seen"),
        ("es", "questions", "vive en la", "vive\u00a0en la", "encoding", "no-break space"),
    ],
)  # fmt: skip
def test_planted_faults_are_found(
    language: str, file: str, old: str, new: str, kind: str, says: str, tmp_path: Path
) -> None:
    place = copied(tmp_path, language)
    path = place / f"{file}.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    found = check_pack(place).faults
    assert any(f.kind == kind and says in f.says for f in found), [str(f) for f in found[:5]]


def test_lists_that_are_empty_are_missing(tmp_path: Path) -> None:
    told = {
        "names/terms": "two groups with names", "answers/told": "outright",
        "answers/samples": "0 sentences", "occupations/attributes": "nothing to ask",
        "swaps/pairs": "there are no pairs", "acts/caveats": "cannot show",
    }  # fmt: skip
    for name, says in told.items():
        file, key = name.split("/")
        place = copied(tmp_path / f"{file}_{key}", "es")
        path = place / f"{file}.toml"
        text = path.read_text(encoding="utf-8")
        path.write_text(
            re.sub(rf"\b{key} = \[\n(?:.*\n)*?\]", f"{key} = []", text), encoding="utf-8"
        )
        assert any(says in f.says for f in check_pack(place).faults), (file, key)


@pytest.mark.parametrize(
    ("language", "file", "old", "new", "where", "says"),
    [
        ("es", "people", 'term = "Germany"', "term = 7", "nationality row 1 term",
         "Input should be a valid string; it is 7"),
        ("es", "people", 'term = "Germany"', 'term = ""', "nationality row 1 term", "is empty"),
        ("es", "people", ', common = true }', ', common = "yes" }', "nationality row 4 common",
         "Input should be a valid boolean; it is 'yes'"),
        ("es", "acts", 'name = "stole', 'called = "stole', "attributes row 1 name",
         "'name' is not there"),
        ("es", "acts", '"devolvió una cartera perdida"', '"a", "b"', "attributes row 1 person",
         "neither a wording nor two wordings"),
        ("es", "questions", "lm_negated", "lm_denied", "asked gender masculine lm_denied",
         "'lm_denied' means nothing here"),
        ("es", "questions", "[asked.religion.person]", "[asked.faith.person]", "all",
         "'asked.religion' is not there"),
        ("es", "pack", "[[joins]]\nfind", "[[joins]]\nfinds", "joins row 1 find",
         "'find' is not there"),
        ("es", "pack", "find = '''", "find = '''(", "joins row 1 find",
         "is not a regular expression"),
        ("es", "swaps", '"reina"', "7", "pairs row 15", "two words and"),
        ("es", "words", 'science = "fmfmfmfm"', 'science = "fmfmfmfx"',
         "grammatical_gender science", "it is 'fmfmfmfx'"),
    ],
)  # fmt: skip
def test_a_fault_of_a_file_names_its_place_and_stops_no_other_check(
    language: str, file: str, old: str, new: str, where: str, says: str, tmp_path: Path
) -> None:
    place = copied(tmp_path, language)
    path = place / f"{file}.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    answers = place / "answers.toml"
    spoiled = answers.read_text(encoding="utf-8").replace('"No lo sé", "No sé"', '"No sé", "No sé"')
    answers.write_text(spoiled, encoding="utf-8")
    found = check_pack(place).faults
    assert any((f.file, f.where, f.kind) == (path.name, where, "missing") and says in f.says
               for f in found), [str(f) for f in found[:5]]  # fmt: skip
    assert not any(f.where == "all" for f in found if f.says != "'asked.religion' is not there")
    if file != "pack":  # a rule of a language that cannot be read stops those that need it
        assert any(f.file == "answers.toml" and f.kind == "repeated" for f in found)


def test_files_that_are_no_utf8_or_hold_a_key_twice_are_refused(tmp_path: Path) -> None:
    place = copied(tmp_path, "es")
    path = place / "names.toml"
    text = path.read_text(encoding="utf-8")
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert [f.says for f in check_pack(place).faults] == [
        "starts with a byte order mark; save it without"
    ]
    wrong = {
        "not UTF-8 text": text.encode("latin-1"), "bytes ff fe": text.encode("utf-16"),
        "twice": text.replace("[groups.male]", "[groups.female]").encode(),
        "'licence' is missing": text.replace("licence =", "license =").encode(),
    }  # fmt: skip
    for says, broken in wrong.items():
        path.write_bytes(broken)
        with pytest.raises(EvenhandError, match=says):
            load_pack(place)


def test_a_folder_called_by_a_code_holds_that_language(tmp_path: Path) -> None:
    place = tmp_path / "pt"
    shutil.copytree(pack_places()["es"], place)
    assert [f.says for f in check_pack(place).faults] == ["is 'es', but the folder is called 'pt'"]


def test_a_fault_that_fills_hundreds_of_texts_is_shown_a_few_times(tmp_path: Path) -> None:
    place = copied(tmp_path, "fr")
    path = place / "pack.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("([LlDd])[ea] (", "([Xx])[ea] ("),
                    encoding="utf-8")  # fmt: skip
    told = CliRunner().invoke(app, ["lexicon", "check", str(place)])
    assert told.exit_code == 1
    found = len(check_pack(place).faults)
    assert found > 100
    assert len(told.output.splitlines()) < 30
    assert re.search(r"and \d+ more: ", told.output)
