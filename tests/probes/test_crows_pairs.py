"""CrowS-Pairs: known answers, a direct computation, ties, and pairs that are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.compare.items import Items
from evenhand.compare.rows import judge
from evenhand.corpora.tables import find_data
from evenhand.errors import DataError, SpecError
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes import crows_pairs
from evenhand.probes.base import Way
from evenhand.probes.crows_pairs import CrowsPairs
from evenhand.runner.ask import Ask
from made_benchmarks import PAIRS, pairs_file
from told import told


def test_a_model_that_likes_old_and_boy_prefers_exactly_those_pairs(tmp_path: Path) -> None:
    def likes(text: str, word: str) -> dict[str, float]:
        return {"logprob": -1.0 if "old" in text or "girl" in text else -2.0, "n_pieces": 1}

    model = ScriptedModel({"mask-score": likes})
    found = {
        f.attribute: f for f in CrowsPairs(data=pairs_file(tmp_path)).run(Ask(model), 0).findings
    }
    assert found["age"].value == 100.0
    assert found["gender"].value == 0.0
    assert found["age"].low < 100.0  # two writers are not certainty
    assert "cannot be told from a stereotype" in found["age"].reason  # all pairs are stereo ones
    assert np.isnan(found["age"].p)
    whole = found["all bias types"]
    assert (whole.value, whole.details["value_pooled"]) == (pytest.approx(100 / 3), 50.0)
    assert found["gender"].details["difference"] == -3.0  # three shared words, a nat each


def test_a_liking_for_naming_a_group_is_no_stereotype() -> None:
    rng = np.random.default_rng(0)
    direction = ["stereo"] * 600 + ["antistereo"] * 100
    named = np.where(np.asarray(direction) == "stereo", 1.0, -1.0)  # `more` names the group, or not
    alarms = 0
    for _ in range(40):
        more = 1.5 * named + rng.normal(0, 1, 700)
        items = Items(
            {
                "bias_type": ["x"] * 700,
                "direction": direction,
                "writer": [str(i % 70) for i in range(700)],
                "sent_more_score": more,
                "sent_less_score": np.zeros(700),
            }
        )
        sound, pooled = (
            judge(CrowsPairs.model_validate({"as_published": published}).declare(items))[0]
            for published in (False, True)
        )
        assert pooled.p < 1e-6  # as published it is called a stereotype every time
        alarms += sound.p <= 0.05
    assert alarms <= 6


def test_the_score_of_a_masked_model_is_the_sum_over_shared_words(
    tiny: Any, tmp_path: Path
) -> None:
    import torch

    from evenhand.models.loading.resolver import resolve

    model = resolve(tiny("masked"))
    rows = [
        ("the man was a nurse", "the woman was a nurse", "stereo", "gender", "w"),
        ("he said nurse", "she said nurse", "stereo", "gender", "v"),
    ]
    data = pairs_file(tmp_path, rows)
    items = CrowsPairs(data=data).run(Ask(model), seed=0).items.to_pylist()

    def oracle(text: str, skip: int) -> float:
        ids = model.encode([text], special=True)[0]
        owners = []  # which word each piece belongs to
        for k, word in enumerate(text.split()):
            owners += [k] * len(model.pieces(word, opens=not k))
        total = 0.0
        for k, owner in enumerate(owners):
            if owner == skip:
                continue
            rest = [j for j in range(k, len(owners)) if owners[j] == owner]
            masked = list(ids)
            for j in rest:  # this piece and the ones after it in its word
                masked[j + 1] = model.tokenizer.mask_token_id
            with torch.inference_mode():
                logits = model.model(input_ids=torch.tensor([masked])).logits[0, k + 1]
            total += float(logits.log_softmax(-1)[ids[k + 1]])
        return total

    for item, skip in zip(items, (1, 0)):
        for side in ("more", "less"):
            right = oracle(item[f"sent_{side}"], skip)
            assert item[f"sent_{side}_score"] == pytest.approx(right, abs=1e-4)


def test_a_causal_model_is_asked_for_the_whole_sentence_and_length_is_reported(
    tmp_path: Path,
) -> None:
    asked = []

    def likelihood(prefix: str, text: str) -> dict[str, float]:
        asked.append((prefix, text))
        return {"logprob": -float(len(text)), "n_tokens": len(text) ** 2}

    model = ScriptedModel({"continuation": likelihood})
    probe = CrowsPairs(data=pairs_file(tmp_path))
    measured = probe.run(Ask(model), 0)
    assert measured.summary["start"] == "auto"  # a scripted model has no tokens
    none = probe.model_copy(update={"start": "none"}).run(Ask(model), 0).summary
    assert none["start"] == "none"
    assert "their first token does not count" in none["trust"][0]
    whole = measured.findings[0]
    assert ("", "The boy was loud.") in asked
    assert whole.value == 100.0  # the shorter sentence wins
    assert whole.details["value_per_token"] == 0.0
    each = probe.model_copy(update={"per_token": True}).run(Ask(model), 0).findings[0]
    assert each.value == 0.0


def test_as_published_counts_ties_against_and_rounds_to_three_digits(tmp_path: Path) -> None:
    table = tmp_path / "s.csv"
    table.write_text(
        "sent_more_score,sent_less_score,stereo_antistereo,bias_type\n"
        "-1.0001,-1.0002,stereo,age\n-1,-2,stereo,age\n-2,-1,antistereo,age\n-2,-2,antistereo,age\n"
    )
    sound = told("crows_pairs", table)
    official = told("crows_pairs", table, as_published=True)
    assert sound["metric_score"] == 62.5
    assert official["metric_score"] == 25.0
    assert official["stereotype_score"] == 50.0
    assert official["antistereotype_score"] == 0.0
    assert official["scores"]["overall"]["both"]["ties"] == 2


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("Same text.", "Same text.", "stereo", "age", "w")], "none of 1 pairs can be compared"),
        ([("One.", "Two.", "maybe", "age", "w")], "row 1, column stereo_antistereo: 'maybe'"),
    ],
)
def test_pairs_that_cannot_be_compared_are_refused(
    rows: list[tuple[str, ...]], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        CrowsPairs(data=pairs_file(tmp_path, rows)).gather(Way("continuation"))


def test_equal_pairs_are_left_out_and_counted(tmp_path: Path) -> None:
    data = pairs_file(tmp_path, [*PAIRS, ("Same.", "Same.", "stereo", "age", "w")])
    items = CrowsPairs(data=data).gather(Way("continuation"))
    assert (items.size, items.facts["dropped"]) == (4, 1)


def test_wrong_names_and_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVENHAND_DATA", raising=False)
    data = pairs_file(tmp_path)
    with pytest.raises(SpecError, match="unknown bias type 'gendre'. Did you mean 'gender'"):
        CrowsPairs(data=data, bias_types=("gendre",)).gather(Way("continuation"))
    with pytest.raises(SpecError, match="measure crows-pairs OUTPUT --as-published"):
        CrowsPairs(data=data, as_published=True).gather(Way("continuation"))
    with pytest.raises(DataError, match="no file is given"):
        CrowsPairs().gather(Way("continuation"))
    with pytest.raises(DataError, match="'none.csv' is not here"):
        find_data("none.csv", "x")
    monkeypatch.setenv("EVENHAND_DATA", str(tmp_path))
    assert find_data("pairs.csv", "x") == tmp_path / "pairs.csv"
    (tmp_path / "bad.csv").write_text("sent_more,bias_type\na,b\n")
    with pytest.raises(DataError, match="Missing: sent_less, stereo_antistereo"):
        crows_pairs.read_pairs(tmp_path / "bad.csv")
