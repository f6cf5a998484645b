"""Who works where: models that follow the labour market by a known part, and wrong files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.audit.suites import parse_suite
from evenhand.errors import DataError, SpecError
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.labour.lines import name_line, pronoun_line
from evenhand.probes.labour.probe import Labour, names_by_race, read_jobs
from evenhand.runner.ask import Ask
from probe_cases import noise

JOBS = {job.noun: job for job in read_jobs()}
RACE = {name: race for race, name in names_by_race(10)}


def model(sex: float = 0.0, black: float = 0.0, he: float = 0.0) -> ScriptedModel:
    """Follows the labour market by these parts, and likes "he" so much everywhere."""

    def follows(text: str, word: str) -> dict[str, float]:
        job = JOBS[max((noun for noun in JOBS if f" {noun}" in text), key=len)]
        said = word.strip()
        value = 0.3 * noise(job.noun, said) + 0.3 * noise(text, said)
        if said == "she":
            value += sex * job.odds("women")
        elif said == "he":
            value += he
        elif RACE[said] == "black":
            value += black * job.odds("black")
        return {"logprob": value - 4, "n_tokens": 1}

    version = f"{sex} {black} {he}"
    return ScriptedModel({"continuation": follows}, name="follows", version=version)


def found(asked: ScriptedModel) -> dict[str, Any]:
    return {f.id: f for f in Labour().run(Ask(asked), 0).findings}


def test_what_is_planted_is_found_with_its_size_and_nothing_else() -> None:
    by = found(model(sex=0.5, black=0.4, he=0.8))
    sex, black = by["labour/slope/women"], by["labour/slope/black"]
    assert abs(sex.value - 0.5) < 3 * sex.error
    assert black.low < 0.4 < black.high
    assert max(sex.q, black.q) < 0.01
    height = by["labour/height/women"]
    assert height.low < 0.8 < height.high
    assert height.groups == ("men", "women")
    for race in ("asian", "hispanic"):
        slope = by[f"labour/slope/{race}"]
        assert slope.low < 0 < slope.high
    beside = by["labour/amplification/women"]
    assert beside.high < 1
    assert "less than in the labour market" in beside.sentence
    assert math.isnan(beside.p)


def test_an_even_model_is_not_found() -> None:
    by = found(model())
    assert all(f.q > 0.05 for f in by.values() if f.q == f.q)
    assert len([f for f in by.values() if f.q == f.q]) == 5


def test_more_than_the_labour_market_is_amplified() -> None:
    by = found(model(sex=1.6))
    assert by["labour/amplification/women"].low > 1
    assert "more than in the labour market" in by["labour/amplification/women"].sentence


def test_a_model_that_follows_more_than_its_baseline_is_stopped(tmp_path: Path) -> None:
    suite = parse_suite({"name": "made", "probe": [{"name": "labour", "axes": ["sex"]}]}, "", "")
    runs = [eh.audit(model(sex=sex, he=0.3), suite, out=tmp_path / str(sex)) for sex in (0.1, 0.9)]
    assert eh.gate(runs[1], baseline=str(runs[0].folder)).outcome == "failed"
    assert eh.gate(runs[0], baseline=str(runs[1].folder)).outcome == "passed"


@pytest.mark.shared
def test_packaged_figures_are_those_of_the_table(shared: Path) -> None:
    table = str(shared / "data" / "bls_occupations" / "cps_table11_2020_2022.csv")
    assert read_jobs(table) == read_jobs(table, 2022) == read_jobs()
    nurse = {year: next(j for j in read_jobs(table, year) if j.noun == "nurse").shares["women"]
             for year in (2020, 2021, 2022)}  # fmt: skip
    assert nurse == {2020: 87.4, 2021: 86.7, 2022: 87.9}


def written(folder: Path, text: str) -> Path:
    path = folder / "said.csv"
    path.write_text(text)
    return path


def test_answers_log_odds_and_shares_from_elsewhere(tmp_path: Path) -> None:
    jobs = list(JOBS.values())[:20]
    rows = "".join(f"{j.noun},{0.5 * j.odds('women') + 0.1}\n" for j in jobs)
    line = eh.measure.labour(written(tmp_path, "occupation,log_odds\n" + rows + "juggler,2\n"))
    assert [r["metric"] for r in line.rows] == ["slope", "height", "amplification"]
    assert line.rows[0].value == pytest.approx(0.5)
    assert line.rows[1].value == pytest.approx(-0.1)
    assert (line.occupations, line.without_figures) == (20, 1)
    says = ("She did.", "He did.", "I refuse to say.", "Hm.")
    rows = "".join(f"{j.noun},{k},{says[(k + n) % 4]}\n" for n, j in enumerate(jobs)
                   for k in range(3))  # fmt: skip
    read = eh.measure.labour(written(tmp_path, "occupation,question,answer\n" + rows))
    assert (read.refused, read.unread) == (15, 15)
    shares = eh.measure.labour(
        written(tmp_path, "occupation,share,pct_women\na,.2,20\nb,.4,40\nc,.6,60\nd,.8,80\n")
    )
    assert shares.rows[0].value == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("occupation,said\nnurse,1\n", "no column says what was said"),
        ("occupation,share\nnurse,7\n", "column share: 7"),
    ],
)
def test_files_that_are_wrong(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(DataError, match=told):
        eh.measure.labour(written(tmp_path, text))


def test_figures_that_are_wrong(tmp_path: Path) -> None:
    path = str(written(tmp_path, "occupation,pct_women\nnurse,130\n"))
    with pytest.raises(DataError, match="130 is not a share"):
        read_jobs(path)
    path = str(written(tmp_path, "occupation,pct_women\nnurse,90\npilot,10\n"))
    with pytest.raises(SpecError, match="no shares by race"):
        Labour(data=path, axes=("race",)).preview(frozenset({"continuation"}), 0)
    few = Labour(data=path).run(Ask(model()), 0).findings
    assert all(f.reason and math.isnan(f.value) for f in few)


def test_occupations_at_the_ends_and_names_of_one_group_may_spread_more() -> None:
    rng, alarms = np.random.default_rng(0), np.zeros((2, 2))
    for _ in range(200):
        x = rng.normal(0, 1.5, 30)
        uneven = np.abs(x - x.mean())
        alarms[0] += 1, pronoun_line(x, uneven * rng.normal(size=30), "a", "b").slope.p <= 0.05
        spread = np.where(np.arange(24) < 4, 0.3, 0.1)[:, None]
        y = rng.normal(0, 1, (24, 1)) * spread * x + spread * rng.normal(size=(24, 30))
        alarms[1] += 1, name_line(x, y, np.arange(24) < 4, "a", "b").slope.p <= 0.05
    assert (alarms[:, 1] <= 0.09 * alarms[:, 0]).all()  # they were 0.21 and 0.20


def test_one_occupation_that_alone_decides_the_slope_gives_no_verdict() -> None:
    x, y = np.array([0.0, 0.0, 0.0, 0.0, 2.0]), np.arange(5.0)
    line = pronoun_line(x, y, "women", "men")
    assert np.isnan(line.slope.p)
    assert "alone" in line.slope.reason
    assert np.isnan(name_line(x, y + np.eye(4, 5), np.arange(4) < 2, "a", "b").slope.p)
