"""Labels and samples against a plain reading of the rule, for any text and any share."""

from __future__ import annotations

import json
import pickle
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from evenhand.cli.main import app
from evenhand.corpora import WordSets, balanced, label_corpus, open_corpus, plan, read_labels
from evenhand.corpora.balancing import SHARES, Matcher, affected_lines
from evenhand.errors import DataError, SpecError

TEST = WordSets("jobs", x=("driver", "construction worker"), y=("nurse", "Hairdresser"),
                a=("he", "him"), b=("she", "her"))  # fmt: skip
CASES = {
    "he is a driver": "s", "she is a nurse": "s", "her hairdresser": "s",
    "she is a driver": "a", "the construction worker saw her": "a",
    "the construction she worker": "", "he and she drive": "", "driver nurse": "",
    "he told the nurse and she told the driver": "a+s", "rain": "", "": "",
}  # fmt: skip


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "toy.txt"
    path.write_text("\n".join(CASES) + "\n")
    return open_corpus(path)


@pytest.fixture
def many(tmp_path):
    path = tmp_path / "many.txt"
    path.write_text("he is a driver\nshe is a driver\nrain\n" * 3000)
    return label_corpus(open_corpus(path), TEST)


def plain_flags(text, sets):
    """The rule word by word, as a reader would do it."""
    tokens, found = text.split(), 0
    for bit, words in enumerate(sets):
        for word in words:
            parts = word.lower().split()
            if any(tokens[i : i + len(parts)] == parts for i in range(len(tokens))):
                found |= 1 << bit
    return found


def test_the_rule_on_sentences_written_by_hand(corpus):
    labels = label_corpus(corpus, TEST)
    patterns = list(CASES.values())
    assert labels.stereotypical.tolist() == ["s" in p for p in patterns]
    assert labels.anti.tolist() == ["a" in p for p in patterns]
    assert labels.counts()["both"] == 1


WORDS = st.sampled_from(
    ["he", "she", "her", "construction", "worker", "nurse", "administrator", "administrated",
     "hairdresser", "hairdressed", "x", "é", "ĥe", "nurses", "\x01he"]
)  # fmt: skip
GAPS = st.sampled_from([" ", "  ", "\t", "\n", "\u00a0", "\u3000", "\u2028", "\x1c", "\r", "\n\n"])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(WORDS, GAPS), max_size=40))
def test_flags_equal_a_plain_reading_for_any_text(pieces):
    text = "".join(word + gap for word, gap in pieces) + "\n"
    sets = [("nurse", "hairdresser", "administrator"), ("construction worker", "ĥe"),
            ("he", "worker he"), ("she", "her", "administrated")]  # fmt: skip
    found = Matcher(dict(zip("abcd", sets))).flags(text.encode())
    assert found.tolist() == [plain_flags(line, sets) for line in text.split("\n")[:-1]]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=14), min_size=1),
       st.data())  # fmt: skip
def test_words_of_any_length_and_script_match_exactly(words, data):
    words = [w.strip() for w in words if w.strip()]
    if not words:
        return
    chosen = data.draw(st.lists(st.sampled_from(words), min_size=1))
    lines = [w.replace("\n", " ") for w in words]
    block = ("\n".join(lines) + "\n").encode()
    found = Matcher({"set": chosen}, lower=False).flags(block)
    sets = [tuple(chosen)]
    wanted = []
    for line in lines:
        tokens = line.split()
        wanted.append(int(any(
            tokens[i : i + len(p)] == p
            for p in (c.split() for c in sets[0]) for i in range(len(tokens))
        )))  # fmt: skip
    assert found.tolist() == wanted


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sampled_from(["reduce", "increase"]), st.floats(0, 1), st.floats(0, 1),
       st.integers(0, 2**31), st.booleans())  # fmt: skip
def test_samples_are_nested_in_the_share_and_leave_other_lines_alone(
    many, direction, one, two, seed, published
):
    low, high = sorted((one, two))
    small = balanced(many, direction, low, seed=seed, as_published=published).kept()
    large = balanced(many, direction, high, seed=seed, as_published=published).kept()
    assert not (small & ~large).any()
    untouched = ~affected_lines(many, direction)
    assert small[untouched].all()
    assert abs(large[~untouched].mean() - high) < 5 * np.sqrt(0.25 / 3000)


def test_sizes_of_all_twenty_samples_are_those_of_the_views(many):
    rows = plan(many, seed=7)
    assert [(r["direction"], r["share"]) for r in rows] == [
        (d, s) for d in ("reduce", "increase") for s in SHARES
    ]
    for row in rows[::3]:
        view = balanced(many, row["direction"], row["share"], seed=7)
        assert sum(1 for _ in view.lines()) == row["lines"] == int(view.kept().sum())
    assert rows[0]["lines"] == 6000


