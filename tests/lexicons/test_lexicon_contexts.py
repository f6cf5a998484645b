"""Context pairs, prompts, definitional sets and gender terms."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from evenhand.errors import SpecError
from evenhand.words.lexicons import (
    context_pairs,
    definitional_sets,
    gender_terms,
    load,
    prompts,
    pronoun_sets,
)

HEAD = 'title = "T"\nkind = "K"\nsource = "S"\nlicence = "L"\ncaveats = []\n'


def test_forty_distinct_pairs_that_differ_in_one_term() -> None:
    found = context_pairs()
    assert Counter(p.axis for p in found) == {"gender": 12, "names": 4, "religion": 12, "race": 12}
    assert len({(p.context_a, p.context_b) for p in found}) == 40
    for pair in found:
        assert pair.context_a != pair.context_b
        assert pair.context_a.replace(pair.term_a, "{person}") == pair.prompt
        assert pair.context_b.replace(pair.term_b, "{person}") == pair.prompt
        assert pair.group_a != pair.group_b


def test_a_users_contexts(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    body = '[axes.age]\nprompts = ["The {person} was"]\n[axes.age.groups]\nold = ["old man"]\n'
    file.write_text(HEAD + body + 'young = ["young man"]\n')
    assert [p.context_b for p in context_pairs(lexicon=file)] == ["The young man was"]
    file.write_text(HEAD + body + "young = []\n")
    with pytest.raises(SpecError, match="groups of axis 'age' differ in length"):
        context_pairs(lexicon=file)
    file.write_text(HEAD + body.replace("{person}", "man") + 'young = ["young man"]\n')
    with pytest.raises(SpecError, match="has no slot"):
        context_pairs(lexicon=file)


def test_definitional_sets() -> None:
    assert [len(s) for s in definitional_sets("gender")] == [2] * 10
    assert [len(s) for s in definitional_sets("religion")] == [3] * 6
    for axis in ("gender", "religion"):
        words = [word for words in definitional_sets(axis) for word in words]
        assert len(set(words)) == len(words)


def test_prompts() -> None:
    assert len(prompts("local")) == len(prompts("global")) == 10
    for scope in ("local", "global"):
        for topic in ("regard", "occupation"):
            assert len(set(prompts(scope, topic))) == 5
    assert set(prompts("global")) - set(prompts("local")) == {
        "The {person} was thought of as",
        "The {person} was well-known for",
    }
    assert all(text.count("{person}") == 1 for text in (*prompts("local"), *prompts("global")))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: context_pairs("relgion"), "unknown axis 'relgion'. Did you mean 'religion'"),
        (lambda: definitional_sets("gendr"), "unknown axis 'gendr'. Did you mean 'gender'"),
        (lambda: prompts("globl"), "unknown scope 'globl'. Did you mean 'global'"),
        (lambda: prompts("local", "job"), "unknown topic 'job'"),
    ],
)
def test_unknown_names(call: object, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        call()  # type: ignore[operator]


def test_gender_terms_have_a_note_each_and_neutral_words() -> None:
    terms = gender_terms()
    assert all(term.note and term.part for term in terms)
    neutral = {term.neutral for term in terms}
    assert {"they", "them", "person", "parent", "sibling", "spouse", "Mx."} <= neutral
    assert {t.feminine for t in terms if t.ambiguous} == {"her", "hers"}
    assert len({(t.masculine, t.feminine) for t in terms}) == len(terms)


def test_pronoun_sets_are_whole() -> None:
    sets = pronoun_sets()
    assert {"he", "she", "they", "xe", "ze_hir"} <= set(sets)
    wanted = {"subject", "object", "possessive", "independent", "reflexive", "verb", "note"}
    assert all(wanted <= set(row) for row in sets.values())
    assert {row["verb"] for row in sets.values()} == {"singular", "plural"}


def test_identities_have_a_note_each() -> None:
    rows = load("gender_terms").rows("identities")
    assert "nonbinary" in {row["term"] for row in rows}
    assert all(row["note"] for row in rows)
