"""What a server can do is looked at with questions of known answer; what is faked is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import ModelError, SpecError
from evenhand.models.endpoints.address import Address, safe
from evenhand.models.endpoints.ladder import KNOWN
from evenhand.requests import Choose, Generate
from scripted_server import NAME, ScriptedServer, even

QUESTION = "Mary lives in a city with John.\nWho was a nurse?"
NAMES = {
    1: "decision endpoint", 2: "top log-probabilities", 3: "completions echo",
    4: "constrained sampling", 5: "free text",
}  # fmt: skip


def asked(samples: int = 200) -> Choose:
    return Choose([QUESTION], ["Mary\tJohn"], text="{passage}\nQuestion: {question}\nAnswer:",
                  samples=samples)  # fmt: skip


def lean(passage: str, question: str, options: list[str]) -> list[float]:
    """.7 for Mary wherever she stands; what the text tells where it does."""
    if "Mary" not in options:
        return even(passage, question, options)
    return [0.7 if option == "Mary" else 0.3 for option in options]


@pytest.mark.parametrize(
    ("rung", "style", "way"),
    [(1, "", "/systemone"), (1, "decisions", "/decisions"), (2, "", ""), (3, "", "echo"),
     (3, "vllm", "prompt"), (4, "", ""), (5, "", "")],
)  # fmt: skip
def test_every_rung_gives_what_the_server_has(rung: int, style: str, way: str) -> None:
    with ScriptedServer(lean, style=style) as server:
        model = eh.load_model(server.url, model=NAME, rung=rung)
        found = model.answer(asked(), None)
    assert model.rung == NAMES[rung]
    assert model.describe()["way"] == way
    assert model.describe()["rung"] == NAMES[rung]
    shares = np.asarray(found["probabilities"][0])
    close = 0.1 if rung > 3 else 1e-9
    assert shares / shares.sum() == pytest.approx([0.7, 0.3], abs=close)
    whole = {1: 1.0, 2: 0.95, 3: 0.5, 4: 1.0, 5: 1.0}[rung]
    assert found["mass"][0] == pytest.approx(whole)
    unseen = rung in (2, 3) or way == "/systemone"
    assert np.isnan(found["refused"][0]) == unseen
    assert found["unread"][0] == 0


def test_a_decision_that_is_refused_counts_for_no_option() -> None:
    def shy(passage: str, question: str, options: list[str]) -> list[float]:
        return [] if "nurse" in question else even(passage, question, options)

    with ScriptedServer(shy, style="decisions") as server:
        model = eh.load_model(server.url, system="Be brief.")
        found = model.answer(Choose([QUESTION, "Tom sang.\nWho?"], ["Mary\tJohn"] * 2), None)
    assert model.rung == NAMES[1]
    assert found["refused"].tolist() == [1.0, 0.0]
    assert found["mass"] == pytest.approx([0.0, 1.0])


def test_prompt_log_probabilities_that_drift_in_company_are_told() -> None:
    """As vLLM's did under prefix caching: what else was asked changes the numbers."""
    number = 0

    def drifting(passage: str, question: str, options: list[str]) -> list[float]:
        nonlocal number
        number += 1
        return [p * (1 - 0.001 * number) for p in lean(passage, question, options)]

    with ScriptedServer(drifting, style="vllm", rungs=(3,)) as server:
        model = eh.load_model(server.url)
    (row,) = [r for r in (model.introduction() or ("", []))[1] if "*" in r["rung"]]
    assert row["real"] == "yes, prompt"
    assert row["repeated"].startswith("differs by")
    assert row["in company"].startswith("differs by")


@pytest.mark.parametrize(("rungs", "best"), [((1, 2, 3, 4, 5), 1), ((2, 3, 5), 2), ((4, 5), 4)])
def test_the_best_sound_rung_is_taken(rungs: tuple[int, ...], best: int) -> None:
    with ScriptedServer(rungs=rungs) as server:
        model = eh.load_model(server.url)  # the only model that is served
    title, rows = model.introduction() or ("", [])
    assert model.rung == NAMES[best]
    assert f"rung {best}" in title
    sound = {int(row["rung"].rstrip(" *")) for row in rows if row["real"].startswith("yes")}
    assert sound == set(rungs)
    assert [row["rung"] for row in rows if "*" in row["rung"]] == [f"{best} *"]


