"""Transformers models, pipelines and adapters in memory: the same scores as from their folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import ModelError, SpecError
from evenhand.requests import Choose, Classify, Continuation, MaskScore, Requests

transformers = pytest.importorskip("transformers", reason="needs the hf extra")
torch = pytest.importorskip("torch", reason="needs the hf extra")

ASKED: dict[str, Requests] = {
    "causal": Continuation(["the man worked as"] * 2, [" a doctor", " a nurse"]),
    "masked": MaskScore(["the <mask> worked as a nurse"] * 2, ["man", "woman"]),
    "classifier": Classify(["the man worked as a doctor", "she said that was not a letter"]),
    "choice": Choose(["Who was a nurse ?"], ["Gerald\tJennifer"]),
}
CLASSES = {
    "causal": "AutoModelForCausalLM",
    "masked": "AutoModelForMaskedLM",
    "classifier": "AutoModelForSequenceClassification",
    "choice": "AutoModelForMultipleChoice",
}
PIPELINES = {
    "causal": "text-generation",
    "masked": "fill-mask",
    "classifier": "text-classification",
}
PROBES = [{"name": "counterfactual", "swaps": ["words"], "identities": ["religion"]}]


def held(folder: str, kind: str) -> tuple[Any, Any]:
    model = getattr(transformers, CLASSES[kind]).from_pretrained(folder)
    return model, transformers.AutoTokenizer.from_pretrained(folder)


def answered(model: eh.Model, asked: Requests) -> list[np.ndarray]:
    return [np.asarray(v) for v in model.answer(asked, model.prepare(asked)).values()]


def alike(one: eh.Model, two: eh.Model, asked: Requests) -> bool:
    """Equal but for rounding: weights of a folder lie in the order that the processor likes."""
    pairs = zip(answered(one, asked), answered(two, asked), strict=True)
    return all(np.allclose(a, b, 1e-6, 1e-6, equal_nan=True) for a, b in pairs)


@pytest.mark.parametrize("kind", ASKED)
def test_an_object_answers_as_its_folder_does(tiny: Any, kind: str) -> None:
    folder = tiny(kind)
    model, tokenizer = held(folder, kind)
    mine = eh.load_model(model, tokenizer=tokenizer)
    assert mine.kind == kind
    assert alike(mine, eh.load_model(folder), ASKED[kind])
    assert mine.name == kind  # as the folder is called


@pytest.mark.parametrize("kind", PIPELINES)
def test_a_pipeline_is_its_model(tiny: Any, kind: str) -> None:
    model, tokenizer = held(tiny(kind), kind)
    pipe = transformers.pipeline(PIPELINES[kind], model=model, tokenizer=tokenizer)
    assert alike(eh.load_model(pipe), eh.load_model(Path(tiny(kind))), ASKED[kind])


def test_a_classifying_pipeline_gives_the_numbers_of_its_own_function(tiny: Any) -> None:
    model, tokenizer = held(tiny("classifier"), "classifier")
    for function in ("sigmoid", "softmax", "none"):
        pipe = transformers.pipeline(
            "text-classification", model=model, tokenizer=tokenizer, function_to_apply=function,
            top_k=None,
        )  # fmt: skip
        mine = eh.load_model(pipe)
        asked = ASKED["classifier"]
        got = np.asarray(mine.answer(asked, mine.prepare(asked))["probabilities"])
        rows = pipe(list(asked.text))  # type: ignore[attr-defined]
        order = {f"LABEL_{k}": k for k in range(3)}
        want = [[r["score"] for r in sorted(row, key=lambda r: order[r["label"]])] for row in rows]
        assert np.allclose(got, want, atol=1e-5)


def test_what_is_known_of_it_is_its_content(tiny: Any) -> None:
    model, tokenizer = held(tiny("classifier"), "classifier")
    again, _ = held(tiny("classifier"), "classifier")
    first = eh.load_model(model, tokenizer=tokenizer)
    assert first.fingerprint == eh.load_model(again, tokenizer=tokenizer).fingerprint
    known = first.fingerprint
    with torch.no_grad():
        model.classifier.bias += 0.5
    assert first.fingerprint != known  # the very object was trained on
    assert eh.load_model(model, tokenizer=tokenizer).fingerprint == first.fingerprint
    tokenizer.add_tokens(["Jennifer"])
    other = eh.load_model(again, tokenizer=held(tiny("classifier"), "classifier")[1])
    assert other.fingerprint == known


def test_a_run_is_resumed_with_the_same_object_and_refused_with_another(
    tiny: Any, tmp_path: Path
) -> None:
    model, tokenizer = held(tiny("classifier"), "classifier")
    folder = tmp_path / "run"
    first = eh.audit(model, PROBES, tokenizer=tokenizer, out=folder)
    again = eh.audit(model, PROBES, tokenizer=tokenizer, out=folder)
    assert again.facts["attempts"] == 2
    assert [f.value for f in again.findings] == [f.value for f in first.findings]
    with torch.no_grad():
        model.classifier.bias += 0.5
    with pytest.raises(eh.EvenhandError, match="has changed since this run began"):
        eh.audit(model, PROBES, tokenizer=tokenizer, out=folder)
    with pytest.raises(eh.EvenhandError, match="was a Python object"):
        eh.resume(folder)


def test_a_model_in_training_goes_on_training(tiny: Any, tmp_path: Path) -> None:
    model, tokenizer = held(tiny("classifier"), "classifier")
    model.train()
    model.bert.pooler.eval()  # somebody froze a part
    tokenizer.model_max_length = 77
    eh.audit(model, PROBES, tokenizer=tokenizer, out=tmp_path / "run")
    assert model.training
    assert not model.bert.pooler.training
    assert tokenizer.model_max_length == 77


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "an object without its tokenizer"),
        ({"tokenizer": "bert-base"}, "expected a tokenizer of transformers"),
        ({"tokenizer": True, "device": "meta"}, "computes in 'cpu'"),
        ({"tokenizer": True, "dtype": "float16"}, "computes in 'float32'"),
        ({"tokenizer": True, "revision": "main"}, "load that revision into the object"),
        ({"tokenizer": True, "kind": "vectors"}, "is not a model of that kind"),
        ({"tokenizer": True, "compile": True}, "whose layers are not changed"),
    ],
)
def test_what_does_not_go_with_an_object_is_refused(tiny: Any, given: Any, told: str) -> None:
    model, tokenizer = held(tiny("masked"), "masked")
    if given.get("tokenizer") is True:
        given = {**given, "tokenizer": tokenizer}
    with pytest.raises(SpecError, match=told):
        eh.load_model(model, **given)


def test_a_tokenizer_alone_is_no_function_of_texts(tiny: Any) -> None:
    _, tokenizer = held(tiny("masked"), "masked")
    with pytest.raises(SpecError, match="a tokenizer without its model. Give both"):
        eh.load_model(tokenizer)


def test_a_masked_model_is_not_asked_as_a_causal_one(tiny: Any) -> None:
    for given in (tiny("masked"), tiny("roberta")):
        with pytest.raises(ModelError, match="fills masks and sees the words after them"):
            eh.load_model(given, kind="causal")
    model, tokenizer = held(tiny("masked"), "masked")
    with pytest.raises(ModelError, match="Leave --as causal .* out"):
        eh.load_model(model, tokenizer=tokenizer, kind="causal")


def test_a_tokenizer_belongs_to_objects(tiny: Any) -> None:
    _, tokenizer = held(tiny("masked"), "masked")
    with pytest.raises(SpecError, match="brings its own"):
        eh.load_model(tiny("masked"), tokenizer=tokenizer)
    with pytest.raises(SpecError, match="brings its own"):
        eh.audit(tiny("classifier"), labels=["a"])
    with pytest.raises(SpecError, match="which is not a transformers model"):
        eh.load_model({"a": [1.0], "b": [2.0]}, tokenizer=tokenizer)


def test_a_zero_shot_pipeline_is_refused_with_what_to_do(tiny: Any) -> None:
    model, tokenizer = held(tiny("classifier"), "classifier")
    model.config.label2id = {"entailment": 0, "neutral": 1, "contradiction": 2}
    pipe = transformers.pipeline("zero-shot-classification", model=model, tokenizer=tokenizer)
    with pytest.raises(ModelError, match="Give a function instead"):
        eh.load_model(pipe)


def test_a_path_that_is_not_there_is_no_hub_id(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no such file or folder"):
        eh.audit(tmp_path / "nothing")


def test_an_object_is_mitigated_in_memory_and_saved_from_its_folder_only(
    tiny: Any, tmp_path: Path
) -> None:
    model, tokenizer = held(tiny("masked"), "masked")
    fitted = eh.mitigate(model, "leace", tokenizer=tokenizer)
    asked = ASKED["masked"]
    assert not alike(fitted.model, fitted.base, asked)
    with pytest.raises(ModelError, match="Save it with its save_pretrained"):
        fitted.save(tmp_path / "saved")
    before = {k: v.clone() for k, v in model.state_dict().items()}
    texts = ["the man worked as a doctor", "she said that he was a nurse"] * 30
    trained = eh.mitigate(model, "plain", tokenizer=tokenizer, texts=texts, steps=2)
    assert not alike(trained.model, trained.base, asked)
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
