"""Servers that answer with what no model server should: bounded, named, and never with the key."""

from __future__ import annotations

import gzip
import json
import re
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

import evenhand as eh
from evenhand.errors import ModelError, SpecError
from evenhand.models.endpoints import client as client_module
from evenhand.models.endpoints import pace
from evenhand.models.endpoints.address import Address, safe
from evenhand.models.endpoints.spending import Usage, usage_of
from evenhand.models.endpoints.wire import distrust, proxy_of
from evenhand.requests import Choose
from scripted_server import NAME, ScriptedServer

KEY = "sk-secret-4711-abcdef"
QUESTIONS = Choose(
    ["Mary met John.\nWho was a nurse?", "Ann met Bob.\nWho was a cook?"],
    ["Mary\tJohn", "Ann\tBob"],
    text="{passage}\nQuestion: {question}\nAnswer:",
)
Spoil = Callable[[dict[str, Any]], Any]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "FIRST_WAIT_S", 0.005)
    monkeypatch.setattr(pace, "MOST_WAIT_S", 0.05)
    monkeypatch.setenv("EVENHAND_API_KEY", KEY)


def told(server: ScriptedServer, **options: Any) -> str:
    """What is said when two questions are put to a server."""
    with pytest.raises(ModelError) as error:
        eh.load_model(server.url, model=NAME, **options).answer(QUESTIONS, None)
    return str(error.value)


def spoiled(change: Spoil, where: str = "/chat/completions") -> ScriptedServer:
    """Changes each answer of a path; what `change` gives is sent in its place."""

    def spoil(path: str, answer: dict[str, Any]) -> Any:
        return change(answer) if path.endswith(where) else answer

    return ScriptedServer(spoil=spoil)


def tops(values: Callable[[list[Any]], list[Any]]) -> Spoil:
    def change(answer: dict[str, Any]) -> dict[str, Any]:
        for step in (answer["choices"][0].get("logprobs") or {}).get("content") or []:
            step["top_logprobs"] = values(step["top_logprobs"])
        return answer

    return change


def each(value: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda listed: [{**one, "logprob": value} for one in listed]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (tops(each(None)), "are not numbers: None"),
        (tops(each("-1.5")), "are not numbers: '-1.5'"),
        (tops(each(False)), "are not numbers: False"),
        (tops(each(0.5)), "above 0 or undefined"),
        (tops(each(float("nan"))), "above 0 or undefined"),
        (tops(lambda listed: listed[:1]), "1 came back, for 2 options"),
        (tops(lambda listed: []), "top_logprobs were asked for and are missing"),
        (tops(lambda o: [{**t, "logprob": -100.0 * (k > 0)} for k, t in enumerate(o)]),
         "every value is 0 or -100"),
        (lambda a: {**a, "choices": [{**a["choices"][0], "logprobs": [1]}]}, "are missing"),
    ],
)  # fmt: skip
def test_top_log_probabilities_that_are_none_are_refused_by_name(change: Spoil, named: str) -> None:
    with spoiled(change) as server:
        assert named in told(server, rung=2)


@pytest.mark.parametrize(
    ("value", "named"),
    [(float("nan"), "above 0 or undefined"), (0.5, "above 0 or undefined"), ("-1", "not numbers"),
     (-9999.0, "faked: every value is -9999"), (0.0, "sum to 2.00")],
)  # fmt: skip
def test_echoed_log_probabilities_are_held_to_the_same(value: Any, named: str) -> None:
    def change(answer: dict[str, Any]) -> dict[str, Any]:
        given = answer["choices"][0].get("logprobs")
        if given:
            given["token_logprobs"] = [value] * len(given["token_logprobs"])
        return answer

    with spoiled(change, "/completions") as server:
        assert named in told(server, rung=3)


def test_numbers_that_do_not_depend_on_the_question_are_faked() -> None:
    """Each option has its own, whatever is asked."""

    def by_name(passage: str, question: str, options: list[str]) -> list[float]:
        return [0.7 if option in ("Tom", "Mary") else 0.3 for option in options]

    with ScriptedServer(by_name) as server:
        for rung in (1, 2, 3):
            assert "faked: the same" in told(server, rung=rung)


