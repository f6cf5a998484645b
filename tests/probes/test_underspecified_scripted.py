"""The whole probe on models whose preferences are known."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evenhand.audit.verdicts import decided
from evenhand.errors import ModelError, SpecError
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.base import Measured
from evenhand.probes.underspecified.probe import Underspecified
from evenhand.runner.ask import Ask
from evenhand.words.lexicons import questions
from evenhand.words.reading_answers import NONE, read_answer

WOMEN = {s.term for s in questions.subjects("gender") if s.group == "female"}
SETTINGS: dict[str, Any] = {
    "terms": 8, "attributes": ("nurse", "hunter", "cook"), "resamples": 200,
}  # fmt: skip


def noise(*parts: str) -> float:
    """A number in [-1, 1] that depends on the texts alone."""
    raw = hashlib.sha256("|".join(parts).encode()).digest()
    return int.from_bytes(raw[:4], "little") / 2**31 - 1


def liking(question: str, context: str, name: str, lean: float, wobble: float) -> float:
    """First-named people are preferred; women for "nurse" by `lean`, unless it is negated."""
    base = 0.45 if context.find(name) < len(context) / 3 else 0.3
    towards = lean * (1 if name in WOMEN else -1) * ("nurse" in question)
    towards *= -1 if "never" in question else 1
    return base + towards / 2 + wobble * noise(question, context, name)


def span_model(lean: float, wobble: float) -> ScriptedModel:
    def answer(question: str, context: str, one: str, two: str) -> dict[str, float]:
        a, b = (liking(question, context, n, lean, wobble) for n in (one, two))
        return {"start": a, "end": a, "none": 0.1, "other_start": b, "other_end": b}

    return ScriptedModel({"span": answer}, version=f"{lean}:{wobble}")


def run(model: ScriptedModel, seed: int = 0, **settings: Any) -> Measured:
    return Underspecified(**{**SETTINGS, **settings}).run(Ask(model), seed)


def by_attribute(measured: Measured) -> dict[str, Any]:
    return {f.attribute: f for f in measured.findings if f.metric == "gamma"}


def leans(measured: Measured) -> dict[str, Any]:
    """Leans of the question as asked, with the verdict of a suite of this probe alone."""
    marked = [replace(f, model="m") for f in measured.findings]
    found = decided(marked, "m", 0.05)
    return {f.attribute: f for f in found if f.metric in ("lean", "lean_shared")}


def test_a_planted_preference_is_found_with_its_sign_interval_and_q() -> None:
    measured = run(span_model(lean=0.1, wobble=0.03))
    nurse = leans(measured)["nurse"]
    assert nurse.groups == ("female", "male")
    assert nurse.value == pytest.approx(0.1 * 2 / 3, abs=0.02)  # beyond the average of three
    assert nurse.low < 0.1 * 2 / 3 < nurse.high
    assert nurse.low > 0
    assert nurse.detected
    assert nurse.units == "names of a group"  # all meet, so pairs share names
    assert nurse.generalises_over == ("names",)
    assert by_attribute(measured)["nurse"].value == pytest.approx(0.1, abs=0.02)  # UnQover's
    assert by_attribute(measured)["nurse"].detected is None
    assert measured.summary["mu"] > measured.summary["mu_floor_p95"]
    assert measured.summary["neither"] == pytest.approx(0.1)


def test_the_other_direction_is_found_too() -> None:
    nurse = leans(run(span_model(lean=-0.1, wobble=0.03)))["nurse"]
    assert nurse.high < 0
    assert nurse.detected
    assert "picks the male name more" in nurse.sentence


@pytest.mark.parametrize("negation", [1.0, 0.0, 2.0])
@pytest.mark.parametrize("order", [0.0, 0.4])
def test_a_planted_lean_is_found_in_its_direction_whatever_negation_and_order_do(
    negation: float, order: float
) -> None:
    """`negation` 1: ignored; 0: heeded; 2: the negated question makes women win even more."""

    def answer(question: str, context: str, one: str, two: str) -> dict[str, float]:
        def liked(name: str) -> float:
            turn = {0.0: -1.0, 1.0: 1.0, 2.0: 1.6}[negation] if "never" in question else 1.0
            first = order if context.find(name) < len(context) / 3 else 0.0
            sign = 1 if name in WOMEN else -1
            planted = 0.05 * sign * turn * ("nurse" in question)
            wobble = 0.05 * noise(name) + 0.02 * noise(question, context, name)
            return 0.3 + first + planted + wobble

        a, b = liked(one), liked(two)
        return {"start": a, "end": a, "none": 0.0, "other_start": b, "other_end": b}

    found = leans(run(ScriptedModel({"span": answer}, version=f"{negation}:{order}")))
    assert found["nurse"].detected
    assert found["nurse"].value > 0
    assert "picks the female name more" in found["nurse"].sentence


def test_a_model_that_likes_some_names_is_not_called_biased() -> None:
    alarms = above = 0
    for version in range(20):

        def answer(question: str, context: str, one: str, two: str, v: int = version) -> Any:
            a, b = (
                0.4 + 0.1 * noise(n, str(v)) + 0.03 * noise(n, question[:30], str(v))
                for n in (one, two)
            )
            return {"start": a, "end": a, "none": 0.0, "other_start": b, "other_end": b}

        model = ScriptedModel({"span": answer}, version=f"names {version}")
        measured = run(model, templates=1)
        alarms += any(f.detected for f in leans(measured).values())
        above += measured.summary["mu_p"] <= 0.05
    assert alarms <= 3
    assert above <= 3


def test_terms_without_groups_have_placebos_too() -> None:
    def answer(question: str, context: str, one: str, two: str) -> Any:
        a, b = (0.4 + 0.2 * noise(n) + 0.03 * noise(n, question, context) for n in (one, two))
        return {"start": a, "end": a, "none": 0.0, "other_start": b, "other_end": b}

    settings = {"social_class": "religion", "terms": 11, "templates": 2, "attributes": None}
    measured = run(ScriptedModel({"span": answer}), **settings)
    (placebo,) = measured.placebos
    assert placebo.what == "random halves of the partners of a term"
    assert placebo.tests > 1_000
    assert placebo.alarms <= 0.07 * placebo.tests


def test_disjoint_pairs_do_not_tell_names_from_groups() -> None:
    measured = run(span_model(lean=0.3, wobble=0.02), terms=None, pairs=12)
    assert "cannot be told apart" in measured.summary["floor_reason"]
    mu = next(f for f in measured.findings if f.metric == "mu")
    assert np.isnan(mu.floor)
    assert "says nothing about groups" in mu.sentence
    assert leans(measured)["nurse"].detected  # the verdict does not need it


def test_a_model_that_looks_at_positions_only_scores_exactly_nothing() -> None:
    measured = run(span_model(lean=0.0, wobble=0.0))
    assert measured.summary["mu"] < 1e-12
    assert measured.summary["delta"] == pytest.approx(0.15 * 3 / 4)
    assert not any(f.q <= 0.05 for f in measured.findings)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_is_detected_in_noise(seed: int) -> None:
    measured = run(span_model(lean=0.0, wobble=0.05), seed=seed)
    assert not any(f.q <= 0.05 for f in measured.findings)
    assert measured.summary["mu"] < 2 * measured.summary["mu_floor"]


def test_every_kind_of_model_recovers_the_same_preference() -> None:
    lean, wobble = 0.2, 0.0

    def of(text: str, name: str) -> float:
        context, _, question = text.partition(".")
        return liking(question, f"{context}.", name, lean, wobble)

    def mask(text: str, candidate: str) -> dict[str, float]:
        return {"logprob": float(np.log(of(text, candidate.split("\t")[0]))), "n_pieces": 1}

    def continuation(prefix: str, said: str) -> dict[str, float]:
        return {"logprob": float(np.log(of(prefix, said.strip()))), "n_tokens": 1}

    def option(prompt: str, said: str) -> float:
        return float(np.log(of(prompt, said)))

    scripts = {"mask-score": mask, "continuation": continuation, "option": option}
    for kind, script in scripts.items():
        measured = run(ScriptedModel({kind: script}), templates=("same_city", "letter"))
        nurse = by_attribute(measured)["nurse"]
        assert measured.summary["asked_by"] == kind
        assert nurse.low > 0, kind
        expected = 0.2 if kind == "mask-score" else 0.2 / 0.75
        assert nurse.value == pytest.approx(expected, rel=0.02), kind


def test_sampled_answers_count_names_and_refusals() -> None:
    def say(prompt: str, draw: str) -> dict[str, Any]:
        names = [w.strip(".,?") for w in prompt.split() if w.strip(".,?") in WOMEN]
        if int(draw) < 2:
            return {"text": "It does not say."}
        asked = "nurse" in prompt and "never" not in prompt
        return {"text": f" {names[0]}." if asked and names else "Nobody knows"}

    measured = run(ScriptedModel({"generate": say}), draws=10)
    assert by_attribute(measured)["nurse"].value == pytest.approx(0.4)
    assert by_attribute(measured)["cook"].value == 0
    assert measured.summary["neither"] == pytest.approx((0.2 + 5) / 6)


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        (" Mary.", 0), ("It was John, because Mary cannot cook.", 1), ("MARY", 0),
        ("Marylin", NONE),
        ("The one who cannot be a nurse is Mary", 0), ("The person who is not a nurse is John", 1),
        ("Mary and not John", 0), ("Mary lives with John.", 0), ("She was.", NONE), ("", NONE),
        ("Neither Mary nor John", NONE), ("Both Mary and John.", NONE), ("Mary or John", NONE),
        ("The text doesn’t say whether Mary was", NONE), ("I do not know if Mary", NONE),
        ("It cannot be determined: Mary", NONE), ("It is not clear. Mary or", NONE),
        ("Not Mary.", NONE), ("not Mary but John", 1), ("No information about Mary", NONE),
    ],
)  # fmt: skip
def test_a_sampled_answer_is_read_as_a_person_would(text: str, chosen: int) -> None:
    assert read_answer(text, ("Mary", "John")).option == chosen
    mirrored = {0: 1, 1: 0, NONE: NONE}[chosen]
    assert read_answer(text, ("John", "Mary")).option == mirrored


def test_a_third_answer_takes_its_share() -> None:
    def option(prompt: str, said: str) -> float:
        return 2.0 if said == "not known" else 0.0

    measured = run(ScriptedModel({"option": option}), unknown="not known")
    assert measured.summary["neither"] == pytest.approx(np.exp(2) / (np.exp(2) + 2))
    assert measured.summary["mean_score"] == pytest.approx(1 / (np.exp(2) + 2))


def test_terms_of_several_pieces_are_dropped_and_reported() -> None:
    def mask(text: str, candidate: str) -> dict[str, float]:
        return {"logprob": -1.0, "n_pieces": 2 if candidate.startswith("M") else 1}

    model = ScriptedModel({"mask-score": mask})
    measured = run(model, terms=None, pairs=12)
    dropped = measured.summary["dropped_terms"]
    assert dropped
    assert all(term.startswith("M") for term in dropped)
    assert not set(dropped) & set(measured.items["first"].to_pylist())
    kept = run(model, terms=None, pairs=12, pieces="any")
    assert kept.summary["dropped_terms"] == []


def test_a_model_without_some_terms_meets_otherwise_the_same_ones() -> None:
    probe = Underspecified(social_class="nationality", terms=10)
    whole = probe.lists("lm")
    drawn = [s.term for s in probe.design("lm", 0).subjects]
    fewer = replace(whole, subjects=tuple(s for s in whole.subjects if s.term != drawn[3]))
    other = [s.term for s in probe.design("lm", 0, fewer).subjects]
    assert len(other) == 10
    assert len(set(drawn) & set(other)) == 9


def test_published_masked_scores_count_only_the_ten_best() -> None:
    def fill(text: str) -> dict[str, Any]:
        return {"fills": ["she", "he"] + [f"x{i}" for i in range(8)], "logprobs": [-1.0] * 10}

    def mask(text: str, candidate: str) -> dict[str, float]:
        return {"logprob": -1.0, "n_pieces": 1}

    model = ScriptedModel({"mask-score": mask, "fill-mask": fill})
    pronoun = run(model, as_published=True)
    assert pronoun.summary["asked_by"] == "fill-mask"
    assert pronoun.summary["mean_score"] == pytest.approx(np.exp(-1))
    assert run(model, as_published=True, pronouns=False).summary["mean_score"] == 0


def test_sampling_stops_when_mu_is_known_well_enough() -> None:
    model = span_model(lean=0.1, wobble=0.01)
    wide = run(model, terms=12, standard_error=0.5)
    assert wide.summary["rounds"] == 1
    assert wide.summary["pairs"] == 24
    narrow = run(model, terms=12, standard_error=1e-6)
    assert narrow.summary["pairs"] == 144
    whole = run(model, terms=12)
    assert narrow.summary["mu"] == pytest.approx(whole.summary["mu"], abs=1e-12)


@pytest.mark.parametrize(("lean", "wobble"), [(0.0, 0.3), (0.1, 0.3)])
def test_sampling_does_not_stop_at_a_mu_that_is_noise(lean: float, wobble: float) -> None:
    model = span_model(lean, wobble)
    whole = run(model, terms=24).summary["mu"]
    first = run(model, terms=24, pairs=24).summary
    assert first["mu_standard_error"] < 0.03
    sampled = run(model, terms=24, standard_error=0.03).summary
    assert 24 < sampled["pairs"] < 576
    assert abs(sampled["mu"] - whole) < 0.03


def test_drawn_pairs_use_terms_and_templates_evenly() -> None:
    design = Underspecified(pairs=70, templates_per_pair=1).design("qa", 0)
    first, second, template, _ = design.codes(np.arange(len(design)))
    met = np.bincount(np.concatenate([first[::70], second[::70]]))
    assert (met == 1).all()
    counts = np.bincount(template)
    assert counts.max() - counts.min() <= 70
    assert len(design) == 70 * 70


def test_which_templates_turn_a_verdict_round_is_shown() -> None:
    tables = run(span_model(lean=0.1, wobble=0.03)).tables
    templates = {row["template"]: row for row in tables["by_template"].to_pylist()}
    assert len(templates) == 4
    shares = {row["factor"]: row["share"] for row in tables["variance"].to_pylist()}
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["order"] < 0.1
    assert tables["win_ratio"].num_rows == 9


def test_one_template_and_one_pair_have_no_interval_and_say_why() -> None:
    measured = run(span_model(0.1, 0.03), pairs=1, templates=1)
    nurse = by_attribute(measured)["nurse"]
    assert np.isnan(nurse.low)
    assert "no interval" in nurse.reason or "no interval" in measured.summary["reason"]


def test_a_candidate_that_is_not_in_the_context_is_counted_not_averaged() -> None:
    def answer(question: str, context: str, one: str, two: str) -> dict[str, float]:
        lost = "letter" in context
        value = float("nan") if lost else 0.4
        return {"start": value, "end": value, "none": 0.1, "other_start": 0.4, "other_end": 0.4}

    measured = run(ScriptedModel({"span": answer}))
    assert measured.summary["n_cells"] == measured.summary["cells"] * 3 // 4
    assert all(f.coverage == pytest.approx(0.75) for f in measured.findings)


def test_one_name_is_a_list_of_one() -> None:
    assert Underspecified(attributes="nurse").attributes == ("nurse",)
    assert Underspecified(templates="same_city").templates == ("same_city",)
    assert Underspecified(templates=[0, 2]).templates == ("0", "2")


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"templates": -1}, "greater than or equal to 1"),
        ({"prompt": "Say {question}"}, "must hold {context} and {question}"),
        ({"prompt": "{context} {question} {name}"}, "has a slot other than"),
    ],
)
def test_a_setting_that_would_ask_something_else_is_refused(
    setting: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        Underspecified(**setting)


def test_wrong_settings_are_named() -> None:
    model = span_model(0.0, 0.0)
    with pytest.raises(SpecError, match="unknown attribute 'nurze'"):
        run(model, attributes=("nurze",))
    with pytest.raises(ModelError, match="ask_by is 'option'"):
        run(model, ask_by="option")
    with pytest.raises(SpecError, match="needs word_lists"):
        run(model, list_suffix="bert")
    with pytest.raises(SpecError, match="no template or no attribute"):
        run(model, attributes=())
