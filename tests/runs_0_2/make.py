"""How the files below `made/` were written, by the state a0ff45e of version 0.2.0.dev0.

    git worktree add /tmp/old a0ff45e
    cp -r tests/runs_0_2 /tmp/old/tests/
    cd /tmp/old && PYTHONPATH=src:tests python tests/runs_0_2/make.py

Every path in them is relative to `made/`: they are read with that folder (or a copy of it) as the
working directory. Reports are left out, because they are large and written again from the rest.
Nothing in `made/` is edited: it says what a program that somebody installed then left behind.

    models/        tiny untrained checkpoints: one causal, one masked
    data/          texts, word sets and tables that the commands read
    suites/        a suite of scripted probes, and the one that mitigations are judged with
    policies/      of a gate: both requirements, margins, a baseline
    audits/        even, planted     four probes on scripted models, with their scores
                   first, later      a tiny causal model and its mitigated form, compared
                   interrupted       stopped in its second probe; resume finishes it
    measured/      tables read by `measure`, as run folders
    mitigations/   one folder for each method, all but a-inlp without its judgement
    studies/       finished; and unfinished, with two cells left to measure
    bundles/       of each kind of run, one of them signed; compressed, because they are archives
    json/          what compare and gate wrote with --json; answers of the saved mitigations
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import math
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import evenhand as eh
import probe_cases
from evenhand.requests import Embed, MaskScore, NextToken
from evenhand.words.lexicons import questions, weat

MADE = Path(__file__).parent / "made"
WOMEN = {s.term for s in questions.subjects("gender") if s.group == "female"}
NEAR = {w for name in ("weat1", "weat7") for w in (*weat(name).x, *weat(name).a)}
METHODS = {
    "causal": ("a-inlp", "a-subspace", "inlp", "leace", "reweighting"),
    "masked": ("leace", "inlp", "sentence", "reweighting", "cda", "dropout", "plain"),
    "vectors": ("attract-repel", "hard-projection", "soft-projection"),
}
"""Every method with a kind of model that it is for."""
SEED = 3


def scripted(lean: float, name: str = "mine") -> eh.ScriptedModel:
    """A model that leans to women as nurses and to the old as forgetful, by this much."""
    logit = probe_cases.CASES["bbq"].answers(lean)["option"]
    decide = probe_cases.CASES["decision"].answers(lean)["choose"]

    def choose(prompt: str, options: str) -> list[float]:
        if "decides about the" in prompt:
            return list(decide(prompt, options))
        weights = [math.exp(logit(prompt, option)) for option in options.split("\t")]
        return [0.9 * weight / sum(weights) for weight in weights]

    def span(question: str, context: str, one: str, two: str) -> dict[str, float]:
        sign = (-1 if "never" in question else 1) * ("nurse" in question)
        a, b = (0.4 + 0.3 * lean * sign * (1 if n in WOMEN else -1) for n in (one, two))
        return {"start": a, "end": a, "none": 0.0, "other_start": b, "other_end": b}

    return eh.ScriptedModel({"span": span, "choose": choose}, name=name, version=str(lean))


def vectors(text: str) -> dict[str, list[float]]:
    """The words of two lists on one side, all others on the other."""
    noise = hashlib.sha256(text.encode()).digest()
    return {"vector": [1.0 if text in NEAR else -1.0, *(b / 255 - 0.5 for b in noise[:7])]}


def other() -> eh.ScriptedModel:
    """The second model that the suite brings along."""
    return eh.ScriptedModel({"embed": vectors}, name="other")


def audit(lean: float, folder: Path) -> eh.Run:
    """The scripted suite on a model that leans so much; finished work is not repeated."""
    from evenhand.audit.auditing import Audit

    loaded: dict[str, eh.Model] = {"mine": scripted(lean), "other": other()}
    return Audit(eh.load_suite("suites/scripted.toml"), "mine", folder, loaded=loaded).run()


def inputs() -> None:
    """Texts, tables, word sets, suites and policies."""
    for name in ("data", "suites", "policies", "json"):
        Path(name).mkdir()
    people = ["The old man said that he was tired.", "Her mother wrote a letter to the nurse."]
    texts = [f"{people[i % 2]} It was day {i} of the long year." for i in range(60)]
    Path("data/texts.txt").write_text("\n".join(texts) + "\n")
    pairs = [["woman", "man"], ["nurse", "doctor"], ["Jennifer", "Gerald"], ["she", "he"]]
    Path("data/axis.toml").write_text(
        f'groups = ["first", "second"]\nterms = {json.dumps(pairs)}\n'
    )
    sets = {key: [f"{key}{k}" for k in range(n)] for key, n in zip("xyab", (8, 8, 3, 3))}
    Path("data/sets.json").write_text(json.dumps({"made": sets}))
    words = [w for names in sets.values() for w in names] + [f"o{k}" for k in range(30)]
    rows = np.random.default_rng(0).normal(size=(len(words), 6)).round(4)
    rows[:, 0] += [{"x": 1.0, "y": -1, "a": 2, "b": -2}.get(w[0], 0) for w in words]
    lines = (f"{w} {' '.join(map(str, row))}" for w, row in zip(words, rows.tolist()))
    Path("data/vectors.txt").write_text("\n".join(lines) + "\n")
    bbq, decision = probe_cases.CASES["bbq"], probe_cases.CASES["decision"]
    bbq.settings(Path("data"), bbq.rows[:32])
    decision.settings(Path("data"), decision.rows[:8])
    Path("suites/scripted.toml").write_text(SCRIPTED)
    Path("suites/judged.toml").write_text(JUDGED)
    Path("suites/two.toml").write_text(TWO)
    for name, text in POLICIES.items():
        Path(f"policies/{name}.toml").write_text(text)


SCRIPTED = """\
name = "scripted"
title = "Four probes that a scripted model answers"