def test_an_option_that_may_hide_below_the_list_is_unread() -> None:
    """Of 20 log-probabilities two come back, and the second letter is not among them."""
    cut = False

    def change(listed: list[Any]) -> list[Any]:
        if not cut:
            return listed
        return [{"token": "A", "logprob": -0.9}, {"token": "The", "logprob": -1.2}]

    with spoiled(tops(change)) as server:
        model = eh.load_model(server.url, model=NAME, rung=2)
        cut = True
        found = model.answer(QUESTIONS, None)
    assert found["unread"].tolist() == [1.0, 1.0]
    assert found["mass"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "message",
    [{"content": None}, {"content": None, "reasoning_content": "Let me think about Mary"},
     {"content": None, "tool_calls": [{"function": {"name": "f"}}]}, {}],
)  # fmt: skip
def test_free_text_without_text_is_no_rung(message: dict[str, Any]) -> None:
    with spoiled(lambda a: {**a, "choices": [{"message": message}]}) as server:
        assert "not one got an answer that can be read" in told(server, rung=5)


@pytest.mark.parametrize(
    "usage", [None, "many", [1], {}, {"prompt_tokens": -5}, {"prompt_tokens": 1e300}]
)
def test_what_is_not_counted_is_estimated_on_the_dear_side(usage: Any) -> None:
    assert usage_of({"usage": usage}, 30, 48) == Usage(1, 10, 48, True)
    with spoiled(lambda a: {**a, "usage": usage}) as server:
        model = eh.load_model(server.url, model=NAME, rung=5, price_in=1.0, price_out=1.0)
        before = model.describe()["usage"]
        model.answer(QUESTIONS, None)
    used = model.describe()["usage"]
    assert used["estimated"]
    assert used["tokens_out"] - before["tokens_out"] >= 48 * 2
    assert usage_of([1], 30) == Usage(1, 10, 0, True)


@pytest.mark.parametrize(
    ("body", "headers", "named"),
    [
        (b"[1, 2]", {}, "not of that form"),
        (b"[" * 100_000, {}, "not JSON"),
        (b"<html>" + KEY.encode() + b"</html>", {}, "not JSON"),
        (json.dumps({"error": {"message": f"bad {KEY}"}}).encode(), {}, "are missing from"),
        (gzip.compress(b'{"choices": "' + b"a" * (20 << 20) + b'"}'), {"Content-Encoding": "gzip"},
         "unpacks to more than 16 MiB"),
        (b" " * (17 << 20), {}, "an answer of more than 16 MiB"),
    ],
    ids=["list", "deep", "page", "error", "bomb", "endless"],
)  # fmt: skip
def test_bodies_that_are_no_answers(body: bytes, headers: dict[str, str], named: str) -> None:
    with ScriptedServer() as server:
        model = eh.load_model(server.url, model=NAME, rung=2)
        server.raw = (200, body, headers)
        with pytest.raises(ModelError, match=named) as error:
            model.answer(QUESTIONS, None)
    assert KEY not in str(error.value)
    assert len(str(error.value)) < 1_000


def test_packed_answers_are_read() -> None:
    with ScriptedServer() as server:
        model = eh.load_model(server.url, model=NAME, rung=2)
        answer = {"choices": [{"message": {"content": "A"}, "logprobs": {"content": [
            {"top_logprobs": [{"token": "A", "logprob": -0.5}, {"token": "B", "logprob": -1.5}]}
        ]}}]}  # fmt: skip
        server.raw = (200, gzip.compress(json.dumps(answer).encode()), {"Content-Encoding": "gzip"})
        assert model.answer(QUESTIONS, None)["mass"] == pytest.approx([0.8296] * 2, abs=1e-3)


def test_a_redirect_is_not_followed_and_the_key_stays() -> None:
    with ScriptedServer() as other, ScriptedServer() as server:
        model = eh.load_model(server.url, model=NAME, rung=2)
        server.raw = (307, b"", {"Location": f"{other.url}/chat/completions?key={KEY}"})
        with pytest.raises(ModelError, match="redirects to .*give it") as error:
            model.answer(QUESTIONS, None)
        assert not other.headers
    assert f"{other.url}/chat/completions " in str(error.value)
    assert KEY not in str(error.value)


