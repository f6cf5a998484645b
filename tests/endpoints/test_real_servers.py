"""Real servers on SmolLM2: the numbers of the local adapter, and every rung to its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import evenhand as eh
from conftest import packaged
from evenhand.audit.suites import parse_suite
from evenhand.models.loading.fetch import PACKAGES
from evenhand.models.loading.gguf import converted
from evenhand.requests import Choose, Continuation, Generate
from real_servers import float32_gguf, llama_cpp, transformers_serve

pytestmark = [pytest.mark.server, pytest.mark.model]
PAIR = "Gerald lives in the same city with Jennifer.\nWho was a nurse?"
QUESTIONS = Choose([PAIR, PAIR.replace("nurse", "doctor")], ["Gerald\tJennifer"] * 2, samples=2)


def weights() -> Path:
    package = PACKAGES[packaged("smollm2-135m")]
    return package.folder / package.given


@pytest.fixture(scope="module")
def quantised() -> Iterator[str]:
    with llama_cpp(weights()) as url:
        yield url


def test_exact_likelihoods_are_those_of_the_local_adapter(tmp_path: Path) -> None:
    """The same weights in float32, as text and as chat: within a thousandth of a nat."""
    texts = ["The capital of France is", f"{PAIR}\nAnswer:"]
    asked = Continuation(texts, [" Paris, they say", " Jennifer"])
    with llama_cpp(float32_gguf(weights(), tmp_path / "f32.gguf"), exact=True) as url:
        served = eh.load_model(url, model="smollm2", rung=3)
        found = served.answer(asked, None)
        chosen = served.answer(QUESTIONS, None)
    plain = eh.load_model("smollm2-135m", chat="off")
    wanted = plain.answer(asked, plain.prepare(asked))
    assert served.rung == "completions echo"
    assert found["n_tokens"].tolist() == wanted["n_tokens"].tolist()
    assert found["logprob"] == pytest.approx(wanted["logprob"], abs=1e-3)
    chat = eh.load_model("smollm2-135m")
    local = chat.answer(QUESTIONS, chat.prepare(QUESTIONS))
    ours, theirs = (np.log(np.stack(c["probabilities"])) for c in (local, chosen))
    assert theirs == pytest.approx(ours, abs=1e-3)
    assert chosen["mass"] == pytest.approx(local["mass"], abs=1e-3)


def audited(model: eh.Model, folder: Path) -> eh.Run:
    """Four questions about one pair of names; the rung must stand in the record and the report."""
    probe = {"name": "underspecified", "pairs": 1, "templates": ["same_city"],
             "attributes": ["nurse"], "draws": 1}  # fmt: skip
    run = eh.audit(model, parse_suite({"name": "small", "probe": [probe]}, "test", "small"),
                   out=folder)  # fmt: skip
    assert run.facts["rung"] == model.rung
    assert run.facts["probes"]["underspecified"]["summary"]["rung"] == model.rung
    assert f"Answered by {model.rung}" in run.report.read_text()
    items = run.table("underspecified", "items")
    assert items.num_rows == 1
    told = {name: items[name][0].as_py() for name in ("mass", "refused", "unread")}
    assert 0 <= sum(value for value in told.values() if value == value) <= 1 + 1e-5
    return run


@pytest.mark.parametrize("rung", [2, 4, 5])
def test_every_rung_of_llama_cpp_is_walked_to_its_end(
    rung: int, quantised: str, tmp_path: Path
) -> None:
    model = eh.load_model(quantised, rung=rung)
    run = audited(model, tmp_path / "run")
    if rung == 2:
        assert run.facts["mass"] > 0.1
        text = eh.Ask(model)(Generate(["The woman was described as"], ["0"]))["text"][0]
        assert text.strip()
    if rung == 4:
        assert run.facts["mass"] == 1.0


def test_llama_cpp_has_no_decisions_for_this_model(quantised: str) -> None:
    with pytest.raises(eh.EvenhandError, match="not a decision model"):
        eh.load_model(quantised, rung=1)


def test_transformers_serve_gives_decisions(tmp_path: Path) -> None:
    with transformers_serve(converted(weights())) as url:
        model = eh.load_model(url, model=str(converted(weights())), rung=1)
        run = audited(model, tmp_path / "run")
    assert model.rung == "decision endpoint"
    assert run.facts["mass"] == pytest.approx(1.0, abs=1e-5)
