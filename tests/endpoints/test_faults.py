"""Storms, cuts, outages and wrong keys: nothing lost, nothing doubled, nothing scored wrongly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import ModelError, SpecError
from evenhand.models.endpoints import client as client_module
from evenhand.models.endpoints import pace
from evenhand.models.endpoints.journal import FOLDER
from evenhand.models.endpoints.spending import Prices
from evenhand.requests import Choose
from scripted_server import NAME, Fault, ScriptedServer

KEY = "sk-secret-4711-abcdef"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "FIRST_WAIT_S", 0.005)
    monkeypatch.setattr(pace, "MOST_WAIT_S", 0.05)
    for name in ("EVENHAND_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def questions(n: int = 60) -> Choose:
    return Choose([f"Mary met John {k} times.\nWho was a nurse?" for k in range(n)],
                  ["Mary\tJohn"] * n)  # fmt: skip


def half(path: str, number: int) -> Any:
    """Every second call fails, in one way after the other."""
    ways = [(429, {"Retry-After": "0"}), (503, {}), "cut", (500, {}), "garbage", (429, {})]
    return ways[number // 2 % len(ways)] if number % 2 else None


def test_a_storm_on_half_of_all_calls_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with ScriptedServer() as calm:
        wanted = eh.Ask(eh.load_model(calm.url, model=NAME, rung=2))(questions())
    with ScriptedServer() as server:
        model = eh.load_model(server.url, model=NAME, rung=2)
        server.fault, before = half, Counter(server.answered)
        found = eh.Ask(model, tmp_path)(questions())
        asked = server.answered - before
    assert list(map(list, found["probabilities"])) == list(map(list, wanted["probabilities"]))
    assert len(asked) == len(questions())
    assert set(asked.values()) == {1}
    assert model._client.pace.lowest < pace.START


def test_an_outage_stops_the_run_scores_nothing_and_costs_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "PATIENCE_S", 0.2)
    with ScriptedServer(delay=0.005) as server:
        model = eh.load_model(server.url, model=NAME, rung=2, concurrency=2)
        server.answered.clear()
        start = server.number

        def fault(path: str, number: int) -> Any:
            return (503, {}) if number > start + 20 else None

        server.fault = fault
        with pytest.raises(ModelError, match="stopped answering .*503.*evenhand resume RUN"):
            eh.Ask(model, tmp_path)(questions())
        assert not list((tmp_path / "scores").glob("*.parquet"))
        done = sum(server.answered.values())
        assert done >= 20
        server.fault = None
        again = eh.load_model(server.url, model=NAME, rung=2, calls=tmp_path)
        found = eh.Ask(again, tmp_path)(questions())
    assert len(found) == len(questions())
    paid = Counter({k: v for k, v in server.answered.items() if v > 1})
    assert not paid
    assert not [p for p in (tmp_path / FOLDER).glob("*.jsonl") if not p.stem.startswith("checking")]
    assert json.loads((tmp_path / FOLDER / "usage.json").read_text())["calls"] == len(questions())


def test_nobody_there_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "FIRST_PATIENCE_S", 0.05)
    with pytest.raises(ModelError, match="nothing answers there"):
        eh.load_model("http://127.0.0.1:9/v1", model="m")


def test_a_changed_server_stops_the_run() -> None:
    with ScriptedServer() as server:
        model = eh.load_model(server.url, model=NAME, rung=2)
        server.fingerprint = "fp-2"
        with pytest.raises(ModelError, match="has changed during the run .*'fp-1'.*'fp-2'"):
            model.answer(questions(3), None)


def test_slow_answers_are_waited_for() -> None:
    fault: Fault = lambda path, number: "slow" if number % 7 == 0 else None  # noqa: E731
    with ScriptedServer(fault=fault) as server:
        model = eh.load_model(server.url, model=NAME, rung=2)
        assert np.isfinite(model.answer(questions(10), None)["mass"]).all()


def test_what_is_no_json_is_an_error_and_no_score() -> None:
    with ScriptedServer() as server:
        model = eh.load_model(server.url, model=NAME, rung=2)
        server.fault = lambda path, number: "garbage"
        with pytest.raises(ModelError, match="not JSON"):
            model.answer(questions(2), None)


def test_a_wrong_key_is_one_paragraph_and_stays_secret(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with ScriptedServer(key="another") as server:
        with pytest.raises(ModelError, match="no key was sent.*export EVENHAND_API_KEY"):
            eh.load_model(server.url, model=NAME)
        monkeypatch.setenv("EVENHAND_API_KEY", KEY)
        done = _evenhand("check", server.url, "--model", NAME)
    assert done.returncode == 2
    assert "the server denies access (401" in done.stderr
    assert len(done.stderr.strip().split("\n\n")) == 1
    assert KEY not in done.stdout + done.stderr


def test_the_key_is_written_nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not in files, output, errors or the representation of anything."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    suite = tmp_path / "small.toml"
    suite.write_text(
        'name = "small"\n[[probe]]\nname = "generation"\ndraws = 1\nscorer = "vader"\n'
    )
    out = tmp_path / "run"
    with ScriptedServer(key=KEY) as server:
        address = server.url.replace("http://", f"http://user:{KEY}@")
        done = _evenhand(
            "audit", address, "--model", NAME, "--suite", str(suite), "--out", str(out)
        )
        model = eh.load_model(server.url, model=NAME)
        server.key = "other"
        with pytest.raises(ModelError) as told:
            model.answer(questions(1), None)
        assert all(line == f"Bearer {KEY}" for line in server.headers)
    assert done.returncode == 0, done.stderr
    shown = [done.stdout, done.stderr, str(told.value), repr(model), repr(vars(model))]
    shown += [json.dumps(model.describe()), repr(model.recipe), repr(vars(model._client.address))]
    assert not [text for text in shown if KEY in text]
    holding = [p for p in out.rglob("*") if p.is_file() and KEY.encode() in p.read_bytes()]
    assert not holding
    assert "user:" not in (out / "run.json").read_text()
    record = json.loads((out / "run.json").read_text())
    assert record["work"]["model"] == server.url
    about = record["models"][server.url]
    assert about["rung"] == "decision endpoint"
    assert about["server"]["system_fingerprint"] == "fp-1"


def test_spending_stops_before_the_limit_and_goes_on_with_a_higher_one(tmp_path: Path) -> None:
    with ScriptedServer() as server:
        options: dict[str, Any] = {"model": NAME, "rung": 2, "price_in": 1000.0, "price_out": 0.0}
        model = eh.load_model(server.url, **options, max_cost=10.0, concurrency=4)
        spent = model.describe()["usage"]["cost"]
        model._client.meter.prices = Prices(1000.0, 0.0, spent + 1.0)
        with pytest.raises(ModelError, match="--max-cost .*resume RUN --max-cost"):
            eh.Ask(model, tmp_path)(questions())
        assert model.describe()["usage"]["cost"] <= spent + 1.0
        model = eh.load_model(server.url, **options, max_cost=100.0, calls=tmp_path)
        eh.Ask(model, tmp_path)(questions())
    twice = [n for n in server.answered.values() if n > 1]
    assert twice == [3]  # the known question that is asked again on purpose
    with pytest.raises(SpecError, match="--price-in X"):
        eh.load_model("http://127.0.0.1:9/v1", model="m", max_cost=1.0)


def _evenhand(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evenhand", *words], capture_output=True, text=True,
        check=False, env={**os.environ}, timeout=120,
    )  # fmt: skip