def test_known_answers_and_repeats_are_told() -> None:
    with ScriptedServer() as server:
        model = eh.load_model(server.url)
        first = model.fingerprint
        assert eh.load_model(server.url, rung=2).fingerprint != first
        assert eh.load_model(server.url, system="Be brief.").fingerprint != first
        assert eh.load_model(server.url).fingerprint == first
    seen = model.describe()["capabilities"]["rungs"]
    assert [s["right"] for s in seen[:3]] == [len(KNOWN)] * 3
    assert [s["repeated"] for s in seen[:3]] == [0.0] * 3


def faked(values: list[float]) -> Any:
    def spoil(path: str, answer: dict[str, Any]) -> dict[str, Any]:
        for step in (answer["choices"][0].get("logprobs") or {}).get("content") or []:
            for top, value in zip(step.get("top_logprobs", ()), values):
                top["logprob"] = value
        return answer

    return spoil


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ([0.0, -9999.0, -9999.0, -9999.0], "0 or -9999"),
        ([0.0] * 4, "sum to"),
        ([-1.0, -2.0, -3.0, -4.0], "the same values for different questions"),
    ],
)
def test_faked_log_probabilities_are_refused_by_name(values: list[float], named: str) -> None:
    with ScriptedServer(rungs=(2, 5), spoil=faked(values)) as server:
        with pytest.raises(ModelError, match=named):
            eh.load_model(server.url, rung=2)
        model = eh.load_model(server.url)
    assert model.rung == "free text"
    assert any(named in row["real"] for row in (model.introduction() or ("", []))[1])


def test_missing_log_probabilities_are_refused_by_name() -> None:
    with ScriptedServer(rungs=(5,)) as server:
        for rung, named in ((1, "404"), (2, "missing"), (3, "missing"), (4, "do not keep to")):
            with pytest.raises(ModelError, match=named):
                eh.load_model(server.url, rung=rung)
    with (
        ScriptedServer(rungs=(5,), style="vllm") as server,
        pytest.raises(ModelError, match="prompt_logprobs were asked for and are missing"),
    ):
        eh.load_model(server.url, rung=3)


def test_log_probabilities_that_go_missing_later_are_an_error_and_no_score() -> None:
    broken = False

    def spoil(path: str, answer: dict[str, Any]) -> dict[str, Any]:
        if broken:
            answer["choices"][0].pop("logprobs", None)
        return answer

    with ScriptedServer(rungs=(2,), spoil=spoil) as server:
        model = eh.load_model(server.url, rung=2)
        broken = True
        with pytest.raises(ModelError, match="log-probabilities were asked for and are missing"):
            model.answer(asked(), None)


def test_texts_are_sampled() -> None:
    with ScriptedServer() as server:
        model = eh.load_model(server.url)
        found = model.answer(Generate(["Mary met John and"] * 2, ["0", "1"]), None)
    assert all(text.startswith(" ") for text in found["text"])


def test_addresses_hold_no_secret() -> None:
    assert safe("http://me:pass@h:1/v1#x") == "http://h:1/v1"
    assert Address.of("openai:m", base_url="https://me:pass@h/v1/") == Address("https://h/v1", "m")
    with pytest.raises(SpecError, match="one name"):
        Address.of("openai:a", "b")
    with pytest.raises(SpecError, match="is an address itself"):
        Address.of("http://h/v1", base_url="http://other/v1")
    with pytest.raises(SpecError, match="not the address of a server"):
        Address.of("http:///v1")


def test_a_server_with_several_models_must_be_told_which() -> None:
    with ScriptedServer() as server:
        server.answer = lambda path, body: (404, {"error": {"message": "model not found"}})  # type: ignore[method-assign]
        with pytest.raises(ModelError, match="model not found"):
            eh.load_model(server.url, model="other")
