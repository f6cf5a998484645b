"""Discovery end to end on models whose preferences are known."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace

import numpy as np
import pytest

from evenhand.errors import EvenhandError
from evenhand.metrics import sodapop
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.discovery.compare import counts_of
from evenhand.probes.discovery.counts import Shown, WordCounts, count_words
from evenhand.probes.discovery.findings import items
from evenhand.probes.discovery.inference import Settings, compare, rates
from evenhand.probes.discovery.probe import Discovery
from evenhand.probes.discovery.score import Pool, Tally, letter_successes
from evenhand.runner.ask import Ask
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.stats.permutation import shared
from evenhand.words.social_iqa import Context

WORDS = ("kind", "loud", "funny", "brave", "rude", "smart", "quiet", "calm", "odd", "violent",
         "tired", "rich")  # fmt: skip
GROUPS = ("european_american_female", "african_american_female")


def noise(*parts: str) -> float:
    """A number in [0, 1) that depends on the texts alone."""
    return zlib.crc32("|".join(parts).encode()) / 2**32


def filler(version="1"):
    """Fills every mask with ten of the words, ranked by the text."""

    def fills(text):
        best = sorted(WORDS, key=lambda w: -noise(text, w))
        return {"fills": best, "logprobs": [0.0] * len(best)}

    return ScriptedModel({"fill-mask": fills}, name="filler", version=version)


def chooser(planted: float = 0.0, names=("",)):
    """Chooses by noise; one word gets a bonus for some names."""

    def logit(prompt, option):
        bonus = planted * ("violent" in option and prompt.split(" ")[0] in names)
        return 2 * noise(prompt, option) + bonus

    return ScriptedModel({"option": logit}, name=f"chooser {planted}")


def asker(choose, fill=None, folder=None, **options):
    helpers = {"generator": Ask(fill or filler(), folder, **options)}
    return Ask(choose, folder, helpers=helpers, **options)


def probe(**changes) -> Discovery:
    settings = {
        "groups": GROUPS, "names": 10, "context_count": 6, "generator": "filler", "keep": 200,
        "distance": 2, "min_count": 10, "samples": 19_999, "pool": "common",
    }  # fmt: skip
    return Discovery(**{**settings, **changes})


@pytest.mark.parametrize("pool", ["common", "name"])
@pytest.mark.parametrize("pairing", ["expected", "random", "solo"])
def test_a_planted_word_is_discovered_at_the_top(pool, pairing):
    names = probe().people()[0][10:]
    made = probe(pool=pool, pairing=pairing).run(asker(chooser(1.2, names)), 0)
    best = min((f for f in made.findings if f.metric == "d_beyond"), key=lambda f: f.q)
    assert best.attribute == "violent"
    assert best.q < 0.01
    assert best.value < 0  # the second group
    assert "'violent' win more often" in best.sentence
    assert "African American women" in best.sentence
    assert best.low <= best.value <= best.high < 0
    assert best.generalises_over == ("names", "situations")
    assert (best.n, best.units) == (6, "situations")
    row = made.tables["words"].to_pylist()[-1]
    assert row["word"] == "violent"
    assert row["rd"] == min(r["rd"] for r in made.tables["words"].to_pylist())
    assert row["p_names"] < 0.001
    (example,) = best.examples
    assert "violent" in example["distractor"]
    assert example["success"] > example["success_for_the_others"]
    assert sum(p.tests for p in made.placebos) >= 1_000
    assert sum(p.alarms for p in made.placebos) <= 0.05 * sum(p.tests for p in made.placebos)


def test_all_pairs_of_groups_are_compared_in_one_run():
    groups = (*GROUPS, "asian_female", "hispanic_female")
    made = probe(groups=groups, names=4, context_count=2, keep=40, min_count=2).run(
        asker(chooser()), 0
    )
    assert made.summary["pairs"] == 6
    assert len({r["pair"] for r in made.tables["pairs"].to_pylist()}) == 6
    assert sum(f.metric == "kmeans_accuracy" for f in made.findings) == 6
    listed = sum(f.metric == "d_beyond" for f in made.findings)
    assert listed == 6
    assert made.summary["tests_not_listed"] == made.summary["tests"] - listed
    assert len(made.unlisted) == made.summary["tests_not_listed"]


def test_same_seed_same_findings_and_another_seed_other_distractors():
    small = probe(names=4, context_count=2, keep=30, min_count=1)
    one, two, three = (small.run(asker(chooser()), seed) for seed in (0, 0, 1))
    assert [f.as_dict() for f in one.findings] == [f.as_dict() for f in two.findings]
    assert one.tables["distractors"] != three.tables["distractors"]


def test_distractors_are_words_and_never_the_answer_and_at_most_as_many_as_kept():
    rows = probe(names=3, keep=25, min_count=1).run(asker(chooser()), 0).tables["distractors"]
    shown = {}
    for row in rows.to_pylist():
        assert row["distractor"].lower() != row["answer"].lower()
        shown.setdefault((row["name"], row["context"]), []).append(row["distractor"])
    assert all(len(d) == len(set(d)) <= 25 for d in shown.values())


def test_only_as_many_masks_are_filled_as_are_kept():
    fill = filler()
    probe(distance=3, keep=100, names=5, pool_names=1, min_count=1, context_count=1).run(
        asker(chooser(), fill), 0
    )
    words = 5  # "a brave and honest person"
    full = words + 10 * words**2 + 100 * words**3  # calls of the released code
    assert fill.rows_scored < 2 * (words + 21 + 4 * 16)
    assert fill.rows_scored < full / 50


def test_interrupted_generation_and_scoring_resume_without_repeating_a_shard(tmp_path):
    class Stop(Exception):
        pass

    def run(fail_after=None):
        fill, choose = filler(), chooser()
        if fail_after is not None:
            answer = choose.answer

            def failing(requests, prepared):
                if choose.rows_scored >= fail_after:
                    raise Stop
                return answer(requests, prepared)

            choose.answer = failing
        ask = asker(choose, fill, tmp_path, shard_rows=256)
        made = probe(names=6, context_count=3, keep=60, min_count=2)
        try:
            return made.run(ask, 0), fill.rows_scored, choose.rows_scored
        except Stop:
            return None, fill.rows_scored, choose.rows_scored

    stopped, filled, chosen = run(fail_after=700)
    assert stopped is None
    assert filled > 0
    finished, filled_again, chosen_again = run()
    whole = probe(names=6, context_count=3, keep=60, min_count=2).run(asker(chooser()), 0)
    assert [f.as_dict() for f in finished.findings] == [f.as_dict() for f in whole.findings]
    assert filled_again < filled + 1
    assert filled_again > 0
    total = finished.summary["distractors"] + 3 * 12
    assert chosen + chosen_again == total


def test_letters_are_chosen_in_three_rotations_without_favouring_a_place():
    def letter(prompt, option):
        line = next(x for x in prompt.splitlines() if x.startswith(f"{option}. "))
        return 5.0 * (option == "A") + 2.0 * ("violent" in line)

    model = ScriptedModel({"option": letter}, name="letters")
    context = Context("0", "{name} sang.", "How would you describe {name}?", "happy", "{name} is")
    pool = Pool(0, context.filled("Tia"), ["violent man", "kind man", "odd man", "so violent"])
    assert letter_successes(Ask(model), [pool], 0, "option")[0].tolist() == [1.0, 0.0, 0.0, 1.0]


def writes_letters(planted=(), broken=(), lost=1.0):
    """A chat model: names the letter of the answer with 'violent' for some names, else A."""

    def text(prompt, draw):
        lines = [x for x in prompt.splitlines() if x[:3] in ("A. ", "B. ", "C. ")]
        hits = [x[0] for x in lines if "violent" in x and prompt.split(" ")[0] in planted]
        if prompt.split(" ")[0] in broken and noise(prompt) < lost:
            return {"text": "I would rather not say.", "n_tokens": 6}
        return {"text": f" {hits[0] if hits else 'A'}.", "n_tokens": 2}

    return ScriptedModel({"generate": text}, name=f"writer {len(planted)}")


def test_a_chat_model_that_only_writes_text_is_asked_for_letters():
    context = Context("0", "{name} sang.", "How would you describe {name}?", "happy", "{name} is")
    texts = ["violent man", "kind man", "odd man", "so violent"]
    pools = [Pool(0, context.filled("Tia"), texts), Pool(1, context.filled("Bo"), texts)]
    tally = Tally(2, 1)
    tally.begin()
    writer = Ask(writes_letters(["Tia"], ["Bo"]))
    tia, bo = letter_successes(writer, pools, 0, "generate", tally)
    assert tia[[0, 3]].tolist() == [1.0, 1.0]
    assert tia[[1, 2]].tolist() == [0.0, 0.0]
    assert np.isnan(bo).all()  # no letter: no outcome
    assert tally.means() == {"mass": 0.5, "refused": 0.5, "unread": 0.0}
    assert tally.cells()[:, 0].tolist() == [[1, 0, 0], [0, 1, 0]]
    always_a = letter_successes(Ask(writes_letters()), pools[:1], 0, "generate")[0]
    assert np.allclose(always_a, 1 / 3)  # a liking for a letter favours no answer


def test_discovery_runs_on_a_chat_model_and_says_what_could_not_be_read():
    names = probe().people()[0]
    model = writes_letters(names[10:], names[:2], lost=0.3)
    made = probe(keep=60, min_count=4).run(asker(model), 0)
    best = max((f for f in made.findings if f.metric == "d_beyond"), key=lambda f: abs(f.value))
    assert best.attribute == "violent"
    assert best.q < 0.01
    assert any("no answer in" in note for note in made.summary["notes"])


def fair_run(seed: int, names=8, contexts=3, pool=60, words=20) -> float:
    """Smallest q of a run in which choosing has nothing to do with the group."""
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(words, 3).astype(str)) for _ in range(contexts * pool)]
    texts = [" ".join(f"w{n}" for n in t.split()) for t in texts]
    taste = rng.normal(size=(2 * names, contexts * pool)) + rng.normal(size=contexts * pool)
    success = np.concatenate([
        sodapop.expected_success(taste[n, c * pool : (c + 1) * pool], 0.5)
        for n in range(2 * names) for c in range(contexts)
    ])  # fmt: skip
    name = np.repeat(np.arange(2 * names), contexts * pool)
    shown = Shown(
        ("A",) * names + ("B",) * names, tuple(map(str, range(2 * names))),
        tuple(map(str, range(contexts))), texts, name,
        np.tile(np.repeat(np.arange(contexts), pool), 2 * names),
        np.tile(np.arange(contexts * pool), 2 * names), success,
    )  # fmt: skip
    counts = count_words(shown, min_count=3)
    in_a = np.arange(2 * names) < names
    result = shared(rates(counts), in_a, samples=1_999, seed=seed, max_exact=1)
    return float(np.nanmin(benjamini_hochberg(result.p)))


def test_a_model_without_preference_is_accused_in_at_most_5_percent_of_200_runs():
    accused = sum(fair_run(seed) < 0.05 for seed in range(200))
    assert accused <= 10


def test_a_scripted_model_without_preference_gives_no_finding():
    made = probe().run(asker(chooser()), 0)
    assert made.summary["detected"] == 0
    tests = [f for f in made.findings if f.metric in ("d_beyond", "d_typical")]
    assert tests
    assert all(f.otherwise.startswith("No difference between names of") for f in tests)
    assert all(f.q > 0.05 for f in tests)


def test_one_context_is_enough_and_intervals_are_said_to_be_over_names(tmp_path):
    made = probe(context_count=None, context_ids=("2",), names=5, min_count=2).run(
        asker(chooser()), 0
    )
    assert made.summary["contexts"] == 1
    assert "one context" in made.summary["reason"]
    found = next(f for f in made.findings if f.metric == "d_beyond")
    assert found.generalises_over == ("names",)
    assert "in this one situation" in found.otherwise
    notes = probe(context_count=None, context_ids=("2",)).preview(frozenset({"option"}), 0).notes
    assert any("about this situation alone" in note for note in notes)


def test_too_few_situations_and_names_are_said_before_a_run():
    notes = probe(context_count=3, names=3).preview(frozenset({"option"}), 0).notes
    assert any("too few situations (3)" in note and "with 6 or more" in note for note in notes)
    assert any("3 names in a group are too few" in note for note in notes)
    enough = probe(context_count=8).preview(frozenset({"option"}), 0).notes
    assert not any("too few" in note for note in enough)


def by_situation(effect, names=10, contexts=8, words=12, seed=0):
    """Counts in which one word's difference is `effect`, turned round in every other situation."""
    rng = np.random.default_rng(seed)
    rates = 0.4 + rng.normal(0, 0.02, (2 * names, contexts, words))
    rates[:names, :, 0] += np.asarray(effect)
    shown = np.full(rates.shape, 50.0)
    return WordCounts(
        ("A",) * names + ("B",) * names, tuple(map(str, range(2 * names))),
        tuple(map(str, range(contexts))), tuple(f"w{k}" for k in range(words)), shown,
        rates * shown, words,
    )  # fmt: skip


