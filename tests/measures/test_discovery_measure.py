"""`evenhand measure discovery` against a slow, exact computation of the same definitions."""

from __future__ import annotations

import csv
import itertools
import json
import string
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from evenhand.cli.main import app
from evenhand.corpora.tables import from_columns
from evenhand.errors import EvenhandError
from told import told

WORDS = ["kind", "Kind", "loud", "well-known", "n't", "the", ".", "rare", "dead", "so"]
PAIR = {"group_a": "A", "group_b": "B"}
NAMES = {"A": ["Tia", "Ebony", "Latoya", "Aiesha"], "B": ["Sara", "Katie", "Nancy", "Amanda"]}


def make_rows(seed=0, groups=NAMES, per_context=60):
    rng = np.random.default_rng(seed)
    rows = []
    for group, names in groups.items():
        for name in names:
            for context in ("c1", "c2"):
                for _ in range(per_context):
                    words = rng.choice(WORDS, size=3, p=[0.15, *[0.1] * 6, 0.02, 0.13, 0.1])
                    chance = 0.2 + 0.5 * (group == "A" and "dead" in words)
                    success = int(rng.random() < chance)
                    rows.append((group, name, context, " ".join(words), success))
    return rows


def write(path: Path, rows) -> str:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["group", "name", "context", "distractor", "success"])
        writer.writerows(rows)
    return str(path)


def run(*arguments):
    made = CliRunner().invoke(app, ["measure", "discovery", *arguments, "--json", "-"])
    assert made.exit_code == 0, made.output
    return json.loads(made.stdout)


def oracle(rows, count, stop_words, keep):
    """won and shown by (name, word), sets per name and context, then the words that stay."""
    best = {}
    for _, name, context, distractor, success in rows:
        key = (name, context, distractor)
        best[key] = max(best.get(key, 0), success)
    won, shown = defaultdict(Fraction), defaultdict(int)
    for (name, _, distractor), success in best.items():
        parts = distractor.split(" ")
        for word in set(parts):
            times = parts.count(word) if count == "occurrence" else 1
            shown[name, word] += times
            won[name, word] += times * success
    names = list(dict.fromkeys(row[1] for row in rows))
    words = {w for _, w in shown}
    usable = {
        w
        for w in words
        if w not in stop_words
        and w not in string.punctuation
        and not any(c in string.punctuation and c != "-" for c in w)
        and all(keep(shown[n, w]) for n in names)
    }
    return {w: {n: won[n, w] / shown[n, w] for n in names} for w in usable}


def exact_p(rates, a, b):
    """Share of all splits at least as far apart, in rational arithmetic."""
    names = [*a, *b]
    total = sum(rates[n] for n in names)

    def gap(chosen):
        first = sum(rates[n] for n in chosen)
        return abs(first / len(a) - (total - first) / len(b))

    gaps = [gap(c) for c in itertools.combinations(names, len(a))]
    return sum(g >= gap(a) for g in gaps), len(gaps)


@pytest.mark.parametrize("count", ["indicator", "occurrence"])
def test_rates_filter_rd_and_exact_p_equal_the_definitions(tmp_path, count):
    rows = make_rows()
    path = write(tmp_path / "shown.csv", rows)
    found = run(path, "--group-a", "A", "--group-b", "B", "--count", count, "--min-count", "15")
    expected = oracle(rows, count, {"the", "so"}, lambda n: n >= 15)
    assert set(found["vocabulary"]) == set(expected) >= {"kind", "Kind", "dead", "well-known"}
    assert found["p_method"] == "exact"
    assert found["names"] == [*NAMES["A"], *NAMES["B"]]
    for row in found["words"]:
        rates = expected[row["word"]]
        a, b = (sum(rates[n] for n in NAMES[g]) / 4 for g in "AB")
        assert row["sr_a"] == pytest.approx(float(a), abs=1e-14)
        assert row["sr_b"] == pytest.approx(float(b), abs=1e-14)
        assert row["rd"] == pytest.approx(float((a - b) / ((a + b) / 2)), abs=1e-13)
        reached, splits = exact_p(rates, NAMES["A"], NAMES["B"])
        assert row["p"] == pytest.approx(reached / splits, abs=1e-15)
        assert row["low"] <= row["rd"] <= row["high"]


def test_groups_of_unequal_size_are_compared_exactly(tmp_path):
    groups = {"A": NAMES["A"][:3], "B": [*NAMES["B"], "Wendy"]}
    rows = make_rows(3, groups)
    found = run(write(tmp_path / "t.csv", rows), "--group-a", "A", "--group-b", "B",
                "--min-count", "10", "--stop-words", "none")  # fmt: skip
    expected = oracle(rows, "indicator", (), lambda n: n >= 10)
    assert "the" in found["vocabulary"]
    for row in found["words"]:
        reached, splits = exact_p(expected[row["word"]], groups["A"], groups["B"])
        assert splits == 56
        assert row["p"] == pytest.approx(reached / 56, abs=1e-15)