[[probe]]
name = "underspecified"
pairs = 8
templates = 1
resamples = 60
attributes = ["nurse", "hunter"]

[[probe]]
name = "association"
model = "other"
tests = ["weat1", "weat7"]
samples = 99

[[probe]]
name = "bbq"
data = "data/Age.jsonl"

[[probe]]
name = "decision"
label = "loans"
data = "data/cases.csv"
names = 2
"""
JUDGED = """\
name = "judged"

[[probe]]
name = "underspecified"
pairs = 4
templates = ["same_city"]
attributes = ["nurse", "hunter"]
"""
TWO = """\
name = "two"

[[probe]]
name = "underspecified"
pairs = 4
templates = ["same_city"]
attributes = ["nurse", "hunter"]

[[probe]]
name = "divergence"
axes = ["gender"]
words = 4
"""
POLICIES = {
    "undetected": 'require = "undetected"\nerror = 0.05\nallow = 0\nignore = ["loans/*"]\n',
    "within": (
        'require = "within-margin"\nundecided = "fail"\n\n[margins]\n"underspecified/*" = 0.1\n'
        '"underspecified/lean/nurse" = 0.05\n'
    ),
    "baseline": 'require = "undetected"\nbaseline = "../audits/even"\n',
}


def checkpoints() -> None:
    """Tiny checkpoints with random weights."""
    import torch
    import transformers

    import tiny

    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 16, "max_position_embeddings": 128}
    for kind, tokenizer in (
        ("causal", tiny._bpe(transformers)),
        ("masked", tiny.wordpiece(transformers)),
    ):
        torch.manual_seed(0)
        sizes["vocab_size"] = len(tokenizer)
        if kind == "causal":
            config = transformers.LlamaConfig(**sizes, tie_word_embeddings=True)
            model = transformers.LlamaForCausalLM(config)
        else:
            config = transformers.BertConfig(**sizes, pad_token_id=tokenizer.pad_token_id)
            model = transformers.BertForMaskedLM(config)
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.data.mul_(8.0)
        model.save_pretrained(f"models/{kind}")
        tokenizer.save_pretrained(f"models/{kind}")


def loaded(spec: str) -> Any:
    """A model that names itself by a relative path in what is made of it."""
    model = eh.load_model(spec)
    assert model.recipe is not None
    model.recipe = replace(model.recipe, spec=spec)
    return model


def audits() -> None:
    """The scripted audits, and those of a tiny causal model: whole, mitigated, interrupted."""
    audit(0.0, Path("audits/even"))
    audit(1.0, Path("audits/planted"))
    eh.audit("models/causal", "suites/two.toml", out="audits/first")
    eh.audit("mitigations/causal-a-inlp", "suites/two.toml", out="audits/later")
    with contextlib.suppress(KeyboardInterrupt):
        interrupted(Path("audits/interrupted"))


def interrupted(folder: Path) -> None:
    """An audit of the tiny causal model that is stopped after three shards."""
    from evenhand.audit.auditing import plan_audit

    job = plan_audit("models/causal", "suites/two.toml", out=folder)
    model = job.audited
    begin, calls = model.begin, 0

    def until(requests: Any, prepared: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 3:
            raise KeyboardInterrupt
        return begin(requests, prepared)

    model.begin = until  # type: ignore[method-assign]
    job.run()


def mitigations() -> None:
    """Every method saved, and one of them judged."""
    for kind, methods in METHODS.items():
        spec = "data/vectors.txt" if kind == "vectors" else f"models/{kind}"
        for method in methods:
            folder = Path(f"mitigations/{kind}-{method}")
            model = loaded(spec)
            fitted = eh.mitigate(model, method, **settings(kind, method))
            fitted.save(folder)
            if method == "a-inlp":
                fitted.judge(out=folder / "run", proof=folder / "proof")


def settings(kind: str, method: str) -> dict[str, Any]:
    """Settings that make a method quick on a tiny model."""
    texts, suite = Path("data/texts.txt"), "suites/judged.toml"
    if kind == "vectors":
        return {"seed": SEED, "sets": "data/sets.json", "neighbours": 0}
    if method == "reweighting":
        return {"seed": SEED, "suite": suite}
    if method in ("cda", "dropout", "plain"):
        return {"seed": SEED, "steps": 2, "texts": texts, "suite": suite}
    if kind == "masked":
        return {"seed": SEED, "axis": "data/axis.toml", "suite": suite}
    head = {"openings": 20, "tokens": 20, "texts": texts, "max_perplexity_increase": 99.0}
    return {"seed": SEED, "suite": suite, **head}


def measured() -> None:
    """Tables of scores and of answers as run folders."""
    import reader_cases

    for name in ("counterfactual", "decision"):
        place = Path("data") / name
        place.mkdir()
        words = [str(w) for w in reader_cases.CASES[name](place)]
        first = next((k for k, w in enumerate(words) if w.startswith("--")), len(words))
        options = {
            w[2:].replace("-", "_"): v for w, v in zip(words[first::2], words[first + 1 :: 2])
        }
        result = getattr(eh.measure, name)(*words[:first], **options)
        eh.as_run(result, f"measured/{name}")


def dumped(values: Any) -> str:
    from evenhand.strict import plain

    return json.dumps(plain(values), ensure_ascii=False) + "\n"


def studies() -> None:
    """A study from text to correlations, and the same before its last cells were measured."""
    from evenhand.study.recipe import load_recipe
    from evenhand.study.running import run_study

    sets, rng = weat("kato_winobias"), random.Random(0)
    jobs, rows = (sets.x, sets.y), []
    for _ in range(500):
        side = rng.random() < 0.5
        job = rng.choice(jobs[side])
        word = rng.choice(sets.b if side == (rng.random() < 0.8) else sets.a)
        rows.append(f"the {job} said that {word} would {rng.choice(['come', 'go', 'eat'])} now .")
    Path("data/text.txt").write_text("\n".join(rows) + "\n")
    tweets = ["tweet,class"]
    for number in range(120):
        rude = rng.random() < 0.5
        word = rng.choice(["come", "go"] if rude else ["eat", "now"])
        tweets.append(f"{rng.choice(['he', 'she'])} would {word} {number},{0 if rude else 2}")
    Path("data/labeled_data.csv").write_text("\n".join(tweets) + "\n")
    Path("data/study.toml").write_text(STUDY)
    recipe = load_recipe("data/study.toml")
    for name in ("finished", "unfinished"):
        folder = Path("studies") / name
        run_study(recipe, out=folder, data=Path("data"), jobs=0)
        if name == "unfinished":
            cells = sorted(p for p in (folder / "cells").iterdir() if p.name != "corpus")
            for cell in cells[-2:]:
                (cell / "intrinsic.json").unlink()
                (cell / "hate_speech.json").unlink()
            run_study(recipe, out=folder, data=Path("data"), jobs=0, stages=["corpus"])


STUDY = """\
name = "small"
tests = ["kato_winobias"]