def test_what_hangs_on_a_few_situations_is_not_found_though_names_tell_the_groups_apart():
    few = by_situation([0.4, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.05])
    word = next(w for w in compare(few, "A", "B", Settings()).words if w["word"] == "w0")
    assert word.q < 0.001  # for these situations
    assert word["beyond"].q > 0.2
    every = by_situation([0.06, 0.04, 0.05, 0.07, 0.03, 0.05, 0.06, 0.05])
    word = next(w for w in compare(every, "A", "B", Settings()).words if w["word"] == "w0")
    assert word["beyond"].q < 0.001
    assert word["beyond"].low < 0.05 < word["beyond"].high


def test_counts_are_read_back_from_items_in_any_order():
    counts = by_situation(0.1, names=3, contexts=2, words=4)
    table = items(counts)
    for rows in (table, table.take(np.random.default_rng(0).permutation(len(table)))):
        again = counts_of(rows)
        for name in ("groups", "names", "contexts", "words"):
            assert getattr(again, name) == getattr(counts, name)
        assert np.array_equal(again.shown, counts.shown)
        assert np.array_equal(again.won, counts.won)


def test_a_word_has_a_row_for_these_situations_and_one_beyond_them():
    row = compare(by_situation(0.1), "A", "B", Settings()).words[0]
    assert (row["word"], row["rd"], row["low"]) == ("w0", row.value, row.low)
    assert row["beyond"].test.tested
    assert {*row.but("beyond")}.isdisjoint({"situations", "detectable"})
    alone = row["beyond"].test.about
    assert alone.value == pytest.approx(row["d"])
    assert row["beyond"].detectable > row["beyond"].test.estimate(family=1, rate=0.05).detectable


