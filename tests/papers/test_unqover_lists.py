"""The published word lists give the published records: counts and digests of the released code."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import SpecError
from evenhand.probes.underspecified.design import make_design, ordered_pairs
from evenhand.probes.underspecified.probe import Underspecified
from evenhand.words.lexicons import questions
from evenhand.words.list_formats import Lists, WordLists, read_lists

pytestmark = pytest.mark.shared

CLASSES = {"country": "nationality"}
SMALL = ("religion", "ethnicity")
FORMS = ("qa", "qa_newsqa", "lm_roberta", "lm_bert")
NAMES = [f"{c}/{form}" for c in ("religion", "ethnicity", "country", "gender") for form in FORMS]
EVERYTHING = os.environ.get("EVENHAND_FULL") == "1"


def record_lines(
    lists: Lists, pairs: Iterator[tuple[int, int]], *, mask: str
) -> Iterator[tuple[str, str]]:
    """(context, record) of every ordered pair, template and attribute: one line each.

    A record is `key TAB context TAB question TAB negated TAB first TAB second NEWLINE` with the
    key of the released program, cluster1|cluster2|subject1|subject2|template|class|attribute
    (twice). Records are made one at a time: nothing is kept but the questions.
    """
    tails = []
    for template in lists.templates:
        rows = []
        for a in lists.attributes:
            if template.slot in a.forms:
                key = f"|{template.id}|{a.attribute_class}|{a.name}|{a.name}\t"
                asked = [template.question_for(a, negated=n, mask=mask) for n in (False, True)]
                rows.append((key, "\t" + "\t".join(asked) + "\t"))
        tails.append((template, rows))
    for i, j in pairs:
        one, two = lists.subjects[i], lists.subjects[j]
        head = f"{one.group}|{two.group}|{one.term}|{two.term}"
        for template, rows in tails:
            context = template.context_for(one, two)
            ends = f"{one.forms[template.subject]}\t{two.forms[template.subject]}\n"
            for key, both in rows:
                yield context, f"{head}{key}{context}{both}{ends}"


@pytest.fixture(scope="module")
def configurations(shared: Path) -> dict[str, Any]:
    text = (shared / "golden" / "unqover" / "dataset_counts.json").read_text()
    found = json.loads(text)["configurations"]
    assert set(found) == set(NAMES)
    return dict(found)


def lists_of(shared: Path, name: str, expected: dict[str, Any]) -> tuple[Lists, bool]:
    folder, form = name.split("/")
    social_class = CLASSES.get(folder, folder)
    suffix = form.removeprefix("lm_") if form.startswith("lm") else ""
    lists = read_lists(
        shared / "data" / "unqover" / "word_lists", social_class, "lm" if suffix else "qa",
        suffix=suffix, filler=expected["filler"], as_published=True,
    )  # fmt: skip
    return lists, social_class == "gender"


@pytest.mark.parametrize("name", NAMES)
def test_every_configuration_has_the_published_counts(
    shared: Path, configurations: dict[str, Any], name: str
) -> None:
    expected = configurations[name]
    lists, across = lists_of(shared, name, expected)
    design = make_design(
        lists.subjects, lists.templates, lists.attributes, across=across, pairs=None, seed=0
    )
    assert len(design) == expected["example_pairs"]
    assert 2 * design.n_pairs == expected["n_subject_pairs_ordered"]
    assert len(lists.subjects) == expected["n_subjects"]
    assert len({a.name for a in lists.attributes}) == expected["n_attributes_unique"]
    template = design.codes(np.arange(len(design)))[2]
    sums = {str(t): int((template == t).sum()) * 2 for t in range(len(lists.templates))}
    assert sums == expected["per_template_ordered"]


@pytest.mark.parametrize("name", NAMES)
def test_records_have_the_published_texts(
    shared: Path, configurations: dict[str, Any], name: str
) -> None:
    """Whole digests for the small sets (all with EVENHAND_FULL=1), samples for the large ones."""
    expected = configurations[name]
    lists, across = lists_of(shared, name, expected)
    records = record_lines(lists, ordered_pairs(lists.subjects, across), mask=expected["lm_mask"])
    if not EVERYTHING and not name.startswith(SMALL):
        wanted = {s["index"]: s for s in expected["samples"] if s["index"] < 60_000}
        assert wanted
        for index, (_, record) in enumerate(islice(records, max(wanted) + 1)):
            if index in wanted:
                assert record.rstrip("\n").split("\t") == _fields(wanted[index])
        return
    total, count, stream, contexts = 0, 0, hashlib.sha256(), set()
    for context, record in records:
        raw = record.encode()
        stream.update(raw)
        total += int.from_bytes(hashlib.sha256(raw).digest(), "big")
        count += 1
        contexts.add(context)
    assert count == expected["ordered_examples"]
    assert len(contexts) == expected["unique_contexts"]
    assert format(total % 2**256, "064x") == expected["sha256_sum_mod_2_256"]
    assert stream.hexdigest() == expected["sha256_stream_generation_order"]


def _fields(sample: dict[str, Any]) -> list[str]:
    return [sample[k] for k in ("key", "context", "q0", "q1", "ans0", "ans1")]


def test_our_own_lexicons_have_the_papers_sizes() -> None:
    assert len(Underspecified().design("qa", 0)) == 1_372_000
    sizes = {c: (len(questions.subjects(c)), len(questions.templates(c))) for c in
             ("nationality", "ethnicity", "religion")}  # fmt: skip
    assert sizes == {"nationality": (69, 12), "ethnicity": (15, 14), "religion": (11, 14)}


def test_the_probe_asks_the_published_texts(shared: Path) -> None:
    folder = shared / "data" / "unqover" / "word_lists"
    probe = Underspecified(
        social_class="ethnicity", word_lists=str(folder), as_published=True, filler="newsqa"
    )
    design = probe.design("qa", 0)
    inputs = design.inputs(0, 4, "<mask>")
    assert inputs.context[0].startswith("[aug] yes no  [text] (CNN) --  An African man")
    assert (inputs.first[0], inputs.second[0]) == ("African", "Jewish")
    assert inputs.context[0] == inputs.context[1] != inputs.context[2]


def test_grammar_is_right_unless_the_published_one_is_asked_for(shared: Path) -> None:
    folder = str(shared / "data" / "unqover" / "word_lists")
    made = {}
    for published in (False, True):
        probe = Underspecified(social_class="ethnicity", word_lists=folder, as_published=published)
        lists = probe.lists("qa")
        one, two = (next(s for s in lists.subjects if s.term == t) for t in ("Asian", "European"))
        made[published] = lists.templates[0].context_for(one, two)
    assert "a European man" in made[False]
    assert "an European man" in made[True]


def test_a_directory_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no such folder"):
        Underspecified(word_lists=str(tmp_path / "none")).design("qa", 0)
    (tmp_path / "nouns" / "subjects").mkdir(parents=True)
    (tmp_path / "nouns" / "subjects" / "religion").write_text("[subj] A\n[subj:dem] B\n[subj] C\n")
    with pytest.raises(SpecError, match="differ in length"):
        WordLists(tmp_path).subjects("religion")
    with pytest.raises(SpecError, match="unknown word list 'religon'"):
        WordLists(tmp_path).subjects("religon")