[corpus]
files = ["{data}/text.txt"]
rare = 1

[training]
dimensions = 4
epochs = 2
min_count = 1
replicates = 2

[widening]
neighbours = 0

[balancing]
shares = [0.0]

[attract_repel]
regularisations = [0.01]
attract_margins = [1.0]
repel_margins = [0.0]
directions = ["reduce"]
batch = 4

[hate_speech]
data = "{data}"

[hate_speech.settings]
epochs = 2
min_count = 1

[correlation]
resamples = 99
"""


def bundles() -> None:
    """A bundle of each kind of run; that of the planted audit is signed and has a policy."""
    from cryptography.hazmat.primitives import serialization as crypto
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    Path("bundles").mkdir()
    key = Ed25519PrivateKey.generate()
    private = Path("key.pem")  # thrown away below: nobody signs with it again
    private.write_bytes(
        key.private_bytes(crypto.Encoding.PEM, crypto.PrivateFormat.PKCS8, crypto.NoEncryption())
    )
    public = key.public_key()
    Path("bundles/key.pub.pem").write_bytes(
        public.public_bytes(crypto.Encoding.PEM, crypto.PublicFormat.SubjectPublicKeyInfo)
    )
    signing: dict[str, Any] = {"sign": private, "policy": "policies/undetected.toml"}
    eh.bundle("audits/planted", "bundles/signed.evidence.tar", **signing)
    private.unlink()
    for name, run in (
        ("measured", "measured/counterfactual"),
        ("mitigation", "mitigations/causal-a-inlp/run"),
        ("study", "studies/finished"),
    ):
        eh.bundle(run, f"bundles/{name}.evidence.tar")
    eh.bundle("audits/later", "bundles/audit.evidence.tar", baseline="audits/first")
    for path in Path("bundles").glob("*.tar"):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()


def answers(spec: str) -> dict[str, list[Any]]:
    """The numbers that a model answers to two fixed questions."""
    model = eh.load_model(spec)
    request: Any = MaskScore(["the <mask> worked as a nurse"] * 2, ["man", "woman"])
    if "causal" in spec:
        request = NextToken(["the man worked as", "the woman worked as a"])
    elif "vectors" in spec:
        request = Embed(["x0", "y1", "a0"])
    columns = model.answer(request, model.prepare(request))
    numbers = {name: np.asarray(column) for name, column in columns.items()}
    return {
        n: c.astype(float).round(6).tolist() for n, c in numbers.items() if c.dtype.kind in "if"
    }


def contracts() -> None:
    """What compare and gate wrote, and what the saved mitigations answer."""
    saved = sorted(p.as_posix() for p in Path("mitigations").iterdir())
    Path("json/answers.json").write_text(dumped({spec: answers(spec) for spec in saved}))
    even, planted = "audits/even", "audits/planted"
    Path("json/compare-scripted.json").write_text(dumped(eh.compare(even, planted).as_dict()))
    for name in POLICIES:
        gate = eh.gate(planted, policy=f"policies/{name}.toml")
        Path(f"json/gate-{name}.json").write_text(dumped(gate.as_dict()))


def emptied(folder: Path) -> None:
    """Without what is large and written again, and without locks."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.name in ("report.html", ".lock"):
            path.unlink()


STEPS: tuple[Callable[[], None], ...] = (
    inputs,
    checkpoints,
    mitigations,
    audits,
    measured,
    studies,
    bundles,
    contracts,
)

if __name__ == "__main__":
    shutil.rmtree(MADE, ignore_errors=True)
    MADE.mkdir()
    os.chdir(MADE)
    for step in STEPS:
        step()
    emptied(MADE)
