"""Text in bulk, word sets, lexicons, names, contexts, sheets of ratings, recipes, suites."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evenhand.audit.suites import load_suite
from evenhand.corpora import labels_of
from evenhand.corpora.text import read_texts
from evenhand.probes.generation.ratings import Text, write_sheets
from evenhand.words.lexicons import groups
from evenhand.words.lexicons.files import load
from evenhand.words.list_formats import read_lists
from evenhand.words.social_iqa import survey_contexts

JSON = ["--json", "-"]
SUITE = """name = "mine"
title = "A suite"
false_discovery_rate = 0.05

[[probe]]
name = "underspecified"
label = "jobs"
pairs = 4
templates = 1
attributes = ["nurse"]

[[probe]]
name = "divergence"
"""
STUDY = """name = "mine"
title = "A study"
word_set = "kato_winobias"

[corpus]
files = ["corpus.txt"]
rare = 2

[training]
dimensions = 8
epochs = 1
replicates = 2

[balancing]
shares = [0.0, 0.5]
"""
SETS = '[t]\nx = ["cook"]\ny = ["guard"]\na = ["she"]\nb = ["he"]\n'
LINES = ["she is a cook", "he is a guard", "he was a cook , they said", "she has a dog"]
LEXICON = """title = "Names"
kind = "names"
source = "made up"
licence = "none"
caveats = ["few"]

[groups.a]
axis = { gender = "female" }
terms = ["Ann", "Eve"]