def test_exactly_the_least_number_keeps_a_word_and_as_published_wants_more(tmp_path):
    rows = [
        (g, f"{g}{n}", f"c{i}", word, i % 2)
        for g in "AB"
        for n in range(4)
        for word, times in (("fifty", 50), ("ample", 51 + n), ("less", 49))
        for i in range(times)
    ]
    path = write(tmp_path / "t.csv", rows)
    sound = run(path, "--group-a", "A", "--group-b", "B")
    published = run(path, "--group-a", "A", "--group-b", "B", "--as-published")
    assert set(sound["vocabulary"]) == {"fifty", "ample"}
    assert set(published["vocabulary"]) == {"ample"}


def test_as_published_rd_is_the_sum_scale_and_p_is_the_released_stream(tmp_path):
    from evenhand.stats.permutation import as_published_sodapop

    rows = make_rows(5)
    path = write(tmp_path / "t.csv", rows)
    arguments = (path, "--group-a", "A", "--group-b", "B", "--min-count", "15")
    published = run(*arguments, "--as-published")
    sound = {r["word"]: r for r in run(*arguments, "--count", "occurrence")["words"]}
    rates = oracle(rows, "occurrence", {"the", "so"}, lambda n: n >= 15)
    values = np.array([[float(rates[w][n]) for w in rates] for n in published["names"]])
    p = dict(zip(rates, as_published_sodapop(values, np.arange(8) < 4).p))
    assert published["p_method"] == "as published"
    assert published["n_partitions"] == 7_000
    for row in published["words"]:
        assert row["rd"] == pytest.approx(4 * sound[row["word"]]["rd"], rel=1e-12)
        assert row["p"] == p[row["word"]]


def test_a_planted_word_stands_first_and_the_groups_cluster(tmp_path):
    groups = {g: [f"{g}{i}" for i in range(12)] for g in "AB"}
    rows = make_rows(1, groups, per_context=150)
    found = run(write(tmp_path / "t.csv", rows), "--group-a", "A", "--group-b", "B",
                "--samples", "4999")  # fmt: skip
    assert found["words"][0]["word"] == "dead"
    assert found["words"][0]["q"] < 0.01
    assert found["p_method"] == "sampled"
    assert found["clustering"]["kmeans_accuracy"] == 1.0
    assert found["clustering"]["null_mean"] > 0.5


def test_shares_of_success_are_taken_as_they_are():
    rates = np.random.default_rng(0).random((8, 3)).round(3)
    columns = {"group": [], "name": [], "context": [], "distractor": [], "success": []}
    for n in range(8):
        for w in range(3):
            values = ("AB"[n // 4], f"n{n}", "c", f"w{w}", rates[n, w])
            for key, value in zip(columns, values):
                columns[key].append(value)
    found = told("discovery", from_columns(columns, "memory"), **PAIR, min_count=1)
    by_word = {row["word"]: row for row in found["words"]}
    for w in range(3):
        assert by_word[f"w{w}"]["sr_a"] == pytest.approx(rates[:4, w].mean())
    assert "one context" in found["reason"]


def test_words_that_vanish_after_filtering_are_said_not_crashed(tmp_path):
    path = write(tmp_path / "t.csv", make_rows())
    found = run(path, "--group-a", "A", "--group-b", "B", "--min-count", "5000")
    assert found["words"] == []
    assert found["vocabulary"] == []
    assert "--min-count" in found["reason"]
    shown = CliRunner().invoke(
        app, ["measure", "discovery", path, "--group-a", "A", "--group-b", "B"]
    )
    assert "no word is left" in shown.stdout


def test_a_group_with_one_name_has_a_p_but_no_interval(tmp_path):
    rows = make_rows(2, {"A": ["Tia"], "B": NAMES["B"]})
    found = run(write(tmp_path / "t.csv", rows), "--group-a", "A", "--group-b", "B",
                "--min-count", "10")  # fmt: skip
    row = found["words"][0]
    assert row["p"] >= 0.2
    assert row["low"] is None
    assert "one name" in found["reason"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"group_b": "C"}, ("unknown group 'C'",)),
        ({"group_b": "A"}, ("compared with itself",)),
        ({"count": "often"}, ("unknown count 'often'", "--count")),
        ({"stop_words": "nowhere.txt"}, ("nowhere.txt", "nltk, none")),
    ],
)
def test_wrong_options_are_named(tmp_path, change, words):
    path = write(tmp_path / "t.csv", make_rows(per_context=5))
    with pytest.raises(EvenhandError) as caught:
        told("discovery", path, **{**PAIR, **change})
    assert all(word in str(caught.value) for word in words)


def test_the_released_test_refuses_groups_of_unequal_size(tmp_path):
    rows = make_rows(0, {"A": NAMES["A"][:3], "B": NAMES["B"]})
    path = write(tmp_path / "t.csv", rows)
    with pytest.raises(EvenhandError, match="3 and 4 names"):
        told("discovery", path, **PAIR, min_count=5, as_published=True)


def test_a_success_outside_0_to_1_is_refused_with_its_row(tmp_path):
    rows = [*make_rows(per_context=2), ("A", "Tia", "c1", "kind", 7)]
    with pytest.raises(EvenhandError, match=r"row 33, column success: the score '7'"):
        told("discovery", write(tmp_path / "t.csv", rows), **PAIR)