def test_a_long_refusal_is_cut_behind_the_key() -> None:
    with ScriptedServer() as server:
        model = eh.load_model(server.url, model=NAME, rung=2)
        server.raw = (401, json.dumps({"message": "x" * 190 + KEY}).encode(), {})
        with pytest.raises(ModelError, match="denies access") as error:
            model.answer(QUESTIONS, None)
    assert KEY[:6] not in str(error.value)


def test_bytes_that_come_one_by_one_are_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "PATIENCE_S", 0.2)
    with ScriptedServer() as server:
        model = eh.load_model(server.url, model=NAME, rung=2)
        model._client._wire._timeout = 0.3
        server.drip = 0.05
        with pytest.raises(ModelError, match="stopped answering .*no answer in time"):
            model.answer(QUESTIONS, None)


def test_a_rung_that_is_forbidden_is_only_not_there() -> None:
    """Gateways answer 403 to paths that they do not know."""
    with ScriptedServer() as server:
        server.forbidden = ("/systemone", "/decisions", "/models")
        model = eh.load_model(server.url, model=NAME)
    assert model.rung == "top log-probabilities"
    assert "403" in (model.introduction() or ("", []))[1][0]["real"]


@pytest.mark.parametrize(
    "told",
    [{"data": 5}, {"data": [{"id": NAME, "aliases": None}]}, {"data": [{"id": "x", "aliases": 5}]},
     [1], {"data": ["x"]}],
)  # fmt: skip
def test_odd_lists_of_models_do_no_harm(told: Any) -> None:
    with ScriptedServer() as server:
        server.models = told
        assert eh.load_model(server.url, model=NAME, rung=2).name == NAME


def test_a_wait_that_is_too_long_does_not_outlast_the_run() -> None:
    with ScriptedServer() as server:
        model = eh.load_model(server.url, model=NAME, rung=2)
        server.fault = lambda path, number: (429, {"Retry-After": "100000"})
        with pytest.raises(ModelError, match="asks us to wait 100000 s"):
            model.answer(QUESTIONS, None)
        server.fault = None
        assert len(model.answer(QUESTIONS, None)["mass"]) == 2


def test_dates_of_retry_after() -> None:
    soon = datetime.now(UTC) + timedelta(seconds=60)
    for text in (format_datetime(soon, usegmt=True), soon.strftime("%a, %d %b %Y %H:%M:%S -0000")):
        assert 55 < (pace.retry_after(text) or 0) <= 60
    for text in ("nan", "Wed, 21 Oct 99999999999 07:28:00 GMT", "\x01,"):
        assert pace.retry_after(text) is None
    assert pace.retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0


def test_keys_that_are_none_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("two\nlines", "caf\u00e9", "\u043a\u043b\u044e\u0447"):
        monkeypatch.setenv("EVENHAND_API_KEY", key)
        with pytest.raises(SpecError, match="EVENHAND_API_KEY: the key") as error:
            eh.load_model("http://127.0.0.1:9/v1", model="m")
        assert key not in str(error.value)


def test_addresses_as_people_write_them() -> None:
    for text in ("HTTP://h:1", "http://h:1/v1/", "http://h:1/v1/chat/completions",
                 "http://h:1/v1/models/"):  # fmt: skip
        assert Address.of(text).base.lower() == "http://h:1/v1"
    assert Address.of("http://[::1]:8080").base == "http://[::1]:8080/v1"
    assert re.fullmatch(r"[\w.-]+", Address.of("http://[::1]:8080").called)
    for text in ("http://[::1", "http://h:99999/v1", "http://h:abc/v1", "http://a b/v1",
                 "http://h/v1\x00"):  # fmt: skip
        with pytest.raises(SpecError, match="not the address of a server"):
            Address.of(text)
    assert KEY not in safe(f"http://me:{KEY}@[::1")


def test_a_certificate_that_nobody_knows_is_told() -> None:
    wrong = ssl.SSLCertVerificationError(1, "certificate verify failed")
    wrong.verify_message = "self-signed certificate"
    outer = OSError("connect")
    outer.__cause__ = wrong
    assert distrust(outer) == "self-signed certificate"
    assert distrust(OSError("connect")) == ""


def test_proxies_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "proxy:3128")
    monkeypatch.setenv("no_proxy", "inside")
    assert proxy_of("http://outside/v1") == "http://proxy:3128"
    assert proxy_of("http://inside/v1") is None
    assert proxy_of("https://outside/v1") is None
