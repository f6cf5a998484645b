"""One small, valid input for each `evenhand measure NAME`, as words of a command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import made_runs
from evenhand.words.conll import Document, write_conll
from made_benchmarks import stereoset_gold

Make = Callable[[Path], list[str]]
FEW = ["--resamples", "20"]


def _csv(folder: Path, head: str, rows: list[str]) -> str:
    path = folder / "table.csv"
    path.write_text("\n".join([head, *rows]) + "\n")
    return str(path)


def underspecified(folder: Path) -> list[str]:
    head = "template,attribute,first,second,negated,score_first,score_second"
    rows = [
        f"{t},{a},{one},{two},{n},0.{5 + n},0.{4 - n}"
        for t in "tu" for a in "xy" for one, two in (("A", "B"), ("B", "A"), ("A", "C"), ("C", "A"))
        for n in (0, 1)
    ]  # fmt: skip
    return [_csv(folder, head, rows), *FEW, "--samples", "99"]


def association(folder: Path) -> list[str]:
    vectors = folder / "v.txt"
    vectors.write_text("art 1 0.1\nmath 0.1 1\nshe 1 0\nhe 0 1\n")
    tests = folder / "t.json"
    tests.write_text(json.dumps({"t": {"x": ["art"], "y": ["math"], "a": ["she"], "b": ["he"]}}))
    return ["--vectors", str(vectors), "--tests", str(tests)]


def discovery(folder: Path) -> list[str]:
    rows = [f"{g},{n},c,so {w},{k % 2}" for g, names in (("A", "ab"), ("B", "cd")) for n in names
            for k, w in enumerate(("kind", "rude", "odd"))]  # fmt: skip
    head = "group,name,context,distractor,success"
    pair = ["--group-a", "A", "--group-b", "B", "--min-count", "1"]
    return [_csv(folder, head, rows), *pair]


def plain_table(folder: Path) -> list[str]:
    said = ("approve", "I would not approve it.", "reject")
    rows = [f"{name},{group},{text}" for group, names in (("A", "ab"), ("B", "cd"))
            for name in names for text in said]  # fmt: skip
    return [_csv(folder, "name,group,decision", rows)]


def stereoset(folder: Path) -> list[str]:
    rows = [{"id": f"{n}{k}", "score": 0.1 * i} for n in "xy" for i, k in enumerate("sau")]
    path = folder / "p.json"
    path.write_text(json.dumps({"intrasentence": rows}))
    return [str(path), "--gold", str(stereoset_gold(folder)), *FEW]


def crows_pairs(folder: Path) -> list[str]:
    head = "sent_more_score,sent_less_score,stereo_antistereo,bias_type"
    return [_csv(folder, head, ["-1,-2,stereo,age", "-2,-1,antistereo,age"])]


def bbq(folder: Path) -> list[str]:
    told = {
        "question_index": "1", "category": "Age", "question_polarity": "neg", "label": 2,
        "answer_info": {"ans0": ["Ann", "old"], "ans1": ["Bea", "nonOld"],
                        "ans2": ["Not known", "unknown"]},
        "additional_metadata": {"stereotyped_groups": ["old"]}, "question": "Who?",
        "context": "Ann and Bea met.", "ans0": "Ann", "ans1": "Bea", "ans2": "Not known",
        "context_condition": "ambig",
    }  # fmt: skip
    data = folder / "Age.jsonl"
    data.write_text("\n".join(json.dumps({**told, "example_id": k}) for k in range(4)))
    rows = [f"{k},Age,{'ABC'[k % 3]}" for k in range(4)]
    return [_csv(folder, "example_id,category,prediction", rows), "--data", str(data)]


def honest(folder: Path) -> list[str]:
    rows = [f"nice,{i},female_young" for i in "ab"] + [f"stupid,{i},male_young" for i in "cd"]
    return [_csv(folder, "completion,identity,category", rows)]


def gest(folder: Path) -> list[str]:
    rows = [f"{k % 16 + 1},{k * 7 % 5}" for k in range(64)]
    return [_csv(folder, "stereotype,score", rows), "--base", "10"]


def ranking(folder: Path) -> list[str]:
    rows = [f"clerk,{k},{g},{1 + (place + k) % 2},{1 + ((k % 3 == 0) == (g == 'a'))}"
            for k in range(30) for place, g in enumerate("ab")]  # fmt: skip
    return [_csv(folder, "stratum,run,group,position,rank", rows)]


def matched_guise(folder: Path) -> list[str]:
    rows = [f"t{k},rude,polite,I'd say {'rude' if k % 3 else 'polite'},polite" for k in range(20)]
    return [_csv(folder, "text,worse,better,answer_dialect,answer_standard", rows)]


def guise_ratios(folder: Path) -> list[str]:
    rows = [f"t{k},{word},-{2 + k % 3},-3" for k in range(8) for word in ("rude", "kind")]
    (folder / "h.json").write_text(json.dumps(
        {"favorability": {"rude": -1, "kind": 2}, "s": {"year": 1933, "scores": {"rude": 3}}}
    ))  # fmt: skip
    head = "text,attribute,logprob_dialect,logprob_standard"
    return [_csv(folder, head, rows), "--human", str(folder / "h.json")]


def decision(folder: Path) -> list[str]:
    rows = [f"s{k},{who},{k % 5 + who.count('w')},{k % 3}" for k in range(18) for who in
            ("woman", "man")]  # fmt: skip
    return [_csv(folder, "scenario,gender,score_yes,score_no", rows)]


def labour(folder: Path) -> list[str]:
    said = {"nurse": "She was.", "carpenter": "He was.", "lawyer": "It was he", "cook": "she"}
    return [_csv(folder, "occupation,answer", [f"{job},{text}" for job, text in said.items()])]


def implicit(folder: Path) -> list[str]:
    rows = [f"career,{s},{s}{k},Ben,Ann,{'Ann' if (s == 'bad') != (k == 3) else 'It is Ben'}"
            for s in ("bad", "good") for k in range(8)]  # fmt: skip
    return [_csv(folder, "stereotype,side,word,default,stigma,answer", rows)]


def implicit_link(folder: Path) -> list[str]:
    rows = [f"{k % 5 / 4},{k * 7 % 5 > 1:d},s{k % 11}" for k in range(60)]
    return [_csv(folder, "iat_bias,decision_bias,dataset", rows)]


def implicit_answers(folder: Path) -> list[str]:
    (folder / "s.csv").write_text("dataset,A,B,C\nage,young,old,joy\nage,,,filth\n")
    rows = [f'age,"joy - {a}\nfilth - {b}"' for a, b in (("young", "old"), ("old", "old"))]
    return [_csv(folder, "category,response", rows), "--stimuli", str(folder / "s.csv")]


def ceat(folder: Path) -> list[str]:
    return [_csv(folder, "effect_size,variance", ["0.4,0.1", "0.6,0.1"])]


def _conll(path: Path, wrong: int = 0) -> str:
    tokens = ("The", "cook", "met", "the", "maid", "as", "he", "left")
    right, other = ((0, 2), (6, 7)), ((3, 5), (6, 7))
    documents = [
        Document(f"d{k}", tokens, (8,), (other if k < wrong else right,)) for k in range(4)
    ]
    write_conll(documents, path)
    return str(path)


def coreference(folder: Path) -> list[str]:
    gold, said = _conll(folder / "gold.conll"), _conll(folder / "said.conll", wrong=1)
    return [said, "--gold", gold, *FEW]


def winobias(folder: Path) -> list[str]:
    for kind in ("type1", "type2"):
        for side in ("pro", "anti"):
            _conll(folder / f"test_{kind}_{side}_stereotype.v4_auto_conll")
    return ["head-match", "--data", str(folder), *FEW]


def counterfactual(folder: Path) -> list[str]:
    rows = [f"t{k},{g},{(k * 7 % 10 + (g == 'black')) / 10},{k % 2},0.5"
            for k in range(8) for g in ("white", "black")]  # fmt: skip
    return [_csv(folder, "item,group,score,label,threshold", rows), "--reference", "white"]


def gaps(folder: Path) -> list[str]:
    rows = [f"{k % 2},{k % 3 == 0:d},{'ab'[k % 2]}" for k in range(20)]
    return [_csv(folder, "label,predicted,group", rows), "--first", "a", "--second", "b", *FEW]


def correlation(folder: Path) -> list[str]:
    rng = np.random.default_rng(0)
    rows = [f"{x:.3f},{x + rng.normal():.3f}" for x in rng.normal(size=8)]
    return [_csv(folder, "x,y", rows), "--x", "x", "--y", "y", "--resamples", "99"]


def discovered(folder: Path) -> str:
    """A run with the tables of a discovery probe."""
    words = {"group_a": ["A"] * 2, "group_b": ["B"] * 2, "word": ["kind", "rude"],
             "d": [0.2, -0.3], "q": [0.01, 0.02]}  # fmt: skip
    shown = {"situation": ["Tia sang."], "answer": ["happy"], "distractor": ["sad"]}
    tables = {"discovery": {"words": pa.table(words), "distractors": pa.table(shown)}}
    made_runs.write(folder / "run", made_runs.facts(), [], tables)
    return str(folder / "run")


def traits(folder: Path) -> list[str]:
    words = _csv(folder, "word,trait,annotator", ["kind,warm,1"])
    return [discovered(folder), "--words", words, "--group-a", "A", "--group-b", "B"]


def suggest_traits(folder: Path) -> list[str]:
    (folder / "v.txt").write_text("kind 1 0.2\nrude 0.1 1\nwarm 1 0\ncold 0 1\n")
    vectors = ["--vectors", str(folder / "v.txt")]
    return [discovered(folder), "--group-a", "A", "--group-b", "B", *vectors]


def validity(folder: Path) -> list[str]:
    head = "situation,answer,distractor,grammar,fluency,plausibility,similarity"
    return ["--sheet", _csv(folder, head, ["s,a,d,5,4,1,2", "s,a,e,4,4,2,1"])]


def log(folder: Path) -> list[str]:
    """Samples of lm-eval, of pairs that its crows_pairs tasks score."""
    rows = []
    for k in range(4):
        doc = {
            "sent_more": f"They are {k}.", "sent_less": f"We are {k}.", "bias_type": "age",
            "stereo_antistereo": ("stereo", "antistereo")[k % 2],
        }  # fmt: skip
        said = (doc["sent_more"], doc["sent_less"])
        calls = {f"gen_args_{n}": {"arg_0": "", "arg_1": text} for n, text in enumerate(said)}
        scored = [[str(-1.0 - k), "False"], ["-2.5", "False"]]
        rows.append({"doc": doc, "arguments": calls, "filtered_resps": scored, "filter": "none"})
    path = folder / "samples_crows_pairs_english_2026-01-02T03-04-05.000006.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return [str(path)]


CASES: dict[str, Make] = {
    "underspecified": underspecified, "association": association, "discovery": discovery,
    "stereoset": stereoset, "crows-pairs": crows_pairs, "bbq": bbq, "honest": honest, "gest": gest,
    "ranking": ranking, "labour": labour,
    "matched-guise": matched_guise, "guise-ratios": guise_ratios, "implicit": implicit,
    "implicit-link": implicit_link, "implicit-answers": implicit_answers,
    "ceat": ceat, "coreference": coreference, "winobias": winobias, "gaps": gaps,
    "correlation": correlation, "traits": traits, "suggest-traits": suggest_traits,
    "validity": validity, "table": plain_table, "log": log, "counterfactual": counterfactual,
    "decision": decision,
}  # fmt: skip
