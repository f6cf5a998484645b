"""Numbers of the released UnQover code: spans, scores, grammar, analysis, ranks, win ratios."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import DataError
from evenhand.metrics import unqover
from evenhand.models.batching.spans import (
    find_span,
    places,
    published_spans,
    published_word,
    token_span,
)
from evenhand.probes.underspecified.design import Cells
from evenhand.probes.underspecified.numbers import Sampling, measure_cells
from evenhand.probes.underspecified.tables import TableSums
from evenhand.stats import ranks
from evenhand.strict import plain
from evenhand.words.lexicons.questions import Subject
from evenhand.words.list_formats import PublishedTemplate

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def golden(shared: Path) -> Any:
    def read(name: str) -> Any:
        return json.loads((shared / "golden" / "unqover" / f"{name}.json").read_text())

    return read


def test_candidates_are_found_at_the_right_occurrence(golden: Any) -> None:
    for case in golden("functions")["char_spans"]:
        wanted = [tuple(s) for s in case["char_spans"]]
        assert published_spans(case["context"], case["choices"]) == wanted
        one, two = case["choices"]
        assert [
            find_span(case["context"], one, [two]),
            find_span(case["context"], two, [one]),
        ] == wanted
    missing, twice = golden("functions")["char_span_edge_cases"]
    with pytest.raises(DataError, match="'Ann' is not in the context"):
        published_spans(missing["context"], missing["choices"])
    assert find_span(missing["context"], "Ann", ["Bob"]) is None
    assert [list(s) for s in published_spans(twice["context"], twice["choices"])] == twice[
        "char_spans"
    ]


@pytest.mark.model
def test_candidates_cover_the_published_tokens(golden: Any, minilm: dict[str, str]) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm["masked"])
    for case in golden("functions")["token_spans"]:
        if case["tokenizer"] == "bert-uncased":
            made = tokenizer(case["context"], add_special_tokens=False, return_offsets_mapping=True)
            assert tokenizer.convert_ids_to_tokens(made["input_ids"]) == case["context_tokens"]
            offsets = made["offset_mapping"]
        else:
            offsets = _byte_level_offsets(case["context_tokens"])
        spans = published_spans(case["context"], case["choices"])
        wanted = [tuple(s) for s in case["choice_token_spans_inclusive"]]
        assert [token_span(offsets, span) for span in spans] == wanted


def _byte_level_offsets(tokens: list[str]) -> list[tuple[int, int]]:
    ends = np.cumsum([len(t) for t in tokens]).tolist()
    return list(zip([0, *ends[:-1]], ends))


def test_span_scores_are_extended_as_published(golden: Any) -> None:
    for case in golden("functions")["qa_span_scores"]:
        word = published_word(case["tokens"], "roberta" in case["model_type"])
        first, last = places(tuple(case["span"]), word)
        start, end = max(case["p_start"][t] for t in first), max(case["p_end"][t] for t in last)
        assert (start, end) == (case["start"], case["end"])
        assert float(unqover.span_score(start, end)) == pytest.approx(case["S"], abs=1e-12)


def test_masked_scores_count_only_among_the_ten_best(golden: Any) -> None:
    pronoun = {"Mary": "she", "John": "he"}
    for case in golden("functions")["lm_scores"]:
        fills, chances = zip(*case["topk"])
        said = [f"{c}\t{pronoun[c]}" if case["use_he_she"] else c for c in case["choices"]]
        assert [unqover.top_fill_score(fills, chances, c) for c in said] == case["scores"]


def test_grammar_is_corrected_as_published(golden: Any) -> None:
    for case in golden("functions")["grammar"]:
        context, asked, negated = case["template"].split("\t")
        subjects = []
        for s in (case["subj1"], case["subj2"]):
            forms = {"plain": s["[subj]"], "demonym": s.get("[subj:dem]", "")}
            subjects.append(Subject(s["[subj]"], "None", forms, {}))
        form = "demonym" if ":dem" in context else "plain"
        filler = (case["filler"] or "").removesuffix(" ")
        template = PublishedTemplate(
            "0", "religion", "qa", context, asked, negated, "[none]", form, True, filler
        )
        assert template.context_for(*subjects) == case["context"]
        assert [s.forms[form] for s in subjects] == case["answers"]
        from evenhand.words.list_formats import published_articles

        texts = (asked, negated)
        mask = case["lm_mask"]
        said = [published_articles(t.replace("[mask]", mask), glued=True) for t in texts]
        assert said == [case["q0"], case["q1"]]


def cells_of(data: dict[str, Any]) -> Cells:
    """The released rows as cells, keys lower-cased as there."""
    rows = data["rows"]
    terms = tuple(dict.fromkeys(s for r in rows for s in (r["subj1"], r["subj2"])))
    attributes = tuple(dict.fromkeys(r["attr"] for r in rows))
    templates = tuple(dict.fromkeys(str(r["tid"]) for r in rows))
    known: dict[tuple[int, int, int, int], np.ndarray] = {}
    for r in rows:
        one, two = terms.index(r["subj1"]), terms.index(r["subj2"])
        order = int(one > two)
        key = (
            min(one, two),
            max(one, two),
            templates.index(str(r["tid"])),
            attributes.index(r["attr"]),
        )
        cell = known.setdefault(key, np.full((2, 2, 2), np.nan))
        for q, question in enumerate(("q0", "q1")):
            for a, answer in enumerate(("ans0", "ans1")):
                cell[order, q, a ^ order] = math.sqrt(math.prod(r["scores"][question][answer]))
    codes = np.asarray(list(known), np.int64)
    return Cells(
        np.stack(list(known.values())), codes[:, 0], codes[:, 1], codes[:, 3], codes[:, 2],
        terms, attributes, templates, (), None, len(rows) * 2,
    )  # fmt: skip


def test_the_ethnicity_analysis_is_reproduced(golden: Any) -> None:
    data = golden("analysis_ethnicity")
    expected = data["expected"]
    result = plain(measure_cells(cells_of(data), Sampling(50, 99)))
    for mine, theirs in (("delta", "delta"), ("epsilon", "epsilon"), ("mean_score", "avgS"),
                         ("mu", "mu"), ("eta", "eta"), ("n_cells", "example_pairs")):  # fmt: skip
        assert result[mine] == pytest.approx(expected[theirs], abs=1e-12)
    for row in result["gamma"]:
        term = row["term"].lower()
        assert row["gamma"] == pytest.approx(
            expected["gamma_subj_attr"][term][row["attribute"]], abs=1e-12
        )
        assert row["eta"] == pytest.approx(
            expected["eta_subj_attr"][term][row["attribute"]], abs=1e-12
        )
        assert row["n"] == expected["n_subj_attr"][term][row["attribute"]]
    found = {row["term"].lower(): row for row in result["gamma_term"]}
    assert {t: r["gamma"] for t, r in found.items()} == pytest.approx(
        expected["gamma_subj"], abs=1e-12
    )
    assert [r["term"].lower() for r in result["gamma_term"]] == expected["rank_subj"]


def test_win_ratios_are_reproduced(golden: Any) -> None:
    data = golden("analysis_ethnicity")
    cells = cells_of(data)
    kind_of = {r["attr"]: r["attr_cluster"] for r in data["rows"]}
    kinds = tuple(dict.fromkeys(kind_of[a] for a in cells.attributes))
    by_kind = np.asarray([kinds.index(kind_of[a]) for a in cells.attributes])[cells.attribute]
    expected = golden("bipartite_win_ratio")["analysis_ethnicity"]
    for names, codes, wanted in ((cells.attributes, cells.attribute, expected["pairs"]),
                                 (kinds, by_kind, expected["group_by_act"])):  # fmt: skip
        asked = replace(cells, attribute=codes, attributes=names)
        sums = TableSums(asked)
        sums.add(asked)
        links = ranks.top_rows(sums.win_ratio(), cells.terms, names, 3)
        assert sorted([k.row, k.column, k.value, k.value] for k in links) == wanted


def test_published_ranks_are_reproduced(golden: Any) -> None:
    for social_class in golden("published_gamma_ranks")["classes"].values():
        table = ranks.rank_table(list(social_class["gamma_subject"].values()))
        assert {r.term: [r.mean, r.sd] for r in table} == {
            term: pytest.approx(pair, abs=1e-9)
            for term, pair in social_class["average_rank_and_population_std"].items()
        }


@pytest.mark.model
@pytest.mark.parametrize("name", ["country_bert", "ethnicity_bert", "religion_bert"])
def test_the_single_piece_filter_keeps_the_published_terms(
    golden: Any, shared: Path, minilm: dict[str, str], name: str
) -> None:
    """The filter works from the model's own vocabulary and says what it dropped."""
    from evenhand.models.loading.resolver import resolve
    from evenhand.probes.underspecified.probe import Underspecified
    from evenhand.runner.ask import Ask

    expected = golden("single_piece_filter")[name]
    folder = name.removesuffix("_bert").replace("country", "nationality")
    probe = Underspecified(
        social_class=folder, word_lists=str(shared / "data" / "unqover" / "word_lists")
    )
    lists = probe.lists("lm")
    kept, dropped = probe._usable(Ask(resolve(minilm["masked"])), "mask-score", lists)
    assert [s.term for s in kept.subjects] == expected["single_piece_all_forms"]
    assert len(dropped) == expected["n_full"] - len(expected["single_piece_all_forms"])
