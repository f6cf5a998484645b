"""Planted stereotypes are found in their direction, whatever a model does with negation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.audit.verdicts import decided
from evenhand.models.adapters.masked import MaskedModel
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.base import Measured
from evenhand.probes.underspecified.probe import Underspecified
from evenhand.runner.ask import Ask
from evenhand.runs.finding import Finding
from evenhand.words.lexicons import questions

WOMENS = ("nurse", "secretary", "dancer")
MENS = ("mechanic", "hunter", "firefighter")
STEPS, BATCH = 16, 16


def planted(folder: str, out: Path) -> str:
    """Continue training on "She was a nurse", with and without negation alike."""
    torch: Any = pytest.importorskip("torch")
    transformers: Any = pytest.importorskip("transformers")
    torch.manual_seed(0)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32)
    rng = np.random.default_rng(0)
    template = next(t for t in questions.templates("gender", "lm") if t.id == "same_city")
    people = [
        s for s in questions.subjects("gender")
        if len(tokenizer(s.term, add_special_tokens=False).input_ids) == 1
    ]  # fmt: skip
    sides = [[s for s in people if s.group == group] for group in ("female", "male")]
    known = {a.name: a for a in questions.attributes("gender")}
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-4)
    model.train()
    for _ in range(STEPS):
        texts, answers = [], []
        for _ in range(BATCH):
            pair = [side[rng.integers(len(side))] for side in sides]
            womens = bool(rng.integers(2))
            attribute = known[str(rng.choice(WOMENS if womens else MENS))]
            one, two = pair if rng.integers(2) else pair[::-1]
            asked = template.question_for(
                attribute, negated=bool(rng.integers(2)), mask=tokenizer.mask_token
            )
            texts.append(f"{template.context_for(one, two)} {asked}")
            answers.append(tokenizer.convert_tokens_to_ids(tokenizer.tokenize(
                (pair[0] if womens else pair[1]).term)[0]))  # fmt: skip
        batch = tokenizer(texts, return_tensors="pt", padding=True)
        labels = torch.full_like(batch.input_ids, -100)
        labels[batch.input_ids == tokenizer.mask_token_id] = torch.tensor(answers)
        model(**batch, labels=labels).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    model.eval()
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return str(out)


@pytest.mark.model
@pytest.mark.shared
def test_planted_stereotypes_are_found_in_their_direction(
    minilm: dict[str, str], tmp_path: Path
) -> None:
    model = MaskedModel(planted(minilm["masked"], tmp_path / "planted"), "planted")
    probe = Underspecified(
        pairs=12, templates=("same_city",), attributes=(*WOMENS, *MENS), resamples=60
    )
    measured = probe.run(Ask(model), 0)
    found = leans(measured)
    assert sum(bool(f.detected) for f in found.values()) >= 4
    for name, f in found.items():
        if f.detected:
            assert (f.value > 0) == (name in WOMENS), f.sentence
    # The model was trained to ignore negation, so UnQover's difference is no preference.
    assert "hardly heeds a negation" in measured.summary["trust"][0]
    gammas = [f for f in measured.findings if f.metric == "gamma"]
    assert gammas
    assert all(f.detected is None and "no preference" in f.sentence for f in gammas)


def leans(measured: Measured) -> dict[str, Finding]:
    """Leans by attribute, with the verdict of a suite of this probe alone."""
    rows = decided([replace(f, model="planted") for f in measured.findings], "planted", 0.05)
    return {f.attribute: f for f in rows if f.metric == "lean"}


WOMEN = {s.term for s in questions.subjects("gender") if s.group == "female"}


@pytest.mark.parametrize("negation", [-1.0, 0.3, 1.0, 1.5])
@pytest.mark.parametrize("order", [-3.0, 0.0, 3.0])
def test_what_a_model_does_with_negation_and_order_turns_nothing_round(
    negation: float, order: float
) -> None:
    """A negated question may turn the answer (-1), do little, nothing (1) or strengthen it (1.5);
    the first or the second name may be taken nearly always."""
    rng = np.random.default_rng(0)
    liking = {s.term: rng.normal(0, 0.5) for s in questions.subjects("gender")}

    def logit(prompt: str, name: str) -> float:
        asked = any(w in prompt for w in WOMENS) - any(w in prompt for w in MENS)
        towards = 0.4 * asked * (1 if name in WOMEN else -1)
        first = prompt.find(name) < prompt.find("\n") / 3
        return liking[name] + towards * (negation if "never" in prompt else 1.0) + order * first

    probe = Underspecified(pairs=12, templates=("same_city",), attributes=(*WOMENS, *MENS))
    found = leans(probe.run(Ask(ScriptedModel({"option": logit})), 0))
    assert {name for name, f in found.items() if f.detected and f.value > 0} == set(WOMENS)
    assert {name for name, f in found.items() if f.detected and f.value < 0} == set(MENS)
