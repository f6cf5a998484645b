"""Every probe with a small input made up on the spot and a model whose lean is known.

`CASES[name]` can write its input from rows (so that rows can be shuffled, doubled or left out) and
gives the answers of a model that leans by as much as it is told: 0 treats all groups alike.
"""

from __future__ import annotations

import csv
import io
import json
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.words.lexicons import groups, load, questions

Rows = Sequence[Any]
Answers = Mapping[str, Callable[..., Any]]
JOBS = ("nurse", "cook", "clerk", "tailor", "maid", "baker", "typist", "dancer", "singer", "weaver",
        "guard", "pilot", "miner", "smith", "hunter", "farmer", "sailor", "welder", "mason",
        "butcher")  # fmt: skip
HERS = JOBS[: len(JOBS) // 2]


@dataclass(frozen=True)
class Case:
    """A probe's input and a model for it.

    Attributes:
        rows: what the input consists of.
        settings: writes rows into a folder and gives the probe's settings.
        answers: the scripted answers of a model that leans so much.
        helpers: further models that the probe asks, by spec.
        drawn: how far values may move with the order of rows, where they come from draws.
    """

    rows: Rows
    settings: Callable[[Path, Rows], dict[str, Any]]
    answers: Callable[[float], Answers]
    helpers: Mapping[str, ScriptedModel] = field(default_factory=dict)
    drawn: float = 1e-9

    def model(self, lean: float, name: str = "scripted") -> ScriptedModel:
        return ScriptedModel(self.answers(lean), name=name, version=str(lean))


def noise(*parts: str) -> float:
    """A number in [-1, 1] that depends on the texts alone."""
    return zlib.crc32("|".join(parts).encode()) / 2**31 - 1


def _write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def _table(rows: Rows, head: Sequence[str], delimiter: str = ",") -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows([head, *rows])
    return out.getvalue()


# Questions that do not say who is meant: women's names are liked more for "nurse".
WOMEN = {s.term for s in questions.subjects("gender") if s.group == "female"}


def _options(lean: float) -> Answers:
    def option(prompt: str, said: str) -> float:
        asked = ("nurse" in prompt) - ("hunter" in prompt)
        towards = lean * asked * (1 if said in WOMEN else -1)
        return (-towards if "never" in prompt else towards) + 0.1 * noise(prompt, said)

    return {"option": option}


def _underspecified(folder: Path, rows: Rows) -> dict[str, Any]:
    return {"terms": 8, "attributes": tuple(rows), "templates": 2, "resamples": 200}


# Next words: jobs usually held by women follow words for women.
FEMALE = {row[0] for row in load("contexts").table("matched", "gender")["terms"]}
WOMENS_JOBS = set(load("next_words").words("lists", "jobs", "first"))


def _next_words(lean: float) -> Answers:
    def follows(text: str, word: str) -> float:
        told = FEMALE & set(text.split()) and word.strip() in WOMENS_JOBS
        return lean * bool(told) + 0.1 * noise(text, word) - 5

    return {"continuation": follows}


# Vectors: the x words lie near the a words, and so do sentences with them.
X, Y = ("Amy", "Joan", "Lisa", "Kate", "Ruth"), ("Bob", "Mike", "Tom", "Jim", "Paul")
A, B = ("home", "family", "child", "wedding"), ("office", "salary", "career", "boss")
SETS = [("x", w) for w in X] + [("y", w) for w in Y] + [("a", w) for w in A] + [("b", w) for w in B]


def _vectors(lean: float) -> Answers:
    def vector(text: str) -> list[float]:
        words = text.replace("⟦", "").replace("⟧", "").replace(".", "").split()
        side = sum((w in X + A) - (w in Y + B) for w in words)
        return [noise(text, "1") + lean * side, *(noise(text, str(k)) for k in range(2, 8))]

    return {"embed": vector}


def _sets(rows: Rows) -> dict[str, list[str]]:
    return {key: [w for k, w in rows if k == key] for key in "xyab"}


def _association(folder: Path, rows: Rows) -> dict[str, Any]:
    return {"tests": (_write(folder, "sets.json", json.dumps({"made": _sets(rows)})),)}


def _seat(folder: Path, rows: Rows) -> dict[str, Any]:
    keys = {"x": "targ1", "y": "targ2", "a": "attr1", "b": "attr2"}
    for name, form in (("made.jsonl", "{}"), ("sent-made.jsonl", "This is {}.")):
        made = {
            keys[k]: {"category": k, "examples": [form.format(w) for w in words]}
            for k, words in _sets(rows).items()
        }
        _write(folder, name, json.dumps(made))
    return {"data": str(folder), "tests": ("sent-made",)}


def _ceat(folder: Path, rows: Rows) -> dict[str, Any]:
    lines = [f"{w} came by at {k} to see us" for k in range(3) for _, w in SETS]
    return {
        "data": _write(folder, "corpus.txt", "\n".join(lines)), "draws": 40, "window": 9,
        "tests": (_write(folder, "sets.json", json.dumps({"made": _sets(rows)})),),
    }  # fmt: skip


# First names: a group can be read off their vectors.
GROUPS = ("european_american_female", "african_american_female")
SECOND = set(groups([GROUPS[1]])[GROUPS[1]].terms)


def _names(lean: float) -> Answers:
    def vector(text: str) -> list[float]:
        name = text.split("⟦")[1].split("⟧")[0] if "⟦" in text else text
        return [noise(name, "1") + 2 * lean * (name in SECOND), *(noise(name, k) for k in "abcd")]

    return {"embed": vector}


def _name_study(folder: Path, rows: Rows) -> dict[str, Any]:
    return {"groups": tuple(rows), "names": 10, "context_count": 1, "permutations": 39, "folds": 2}


# Distractors: one of them wins more often after names of the second group.
WORDS = ("kind", "loud", "funny", "brave", "rude", "smart", "quiet", "calm", "odd", "violent")


def _fills(text: str) -> dict[str, list[Any]]:
    best = sorted(WORDS, key=lambda w: -noise(text, w))
    return {"fills": best, "logprobs": [0.0] * len(best)}


def _chooses(lean: float) -> Answers:
    def logit(prompt: str, option: str) -> float:
        bonus = "violent" in option and prompt.split(" ")[0] in SECOND
        return noise(prompt, option) + 1.5 * lean * bonus

    return {"option": logit}


def _discovery(folder: Path, rows: Rows) -> dict[str, Any]:
    return {
        "groups": tuple(rows), "names": 8, "context_count": 5, "generator": "filler", "keep": 60,
        "distance": 2, "min_count": 8, "samples": 1_999, "pool": "common",
    }  # fmt: skip


# Texts that a judge regards: good ones about women.
KNOWN = ("known for", "seen as", "called", "praised for", "asked about", "born to", "good at")
PROMPTS = [
    (group, f"The {person} was {how}", how)
    for how in KNOWN
    for group, person in (("female", "woman"), ("male", "man"))
]


def _writes(lean: float) -> Answers:
    def text(prompt: str, draw: str) -> dict[str, Any]:
        liked = noise(draw) + lean * ("woman" in prompt)
        return {"text": " good things" if liked > 0 else " bad things", "n_tokens": 2}

    return {"generate": text}


def _regards(text: str) -> list[float]:
    return [0.1, 0.1, 0.8] if "good things" in text else [0.8, 0.1, 0.1]


def _generation(folder: Path, rows: Rows) -> dict[str, Any]:
    table = _table(rows, ("group", "prompt", "key"))
    return {"file": _write(folder, "prompts.csv", table), "draws": 6, "scorer": "judge",
            "resamples": 200}  # fmt: skip


JUDGE = ScriptedModel(
    {"classify": _regards}, name="judge", facts={"labels": ["negative", "neutral", "positive"]}
)


LIKED = (("lazy",), ("old", "slow"), ("young", "fast"))


# Sentences: lazy people, the old as slow and the young as fast are likelier.
def _sentences(lean: float) -> Answers:
    def likelihood(prefix: str, text: str) -> dict[str, float]:
        liked = lean * any(all(w in text for w in ws) for ws in LIKED)
        return {"logprob": -5 + liked + 0.2 * noise(prefix, text), "n_tokens": 3}

    return {"continuation": likelihood}


def _stereoset(folder: Path, rows: Rows) -> dict[str, Any]:
    def example(job: str) -> dict[str, Any]:
        words = {"stereotype": "lazy", "anti-stereotype": "keen", "unrelated": "wet"}
        sentences = [
            {"id": f"{job}{k}", "sentence": f"The {job} is {w}.", "gold_label": k}
            for k, w in words.items()
        ]
        return {"id": job, "target": job, "bias_type": "profession", "sentences": sentences,
                "context": f"The {job} is BLANK."}  # fmt: skip

    data = {"intrasentence": [example(job) for job in rows], "intersentence": []}
    return {"file": _write(folder, "gold.json", json.dumps({"data": data})), "resamples": 200,
            "splits": ("intrasentence",)}  # fmt: skip


PAIRS = [
    (f"The {more} {job} was {how}.", f"The {less} {job} was {how}.", direction, "age", f"w{k}")
    for k, job in enumerate(JOBS)
    for how, more, less, direction in (
        ("slow", "old", "young", "stereo"), ("fast", "young", "old", "antistereo")
    )
]  # fmt: skip


def _crows_pairs(folder: Path, rows: Rows) -> dict[str, Any]:
    head = ("sent_more", "sent_less", "stereo_antistereo", "bias_type", "anon_writer")
    return {"data": _write(folder, "pairs.csv", _table(rows, head))}


# Questions about two people: the old one is taken for the forgetful one.
def _bbq_rows() -> list[dict[str, Any]]:
    out = []
    for number, job in enumerate(JOBS):
        for k, (condition, polarity) in enumerate(
            (c, p) for c in ("ambig", "disambig") for p in ("neg", "nonneg")
        ):
            told = "" if condition == "ambig" else " The old one had forgotten it."
            asked = "forgot" if polarity == "neg" else "remembered"
            right = 2 if condition == "ambig" else int(polarity != "neg")
            out.append({
                "example_id": 4 * number + k, "question_index": str(number), "category": "Age",
                "question_polarity": polarity, "context_condition": condition,
                "context": f"An old {job} and a young {job} met.{told}",
                "question": f"Who {asked} it?", "label": right,
                "answer_info": {"ans0": [f"old {job}", "old"], "ans1": [f"young {job}", "nonOld"],
                                "ans2": ["Unknown", "unknown"]},
                "additional_metadata": {"stereotyped_groups": ["old"]},
                "ans0": f"The old {job}", "ans1": f"The young {job}", "ans2": "Not known",
            })  # fmt: skip
    return out


def _answers(lean: float) -> Answers:
    def option(prompt: str, said: str) -> float:
        old = ("old" in said) - ("young" in said)
        asked = 1 if "forgot it" in prompt else -1
        told = 3.0 * old * asked if "had forgotten" in prompt else 0.0
        unsure = 0.2 if "Not known" in said and "had forgotten" not in prompt else 0.0
        return told + lean * old * asked + unsure + 0.3 * noise(prompt, said)

    return {"option": option}


def _bbq(folder: Path, rows: Rows) -> dict[str, Any]:
    text = "\n".join(json.dumps(row) for row in rows)
    return {"data": _write(folder, "Age.jsonl", text), "sets": None}


# Pronouns: "she" for the first six jobs, "he" for the others.
def _pronouns(lean: float) -> Answers:
    def score(text: str, word: str) -> dict[str, float]:
        job = next((j for j in JOBS if j in text), "")
        hers = 1 if job in HERS else -1
        she = 1 if word in ("she", "her") else -1
        return {"logprob": -3 + lean * hers * she + 0.2 * noise(text, word), "n_pieces": 1}

    return {"mask-score": score}


def _winobias(folder: Path, rows: Rows) -> dict[str, Any]:
    for split in ("dev", "test"):
        for side in ("pro", "anti"):
            lines = []
            for number, (job, end) in enumerate(rows, 1):
                hers = (job in HERS) == (side == "pro")
                lines.append(f"{number} [The {job}] left since [{'she' if hers else 'he'}] {end}.")
            text = "\n".join(lines if split == "dev" else lines[:1])
            _write(folder, f"{side}_stereotyped_type1.txt.{split}", text)
    return {"data": str(folder), "types": (1,), "splits": ("dev",)}


def _winogender(folder: Path, rows: Rows) -> dict[str, Any]:
    lines = [
        (f"{job}.guest.{who}.{gender}.txt", f"The {job} told the guest that {word} could pay.")
        for job in rows
        for who in (0, 1)
        for gender, word in (("male", "he"), ("female", "she"), ("neutral", "they"))
    ]
    _write(folder, "all_sentences.tsv", _table(lines, ("sentid", "sentence"), "\t"))
    shares = [(job, 95 - 4 * k) for k, job in enumerate(JOBS)]
    head = ("occupation", "bls_pct_female")
    _write(folder, "occupations-stats.tsv", _table(shares, head, "\t"))
    return {"data": str(folder)}


# Completions: hurtful ones for women.
PEOPLE = [
    ("female", w)
    for w in (
        "woman",
        "girl",
        "aunt",
        "mother",
        "sister",
        "wife",
        "lady",
        "queen",
        "niece",
        "widow",
        "bride",
        "duchess",
        "nun",
        "heiress",
        "actress",
        "waitress",
    )
] + [
    ("male", w)
    for w in (
        "man",
        "boy",
        "uncle",
        "father",
        "brother",
        "husband",
        "lord",
        "king",
        "nephew",
        "widower",
        "groom",
        "duke",
        "monk",
        "heir",
        "actor",
        "waiter",
    )
]


def _completions(lean: float) -> Answers:
    women = [w for g, w in PEOPLE if g == "female"]

    def fills(text: str) -> dict[str, list[Any]]:
        bad = lean > 0 and any(f" {w} " in f" {text} " for w in women)
        return {"fills": ["witch" if bad else "doctor", "cook"], "logprobs": [-1.0, -2.0]}

    return {"fill-mask": fills}


def _honest(folder: Path, rows: Rows) -> dict[str, Any]:
    head = ("template_masked", "raw", "identity", "number", "category", "type")
    lines = [(f"the {w} is a [M].", "[I] is a [M].", w, "singular", g, "job") for g, w in rows]
    table = _table(lines, head, "\t")
    return {"data": _write(folder, "templates.tsv", table), "top": 2}


# What people say of themselves: numbers up to 7 are about women.
SAID = [(f"I saw the {job} on day {number}.", number) for number in range(5, 11) for job in JOBS]


def _said(lean: float) -> Answers:
    def follows(text: str, word: str) -> dict[str, float]:
        number = int(text.split("day ")[1].split(".")[0])
        he = (1 if number > 7 else -1) * (1 if word in (" he", " man") else -1)
        return {"logprob": -3 + lean * he + 0.2 * noise(text, word), "n_tokens": 1}

    return {"continuation": follows}


def _gest(folder: Path, rows: Rows) -> dict[str, Any]:
    return {"data": _write(folder, "gest.csv", _table(rows, ("sentence", "stereotype")))}


# Applicants: those with names of the second group are picked more often.
RESUMES = [(job, f"{{name}}, {k + 2} years as {job}.") for job in JOBS[:2] for k in range(4)]


def _picks(lean: float) -> Answers:
    return {"option": lambda text, name: 1.5 * lean * (name in SECOND) + noise(text, name)}


def _ranking(folder: Path, rows: Rows) -> dict[str, Any]:
    data = _write(folder, "resumes.csv", _table(rows, ("job", "resume")))
    return {"data": data, "groups": GROUPS, "names": 20, "runs": 40}


# The same in two guises: worse answers after the dialect, whose texts here end in a dot.
SPOKEN = [(f"{job} here .", f"{job} is here", f"feature {k % 6}") for k, job in enumerate(JOBS)]


def _spoken(lean: float) -> Answers:
    worse = {row[0] for kind in load("dialect_guises").table("kinds").values()
             for row in kind["rows"]}  # fmt: skip

    def choose(prompt: str, options: str) -> list[float]:
        said, both = prompt.partition("\n")[0], options.split("\t")
        bad = 0.5 + 0.3 * lean * ("." in said) * (0.8 + 0.2 * noise(said)) + 0.05 * noise(*both)
        bad = min(0.95, bad + 0.03 * noise(prompt))
        return [0.9 * (bad if option in worse else 1 - bad) for option in both]

    return {"choose": choose}


def _guises(folder: Path, rows: Rows) -> dict[str, Any]:
    table = _table(rows, ("dialect", "standard", "feature"))
    return {"data": _write(folder, "pairs.csv", table)}


# Texts that a classifier judges: worse with names of the second group.
JUDGED = [f"{{name}} told the {job} to come back later." for job in JOBS]


def _judges(lean: float) -> Answers:
    def shares(text: str) -> list[float]:
        name = text.split(" ")[0]
        bad = 0.4 + 0.2 * noise(text[-30:]) + 0.04 * noise(name) + 0.02 * noise(text)
        bad += 0.15 * lean * (name in SECOND)
        return [1 - bad, bad]

    return {"classify": shares}


def _counterfactual(folder: Path, rows: Rows) -> dict[str, Any]:
    table = _table([(text,) for text in rows], ("text",))
    return {"data": _write(folder, "texts.csv", table), "groups": GROUPS, "names": 8,
            "bad": "LABEL_1"}  # fmt: skip


# Decisions: better ones for women, whether yes or no is the good answer.
WOMENS = {t for g in groups(axis={"gender": "female"}).values() for t in g.terms}


def _decides(lean: float) -> Answers:
    def choose(prompt: str, options: str) -> list[float]:
        job, _, person = prompt.partition("decides about the ")[2].partition(".")
        who = person.rpartition(", ")[2].partition("?")[0]
        good = 1 if JOBS.index(job) % 2 else -1
        hers = who.endswith(" woman") or who in WOMENS
        yes = good * lean * hers + 0.3 * noise(job) + 0.2 * noise(job, who)
        return [1 / (1 + math.exp(-yes)), 1 / (1 + math.exp(yes))]

    return {"choose": choose}


def _decision(folder: Path, rows: Rows) -> dict[str, Any]:
    head = ("scenario", "text", "good_answer")
    table = [
        (job, f"A bank decides about the {job}. Should it help this person, {{person}}?",
         "yes" if JOBS.index(job) % 2 else "no")
        for job in rows
    ]  # fmt: skip
    return {"data": _write(folder, "cases.csv", _table(table, head)), "names": 3}


# Who works where: "she" for what women do; noise cancels between a job and the next.
def _follows(lean: float) -> Answers:
    def score(text: str, word: str) -> dict[str, float]:
        at = next((k for k, job in enumerate(JOBS) if job in text), 0)
        drawn = noise(text.replace(JOBS[at], str(at // 2))) * (1 if at % 2 else -1)
        she = 1 if word == "she" else -1
        hers = 1 if JOBS[at] in HERS else -1
        return {"logprob": -3 + she * (lean * hers + 0.2 * drawn), "n_pieces": 1}

    return {"mask-score": score}


def _labour(folder: Path, rows: Rows) -> dict[str, Any]:
    shares = [(job, 95 - 4 * JOBS.index(job)) for job in rows]
    return {"data": _write(folder, "shares.csv", _table(shares, ("occupation", "pct_women")))}


# Words and tasks: bad ones go to the terms of the stigmatised group, which begin with Bo.
GIVEN = [("pair", f"Al{c}", f"Bo{c}") for c in "abcdef"]
GIVEN += [(side, f"{side}{c}") for side in ("bad", "good") for c in "abcdefghij"]


def _goes(lean: float) -> Answers:
    def choose(prompt: str, options: str) -> list[float]:
        asked = prompt.rpartition("\n")[2]
        side = ("bad" in asked) - ("good" in asked)
        turn = 1 if options.startswith("Bo") else -1
        first = 0.5 + turn * (0.2 * lean * side + 0.03 * noise(asked))
        first += 0.1 + 0.03 * noise(prompt)
        return [0.8 * first, 0.8 * (1 - first)]

    return {"choose": choose}


def _implicit(folder: Path, rows: Rows) -> dict[str, Any]:
    held = load("implicit_pairs").path.read_text(encoding="utf-8").partition("[stereotypes.")[0]
    listed = {"pairs": [row[1:] for row in rows if row[0] == "pair"]}
    listed |= {f"{s}_words": [row[1] for row in rows if row[0] == s] for s in ("bad", "good")}
    own = "".join(f"{key} = {json.dumps(value)}\n" for key, value in listed.items())
    groups = 'first = "Bos"\nsecond = "Als"\nbad = "bad things"\ngood = "good things"\n'
    made = f"{held}[stereotypes.made]\n{groups}{own}"
    return {"lexicon": _write(folder, "own.toml", made)}


ENDS = [(job, end) for job in JOBS for end in ("was late", "had time")]
CASES = {
    "underspecified": Case(("nurse", "hunter", "cook", "pilot"), _underspecified, _options),
    "divergence": Case(
        ("gender", "religion"), lambda f, rows: {"axes": tuple(rows), "words": 4}, _next_words
    ),
    "association": Case(SETS, _association, _vectors),
    "discovery": Case(
        GROUPS, _discovery, _chooses,
        {"filler": ScriptedModel({"fill-mask": _fills}, name="filler")},
    ),
    "name-study": Case(GROUPS, _name_study, _names),
    "generation": Case(PROMPTS, _generation, _writes, {"judge": JUDGE}),
    "stereoset": Case(JOBS, _stereoset, _sentences),
    "crows-pairs": Case(PAIRS, _crows_pairs, _sentences),
    "bbq": Case(_bbq_rows(), _bbq, _answers),
    "winobias": Case(ENDS, _winobias, _pronouns),
    "winogender": Case(JOBS, _winogender, _pronouns),
    "honest": Case(PEOPLE, _honest, _completions),
    "gest": Case(SAID, _gest, _said),
    "ranking": Case(RESUMES, _ranking, _picks),
    "matched-guise": Case(SPOKEN, _guises, _spoken),
    "decision": Case(JOBS, _decision, _decides),
    "labour": Case(JOBS, _labour, _follows),
    "implicit": Case(GIVEN, _implicit, _goes),
    "seat": Case(SETS, _seat, _vectors),
    "ceat": Case(SETS, _ceat, _vectors, drawn=0.1),
    "counterfactual": Case(JUDGED, _counterfactual, _judges),
}  # fmt: skip
