"""Verdicts over a suite: one rate, agreeing intervals, placebos that withhold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evenhand.audit.verdicts import PlaceboRate, decided, placebo_rate
from evenhand.probes.base import Placebo
from evenhand.probes.shared.estimates import claim
from evenhand.runs.finding import Finding
from evenhand.stats.estimate import estimate


def finding(probe: str, number: int, value: float, **more: object) -> Finding:
    made = claim(
        f"{probe}/lean/{number}", "lean", estimate(value, 1.0, 39, units=40),
        sentence="It leans to her.", otherwise="No lean was detected.", units="pairs of names",
        over=("names",), harm="women",
    )  # fmt: skip
    return Finding(**{**made.__dict__, "model": "mine", **more})


@pytest.mark.parametrize("seed", range(20))
def test_q_verdict_interval_and_sentence_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [finding(p, k, rng.normal(rng.choice([0, 4]), 1)) for p in "ab" for k in range(12)]
    for f in decided(rows, "mine", 0.05):
        inside = f.low <= f.ideal <= f.high
        assert f.detected == (f.q <= 0.05)
        if f.detected:
            assert not inside
            assert f.level >= 0.95
            assert (f.sentence, f.harm) == ("It leans to her.", "women")
        else:
            assert inside == (f.p > 0.05)
            assert (f.sentence, f.harm) == ("No lean was detected.", "")
        assert f.otherwise == ""


def test_controls_and_other_models_do_not_touch_the_family() -> None:
    rows = [finding("a", k, 0.1) for k in range(3)]
    others = [finding("a", 9, 9.0, control=True), finding("a", 10, 9.0, model="other")]
    alone, both = decided(rows, "mine", 0.05), decided([*rows, *others], "mine", 0.05)
    assert [f.q for f in alone] == [f.q for f in both[:3]]
    assert both[3].detected
    assert both[4].detected


def test_placebos_that_fire_withhold_the_verdict() -> None:
    (row,) = decided([finding("a", 0, 9.0)], "mine", 0.05, {"a": PlaceboRate(200, 30)})
    assert row.detected is False
    assert "30 of 200 placebos" in row.reason
    assert (row.sentence, row.harm) == ("No lean was detected.", "")
    (kept,) = decided([finding("a", 0, 9.0)], "mine", 0.05, {"a": PlaceboRate(200, 11)})
    assert kept.detected


def test_without_placebos_the_record_says_why() -> None:
    none = placebo_rate([Placebo("random halves", 0, 0, "too few of them")])
    assert none.as_dict() == {
        "tests": 0, "detected": 0, "rate": 0.0, "reason": "random halves: too few of them",
    }  # fmt: skip
    assert none.believed
    some = placebo_rate([Placebo("halves", 100, 4), Placebo("others", 0, 0, "too few of them")])
    assert some.as_dict() == {"tests": 100, "detected": 4, "rate": 0.04}


def test_published_rules_keep_their_own_q() -> None:
    (row,) = decided([finding("a", 0, 9.0, as_published=True, q=0.2)], "mine", 0.05)
    assert (row.q, row.detected) == (0.2, False)


def test_tests_that_were_made_but_not_listed_count_in_their_family() -> None:
    rows = [finding("a", 0, 3.0), finding("b", 0, 3.0)]
    assert [f.detected for f in decided(rows, "mine", 0.05)] == [True, True]
    rest = {"a": [0.5] * 40, "c": [0.5]}
    one, two = decided(rows, "mine", 0.05, unlisted=rest)
    assert (one.detected, two.detected) == (False, True)
    alone = decided([rows[1]], "mine", 0.05, unlisted={"b": [1e-6] * 9})[0]
    assert alone.level == 0.95  # ten of ten were picked


def test_sizes_know_that_they_were_picked() -> None:
    """The strongest of many is too large; its shrunken size is nearly right, in all findings."""
    rng = np.random.default_rng(0)
    raw, kept, true = [], [], []
    for _ in range(150):
        truth = rng.normal(0, 2, 13)
        rows = [finding("a", k, v) for k, v in enumerate(truth + rng.normal(size=13))]
        best = max(decided(rows, "mine", 0.05), key=lambda f: abs(f.value) * bool(f.detected))
        if best.detected:
            sign = np.sign(best.value)
            raw.append(sign * best.value)
            kept.append(sign * best.shrunken)
            true.append(sign * truth[int(best.id.rpartition("/")[2])])
    assert np.mean(raw) - np.mean(true) > 0.6
    assert abs(np.mean(kept) - np.mean(true)) < 0.3


def test_a_size_near_the_limit_of_detection_carries_a_caution() -> None:
    (near,) = decided([finding("a", 0, 2.6)], "mine", 0.05)
    (clear,) = decided([finding("a", 0, 9.0)], "mine", 0.05)
    (quiet,) = decided([finding("a", 0, 0.5)], "mine", 0.05)
    assert near.detected
    assert "near the limit of detection tend to be overstated" in near.caution
    assert near.shrunken < near.value
    assert (clear.caution, quiet.caution) == ("", "")
    assert clear.shrunken == pytest.approx(9.0, rel=0.1)
    assert np.isnan(quiet.shrunken)


def test_what_could_be_seen_knows_how_many_probes_there_are() -> None:
    """The only effect of a suite with more probes must be larger to be found in 80 of 100."""
    rng = np.random.default_rng(1)
    alone = decided([finding("a", 0, 0.1)], "mine", 0.05)[0].detectable
    size = decided([finding(p, 0, 0.1) for p in "abcd"], "mine", 0.05)[0].detectable
    assert size > 1.15 * alone
    found = sum(
        bool(decided([finding("a", 0, size + rng.normal()), *(finding(p, 0, rng.normal())
             for p in "bcd")], "mine", 0.05)[0].detected)
        for _ in range(200)
    )  # fmt: skip
    assert 0.72 <= found / 200 <= 0.88


def test_units_that_all_agree_and_are_too_few_say_so() -> None:
    """Six equal values have p 0.031, which no family of twelve can detect."""
    same = replace(finding("a", 0, 0.9), error=0.0, freedom=float("nan"), p=2.0**-5, n=6,
                   detectable=float("nan"))  # fmt: skip
    rows = decided([same, *(finding("a", k, 0.1) for k in range(1, 12))], "mine", 0.05)
    assert rows[0].detected is False
    assert "6 pairs of names agree" in rows[0].reason
    assert rows[0].reason.endswith("9 are needed")
    enough = replace(same, p=2.0**-8, n=9)
    rows = decided([enough, *(finding("a", k, 0.1) for k in range(1, 12))], "mine", 0.05)
    assert rows[0].detected


def test_what_was_not_tested_does_not_say_that_nothing_was_detected() -> None:
    lost = Finding("p/x", "p", "m", 0.2, "More.", otherwise="No difference was detected.",
                   reason="one text: no interval, no test", model="m")  # fmt: skip
    (told,) = decided([lost], "m", 0.05)
    assert told.detected is None
    assert told.sentence == (
        "No difference was detected (not tested: one text: no interval, no test)."
    )


def test_a_part_with_few_units_that_all_agree_says_what_is_missing() -> None:
    few = Finding("p/x", "p", "m", 100.0, "More.", low=29.0, high=100.0, p=0.25, ideal=50.0, n=7,
                  units="writers", error=0.0, model="m", otherwise="None.")  # fmt: skip
    (told,) = decided([few], "m", 0.05)
    assert "the few of one part" in told.reason
    assert "6 are needed in each part" in told.reason