def test_what_all_words_share_is_one_finding_and_not_one_per_word():
    counts = by_situation(0.0)
    won = counts.won.copy()
    won[:10] += 0.1 * 50
    found = compare(replace(counts, won=won), "A", "B", Settings())
    assert found.typical.value == pytest.approx(0.1, abs=0.02)
    assert found.typical.q < 0.001
    assert min(w["beyond"].q for w in found.words) > 0.05
    assert min(w["d"] for w in found.words) > 0.05


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"groups": ("asain_female", "asian_male")}, "unknown group 'asain_female'"),
        ({"groups": ("asian_male",)}, "one group"),
        ({"pairs": ("asian_male:x",)}, "not one of the groups"),
        ({"context_ids": ("99",)}, "no context '99'"),
        ({"contexts": "$NO_SUCH_VARIABLE"}, "variable is not set to a file"),
        ({"contexts": "nowhere.jsonl"}, "no such file"),
    ],
)
def test_wrong_settings_are_named(changes, words):
    with pytest.raises(EvenhandError) as caught:
        probe(**changes).run(asker(chooser()), 0)
    assert words in str(caught.value)


def test_a_model_that_cannot_fill_masks_asks_for_a_generator():
    with pytest.raises(EvenhandError, match="--set generator=MODEL"):
        probe(generator=None).run(Ask(chooser()), 0)


