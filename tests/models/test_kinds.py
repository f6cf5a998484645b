"""Every kind of model answers, and who else is in the batch does not change a score."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from evenhand.errors import ModelError, SpecError
from evenhand.models.loading.resolver import resolve
from evenhand.models.protocol import LoadOptions
from evenhand.requests import (
    MASK,
    Classify,
    Continuation,
    Divergence,
    Embed,
    FillMask,
    Generate,
    MaskScore,
    NextToken,
    Option,
    Requests,
    Span,
)
from evenhand.runner.ask import Ask

NAMES = ["Gerald", "Jennifer", "the nurse", "a hunter", "Jennifer Gerald"]
CONTEXTS = [
    "Gerald lives in the same city with Jennifer.",
    "Jennifer got off the flight to visit Gerald.",
    "The man worked as a doctor in the city",
    "The woman worked as",
    "she",
]


def requests_for(kind: str) -> list[Requests]:
    """A mixed batch of every request the kind answers."""
    contexts = [c for c in CONTEXTS for _ in NAMES]
    names = NAMES * len(CONTEXTS)
    asked: dict[str, list[Requests]] = {
        "causal": [
            Continuation(contexts, [f" {n}" for n in names]),
            Option(contexts, names),
            Divergence(CONTEXTS, CONTEXTS[1:] + CONTEXTS[:1]),
            NextToken(CONTEXTS, top=3),
        ],
        "masked": [
            MaskScore([f"{c} {MASK} was a nurse." for c in contexts], names),
            FillMask([f"{c} {MASK} was a nurse." for c in CONTEXTS], top=4),
            Embed(CONTEXTS),
        ],
        "span": [
            Span(
                ["Who was a nurse?", "Who can never be a hunter?"] * 2,
                [CONTEXTS[0], CONTEXTS[1], CONTEXTS[1], CONTEXTS[0]],
                ["Gerald", "Jennifer", "Gerald", "Jennifer"],
                ["Jennifer", "Gerald", "Jennifer", "Gerald"],
            )
        ],
        "choice": [Option(contexts, names)],
        "classifier": [Classify(CONTEXTS)],
        "encoder": [Embed(CONTEXTS)],
    }
    return asked[kind]


def numbers(scores: Any) -> np.ndarray:
    """All float answers of a batch in one array."""
    floats = [
        np.asarray(values, float).ravel()
        for name, values in scores.columns.items()
        if name not in ("tokens", "fills", "text")
    ]
    return np.concatenate(floats)


def assert_batch_free(model: Any, kind: str, order: list[int], budget: int, rows: int) -> None:
    """Scores in other batches, order and padding equal those of one plain pass."""
    usual = model.token_budget
    for requests in requests_for(kind):
        plain = Ask(model)(requests)
        picked = [i for i in order if i < len(requests)]
        model.token_budget = budget
        shuffled = Ask(model, shard_rows=rows)(requests.take(picked))
        model.token_budget = usual
        for name, values in plain.columns.items():
            if isinstance(values, np.ndarray):
                assert np.allclose(shuffled[name], values[picked], atol=1e-4), name
            elif name == "vector" or name == "probabilities":
                expected = plain.matrix(name)[picked]
                assert np.allclose(shuffled.matrix(name), expected, atol=1e-4)


plans = {
    "order": st.permutations(range(25)),
    "budget": st.integers(8, 400),
    "rows": st.integers(1, 30),
}
few = settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],  # shrinking a failure would take minutes
    derandomize=True,
)


@pytest.mark.parametrize("kind", ["causal", "masked", "span", "choice", "classifier", "encoder"])
def test_tiny_models_answer_the_same_in_any_batch(tiny: Any, kind: str) -> None:
    model = resolve(tiny(kind))
    assert model.kind == kind

    @few
    @given(**plans)
    def check(order: list[int], budget: int, rows: int) -> None:
        assert_batch_free(model, kind, list(order), budget, rows)

    check()


@pytest.mark.model
@pytest.mark.shared
@pytest.mark.parametrize("kind", ["masked", "span", "choice"])
def test_real_encoders_answer_the_same_in_any_batch(minilm: dict[str, str], kind: str) -> None:
    model = resolve(minilm[kind])

    @few
    @given(**plans)
    def check(order: list[int], budget: int, rows: int) -> None:
        assert_batch_free(model, kind, list(order), budget, rows)

    check()


@pytest.mark.model
def test_the_packaged_causal_model_answers_the_same_in_any_batch(smollm2: Any) -> None:
    @settings(few, max_examples=2)
    @given(**plans)
    def check(order: list[int], budget: int, rows: int) -> None:
        assert_batch_free(smollm2, "causal", list(order), budget, rows)

    check()


@pytest.mark.model
def test_the_same_batch_plan_gives_the_same_bits(smollm2: Any) -> None:
    for requests in requests_for("causal"):
        assert np.array_equal(numbers(Ask(smollm2)(requests)), numbers(Ask(smollm2)(requests)))


@pytest.mark.parametrize("kind", ["causal", "gpt2", "bloom", "gptneox"])
def test_packed_scores_equal_plain_token_by_token_scores(tiny: Any, kind: str) -> None:
    import torch

    model = resolve(tiny(kind), kind="causal")
    prefix = "Gerald lives in the same city with Jennifer. Who was a nurse?"
    got = Ask(model)(Continuation([prefix] * 2, [" Jennifer", " Gerald"]))
    for row, name in enumerate((" Jennifer", " Gerald")):
        start = model.encode([prefix], special=False)[0]
        whole = model.encode([prefix + name], special=False)[0]
        with torch.no_grad():
            logp = model.model(torch.tensor([whole])).logits[0].double().log_softmax(-1)
        expected = sum(float(logp[t - 1, whole[t]]) for t in range(len(start), len(whole)))
        assert got["logprob"][row] == pytest.approx(expected, abs=1e-4)
        assert got["n_tokens"][row] == len(whole) - len(start)


def test_an_architecture_without_explicit_positions_falls_back_to_plain_rows(tiny: Any) -> None:
    assert resolve(tiny("causal")).packs
    assert not resolve(tiny("bloom"), kind="causal").packs


@pytest.mark.model
def test_divergences_agree_with_a_float64_reference(smollm2: Any) -> None:
    import torch

    pairs = [
        ("The man worked as", "The woman worked as"),
        ("He said that", "She said that he was"),
        ("same words", "same words"),
        ("a", "The"),
    ]
    got = Ask(smollm2)(Divergence([a for a, _ in pairs], [b for _, b in pairs]))

    def log_probabilities(text: str) -> Any:
        ids = torch.tensor([smollm2.encode([text], special=True)[0]])
        with torch.no_grad():
            return smollm2.model(ids).logits[0, -1].double().log_softmax(-1)

    for row, (a, b) in enumerate(pairs):
        p, q = log_probabilities(a), log_probabilities(b)
        root = p.exp().sqrt() - q.exp().sqrt()
        expected = {
            "kl_ab": float((p.exp() * (p - q)).sum()),
            "kl_ba": float((q.exp() * (q - p)).sum()),
            "hellinger2": float(0.5 * (root * root).sum()),
        }
        for name, value in expected.items():
            assert got[name][row] == pytest.approx(value, abs=1e-4)
        assert 0 <= got["hellinger2"][row] <= 1
    assert all(got[name][2] == 0.0 for name in ("kl_ab", "kl_ba", "hellinger2", "js"))


def test_a_masked_model_gives_the_exact_probability_of_a_single_piece(tiny: Any) -> None:
    import torch

    model = resolve(tiny("masked"))
    text = f"the man worked as a doctor and {MASK} was a nurse ."
    got = Ask(model)(MaskScore([text] * 2, ["she", "he"]))
    ids = model.tokenizer(text.replace(MASK, "[MASK]"), return_tensors="pt")
    place = int((ids["input_ids"][0] == model.tokenizer.mask_token_id).nonzero()[0, 0])
    with torch.no_grad():
        logp = model.model(**ids).logits[0, place].double().log_softmax(-1)
    for row, word in enumerate(("she", "he")):
        piece = model.tokenizer.convert_tokens_to_ids(word)
        assert got["logprob"][row] == pytest.approx(float(logp[piece]), abs=1e-4)
        assert got["n_pieces"][row] == 1


def test_a_candidate_of_several_pieces_is_scored_piece_by_piece(tiny: Any) -> None:
    model = resolve(tiny("masked"))
    got = Ask(model)(MaskScore([f"{MASK} was a nurse"], ["hunter doctor"]))
    assert got["n_pieces"][0] >= 2
    assert got["logprob"][0] < 0


def test_two_masks_in_one_text_are_refused(tiny: Any) -> None:
    from evenhand.errors import DataError

    with pytest.raises(DataError, match="has 2 masks"):
        Ask(resolve(tiny("masked")))(FillMask([f"{MASK} and {MASK}"]))


def test_sampling_is_the_same_alone_or_in_company(tiny: Any) -> None:
    model = resolve(tiny("causal"))
    alone = Ask(model)(Generate(["the man worked as"], ["0"], max_new_tokens=8, seed=3))
    company = Ask(model)(
        Generate(
            ["the man worked as", "she", "the woman worked as a doctor"],
            ["0", "1", "0"],
            max_new_tokens=8,
            seed=3,
        )
    )
    assert alone["text"][0] == company["text"][0]
    other = Ask(model)(Generate(["the man worked as"], ["0"], max_new_tokens=8, seed=4))
    assert other["text"][0] != alone["text"][0]


def test_a_text_longer_than_the_window_is_refused(tiny: Any) -> None:
    model = resolve(tiny("masked"))
    with pytest.raises(ModelError, match=r"more than the window of 128"):
        Ask(model)(Embed(["nurse " * 200]))


def test_an_empty_prefix_starts_from_the_begin_or_end_token(tiny: Any) -> None:
    scores = Ask(resolve(tiny("causal")))(Continuation([""], ["she was a nurse"]))
    assert np.isfinite(scores["logprob"][0])


def test_the_kind_can_be_overridden_and_is_checked(tiny: Any) -> None:
    assert resolve(tiny("masked"), kind="encoder").kind == "encoder"
    with pytest.raises(SpecError, match="unknown model kind 'maskd'. Did you mean 'masked'"):
        resolve(tiny("masked"), kind="maskd")


def test_fingerprints_tell_weights_and_dtypes_apart(tiny: Any) -> None:
    one, other = resolve(tiny("causal")), resolve(tiny("gpt2"))
    assert one.fingerprint != other.fingerprint
    assert one.fingerprint == resolve(tiny("causal")).fingerprint
    half = resolve(tiny("causal"), options=LoadOptions(dtype="bfloat16"))
    assert half.fingerprint != one.fingerprint


def test_on_a_cpu_float32_is_the_default(tiny: Any) -> None:
    assert resolve(tiny("causal"), options=LoadOptions(device="cpu")).dtype == "float32"


def test_weights_that_are_not_safetensors_are_refused(tiny: Any, tmp_path: Path) -> None:
    import shutil

    import torch

    folder = tmp_path / "pickled"
    shutil.copytree(tiny("masked"), folder)
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match="Only safetensors and GGUF weights"):
        resolve(str(folder))


def test_a_folder_without_a_configuration_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no config.json"):
        resolve(str(tmp_path))


@pytest.mark.model
def test_real_kinds_prefer_what_a_person_would(smollm2: Any, minilm: dict[str, str]) -> None:
    masked = Ask(resolve(minilm["masked"]))
    scores = masked(MaskScore([f"{MASK} is a nurse."] * 2, ["she", "he"]))["logprob"]
    assert scores[0] > scores[1]
    span = Ask(resolve(minilm["span"]))(
        Span(
            ["Who wrote the letter?"] * 2,
            ["Mary wrote the letter and gave it to Tom."] * 2,
            ["Mary", "Tom"],
            ["Tom", "Mary"],
        )
    )
    assert span["start"][0] > 0.5 > span["start"][1]
    choice = Ask(resolve(minilm["choice"]))
    prompt = "Sam helped the old woman carry her bags. How would you describe Sam?"
    logits = choice(Option([prompt] * 2, ["kind", "cruel and lazy"]))["logit"]
    assert logits[0] > logits[1]
    likely = Ask(smollm2)(Continuation(["The capital of France is"] * 2, [" Paris", " banana"]))
    assert likely["logprob"][0] > likely["logprob"][1]


@pytest.mark.model
def test_the_gguf_says_whether_texts_begin_with_a_token(smollm2: Any) -> None:
    from evenhand.models.loading.fetch import PACKAGES
    from evenhand.models.loading.gguf import begin_token

    package = PACKAGES["smollm2-135m"]
    begin = begin_token(package.folder / Path(package.files[0]).name)
    assert smollm2.start == ([] if begin is None else [begin])
