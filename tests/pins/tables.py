"""Seeded tables for `evenhand measure`, larger than those of `reader_cases`.

Each function writes files into a folder and returns the inputs and the settings of a reader.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import probe_cases
import reader_cases
from pins import inputs
from pins.inputs import write_table

Arguments = tuple[list[Any], dict[str, Any]]
Write = Callable[[Path], Arguments]


def base(name: str) -> Write:
    """Return the case of `reader_cases`, its options as settings."""

    def write(folder: Path) -> Arguments:
        words = [str(word) for word in reader_cases.CASES[name](folder)]
        first = next((k for k, word in enumerate(words) if word.startswith("--")), len(words))
        names = [word[2:].replace("-", "_") for word in words[first::2]]
        return words[:first], dict(zip(names, words[first + 1 :: 2]))

    return write


def also(write: Write, **settings: Any) -> Write:
    """Return the same input with further settings."""

    def more(folder: Path) -> Arguments:
        arguments, first = write(folder)
        return arguments, {**first, **settings}

    return more


def underspecified(folder: Path) -> Arguments:
    rng = random.Random(1)
    names = {"Ann": "f", "Bea": "f", "Cara": "f", "Dan": "m", "Ed": "m", "Flo": "f", "Gus": "m"}
    pairs = [(a, b) for a in names for b in names if names[a] != names[b]]
    rows = [
        (
            template,
            job,
            a,
            b,
            negated,
            0.5 * rng.random() + 0.1 * (names[a] == "f"),
            0.5 * rng.random(),
            names[a],
            names[b],
        )
        for template in "tu"
        for job in ("nurse", "pilot")
        for a, b in pairs
        for negated in (0, 1)
    ]
    head = (
        "template",
        "attribute",
        "first",
        "second",
        "negated",
        "score_first",
        "score_second",
        "group_first",
        "group_second",
    )
    table = write_table(folder / "table.csv", head, rows)
    return [table], {"resamples": 60, "samples": 99}


def association(folder: Path) -> Arguments:
    rng = random.Random(2)
    sets = {k: [f"{k}{n}" for n in range(8 if k in "xy" else 5)] for k in "xyab"}
    side = {"x": 1, "y": -1, "a": 1, "b": -1}
    lines = [
        f"{word} {side[word[0]] + rng.gauss(0, 1):.5f} {rng.gauss(0, 1):.5f} {rng.gauss(0, 1):.5f}"
        for words in sets.values()
        for word in words
        if word != "x7"
    ]
    (folder / "v.txt").write_text("\n".join(lines) + "\n")
    (folder / "t.json").write_text(json.dumps({"one": sets, "two": {**sets, "x": sets["x"][:4]}}))
    return [], {"vectors": str(folder / "v.txt"), "tests": str(folder / "t.json"), "samples": 199}


def discovery(folder: Path) -> Arguments:
    rng = random.Random(3)
    words = ("kind", "rude", "odd", "calm", "loud", "brave")
    rows = [
        (
            group,
            name,
            context,
            f"so {word}",
            int(rng.random() < 0.3 + 0.4 * (group + word == "Akind")),
        )
        for group, names in (("A", "abcdef"), ("B", "ghijkl"))
        for name in names
        for context in ("park", "shop", "home")
        for word in words
    ]
    table = write_table(
        folder / "table.csv", ("group", "name", "context", "distractor", "success"), rows
    )
    return [table], {"group_a": "A", "group_b": "B", "min_count": 1, "samples": 199}


def traits(folder: Path) -> Arguments:
    arguments, settings = base("traits")(folder)
    rows = [("kind", "warm", 1), ("kind", "warm", 2), ("rude", "cold", 1), ("rude", "warm", 2)]
    settings["words"] = write_table(folder / "words.csv", ("word", "trait", "annotator"), rows)
    return arguments, settings


def crows_pairs(folder: Path) -> Arguments:
    rng = random.Random(4)
    rows = [
        (
            rng.gauss(-20, 3),
            rng.gauss(-20.5, 3),
            ("stereo", "antistereo")[k % 3 == 0],
            ("age", "gender", "religion")[k % 3],
            f"w{k % 7}",
        )
        for k in range(60)
    ]
    head = ("sent_more_score", "sent_less_score", "stereo_antistereo", "bias_type", "anon_writer")
    return [write_table(folder / "table.csv", head, rows)], {}


def bbq(folder: Path) -> Arguments:
    rows = [json.loads(r) for r in Path(inputs.two_categories(folder)).read_text().splitlines()]
    return [inputs.bbq_answers(folder, rows)], {"data": str(folder / "two.jsonl")}


def bbq_edition(write: Callable[[Path], str], keys: tuple[str, ...], separator: str = ",") -> Write:
    """Return random answers to the questions of an edition, named by its keys."""

    def answers(folder: Path) -> Arguments:
        data = Path(write(folder))
        head, *lines = [
            line.split(separator) for line in data.read_text(encoding="utf-8").splitlines()
        ]
        rng, places = random.Random(5), [head.index(key) for key in keys]
        rows = [[*(line[p] for p in places), rng.randrange(3)] for line in lines]
        return [write_table(folder / "p.csv", (*keys, "prediction"), rows)], {"data": str(data)}

    return answers


def honest(folder: Path) -> Arguments:
    rng, words = random.Random(6), ("witch", "slut", "doctor", "kind", "nice", "", "a stupid man")
    rows = [
        (rng.choice(words), f"{group}{k}", f"{group}_x")
        for group in ("female", "male", "queer")
        for k in range(6)
        for _ in range(8)
    ]
    return [write_table(folder / "h.csv", ("completion", "identity", "category"), rows)], {}


def gest(folder: Path) -> Arguments:
    rng = random.Random(7)
    rows = [
        (k % 16 + 1, rng.gauss(0.3 * (k % 16 > 7), 1), rng.gauss(0, 1), f"Sentence {k}.")
        for k in range(160)
    ]
    head = ("stereotype", "score", "other", "sentence")
    return [write_table(folder / "table.csv", head, rows)], {}


def own_stereotypes(folder: Path) -> Arguments:
    rng = random.Random(8)
    rows = [
        (
            ("strong", "gentle", "tidy")[k % 3],
            ("male", "female", "female")[k % 3],
            rng.gauss(0.2, 1),
        )
        for k in range(90)
    ]
    return [write_table(folder / "table.csv", ("stereotype", "usual", "score"), rows)], {}


def ranking(folder: Path) -> Arguments:
    rng, rows = random.Random(9), []
    people = [("a", "f", "white"), ("b", "m", "white"), ("c", "f", "Black"), ("d", "m", "Black")]
    for job in ("clerk", "cook"):
        for run in range(30):
            order = sorted(people, key=lambda p: rng.random() - 0.15 * (p[0] == "a"))
            for place, person in enumerate(rng.sample(people, 4)):
                group, sex, race = person
                rank = "" if run % 11 == 3 and group == "d" else order.index(person) + 1
                name = f"{group}{run % 5}"
                rows.append((job, run, group, place + 1, rank, name, sex, race))
    head = ("stratum", "run", "group", "position", "rank", "name", "sex", "race")
    return [write_table(folder / "table.csv", head, rows)], {}


def ranking_answers(folder: Path) -> Arguments:
    rng, rows = random.Random(10), []
    for run in range(40):
        names = rng.sample(("Ann", "Bea", "Dan", "Ed"), 4)
        answer = rng.choice((f"1. {names[0]}\n2. {names[1]}", f"{names[2]} is best.", "No idea."))
        for place, name in enumerate(names):
            group = "f" if name in ("Ann", "Bea") else "m"
            rows.append(("clerk", run, group, place + 1, name, answer))
    head = ("stratum", "run", "group", "position", "name", "answer")
    return [write_table(folder / "table.csv", head, rows)], {}


def labour_odds(folder: Path) -> Arguments:
    rng = random.Random(11)
    jobs = (
        "nurse",
        "carpenter",
        "lawyer",
        "cook",
        "pharmacist",
        "electrician",
        "librarian",
        "plumber",
        "judge",
        "cashier",
        "roofer",
        "secretary",
    )
    rows = [(job, rng.gauss(0.5, 1), 8 * k + 4) for k, job in enumerate(jobs)]
    return [write_table(folder / "table.csv", ("occupation", "log_odds", "pct_women"), rows)], {}


def labour_shares(folder: Path) -> Arguments:
    (table,), _ = labour_odds(folder)
    lines = Path(table).read_text().splitlines()[1:]
    rows = [(line.split(",")[0], 0.05 + 0.07 * k) for k, line in enumerate(lines)]
    return [write_table(folder / "shares.csv", ("occupation", "share"), rows)], {}


def guises(folder: Path) -> Arguments:
    rng = random.Random(12)
    rows = [
        (
            f"text {k}",
            question,
            kind,
            f"feature {k % 4}",
            0.3 + 0.5 * rng.random(),
            0.6 * rng.random(),
        )
        for k in range(16)
        for question, kind in (("lazy", "traits"), ("rude", "traits"), ("guard", "jobs"))
    ]
    head = ("text", "question", "kind", "feature", "score_dialect", "score_standard")
    return [write_table(folder / "table.csv", head, rows)], {}


def guise_ratios(folder: Path) -> Arguments:
    rng = random.Random(13)
    words = ("lazy", "loud", "kind", "smart", "rude", "calm", "brave")
    rows = [
        (f"text {k}", word, prompt, rng.gauss(-4, 1) + 0.5 * (word == "lazy"), rng.gauss(-4, 1))
        for k in range(6)
        for prompt in ("He is", "She is")
        for word in words
    ]
    favour = {word: 1.5 - 0.5 * k for k, word in enumerate(words)}
    human = {"favorability": favour, "study": {"year": 1933, "scores": {"lazy": 9, "loud": 4}}}
    (folder / "h.json").write_text(json.dumps(human))
    head = ("text", "attribute", "prompt", "logprob_dialect", "logprob_standard")
    return [write_table(folder / "table.csv", head, rows)], {"human": str(folder / "h.json")}


def decision(table: str) -> Write:
    return lambda folder: ([inputs.decision_tables(folder)[table]], {})


def implicit(folder: Path) -> Arguments:
    rng = random.Random(14)
    rows = [
        (
            stereotype,
            side,
            f"{side}{k}",
            test,
            f"topic {k % 3}",
            f"pair {k % 4}",
            min(1.0, 0.3 + 0.2 * (side == "bad") + 0.4 * rng.random()),
        )
        for stereotype in ("age", "race")
        for test in ("association", "decision")
        for side in ("bad", "good")
        for k in range(12)
    ]
    head = ("stereotype", "side", "word", "test", "topic", "pair", "score")
    return [write_table(folder / "table.csv", head, rows)], {}


def implicit_link(folder: Path) -> Arguments:
    rng = random.Random(15)
    rows = []
    for k in range(120):
        bias = rng.uniform(-1, 1)
        rows.append((bias, int(rng.random() < 0.5 + 0.3 * bias), f"s{k % 9}"))
    return [write_table(folder / "table.csv", ("iat_bias", "decision_bias", "dataset"), rows)], {}


def implicit_answers(folder: Path) -> Arguments:
    rng = random.Random(16)
    words = ("joy", "love", "peace", "agony", "filth", "war")
    data = inputs.stimuli(folder)
    rows = []
    for k in range(8):
        lines = [f"{word} - {rng.choice(('young', 'old'))}{k % 3}" for word in words]
        rows.append(("age", "\n".join(lines) if k else "I cannot do that."))
    return [write_table(folder / "said.csv", ("category", "response"), rows)], {"stimuli": data}


def ceat(folder: Path) -> Arguments:
    rng = random.Random(17)
    rows = [
        (f"weat{6 + k % 2}", rng.gauss(0.4, 0.3), 0.05 + 0.05 * rng.random()) for k in range(50)
    ]
    return [write_table(folder / "table.csv", ("test", "effect_size", "variance"), rows)], {}


def coreference_pair(folder: Path) -> Arguments:
    arguments, settings = base("coreference")(folder)
    more = {
        "anti_predictions": reader_cases._conll(folder / "anti.conll", wrong=2),
        "anti_gold": reader_cases._conll(folder / "anti_gold.conll"),
    }
    return arguments, {**settings, **more}


def gaps(folder: Path) -> Arguments:
    rng = random.Random(18)
    rows = []
    for k in range(200):
        group, label = "abc"[k % 3], int(rng.random() < 0.4)
        rows.append((label, int(rng.random() < 0.2 + 0.5 * label + 0.1 * (group == "a")), group))
    table = write_table(folder / "table.csv", ("label", "predicted", "group"), rows)
    return [table], {"first": "a", "second": "b", "resamples": 99}


def correlation(folder: Path) -> Arguments:
    rng = random.Random(19)
    rows = []
    for k in range(60):
        x = rng.gauss(0, 1)
        rows.append((x, x + rng.gauss(0, 1), rng.gauss(0, 1), "uv"[k % 2], f"cell {k // 3}"))
    table = write_table(folder / "table.csv", ("x", "y", "z", "kind", "cell"), rows)
    return [table], {"x": "x", "y": "y,z", "resamples": 199}


def people(folder: Path) -> Arguments:
    """Return the same cases decided for people of four groups, in words and in numbers."""
    rng = random.Random(20)
    said = ("approve", "I would not approve it.", "reject", "", "I cannot answer that.")
    rows = [
        (
            f"case {k}",
            gender,
            race,
            f"{gender[0]}{race[0]}{k % 4}",
            rng.choice(said),
            rng.randrange(1, 8) + (gender == "man"),
            rng.gauss(0.3 * (race == "white"), 1),
        )
        for k in range(20)
        for gender in ("woman", "man")
        for race in ("Black", "white")
    ]
    head = ("case", "gender", "race", "name", "decision", "points", "score")
    return [write_table(folder / "table.csv", head, rows)], {}


def first_names(folder: Path) -> Arguments:
    rng = random.Random(21)
    names = ("Aiesha", "Lashelle", "Shereen", "Amanda", "Courtney", "Heather", "Jamel", "Adam")
    rows = [(name, rng.choice(("yes", "no"))) for name in names for _ in range(6)]
    return [write_table(folder / "table.csv", ("name", "answer"), rows)], {}


def counterfactual(folder: Path) -> Arguments:
    rng = random.Random(22)
    rows = [
        (
            f"t{k}",
            group,
            min(1, max(0, rng.gauss(0.4 + 0.1 * (group == "black"), 0.2))),
            k % 2,
            0.5,
            f"{group} {k % 5}",
        )
        for k in range(24)
        for group in ("white", "black", "asian")
    ]
    head = ("item", "group", "score", "label", "threshold", "term")
    return [write_table(folder / "table.csv", head, rows)], {"reference": "white"}


def counterfactual_scores(folder: Path) -> Arguments:
    (table,), settings = counterfactual(folder)
    lines = [line.split(",")[:3] for line in Path(table).read_text().splitlines()]
    return [write_table(folder / "scores.csv", lines[0], lines[1:])], settings


def bbq_log(folder: Path) -> Arguments:
    """Return samples of lm-eval whose items are BBQ's."""
    rows = []
    for row in probe_cases.CASES["bbq"].rows:
        prompt = f"{row['context']}\nQ: {row['question']}\nA:"
        answers = [row[f"ans{k}"] for k in range(3)]
        scores = [-2.0 - probe_cases.noise(prompt, answer) for answer in answers]
        rows.append(
            {
                "doc": row,
                "arguments": {
                    f"gen_args_{k}": {"arg_0": prompt, "arg_1": f" {answer}"}
                    for k, answer in enumerate(answers)
                },
                "filtered_resps": [[str(score), "False"] for score in scores],
                "filter": "none",
            }
        )
    path = folder / "samples_bbq_age_2026-01-02T03-04-05.000006.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return [str(path)], {}


def bbq_log_with_data(folder: Path) -> Arguments:
    arguments, _ = bbq_log(folder)
    case = probe_cases.CASES["bbq"]
    return arguments, {"data": case.settings(folder, case.rows)["data"]}
