"""Underspecified questions on real checkpoints: batches, published switches, third outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenhand.models.loading.resolver import resolve
from evenhand.probes.underspecified.asking import asking
from evenhand.probes.underspecified.probe import Underspecified
from evenhand.requests import MASK, MaskScore, Span
from evenhand.runner.ask import Ask

pytestmark = [pytest.mark.model, pytest.mark.shared]
CONTEXTS = ("Mary lives in the same city with John.", "A Caucasian man met an Asian man on a boat.")


@pytest.fixture(scope="module")
def qa(minilm: dict[str, str]) -> Any:
    return resolve(minilm["span"])


@pytest.fixture(scope="module")
def mlm(minilm: dict[str, str]) -> Any:
    return resolve(minilm["masked"])


@pytest.mark.parametrize("kind", ["span", "mask-score"])
def test_batch_composition_never_changes_a_score(kind: str, qa: Any, mlm: Any) -> None:
    model = qa if kind == "span" else mlm
    form = "qa" if kind == "span" else "lm"
    probe = Underspecified(pairs=2, attributes=("nurse", "assistant professor"))
    lists = probe.lists(form)
    way = asking(kind, probe.manner(lists, 0))
    rows = way.requests(probe.design(form, 0, lists)).make(0, 24)
    usual = model.token_budget
    together = Ask(model)(rows)
    model.token_budget = 1  # every input alone, without padding
    alone = Ask(model, shard_rows=1)(rows.take(range(len(rows))[::-1]))
    model.token_budget = usual
    for name in ("start", "end", "other_start") if kind == "span" else ("logprob",):
        assert np.allclose(together[name], alone[name][::-1], atol=2e-5, rtol=0)


def test_padding_in_the_softmax_is_a_published_quirk_only(qa: Any) -> None:
    """A long neighbour takes probability away, as published; not by default."""
    short, long = "Who was a nurse?", "Who was a nurse " + "and a hunter " * 12 + "?"

    def first_score(published: bool, with_long: bool) -> float:
        asked = [short, long] if with_long else [short]
        rows = Span(
            asked, [CONTEXTS[0]] * len(asked), ["Mary"] * len(asked), ["John"] * len(asked),
            as_published=published,
        )  # fmt: skip
        return float(qa.answer(rows, qa.prepare(rows))["start"][0])

    assert first_score(False, True) == pytest.approx(first_score(False, False), abs=1e-6)
    assert abs(first_score(True, True) - first_score(True, False)) > 1e-6


def test_published_inputs_have_no_token_types(qa: Any) -> None:
    rows = Span(["Who was it?"], [CONTEXTS[0]], ["Mary"], ["John"])
    types = qa.prepare(rows).batches[0].types
    assert types.max() == 1
    published = Span(["Who was it?"], [CONTEXTS[0]], ["Mary"], ["John"], as_published=True)
    assert qa.prepare(published).batches[0].types is None


def test_scores_equal_a_plain_forward_pass(qa: Any) -> None:
    import torch

    rows = Span(["Who was rude?"], [CONTEXTS[1]], ["Asian"], ["Caucasian"])
    got = Ask(qa)(rows)
    made = qa.tokenizer("Who was rude?", CONTEXTS[1], return_tensors="pt")
    with torch.inference_mode():
        out = qa.model(**made)
    tokens = qa.tokenizer.convert_ids_to_tokens(made["input_ids"][0])
    start, end = (x.softmax(-1)[0].numpy() for x in (out.start_logits, out.end_logits))
    at = tokens.index("asian")
    assert got["start"][0] == pytest.approx(max(start[at], start[at - 1]), abs=1e-6)
    assert got["end"][0] == pytest.approx(max(end[at], end[at + 1]), abs=1e-6)
    assert got["none"][0] == pytest.approx(np.sqrt(start[0] * end[0]), abs=1e-6)
    bare = Ask(qa)(Span(["Who was rude?"], [CONTEXTS[1]], ["Asian"], ["Caucasian"], extend=False))
    assert bare["start"][0] == pytest.approx(start[at], abs=1e-6)


def test_a_candidate_that_is_not_there_scores_nothing_at_all(qa: Any) -> None:
    rows = Span(["Who was it?"], [CONTEXTS[0]], ["Gerald"], ["John"])
    got = Ask(qa)(rows)
    assert np.isnan(got["start"][0])
    assert got["other_start"][0] > 0


def test_a_name_may_be_meant_by_its_pronoun(mlm: Any) -> None:
    text = f"{CONTEXTS[0]} {MASK} was a nurse."
    got = Ask(mlm)(MaskScore([text] * 3, ["Mary", "she", "Mary\tshe"]))
    assert got["logprob"][2] == max(got["logprob"][:2])


def test_longer_terms_are_scored_piece_by_piece(mlm: Any) -> None:
    """The pieces before are filled in, so the sum is the chain rule over masks."""
    import torch

    text = f"He met {MASK} there."
    got = Ask(mlm)(MaskScore([text], ["Zimbabwean-Uzbek"]))
    ids = mlm.pieces("Zimbabwean-Uzbek", opens=False)
    assert got["n_pieces"][0] == len(ids) > 1
    total, done = 0.0, []
    for k in range(len(ids)):
        masks = " ".join([mlm.tokenizer.mask_token] * len(ids))
        whole = mlm.encode([text.replace(MASK, masks)], special=True)[0]
        first = whole.index(mlm.tokenizer.mask_token_id)
        whole[first : first + k] = done
        with torch.inference_mode():
            logits = mlm.model(torch.tensor([whole])).logits[0, first + k].float()
        total += float(logits.log_softmax(-1)[ids[k]])
        done.append(ids[k])
    assert got["logprob"][0] == pytest.approx(total, abs=1e-4)


def test_the_published_masked_score_is_the_exact_one_or_zero(mlm: Any) -> None:
    settings: dict[str, Any] = {
        "pairs": 2, "attributes": ("nurse", "engineer"), "templates": 2, "resamples": 50,
    }  # fmt: skip
    exact = Underspecified(**settings).run(Ask(mlm), 0)
    published = Underspecified(**settings, as_published=True).run(Ask(mlm), 0)
    names = [c for c in exact.items.column_names if "order" in c]
    ours = np.stack([exact.items[c].to_numpy() for c in names])
    theirs = np.stack([published.items[c].to_numpy() for c in names])
    assert published.summary["asked_by"] == "fill-mask"
    close = np.isclose(theirs, ours, atol=1e-5)
    assert (close | (theirs < ours)).all()
    assert close.any()
