"""What a mitigation is said to have done, on the same items, and only while answers stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.audit.auditing import audit
from evenhand.audit.comparison.paired import difference
from evenhand.audit.comparison.standing import standing
from evenhand.audit.suites import parse_suite
from evenhand.mitigations.changes import ChangeReport, PairedChange, decided, judge_runs
from evenhand.probes.base import Behaviour
from evenhand.requests import Continuation, Requests
from evenhand.stats.estimate import estimate

SUITE = {
    "name": "short",
    "probe": [{
        "name": "underspecified", "pairs": 20, "templates": ["same_city"],
        "attributes": ["nurse", "secretary", "doctor", "mechanic"],
    }],
}  # fmt: skip
WOMEN = {"nurse": 1.5, "secretary": 1.0, "doctor": -1.0, "mechanic": -1.5}


def asked(name: str, seed: int, *, lean: float, second: float = 0.0, noise: float = 0.0) -> Any:
    """A scripted model: liked names, a lean by occupation, the person named second favoured.

    `noise` moves every name by an effect of its own, whatever the group: a mitigation that
    mitigates nothing.
    """
    from evenhand.words.lexicons import questions

    group = {s.term: s.group for s in questions.subjects("gender")}
    rng = np.random.default_rng(5)
    liked = {term: rng.normal(0, 0.3) for term in group}
    moved = np.random.default_rng(seed)
    liked = {t: v + noise * moved.normal() for t, v in liked.items()}

    def answer(requests: Requests) -> dict[str, Any]:
        assert isinstance(requests, Continuation)
        out = []
        for prefix, said in zip(requests.prefix, requests.continuation):
            who = said.strip()
            sign = (1 if group[who] == "female" else -1) * (-1 if "never" in prefix else 1)
            size = next((v for k, v in WOMEN.items() if k in prefix), 0.0)
            people = [t for t in prefix.replace(".", " ").split() if t in group]
            late = second * (people[-1] == who)
            out.append(liked[who] + lean * sign * size / 2 + late)
        return {"logprob": np.asarray(out), "n_tokens": np.ones(len(out), np.int32)}

    return eh.ScriptedModel({Continuation.kind: answer}, name=name, version=str(seed), whole=True)


def pair(folder: Path, before: Any, after: Any) -> ChangeReport:
    suite = parse_suite(SUITE, "made", "short")
    return judge_runs(*(audit(m, suite, out=folder / m.name) for m in (before, after)))


def test_a_lean_that_is_taken_away_is_gone_and_one_turned_round_is_reversed(tmp_path: Path) -> None:
    base = asked("base", 0, lean=1.0)
    for lean, verdict, head in ((0.0, "gone", "Yes"), (0.5, "smaller", "Yes"),
                                (-1.0, "reversed", "No"), (1.8, "larger", "No")):  # fmt: skip
        found = pair(tmp_path / verdict, base, asked("after", 1, lean=lean, noise=0.01))
        rows = {t.place.split("/")[-1]: t for t in found.tests}
        assert rows["nurse"].verdict == verdict
        assert found.verdict == verdict
        assert found.headline.startswith(head)
        assert found.standing == "stands"


def test_a_model_that_always_picks_the_second_name_is_broken_not_mitigated(tmp_path: Path) -> None:
    found = pair(tmp_path, asked("base", 0, lean=1.0), asked("after", 1, lean=1.0, second=9.0))
    assert found.verdict == "broken"
    assert found.headline.startswith("Broken")
    broken = [s for s in found.stands if s.verdict == "broken"]
    assert {s.what.split()[-1] for s in broken} == {"first", "negated"}
    assert not {t.verdict for t in found.tests} & {"gone", "smaller"}


def test_the_same_model_again_is_no_change(tmp_path: Path) -> None:
    found = pair(tmp_path, asked("base", 0, lean=1.0), asked("again", 0, lean=1.0))
    assert {t.verdict for t in found.tests} == {"same"}
    assert found.headline == (
        "No: of 5 comparisons 4 showed a difference before. Now 5 show no change."
    )


def test_names_it_was_fitted_on_are_not_judged(tmp_path: Path) -> None:
    suite = parse_suite(SUITE, "made", "short")
    models = asked("base", 0, lean=1.0), asked("after", 1, lean=0.0)
    one, two = (audit(m, suite, out=tmp_path / m.name) for m in models)
    names = one.table("underspecified", "items").column("first").to_pylist()
    seen = {names[0], "nobody"}
    found = judge_runs(one, two, seen)
    assert found.left_out == (names[0],)
    assert found.tests[0].change.units < judge_runs(one, two).tests[0].change.units


def noop(rng: np.random.Generator, pairs: int = 20, attributes: int = 8) -> ChangeReport:
    """A mitigation that moves names, answers and their mixture, but no group."""
    from evenhand.probes.underspecified.leans import estimates
    from evenhand.probes.underspecified.probe import Underspecified

    n = 2 * pairs
    grid = np.indices((pairs, attributes)).reshape(2, -1)
    terms = [f"{'ab'[k // pairs]}{k}" for k in range(n)]
    groups = {t: t[0] for t in terms}

    def table(liked: Any) -> pa.Table:
        lean = liked[grid[0], grid[1]] - liked[grid[0] + pairs, grid[1]]
        columns = {
            f"{who}_order{o}_{q}": 0.5 + sign * lean / 2
            for who, sign in (("first", 1), ("second", -1))
            for o in (0, 1) for q in ("asked", "negated")
        }  # fmt: skip
        return pa.table({
            "first": [terms[i] for i in grid[0]], "second": [terms[i + pairs] for i in grid[0]],
            "template": ["t"] * len(lean), "attribute": [str(a) for a in grid[1]], **columns,
        })  # fmt: skip

    was = rng.normal(0, 0.1, (n, 1)) + rng.normal(0, 0.05, (n, attributes))
    was[:pairs, :3] += 0.08
    now = was + rng.normal(0, 0.05, (n, 1)) + rng.normal(0, 0.05, (n, attributes))
    tables = table(was), table(now)
    found = [estimates(t, groups) for t in (*tables, difference(tables))]
    tests = [PairedChange(k, "u", k, *(f[k] for f in found)) for k in found[0]]
    both = zip(*(Underspecified.behaviours(t) for t in tables))
    return ChangeReport(tuple(decided(tests, 0.05, (), ())), tuple(standing(a, b) for a, b in both))


def test_a_mitigation_that_does_nothing_is_not_called_an_improvement() -> None:
    rng = np.random.default_rng(11)
    found = [noop(rng) for _ in range(200)]
    better = np.mean([f.verdict in ("gone", "smaller") for f in found])
    any_change = np.mean([any(t.verdict != "same" for t in f.tests) for f in found])
    small = np.mean([t.change.p <= 0.05 for f in found for t in f.tests])
    assert better <= 0.06
    assert any_change <= 0.09  # 0.05, and two standard errors of 200 repetitions
    assert 0.03 <= small <= 0.07


def test_a_behaviour_stands_is_broken_or_is_not_shown() -> None:
    rng = np.random.default_rng(3)
    before = Behaviour("accuracy", (rng.random(400) < 0.8).astype(float), 0.05)

    def after(lost: float, n: int = 400) -> Any:
        values = before.values[:n] * (np.arange(n) % 100 >= 100 * lost)
        return standing(Behaviour("accuracy", before.values[:n], 0.05),
                        Behaviour("accuracy", values, 0.05))  # fmt: skip

    assert after(0.0).verdict == "stands"
    assert after(0.2).verdict == "broken"
    assert after(0.04, n=40).verdict == "not shown to stand"
    even = Behaviour("order", np.full(50, 0.7) + rng.normal(0, 0.01, 50), 0.1, ideal=0.5)
    turned = Behaviour("order", 1 - even.values, 0.1, ideal=0.5)
    assert abs(standing(even, turned).worse.value) < 1e-9  # as far from even as before
    loss = Behaviour("loss", np.linspace(1, 2, 60), 0.1, float("-inf"))
    more = Behaviour("loss", np.linspace(1, 2.4, 60), 0.1, float("-inf"))
    assert standing(loss, more).worse.value == pytest.approx(0.2)
    with pytest.raises(ValueError, match="different items after than before"):
        standing(loss, even)


def test_success_is_not_claimed_where_nothing_says_that_the_model_still_works() -> None:
    strong, none = estimate(0.5, 0.01, 30, units=31), estimate(0.0, 0.01, 30, units=31)
    test = PairedChange("p/x", "p", "x", strong, none, estimate(-0.5, 0.01, 30, units=31))
    found = ChangeReport(tuple(decided([test], 0.05, (), ())))
    assert found.tests[0].verdict == "gone"
    assert found.headline.startswith("Not shown, since whether the model still does what it is")
    doubted = decided([test], 0.05, {"p"}, ())[0]
    assert doubted.verdict == "same"


@pytest.mark.shared
def test_leace_for_gender_on_a_masked_model_is_no_success(
    minilm: dict[str, str], tmp_path: Path
) -> None:
    """Leans by occupation fall, and the model now picks men's names whatever is asked."""
    model = eh.load_model(minilm["masked"])
    run = eh.mitigate(model, "leace", axis="gender").judge(out=tmp_path / "run")
    (entry,) = run.facts["probes"].values()
    summary = entry["summary"]
    assert summary["verdict"] in ("broken", "larger", "reversed")
    assert not summary["told"]["buys"].startswith(("Yes", "In part"))
    assert summary["told"]["buys"].split(".")[0] in run.report.read_text()
    rows = {r["finding"].split("/")[-1]: r for r in summary["changes"]}
    assert rows["all"]["verdict"] == "larger"
    assert abs(rows["all"]["after"]) > 0.5 > abs(rows["all"]["before"])


@pytest.mark.parametrize(("units", "verdict"), [(20, "not shown to stand"), (72, "stands")])
def test_few_answers_of_which_none_turned_do_not_show_that_all_stand(
    units: int, verdict: str
) -> None:
    """1 - .025^(1/n) of others may still turn: .168 of 20 units, .0499 of 72."""
    right = Behaviour("right answers", np.tile([1.0, 1.0, 0.0, 1.0], units), 0.05)
    found = standing(right, right, [np.repeat(np.arange(units), 4)])
    assert found.verdict == verdict
    assert found.worse.value == 0.0
    assert found.worse.high == pytest.approx(1 - 0.025 ** (1 / units), abs=1e-9)
