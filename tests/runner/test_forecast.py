"""What `check` says before a run is what then happens."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.audit import auditing, planning
from evenhand.audit.auditing import Audit
from evenhand.audit.calibration import Clock, Guesser, model_cost, pieces, rest_cost
from evenhand.audit.suites import parse_suite
from evenhand.errors import SpecError
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.models.protocol import LoadOptions
from evenhand.probes.registry import make_probe
from evenhand.requests import TYPES, LazyRequests, Option

SETTINGS = {"name": "underspecified", "pairs": 8, "templates": 2, "resamples": 50,
            "attributes": ["nurse", "doctor", "hunter"]}  # fmt: skip


def slow(requests: Any) -> dict[str, Any]:
    """Takes time in proportion to the characters it reads, as a processor would."""
    end = time.process_time() + 3e-6 * sum(map(len, [*requests.prompt, *requests.option]))
    while time.process_time() < end:
        pass
    return {"logit": np.ones(len(requests)), "n_tokens": np.ones(len(requests), np.int32)}


def mixed(n: int) -> Option:
    return Option([f"{i} " + "word " * (i % 40) for i in range(n)], ["yes"] * n)


def test_time_is_forecast_from_pieces_of_all_lengths() -> None:
    model = ScriptedModel({"option": slow}, whole=True)
    requests = mixed(6_000)
    cost = model_cost(model, requests, len(requests))
    true = 3e-6 * sum(map(len, [*requests.prompt, *requests.option]))
    assert cost.time.cpu == pytest.approx(true, rel=0.25)
    assert cost.pieces >= 3


def test_pieces_hold_the_longest_rows_and_stay_small() -> None:
    requests = mixed(6_000)
    found = pieces(requests)
    longest = max(map(len, requests.prompt))
    assert max(len(p) for piece in found[:1] for p in piece.prompt) == longest  # type: ignore[attr-defined]
    assert all(len(piece) <= 256 for piece in found)
    lazy = LazyRequests(Option, 6_000, lambda a, b: requests.take(range(a, b)), group=24)
    assert {len(piece) % 24 for piece in pieces(lazy)} <= {0, 6_000 % 24}


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_made_up_answers_have_the_right_form(kind: str) -> None:
    type_ = TYPES[kind]
    requests = type_(**{name: ["a", "b", "c"] for name in type_.columns})
    answers = Guesser(frozenset(TYPES)).answer(requests, None)
    assert set(answers) == set(type_.outputs)
    assert all(len(column) == 3 for column in answers.values())


def test_the_rest_of_a_probe_costs_time_too_and_a_share_is_scaled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    probe = make_probe("underspecified", {k: v for k, v in SETTINGS.items() if k != "name"})
    whole = rest_cost(probe, frozenset({"option"}), 0, 384)
    assert whole is not None
    assert 0 < whole.cpu < 60
    assert Clock(1.0, 2.0) * 3 == Clock(3.0, 6.0)


def test_a_forecast_counts_what_the_run_then_asks(tmp_path: Path) -> None:
    model = ScriptedModel({"option": slow}, whole=True, name="m")
    suite = parse_suite({"name": "s", "probe": [SETTINGS]}, "test", "s")
    (row,) = planning.check(model, suite)
    begun = time.process_time()
    run = Audit(suite, "m", tmp_path / "run", loaded={"m": model}).run()
    counts = run.facts["probes"]["underspecified"]["counts"]
    assert (row.rows, row.distinct) == (counts["rows"], counts["distinct"])
    assert row.items == run.facts["probes"]["underspecified"]["summary"]["cells"]
    assert row.cpu_seconds <= 2 * (time.process_time() - begun)
    assert row.memory_mib > 50


@pytest.mark.parametrize("text", ["", "0", "0s", "-5m", "5x", "1e3"])
def test_a_budget_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="expected a time such as 90s, 5m or 1h"):
        planning.seconds(text)


def test_a_budget_is_measured_with_the_run_s_own_model_and_says_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[LoadOptions | None] = []

    def resolved(spec: str, kind: Any = None, options: LoadOptions | None = None) -> Any:
        seen.append(options)
        return ScriptedModel({"option": slow}, whole=True, name="m")

    monkeypatch.setattr(auditing, "resolve", resolved)
    suite = parse_suite({"name": "s", "probe": [{**SETTINGS, "pairs": 60}]}, "test", "s")
    job = Audit(suite, "m", tmp_path / "run", options=LoadOptions(dtype="float32"))
    (said,) = planning.fit_to_budget(job, 1e-3)
    assert seen == [LoadOptions(dtype="float32")]
    assert said == "underspecified: 36 of its 360 items, the least it can do with"
    run = job.run()  # with the model that is loaded already
    assert run.facts["probes"]["underspecified"]["summary"]["cells"] == 36


def test_every_probe_s_row_has_its_values_under_the_same_heads(
    tiny: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from evenhand.cli.run import LOADING, OPTIONS, PLAN, plan

    suite = tmp_path / "odd.toml"
    suite.write_text(
        'name = "odd"\n[[probe]]\nname = "association"\n[[probe]]\nname = "underspecified"\n'
        'pairs = 2\ntemplates = 1\nattributes = ["nurse"]\nresamples = 50\n'
    )
    names = ("out", "seed", "language", "kind", "budget", *LOADING, "json", *PLAN)
    usual = {name: (OPTIONS | PLAN)[name][1] for name in names}
    plan(model=tiny("span"), suite=str(suite), **usual)
    shown = capsys.readouterr().out
    assert "a span model cannot answer embed" in shown
    heads = next(line for line in shown.splitlines() if line.startswith("probe"))
    assert heads.split() == ["probe", "model", "items", "rows", "distinct", "tokens", "s", "cpu",
                             "s", "load", "s", "MiB"]  # fmt: skip
