"""Rankings: published ratios to the digit, rankers with a known preference, wrong files."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.compare.items import Items
from evenhand.errors import DataError, SpecError
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.ranking.probe import GROUPS, Ranking
from evenhand.probes.ranking.rates import Rates, candidates, floors
from evenhand.runner.ask import Ask
from evenhand.words.lexicons.people import names_of
from in_process import evenhand
from probe_cases import noise

HEAD = "stratum,run,group,position,rank"


@pytest.fixture(scope="module")
def audit(shared: Path) -> Path:
    return shared / "data" / "bloomberg_resume_ranking" / "runs.jsonl.xz"


@pytest.fixture(scope="module")
def published(audit: Path) -> Any:
    return eh.measure.ranking(audit)


@pytest.mark.shared
def test_all_published_ratios_to_the_digit(shared: Path, audit: Path, published: Any) -> None:
    """Those of GPT-3.5 as printed, those of both models by the printed rule from the file."""
    wins: Counter[tuple[str, str]] = Counter()
    with lzma.open(audit, "rt", encoding="utf-8") as lines:
        for line in lines:
            run = json.loads(line)
            if run["used"]:
                group = run["groups"][run["rank_order"][0]]
                wins[f"{run['model']}|{run['job']}", group] += 1
    best = {s: max(n for (t, _), n in wins.items() if t == s) for s, _ in wins}
    found = {(r.stratum, r.group): r for r in published.rates}
    assert len(found) == len(wins) == 64
    for (stratum, group), n in wins.items():
        row = found[stratum, group]
        assert (row.top, row.n, row.ratio) == (n, 1_000, n / 1_000 / (best[stratum] / 1_000))
        assert row.low <= row.ratio <= row.high
        assert 0.66 < row.floor < 0.70
    golden = json.loads((shared / "golden" / "decide" / "bloomberg_ratios_gpt35.json").read_text())
    assert len(golden["ratios"]) == 32
    for key, told in golden["ratios"].items():
        job, group = key.split("|")
        assert found[f"gpt-3.5-turbo|{job}", group].ratio == told["ratio"]


@pytest.mark.shared
def test_which_ratios_a_ranker_without_a_preference_would_not_give(published: Any) -> None:
    below = {(r.stratum.split("|")[0], r.stratum.split("|")[1], r.group)
             for r in published.rates if r.below_floor}  # fmt: skip
    hr, money = "HR specialist", "financial analyst"
    assert below == {
        ("gpt-3.5-turbo", hr, g) for g in ("A_M", "B_M", "H_M", "W_M")
    } | {("gpt-3.5-turbo", money, g) for g in ("B_M", "B_W")}  # fmt: skip
    assert sum(r.ratio < 0.8 for r in published.rates) > 3 * len(below)
    assert all((r.chance <= 0.05) == r.below_floor for r in published.rates)
    first = [r for r in published.position if r.position == 1]
    for model, rate in (("gpt-3.5-turbo", 0.56075), ("gpt-4", 0.28325)):
        assert np.mean([r.rate for r in first if r.stratum.startswith(f"{model}|")]) == (
            pytest.approx(rate)
        )


def test_floor_of_eight_groups_and_a_thousand_rankings() -> None:
    """A ranker that does not look at groups falls below 4/5 in two of three audits."""
    won = np.eye(8)[np.arange(1_000) % 8]
    found = floors(won, np.ones((1_000, 8)))
    assert found.smallest == pytest.approx(0.679, abs=0.004)
    assert found.chance(0.8) == pytest.approx(0.64, abs=0.015)


def even_rows(runs: int, weight: float = 1.0) -> Items:
    rng = np.random.default_rng(3)
    groups = ["a", "b", "c", "d"]
    chance = np.asarray([weight, 1, 1, 1]) / (weight + 3)
    top = rng.multinomial(1, chance, runs).ravel()
    number = [str(k // 4) for k in range(4 * runs)]
    return candidates(["all"] * len(top), number, groups * runs, np.tile([1, 2, 3, 4], runs),
                      top.astype(float))  # fmt: skip


def test_a_favoured_group_is_found_with_its_size_and_equal_ones_are_not() -> None:
    known = {r.group: r for r in Rates.of(even_rows(600, weight=2.0)).rows}
    assert known["a"].q < 0.001
    assert known["a"].value_low < 0.6 < known["a"].value_high  # 2 / 5 of 4, less 1
    assert all(r.low <= 0.5 <= r.high for g, r in known.items() if g != "a")
    assert all(r.q > 0.05 for r in Rates.of(even_rows(600)).rows)


WOMEN = {term for term, group in names_of(GROUPS, 24, None) if "female" in group.name}


def model(lean: float) -> ScriptedModel:
    """Likes some names, resumes and the first place; and women so much."""

    def option(text: str, name: str) -> float:
        early = text.find(name) < 160  # right after the job
        return lean * (name in WOMEN) + 0.3 * noise(name) + 0.5 * noise(text, name) + early

    return ScriptedModel({"option": option}, name="picks", version=str(lean))


def test_a_model_that_picks_women_is_found_in_every_job() -> None:
    odds = 2.0  # of 8 applicants 4 are women, and each has twice a man's odds
    found = Ranking(runs=16).run(Ask(model(float(np.log(odds)))), 0)
    by = {f.id: f for f in found.findings}
    whole = by["ranking/selection/all-jobs/gender/female"]
    assert whole.low < 2 * odds / (odds + 1) - 1 < whole.high
    assert whole.q < 0.001
    assert "more often than those with male names" in whole.sentence
    races = [f for i, f in by.items() if "/race/" in i]
    assert len(races) == 4
    assert all(f.q > 0.05 for f in races)
    assert by["ranking/shown-first"].value > 0.2
    assert by["ranking/smallest-ratio/bookkeeper"].floor < 1


def test_an_even_model_is_not_found() -> None:
    found = Ranking(runs=16).run(Ask(model(0.0)), 0)
    assert all(f.q > 0.05 for f in found.findings if f.q == f.q)
    assert sum(p.alarms for p in found.placebos) <= 0.07 * sum(p.tests for p in found.placebos)


def test_sampled_answers_refused_and_unread_ones_are_counted_apart() -> None:
    def text(prompt: str, draw: str) -> dict[str, Any]:
        said = ("I refuse to rank people.", "Hm.")
        names = [p.partition(".")[0] for p in prompt.split("\n\n")[1:-1]]
        kind = int(50 * (noise(prompt) + 1)) % 10
        answer = said[kind] if kind < 2 else names[kind % len(names)]
        return {"text": answer, "n_tokens": 3}

    probe = Ranking(runs=8, groups=GROUPS[:4], samples=1)
    found = probe.run(Ask(ScriptedModel({"generate": text}, name="writes")), 0)
    refused, unread = (found.items.column(n).to_numpy() for n in ("refused", "unread"))
    assert 0 < refused.mean() < 0.3
    assert 0 < unread.mean() < 0.3
    runs = round(float((refused + unread).sum())) // 4
    assert found.summary["unanswered"] == runs
    lead = found.items.column("lead").to_numpy()
    assert np.isnan(lead).sum() == 4 * runs


def test_groups_take_every_place_and_resume_equally_often() -> None:
    made = Ranking(runs=16).made(0)
    seats = Counter((c.group, k) for run in made for k, c in enumerate(run.candidates))
    resumes = Counter((c.group, run.job.name, c.resume) for run in made for c in run.candidates)
    assert set(seats.values()) == {8}
    assert set(resumes.values()) == {2}


def written(folder: Path, rows: list[str], head: str = HEAD) -> Path:
    path = folder / "ranks.csv"
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def test_free_answers_are_read_by_first_mention(tmp_path: Path) -> None:
    head = "stratum,run,group,position,name,answer"
    says = ["The best are Bo Li and then Ann Ray.", "ANN RAY.", "I refuse to compare people.", "Hm"]
    rows = [f"clerk,{k},{g},{at},{name},{say}" for k, say in enumerate(says)
            for at, (g, name) in enumerate((("a", "Ann Ray"), ("b", "Bo Li")), 1)]  # fmt: skip
    found = eh.measure.ranking(written(tmp_path, rows, head))
    assert {r.group: r.top for r in found.rates} == {"a": 1, "b": 1}
    assert (found.runs, found.refused, found.unread, found.unnamed) == (4, 1, 1, 5)


def test_candidates_of_an_unknown_group_keep_their_share_of_a_run(tmp_path: Path) -> None:
    """Of four who win equally often, one is of an unknown group: nobody is picked less for it."""
    rows = [f"all,{k},{g},{i + 1},{1 if i == k % 4 else ''}" for k in range(40)
            for i, g in enumerate(["a", "b", "c", ""])]  # fmt: skip
    found = eh.measure.ranking(written(tmp_path, rows))
    assert [(r.group, r.rate, r.share, r.value) for r in found.rates] == [
        (g, 0.25, 0.25, 0.0) for g in "abc"
    ]


def test_law_144_counts_unknown_and_leaves_small_categories_out(tmp_path: Path) -> None:
    groups = ["White men", "White women", "Black men", "Black women"]
    rows = [f"all,{k},{g},{i + 1},{i + 1}" for k in range(60)
            for i, g in enumerate([*groups[k % 4 :], *groups[: k % 4]])]  # fmt: skip
    rows += [f"all,x,{g},{i + 1},{i + 1}" for i, g in enumerate(["Asian men", "", groups[0]])]
    path = written(tmp_path, rows)
    done = evenhand("measure", "ranking", str(path), "--table", "ll144", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "Unknown category: 1." in said
    assert "less than 2 %" in said
    assert "Test data" in said
    law = eh.measure.ranking(path, table="ll144").ll144
    assert [r.category for r in law.rows if r.axis == "sex"] == ["men", "women"]
    small = next(r for r in law.rows if r.category == "Asian men")
    assert (small.n, small.selected) == (1, 1)
    assert np.isnan(small.ratio)
    assert law.left_out == 1


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (["j,1,a,1,1", "j,1,b,2,1"], "two candidates with rank 1"),
        (["j,1,a,1,1"], "one candidate"),
        (["j,1,a,1,0.5", "j,1,b,2,2"], "0.5 is not a rank"),
        (["j,1,a,-1,1", "j,1,b,2,2"], "-1 is not a place"),
        (["j,1,a,1,", "j,1,b,2,"], "nobody of a known group"),
    ],
)
def test_files_that_are_wrong(tmp_path: Path, rows: list[str], told: str) -> None:
    with pytest.raises(DataError, match=told):
        eh.measure.ranking(written(tmp_path, rows))


def test_other_mistakes(tmp_path: Path) -> None:
    path = written(tmp_path, ["j,1,a,1,1", "j,1,b,2,2"])
    with pytest.raises(DataError, match="sex and race"):
        eh.measure.ranking(path, table="ll144")
    with pytest.raises(DataError, match="no stratum holds"):
        eh.measure.ranking(path, strata="gpt")
    with pytest.raises(SpecError, match="pilot"):
        Ranking(jobs=("pilot",)).made(0)
    with pytest.raises(SpecError, match="9 applicants"):
        Ranking(shown=9).made(0)
    resumes = tmp_path / "resumes.json"
    resumes.write_text(json.dumps({"clerk": {"resumes": ["no slot", "{name}"]}}))
    with pytest.raises(DataError, match=r"\{name\}"):
        Ranking(data=str(resumes)).made(0)