def test_as_published_draws_once_per_affected_line_from_pythons_generator(corpus):
    labels = label_corpus(corpus, TEST)
    kept = []
    stream = random.Random(20230220)
    for line, pattern in CASES.items():
        if "s" not in pattern or stream.random() < 0.4:
            kept.append(line)
    view = balanced(labels, "reduce", 0.4, seed=20230220, as_published=True)
    assert list(view.lines()) == kept


def test_same_seed_same_lines_and_other_seeds_differ(many):
    first = balanced(many, "reduce", 0.5, seed=1)
    assert list(first.lines()) == list(balanced(many, "reduce", 0.5, seed=1).lines())
    assert (first.kept() != balanced(many, "reduce", 0.5, seed=2).kept()).any()
    assert list(pickle.loads(pickle.dumps(first))) == list(first)


def test_a_line_with_both_patterns_is_affected_in_both_directions_unless_kept(corpus):
    labels = label_corpus(corpus, TEST)
    both = "he told the nurse and she told the driver"
    for direction in ("reduce", "increase"):
        assert both not in list(balanced(labels, direction, 0.0).lines())
        assert both in list(balanced(labels, direction, 0.0, keep_both=True).lines())


def test_the_place_of_a_line_fixes_its_draw_across_blocks(tmp_path):
    path = tmp_path / "long.txt"
    path.write_text("he driver\n" * 70_000)
    labels = label_corpus(open_corpus(path), TEST)
    shorter = tmp_path / "short.txt"
    shorter.write_text("he driver\n" * 66_000)
    kept = balanced(labels, "reduce", 0.3).kept()
    other = balanced(label_corpus(open_corpus(shorter), TEST), "reduce", 0.3).kept()
    assert (kept[:66_000] == other).all()
    assert kept[65_536:].mean() == pytest.approx(0.3, abs=0.04)


def test_saved_labels_come_back_and_a_changed_corpus_is_refused(corpus, tmp_path):
    labels = label_corpus(corpus, TEST)
    folder = labels.save(tmp_path / "labels")
    again = read_labels(folder)
    assert again.flags.tolist() == labels.flags.tolist()
    assert list(balanced(again, "reduce", 0.0)) == list(balanced(labels, "reduce", 0.0))
    with open(corpus.paths[0], "a") as file:
        file.write("more\n")
    with pytest.raises(DataError, match="has changed since it was labelled"):
        read_labels(folder)
    with pytest.raises(DataError, match="does not have the 11 lines that were labelled"):
        list(balanced(labels, "reduce", 0.0).lines())


def test_a_sample_can_be_written_and_holds_the_views_lines(many, tmp_path):
    view = balanced(many, "increase", 0.2)
    assert view.write(tmp_path / "s.txt.zst") == int(view.kept().sum())
    assert list(open_corpus(tmp_path / "s.txt.zst").lines()) == list(view.lines())


def test_capitals_match_only_when_the_text_is_folded(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("He is a DRIVER\n")
    with pytest.raises(DataError, match=r"none of 1 lines holds a word of 'jobs' .*--fold"):
        label_corpus(open_corpus(path), TEST)
    assert label_corpus(open_corpus(path), TEST, fold=True).stereotypical.tolist() == [True]


def test_nothing_to_balance_is_said_with_the_pattern_that_is_missing(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("he is a driver\nrain\n")
    labels = label_corpus(open_corpus(path), TEST)
    with pytest.raises(DataError, match=r"none of 2 lines is anti-stereotypical \(holds words"):
        balanced(labels, "increase", 0.5)
    path.write_text("he\n")
    with pytest.raises(DataError, match="nothing to balance"):
        plan(label_corpus(open_corpus(path), TEST))


@pytest.mark.parametrize(("direction", "share", "said"), [
    ("reduced", 0.5, "Did you mean 'reduce'"), ("reduce", 1.2, "a probability from 0 to 1"),
])  # fmt: skip
def test_wrong_directions_and_shares_are_refused(many, direction, share, said):
    with pytest.raises(SpecError, match=said):
        balanced(many, direction, share)


def test_the_command_line_labels_balances_and_writes(corpus, tmp_path):
    sets = tmp_path / "sets.json"
    sets.write_text(json.dumps({"jobs": {k: getattr(TEST, k) for k in "xyab"}}))
    run = CliRunner().invoke
    args = ["corpus", "label", corpus.paths[0], "--sets", str(sets), "--out",
            str(tmp_path / "l"), "--lines", "--json", "-"]  # fmt: skip
    shown = json.loads(run(app, args).stdout)
    assert [r["stereotypical"] for r in shown["lines"]] == ["s" in p for p in CASES.values()]
    out = tmp_path / "o.txt"
    args = ["corpus", "balance", str(tmp_path / "l"), "--direction", "reduce", "--share", "0",
            "--write", str(out), "--json", "-"]  # fmt: skip
    assert json.loads(run(app, args).stdout)["written"]["lines"] == 7
    assert out.read_text().split("\n")[0] == "she is a driver"
    both = run(app, ["corpus", "balance", str(tmp_path / "l"), "--share", "0.1"])
    assert isinstance(both.exception, SpecError)
