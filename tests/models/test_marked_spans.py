"""The vector of a marked part of a text, against plain transformers."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.errors import EvenhandError
from evenhand.models.loading.resolver import resolve
from evenhand.requests import Embed
from evenhand.runner.ask import Ask

pytest.importorskip("torch", reason="needs the hf extra")

TEXTS = ["⟦Gerald⟧ lives in the city .", "the nurse said that ⟦Jennifer⟧ was with ⟦Jennifer⟧ ."]
PLAIN = [t.replace("⟦", "").replace("⟧", "") for t in TEXTS]


def states_by_word(folder: str, kind: str, text: str, word: str) -> np.ndarray:
    """Mean hidden state over the pieces of a word, wherever it stands, by transformers alone."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    auto = {"masked": "AutoModelForMaskedLM", "causal": "AutoModelForCausalLM"}[kind]
    model = getattr(transformers, auto).from_pretrained(folder, dtype=torch.float32).eval()
    ids = tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
    offsets = ids.pop("offset_mapping")[0].tolist()
    with torch.inference_mode():
        hidden = model.base_model(**ids)[0][0]
    starts = [i for i in range(len(text)) if text.startswith(word, i)]
    at = [
        n for n, (a, b) in enumerate(offsets)
        if b > a and any(a < s + len(word) and b > s for s in starts)
    ]  # fmt: skip
    if kind == "causal" and len(at) > 1:
        at = [n for n in at if n > 0]
    return hidden[at].mean(0).numpy()


@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_the_vector_is_the_mean_over_the_pieces_of_the_marked_word(tiny, kind):
    folder = tiny(kind)
    found = Ask(resolve(folder))(Embed(TEXTS, marked=True)).matrix("vector")
    for vector, text, word in zip(found, PLAIN, ("Gerald", "Jennifer")):
        assert np.allclose(vector, states_by_word(folder, kind, text, word), atol=1e-4)


def test_a_causal_model_gives_a_text_the_mean_of_its_tokens_but_the_first(tiny):
    import torch
    import transformers

    folder = tiny("causal")
    text = "the man worked as a doctor"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.inference_mode():
        hidden = model.base_model(**tokenizer(text, return_tensors="pt"))[0][0]
    found = Ask(resolve(folder))(Embed([text])).matrix("vector")[0]
    assert np.allclose(found, hidden[1:].mean(0).numpy(), atol=1e-4)


@pytest.mark.parametrize("text", ["no marks", "⟦open only", "⟦⟧ empty"])
def test_texts_without_a_marked_part_are_refused(tiny, text):
    with pytest.raises(EvenhandError, match="no marked part"):
        Ask(resolve(tiny("masked")))(Embed([text], marked=True))
