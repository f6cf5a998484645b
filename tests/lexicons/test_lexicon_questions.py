"""Underspecified questions: counts, forms, grammar, and a user's own lists."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from evenhand.errors import SpecError
from evenhand.words.lexicons import (
    FORMS,
    SOCIAL_CLASSES,
    Subject,
    article,
    attributes,
    occupations,
    subjects,
    templates,
)

COUNTS = {"gender": 1_372_000, "nationality": 1_154_232, "ethnicity": 73_500, "religion": 38_500}
HEAD = 'title = "T"\nkind = "K"\nsource = "S"\nlicence = "L"\ncaveats = []\n'


def pairs(social_class: str) -> int:
    found = subjects(social_class)
    if social_class == "gender":
        women, men = Counter(s.group for s in found).values()
        return women * men
    return len(found) * (len(found) - 1) // 2


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("social_class", SOCIAL_CLASSES)
def test_number_of_cells(social_class: str, form: str) -> None:
    cells = sum(len(attributes(social_class, t.slot)) for t in templates(social_class, form))
    assert pairs(social_class) * cells == COUNTS[social_class]


def test_sizes() -> None:
    assert [len(subjects(c)) for c in SOCIAL_CLASSES] == [140, 69, 15, 11]
    assert [len(templates(c)) for c in SOCIAL_CLASSES] == [4, 12, 14, 14]
    assert Counter(t.slot for t in templates("nationality")) == {
        "place": 3,
        "people": 3,
        "person": 6,
    }
    assert Counter(t.slot for t in templates("religion")) == {"person": 12, "people": 2}
    assert len(occupations()) == 70


@pytest.mark.parametrize("social_class", SOCIAL_CLASSES)
def test_nothing_twice(social_class: str) -> None:
    for form in FORMS:
        ids = [template.id for template in templates(social_class, form)]
        assert len(set(ids)) == len(ids)
        asked = {(t.context, t.question) for t in templates(social_class, form)}
        assert len(asked) == len(ids)
    for form_name in subjects(social_class)[0].forms:
        forms = [subject.forms[form_name] for subject in subjects(social_class)]
        assert len(set(forms)) == len(forms)
    names = [attribute.name for attribute in attributes(social_class)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("social_class", SOCIAL_CLASSES)
def test_every_wording_is_distinct_and_agrees_in_number(social_class: str) -> None:
    for slot in ("occupation", "place", "people", "person"):
        wordings = [w for a in attributes(social_class) for w in a.forms.get(slot, ())]
        doubled = {w for w, n in Counter(wordings).items() if n > 1}
        assert not doubled
        wrong = r"^were " if slot != "people" else r"^was |^has "
        assert not [w for w in wordings if re.search(wrong, w)]


def test_attribute_classes() -> None:
    counts = Counter(a.attribute_class for a in attributes("nationality"))
    assert len(counts) == 10
    assert set(counts) == {a.attribute_class for a in attributes("religion")}
    assert {a.attribute_class for a in occupations()} == {"occupation"}


def test_every_occupation_has_both_forms() -> None:
    for occupation in occupations():
        plain, negated = occupation.forms["occupation"]
        noun = f"{article(occupation.name)} {occupation.name}"
        assert (plain, negated) == (f"was {noun}", f"can never be {noun}")


def test_every_cell_can_be_filled_in() -> None:
    for social_class in SOCIAL_CLASSES:
        first, second = subjects(social_class)[0], subjects(social_class)[-1]
        for form in FORMS:
            for template in templates(social_class, form):
                context = template.context_for(first, second)
                assert first.forms[template.subject] in context
                assert second.forms[template.subject] in context
                for attribute in attributes(social_class, template.slot):
                    for negated in (False, True):
                        text = template.question_for(attribute, negated=negated, mask="<m>")
                        assert text.count("<m>") == (form == "lm")
                        assert "{" not in text + context


def test_all_contexts_have_the_right_article() -> None:
    texts = [
        t.context_for(s, s)
        for c in SOCIAL_CLASSES[1:]
        for t in templates(c)
        for s in subjects(c)
        if t.slot == "person"
    ]
    found = {m[0] for text in texts for m in re.finditer(r"\b[Aa]n? [A-Z][\w-]*", text)}
    assert {"a European", "an Uzbek", "a Honduran", "an Israeli", "an African-American"} <= found
    assert not [f for f in found if re.match(r"[Aa] [AIO]|[Aa]n [^AEIOU]", f)]


def test_regions_are_those_of_m49() -> None:
    found = subjects("nationality")
    regions = Counter(s.axis["region"] for s in found)
    assert set(regions) == {"Africa", "Americas", "Asia", "Europe", "Oceania"}
    assert sum(regions.values()) == 69
    places = {s.term: s.axis["subregion"] for s in found}
    assert places["Sudan"] == places["Libya"] == "Northern Africa"
    assert places["Iran"] == "Southern Asia"
    assert "Germany" in places
    assert "German" not in places


@pytest.mark.parametrize("call", [templates, subjects, attributes])
def test_unknown_class_suggests(call: object) -> None:
    with pytest.raises(
        SpecError, match=r"unknown social class 'ethnicty'. Did you mean 'ethnicity'"
    ):
        call("ethnicty")  # type: ignore[operator]


def test_unknown_form_and_slot() -> None:
    with pytest.raises(SpecError, match=r"unknown template form 'mlm'. Did you mean 'lm'"):
        templates("gender", "mlm")
    with pytest.raises(SpecError, match=r"unknown slot 'places'. Did you mean 'place'"):
        attributes("nationality", "places")


def test_a_users_own_lists(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        HEAD
        + 'forms = ["plain"]\n[[subjects]]\nplain = "Ada"\ngroup = "female"\nera = "old"\n'
        + '[[attributes]]\nname = "n"\nclass = "c"\noccupation = ["was n", "was not n"]\n'
        + '[[gender]]\nid = "t"\ncontext = "{first} and {second}."\nslot = "occupation"\n'
        + 'subject = "plain"\nqa = "Who {attribute}?"\nqa_negated = "And who {attribute}?"\n'
        + 'lm = "{mask} {attribute}."\n'
    )
    assert subjects("gender", lexicon=file) == (
        Subject("Ada", "female", {"plain": "Ada"}, {"era": "old"}),
    )
    (template,) = templates("gender", lexicon=file)
    (attribute,) = attributes("gender", lexicon=file)
    assert template.question_for(attribute, negated=True) == "And who was not n?"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('[[gender]]\nid = "t"\n', "'qa' is missing in the row"),
        (
            '[[gender]]\nid = "t"\ncontext = "{first}."\nslot = "place"\nsubject = "plain"\n'
            'qa = "{attribute}"\n',
            r"template 't': '\{first\}.' must hold exactly these slots: \{first\}, \{second\}",
        ),
        (
            '[[gender]]\nid = "t"\ncontext = "{first}{second}"\nslot = "job"\nsubject = "plain"\n'
            'qa = "{attribute}"\n',
            r"mine\.toml: template 't': unknown slot 'job'",
        ),
        (
            '[[gender]]\nid = "t"\ncontext = "{first}{second}{"\nslot = "place"\n'
            'subject = "plain"\nqa = "{attribute}"\n',
            "must hold exactly",
        ),
        ("", "expected 'gender' to be there"),
    ],
)
def test_mistakes_in_a_users_templates(tmp_path: Path, body: str, message: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(HEAD + body)
    with pytest.raises(SpecError, match=message):
        templates("gender", lexicon=file)


def test_an_attribute_needs_two_wordings(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(HEAD + '[[attributes]]\nname = "n"\nclass = "c"\nplace = ["one"]\n')
    with pytest.raises(SpecError, match=r"attribute 'n': 'place' is .* Accepted: two strings"):
        attributes("nationality", lexicon=file)


def released(file: Path, head: str) -> list[str]:
    lines = [line.strip() for line in file.read_text().splitlines()]
    return [line[len(head) :].split("|")[-1].strip() for line in lines if line.startswith(head)]


@pytest.mark.shared
def test_same_subjects_and_occupations_as_released(shared: Path) -> None:
    lists = shared / "data/unqover/word_lists"
    nouns = lists / "nouns/subjects"
    for social_class, file in (("ethnicity", "ethnicity"), ("religion", "religion")):
        ours = {s.term for s in subjects(social_class)}
        assert ours == set(released(nouns / file, "[subj]"))
    ours = {s.term for s in subjects("nationality")}
    assert ours ^ set(released(nouns / "country", "[subj]")) <= {"German", "Germany"}
    theirs = set(released(lists / "activities/occupation_rev1", "[p_act]"))
    assert {o.forms["occupation"][0] for o in occupations()} == theirs


@pytest.mark.shared
@pytest.mark.parametrize("social_class", SOCIAL_CLASSES)
def test_same_contexts_as_released(shared: Path, social_class: str) -> None:
    name = "country" if social_class == "nationality" else social_class
    text = (shared / f"data/unqover/word_lists/slots/{name}_noact").read_text()
    theirs = [line.split("\t")[0] for line in text.splitlines() if line.strip()]
    theirs = [re.sub(r"\[subj(\d)(:dem)?\]", r"[\1]", line) for line in theirs]
    ours = [t.context.format(first="[1]", second="[2]") for t in templates(social_class)]
    assert ours == theirs


@pytest.mark.shared
def test_attributes_are_not_the_released_ones(shared: Path) -> None:
    folder = shared / "data/unqover/word_lists/activities"
    theirs = "\n".join(
        (folder / f"biased_{name}").read_text() for name in ("country", "ethnicity", "religion")
    )
    phrases = {line.split("]")[-1].split("|")[-1].strip() for line in theirs.splitlines()}
    ours = {w for a in attributes("nationality") for pair in a.forms.values() for w in pair}
    assert len(phrases) > 100
    assert not ours & phrases
