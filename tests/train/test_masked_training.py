"""Continued masked-LM training: real changes (defect D16 elsewhere), augmentation, dropout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import DataError, SpecError

pytest.importorskip("torch", reason="needs the hf extra")

TEXTS = [
    "the man worked as a doctor in the same city and she wrote a letter to him",
    "the woman worked as a nurse and he got off the flight",
    "she said that the man was not a hunter",
    "the letter was in the city",
] * 12


@pytest.fixture(scope="module")
def trained(tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    from evenhand.train.masked import MaskedTraining, train

    folder = tmp_path_factory.mktemp("trained")
    made = {}
    for method in ("plain", "cda", "dropout"):
        made[method] = folder / method
        recipe = MaskedTraining(method=method, steps=4, batch=8, length=24, learning_rate=1e-3)
        train(tiny("masked"), TEXTS, made[method], recipe, device="cpu")
    return made


def test_checkpoints_differ_from_the_base_and_from_each_other_in_weights_and_scores(
    trained: dict[str, Path], tiny: Any
) -> None:
    from safetensors.numpy import load_file

    from evenhand.models.loading.resolver import resolve
    from evenhand.requests import MaskScore

    folders = {"base": Path(tiny("masked")), **trained}
    asked = MaskScore(["the <mask> worked as a nurse"] * 2, ["man", "woman"])
    weights, scores, prints = {}, {}, set()
    for name, folder in folders.items():
        weights[name] = load_file(str(folder / "model.safetensors"))
        model = resolve(str(folder))
        scores[name] = model.answer(asked, model.prepare(asked))["logprob"]
        prints.add(model.fingerprint)
    assert len(prints) == 4
    names = list(folders)
    for i, one in enumerate(names):
        for two in names[i + 1 :]:
            moved = [
                k for k in weights[one] if not np.array_equal(weights[one][k], weights[two][k])
            ]
            assert len(moved) > len(weights[one]) / 2, (one, two)
            assert np.abs(np.asarray(scores[one]) - np.asarray(scores[two])).max() > 1e-4


def test_the_checkpoint_loads_with_plain_transformers(trained: dict[str, Path]) -> None:
    import transformers

    for name, folder in trained.items():
        model = transformers.AutoModelForMaskedLM.from_pretrained(folder)
        assert type(model).__name__ == "BertForMaskedLM", name
        assert model.config.hidden_dropout_prob == 0.1  # as the base: tasks are trained as usual
    card = json.loads((trained["dropout"] / "training.json").read_text())
    assert card["recipe"]["hidden"] == 0.20
    assert card["dropout_restored"]["attention_probs_dropout_prob"] == 0.1


def test_dropout_is_raised_in_every_module_while_training(tiny: Any) -> None:
    import transformers

    from evenhand.train.masked import MaskedTraining, _restore, _set_dropout

    model = transformers.AutoModelForMaskedLM.from_pretrained(tiny("masked"))
    usual = _set_dropout(model, MaskedTraining(method="dropout"))
    rates = {p: m.p for p, m in model.named_modules() if type(m).__name__ == "Dropout"}
    attention = {p for p in rates if p.endswith("self.dropout")}
    assert attention
    assert {rates[p] for p in attention} == {0.15}
    assert {rates[p] for p in rates if p not in attention} == {0.20}
    _restore(model, usual)
    assert {m.p for m in model.modules() if type(m).__name__ == "Dropout"} == {0.1}


def test_augmentation_is_one_or_two_sided() -> None:
    from evenhand.train.masked import MaskedTraining, augment

    texts = ["She thanked her brother.", "It rained.", "He is late."]
    both = augment(texts, MaskedTraining(sides="two"))
    assert both.texts == (
        "She thanked her brother.", "He thanked his sister.", "It rained.", "He is late.",
        "She is late.",
    )  # fmt: skip
    assert both.counterfactual == 2
    one = augment(texts * 50, MaskedTraining(sides="one"))
    assert len(one.texts) == 150
    assert 30 < one.counterfactual < 70
    faith = augment(["The Jewish family left the synagogue."], MaskedTraining(axis="religion"))
    assert faith.texts[1] in (
        "The Muslim family left the mosque.", "The Christian family left the church.",
    )  # fmt: skip


def test_text_without_groups_and_wrong_settings_are_refused(tiny: Any, tmp_path: Path) -> None:
    from evenhand.train.masked import MaskedTraining, train

    with pytest.raises(DataError, match="no text names a group of 'gender'"):
        train(tiny("masked"), ["It rained in the city."] * 60, tmp_path / "a", MaskedTraining())
    with pytest.raises(DataError, match="3 texts are too few"):
        train(tiny("masked"), TEXTS[:3], tmp_path / "b", MaskedTraining())
    with pytest.raises(SpecError, match="steps: .* got 0"):
        MaskedTraining(steps=0)
    with pytest.raises(SpecError, match="unknown axis 'race'"):
        MaskedTraining(axis="race")


def test_masked_pieces_are_never_special_and_every_text_has_one(tiny: Any) -> None:
    import transformers

    from evenhand.train.masked import masked_batch

    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny("masked"))
    rows = [tokenizer("the man worked as a nurse")["input_ids"], tokenizer("she")["input_ids"]]
    ids, mask, labels = masked_batch(tokenizer, rows, np.random.default_rng(0))
    asked = labels != -100
    assert asked.any(axis=1).all()
    assert not np.isin(labels[asked], tokenizer.all_special_ids).any()
    assert (ids[~asked & (mask == 1)] == np.concatenate([np.asarray(r) for r in rows])[
        np.concatenate([~asked[i, : len(r)] for i, r in enumerate(rows)])]).all()  # fmt: skip