def test_words_that_vanish_after_filtering_are_said():
    made = probe(names=3, min_count=100_000).run(asker(chooser()), 0)
    assert made.summary["vocabulary"] == 0
    assert "no word is left" in made.summary["reason"]


def social_iqa(path, rows):
    """A small Social IQa file: (context, question) rows whose right answer is B."""
    made = [
        {"context": c, "question": q, "answerA": "x", "answerB": "a kind man", "answerC": "y",
         "correct": "B"}
        for c, q in rows
    ]  # fmt: skip
    path.write_text("\n".join(json.dumps(row) for row in made))
    return str(path)


def test_samples_without_the_person_in_the_context_are_counted_and_reported(tmp_path):
    file = social_iqa(
        tmp_path / "dev.jsonl",
        [("Tia sang.", "How would you describe Tia?"), ("She sang.", "How would you describe Tia?"),
         ("Tia sang.", "What will Tia want to do next?"), ("Tia sang.", "Where is the sea?")],
    )  # fmt: skip
    made = probe(contexts=file, context_count=None, names=4, min_count=1).run(asker(chooser()), 0)
    assert list(made.summary["contexts_left_out"].values()) == [1, 1, 1]
    assert any("person asked about is not in the context" in n for n in made.summary["notes"])
    assert made.summary["context_coverage"] == 0.5
    assert all(f.coverage == 0.5 for f in made.findings)
    notes = probe(contexts=file, context_count=None).preview(frozenset({"option"}), 0).notes
    assert sum("1 samples left out" in note for note in notes) == 3