[groups.b]
axis = { gender = "male" }
terms = ["Bob", "Tom"]
"""


def suite(folder: Path) -> Callable[[], Any]:
    (folder / "s.toml").write_text(SUITE)
    return lambda: load_suite(folder / "s.toml").as_dict()


def study(folder: Path) -> list[str]:
    (folder / "s.toml").write_text(STUDY)
    (folder / "corpus.txt").write_text("\n".join(LINES) + "\n")
    return ["study", str(folder / "s.toml"), "--plan", "--out", "out", *JSON]


def wikipedia(folder: Path) -> list[str]:
    rows = [{"id": str(k), "title": "T", "text": f"T\n\n{line.capitalize()} ."}
            for k, line in enumerate(LINES)]  # fmt: skip
    (folder / "w.jsonl").write_text("".join(f"{json.dumps(r)}\n" for r in rows))
    return ["corpus", "clean", str(folder / "w.jsonl"), "--out", "c.txt", "--least", "1", *JSON]


def tweets(folder: Path) -> list[str]:
    rows = [{"lang": "en", "text": line} for line in LINES]
    (folder / "t.jsonl").write_text("".join(f"{json.dumps(r)}\n" for r in rows))
    given = ["--kind", "tweets", "--out", "c.txt", "--least", "1"]
    return ["corpus", "clean", str(folder / "t.jsonl"), *given, *JSON]


def labelling(form: str) -> Callable[[Path], list[str]]:
    def make(folder: Path) -> list[str]:
        text, path = ("\n".join(LINES) + "\n").encode(), folder / f"c.txt{form}"
        path.write_bytes(lzma.compress(text) if form == ".xz" else text)
        (folder / "sets.toml").write_text(SETS)
        return ["corpus", "label", str(path), "--sets", str(folder / "sets.toml"), "--lines", *JSON]

    return make


def balancing(folder: Path) -> list[str]:
    (folder / "c.txt").write_text("\n".join(LINES) + "\n")
    (folder / "sets.toml").write_text(SETS)
    labels_of([folder / "c.txt"], str(folder / "sets.toml")).save(folder / "labels")
    return ["corpus", "balance", str(folder / "labels"), *JSON]


def passages(folder: Path) -> Callable[[], Any]:
    (folder / "p.txt").write_text("\n\n".join([" ".join(LINES)] * 30) + "\n")
    return lambda: read_texts(folder / "p.txt", words=10)


def pmi(folder: Path) -> list[str]:
    rows = [f'"{line}",{k % 2}' for k, line in enumerate(LINES * 2)]
    (folder / "t.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    return ["words", "pmi", str(folder / "t.csv"), "--floor", "1", *JSON]


def expanding(folder: Path) -> list[str]:
    (folder / "sets.toml").write_text(SETS)
    rows = ["cook 1 0 0", "chef 1 0.1 0", "guard 0 1 0", "warden 0 1 0.1", "she 0.5 0 1",
            "her 0.6 0 1", "he 0 0.5 1", "him 0 0.6 1"]  # fmt: skip
    (folder / "v.txt").write_text("\n".join(rows) + "\n")
    given = ["--vectors", str(folder / "v.txt"), "--neighbours", "2"]
    return ["words", "expand", str(folder / "sets.toml"), *given, *JSON]


def dialect(folder: Path) -> list[str]:
    (folder / "model_vocab.txt").write_text("9\tthe\n5\tfinna\n")
    (folder / "model_count_table.txt").write_text("4\t4\t4\t4\n9\t1\t0\t0\n")
    (folder / "t.csv").write_text("text\nthe finna\nthe the\n")
    return ["words", "dialect", str(folder / "t.csv"), "--model", str(folder), *JSON]


NYC = (
    "Year of Birth,Gender,Ethnicity,Child's First Name,Count\n"
    "2012,FEMALE,ASIAN AND PACI,TENZIN,19\n2012,MALE,ASIAN AND PACI,TENZIN,20\n"
    "2012,FEMALE,ASIAN AND PACIFIC ISLANDER,AIZA,300\n2012,MALE,HISPANIC,IKER,210\n"
    "2012,FEMALE,BLACK NON HISPANIC,NIA,250\n2012,FEMALE,WHITE NON HISPANIC,NIA,250\n"
)
RACES = "name,white,black,hispanic,asian,other\nTIA,0.05,0.93,0.01,0.01,0\nAMY,0.9,0.1,0,0,0\n"
SEXES = "name,sex,n_total\nTia,F,900\nTia,M,10\nAmy,F,1000\n"
CENSUS = (
    "name,rank,count,pctwhite,pctblack,pctapi,pcthispanic,pctmale,pctfemale\n"
    "NGUYET,1,900,1.0,0.5,97.5,1.0,2.0,98.0\nJOSE,2,5000,4,1,5,(S),99,1\n"
)


def selecting(folder: Path) -> list[str]:
    (folder / "nyc.csv").write_text(NYC)
    (folder / "races.csv").write_text(RACES)
    (folder / "sexes.csv").write_text(SEXES)
    return ["names", "select", *(str(folder / f"{n}.csv") for n in ("nyc", "races", "sexes")),
            "--frequency", "1", *JSON]  # fmt: skip


def labelled_names(folder: Path) -> list[str]:
    (folder / "census.csv").write_text(CENSUS)
    return ["words", "names", "Jose", "Nguyet", "--table", str(folder / "census.csv"), *JSON]


def linting(folder: Path) -> list[str]:
    (folder / "names.toml").write_text(LEXICON)
    (folder / "n.csv").write_text("name,sex,n_total\nAnn,F,900\nBob,M,10\nEve,F,9\nTom,M,7\n")
    given = ["--lexicon", str(folder / "names.toml"), "--counts", str(folder / "n.csv")]
    return ["names", "lint", "a", "b", *given, *JSON]


def lexicon(folder: Path) -> Callable[[], Any]:
    (folder / "names.toml").write_text(LEXICON)

    def read() -> Any:
        own = load(folder / "names.toml")
        return own.caveats, groups(["a", "b"], extra=(folder / "names.toml",))

    return read


def word_lists(folder: Path) -> Callable[[], Any]:
    """UnQover's published directory."""
    files = {
        "nouns/subjects/religion": "[subj] Jew\n[subj] Sikh\n",
        "activities/biased_religion": "[p_act] stole it\n[p_act:neg] never stole it\n",
        "slots/religion_noact": "A [subj1] met a [subj2].\tWho [p_act]?\tWho [p_act:neg]?\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return lambda: read_lists(folder, "religion", "qa")


def contexts(folder: Path) -> Callable[[], Any]:
    rows = ["1,Ann sang well.,How would you describe Ann?,talented,Ann", "2,Bo ran.,Why?,late,Bo"]
    (folder / "c.csv").write_text("\n".join(["id,context,question,answer,name", *rows]) + "\n")
    return lambda: survey_contexts(str(folder / "c.csv"))


def social_iqa(folder: Path) -> Callable[[], Any]:
    row = {"context": "Ann sang well at the party.", "question": "How would you describe Ann?",
           "answerA": "talented", "answerB": "sad", "answerC": "rude"}  # fmt: skip
    (folder / "dev.jsonl").write_text("".join(f"{json.dumps(row)}\n" for _ in range(3)))
    (folder / "dev-labels.lst").write_text("1\n2\n1\n")
    return lambda: survey_contexts(str(folder / "dev.jsonl"))


def sheets(folder: Path) -> list[str]:
    rows = [f"m,{k},{side},text {k}" for k in range(4) for side in "ab"]
    (folder / "t.csv").write_text("\n".join(["model,pair,side,text", *rows]) + "\n")
    return ["ratings", "sheets", str(folder / "t.csv"), "--out", "s", "--raters", "2", *JSON]


def ratings(folder: Path) -> list[str]:
    texts = [Text("m", str(k), side, f"text {k}") for k in range(3) for side in "ab"]
    write_sheets(texts, folder / "s", raters=2)
    for path in (folder / "s").glob("rater*.csv"):
        head, *rows = path.read_text().splitlines()
        filled = [f"{row.removesuffix(',,,')},3,4,{1 + k % 5}" for k, row in enumerate(rows)]
        path.write_text("\n".join([head, *filled]) + "\n")
    return ["ratings", "score", str(folder / "s"), *JSON]


QUICK = ("suite", "study", "words names", "passages", "lexicon", "word lists", "contexts",
         "social iqa", "words dialect")  # fmt: skip
"""Those that are done in a few milliseconds."""
TARGETS = {
    "suite": suite, "study": study, "corpus wikipedia": wikipedia, "corpus tweets": tweets,
    "corpus label": labelling(""), "corpus label .xz": labelling(".xz"),
    "corpus balance": balancing, "passages": passages, "words pmi": pmi, "words expand": expanding,
    "words dialect": dialect, "words names": labelled_names, "names select": selecting,
    "names lint": linting, "lexicon": lexicon, "word lists": word_lists, "contexts": contexts,
    "social iqa": social_iqa, "ratings sheets": sheets, "ratings score": ratings,
}  # fmt: skip