def test_a_file_in_which_nobody_can_be_named_is_refused_with_reasons(tmp_path):
    file = social_iqa(tmp_path / "dev.jsonl", [("She sang.", "How would you describe Tia?")])
    with pytest.raises(EvenhandError, match="1 samples left out: the person asked about"):
        probe(contexts=file).run(asker(chooser()), 0)
    rows = [("Tia lost her keys.", "How would you describe Tia?")]
    dropped = probe(contexts=social_iqa(tmp_path / "two.jsonl", rows), pronouns="drop")
    with pytest.raises(EvenhandError, match="none is left; 1 has gendered pronouns"):
        dropped.run(asker(chooser()), 0)


def test_groups_of_unequal_size_and_of_one_name(tmp_path):
    lexicon = tmp_path / "mine.toml"
    lexicon.write_text(
        'title = "Mine"\nkind = "names"\nsource = "mine"\nlicence = "none"\ncaveats = []\n'
        '[groups.one]\naxis = {}\nterms = ["Ada"]\n'
        '[groups.four]\naxis = {}\nterms = ["Bo", "Cy", "Di", "Ed"]\n'
    )
    made = probe(groups=("one", "four"), lexicon=str(lexicon), min_count=2).run(asker(chooser()), 0)
    assert "one name" in made.summary["reason"]
    row = made.tables["words"].to_pylist()[0]
    assert row["p_names"] >= 0.2
    assert row["p"] is None or np.isnan(row["p"])
    assert row["low"] is None or np.isnan(row["low"])
    undefined = next(f for f in made.findings if f.metric == "d")
    assert "one name" in undefined.reason


def test_a_generator_with_another_tokenizer_hands_over_text(tiny):
    pytest.importorskip("torch", reason="needs the hf extra")
    from evenhand.models.loading.resolver import resolve

    ask = Ask(resolve(tiny("choice")), helpers={"generator": Ask(resolve(tiny("causal")))})
    made = probe(names=2, keep=10, context_count=1, min_count=1, fills=4, distance=1).run(ask, 0)
    assert any("tokenizer may differ" in note for note in made.summary["notes"])
    assert made.summary["distractors"] > 0


def test_the_released_rules_are_followed_on_request():
    made = probe(as_published=True, names=5, keep=200, distance=2).run(asker(chooser()), 0)
    assert made.summary["p_method"] in ("as published", "no words")
    assert all(f.as_published for f in made.findings)


def test_compare_takes_any_two_groups_of_the_counts():
    shown = Shown(("A", "B", "C"), ("a", "b", "c"), ("x",), ["w"], np.array([0, 1, 2]),
                  np.zeros(3, int), np.zeros(3, int), np.array([1.0, 0.0, 0.5]))  # fmt: skip
    counts = count_words(shown, min_count=1)
    found = compare(counts, "A", "C", Settings())
    assert found.words[0]["d"] == 0.5
