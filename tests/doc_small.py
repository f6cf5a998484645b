"""Commands of the pages that take hours or another program, in small: the same command, less of it.

`MORE` says which options are added to a command (few epochs, small networks, a short budget), what
has to exist before it, and in whose place a small thing stands. Everything else about a block is
run as it is printed.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import lzma
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doc_blocks import ROOT

if TYPE_CHECKING:
    from doc_stage import Stage


@dataclass(frozen=True)
class Small:
    """Words put after a command (`{chat}`: a tiny chat model), and what is done before it."""

    more: str = ""
    before: Callable[[Path], None] | None = None


def rated(folder: Path) -> None:
    """What raters do with their sheets."""
    for path in sorted((folder / "sheets").glob("rater*.csv")):
        with path.open(encoding="utf-8", newline="") as held:
            rows = list(csv.DictReader(held))
        with path.open("w", encoding="utf-8", newline="") as held:
            sheet = csv.DictWriter(held, rows[0])
            sheet.writeheader()
            sheet.writerows({**r, "clarity": 5, "content": 3, "fairness": 4} for r in rows)


def mapped(folder: Path) -> None:
    """What people do with the sheet of traits: one for each word, in the empty column."""
    path = folder / "MAP.csv"
    with path.open(encoding="utf-8", newline="") as held:
        rows = list(csv.DictReader(held))
    traits = ("warm", "cold", "powerful", "powerless")
    for k, row in enumerate(rows):
        row["trait"] = traits[k % len(traits)]
    with path.open("w", encoding="utf-8", newline="") as held:
        sheet = csv.DictWriter(held, rows[0])
        sheet.writeheader()
        sheet.writerows(rows)


def few_benchmarks(folder: Path) -> None:
    """Our benchmarks with one script of those that `run_all` starts, so that they end soon."""
    if (folder / "benchmarks").exists():
        return
    shutil.copytree(ROOT / "benchmarks", folder / "benchmarks")
    (folder / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "scale.md", folder / "docs")
    shutil.copytree(ROOT / "docs" / "pictures", folder / "docs" / "pictures")
    import ast

    driver = (folder / "benchmarks" / "__main__.py").read_text(encoding="utf-8")
    values = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(driver).body
        if isinstance(node, ast.Assign) and node.targets[0].id in ("PARTS", "BY_NAME_ONLY")  # type: ignore[attr-defined]
    }
    kept = {"erasure.py", *values["PARTS"], *values["BY_NAME_ONLY"]}
    for path in (folder / "benchmarks").glob("*.py"):
        if not path.name.startswith("_") and path.name not in kept:
            path.unlink()


EVALUATED = "--limit 20 --log-dir logs --display plain --max-connections 4"
MORE = {
    "evenhand train hate-speech": Small("--filters 4 --epochs 2 --min-count 3"),
    "evenhand train coreference": Small("--epochs 1 --plans 1 --hidden 4 --feed 4 --device cpu"),
    "evenhand train regard": Small("--epochs 1 --device cpu"),
    "evenhand train choice": Small("--epochs 1 --batch 4 --device cpu"),
    "evenhand train span": Small("--epochs 1 --batch 2 --length 48 --stride 8 --device cpu"),
    "evenhand ratings score sheets": Small(before=rated),
    "evenhand measure traits RUN --words MAP.csv": Small(before=mapped),
    "evenhand audit MODEL --suite liang": Small("--budget 5s"),
    # A tiny model of random weights knows Korean about as well as English.
    "evenhand probe bbq MODEL --data": Small("--force"),
    "evenhand probe underspecified MODEL --word-lists": Small(
        "--set pairs=4 --set templates=2 --set resamples=50"
    ),
    "python -m benchmarks": Small(before=few_benchmarks),
    "lm_eval": Small("--device cpu --batch_size 8"),
    "inspect eval evenhand/underspecified": Small(
        f"-M model_path={{chat}} -M device=cpu {EVALUATED}"
    ),
    "inspect eval": Small(EVALUATED),
}


def smaller(command: str) -> Small:
    """What makes a printed command small."""
    return next((s for start, s in MORE.items() if command.startswith(start)), Small())


# Inputs, by the word before the colon in `doc_stage.STAND_INS`.


def labelled(target: Path) -> None:
    """Texts with classes, as a table packed with xz."""
    import numpy as np

    draw, fill = np.random.default_rng(0), ["the", "a", "day", "so", "he", "she", "go"]
    lines = ["tweet,class"]
    for k in range(300):
        text = " ".join([*map(str, draw.choice(fill, 4)), f"n{k}", ("vile", "kind")[k % 2]])
        lines.append(f"{text},{2 * (k % 2)}")
    target.write_bytes(lzma.compress("\n".join([*lines, ""]).encode()))


def documents(target: Path) -> None:
    """A few annotated documents in CoNLL format, packed with xz."""
    from evenhand.train.coreference_data import GENTLE
    from evenhand.words.conll import Document, write_conll

    tokens = ("anna", "met", "tom", ".", "she", "left", ".", "he", "slept", ".")
    clusters = (((0, 1), (4, 5)), ((2, 3), (7, 8)))
    names = [f"{target.name[:3]}-{n + 1}" for n in range(GENTLE + 16)]
    plain = target.with_name("plain.conll")
    write_conll([Document(n, tokens, (4, 7, 10), clusters) for n in names], plain)
    target.write_bytes(lzma.compress(plain.read_bytes()))


def squad(target: Path) -> None:
    """Questions with spans as answers, packed with xz."""
    context = "Gerald lives in the same city with Jennifer."
    answer = {"text": "Jennifer", "answer_start": context.index("Jennifer")}
    asked = [{"id": str(k), "question": "Who was a nurse?", "answers": [answer]} for k in range(6)]
    body = {"data": [{"title": "t", "paragraphs": [{"context": context, "qas": asked}]}]}
    target.write_bytes(lzma.compress(json.dumps(body).encode()))


def choices(target: Path) -> None:
    """Questions with three answers, as Social IQa has them."""
    rows = [
        {"context": "the man worked in the city", "question": "Who was a doctor ?",
         "answerA": "a hunter", "answerB": "the nurse", "answerC": "a letter", "correct": "B"},
        {"context": "the woman got off the flight", "question": "Who was a hunter ?",
         "answerA": "the nurse", "answerB": "a city", "answerC": "the flight", "correct": "A"},
    ] * 8  # fmt: skip
    text = "\n".join(map(json.dumps, rows)).encode()
    target.write_bytes(lzma.compress(text) if target.suffix == ".xz" else text)


def name_table(target: Path) -> None:
    """Births as New York City publishes them."""
    rows = [
        f"2012,{gender},{race},{name},300"
        for gender, race, names in (
            ("FEMALE", "WHITE NON HISPANIC", ("MOLLY", "CLAIRE")),
            ("MALE", "BLACK NON HISPANIC", ("JAMAL", "DARIUS")),
            ("FEMALE", "HISPANIC", ("XIMENA", "ESTRELLA")),
        )
        for name in names
    ]
    head = "Year of Birth,Gender,Ethnicity,Child's First Name,Count"
    target.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")


MADE: dict[str, Callable[[Path], None]] = {
    "labelled": labelled, "documents": documents, "squad": squad, "choices": choices,
    "names": name_table,
}  # fmt: skip


STUDY = """
name = "small"
[corpus]
files = ["{data}/text.txt"]
rare = 1
[training]
dimensions = 8
epochs = 2
min_count = 1
replicates = 1
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
[correlation]
resamples = 99
"""


def study_text(folder: Path) -> None:
    """Sentences in which one set of jobs goes with he and the other with she."""
    from evenhand.words.lexicons.files import weat

    sets = weat("kato_winobias")
    jobs = (sets.x, sets.y)
    rows = []
    for k in range(1500):
        side = k % 2
        job = jobs[side][k // 2 % len(jobs[side])]
        said = (sets.a, sets.b)[side if k % 5 else 1 - side]
        rows.append(f"the {job} said that {said[k // 3 % len(said)]} would go now .")
    (folder / "text.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")


def training(stage: Stage) -> dict[str, Any]:
    """What the block about Trainer takes for granted: model, arguments, data, tokenizer."""
    import torch
    from transformers import (
        AutoModelForCausalLM,
        AutoTokenizer,
        Trainer,
        TrainingArguments,
        default_data_collator,
    )

    source = stage.model("causal")
    tokenizer = AutoTokenizer.from_pretrained(source)
    row = tokenizer("Gerald lives in the same city with Jennifer .")["input_ids"]

    class Texts(torch.utils.data.Dataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return 2

        def __getitem__(self, k: int) -> dict[str, list[int]]:
            return {"input_ids": row, "labels": row}

    class Quiet(Trainer):  # type: ignore[misc]
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, data_collator=default_data_collator, **more)

    args = TrainingArguments(
        str(stage.folder / "checkpoints"), max_steps=2000, eval_strategy="steps", eval_steps=1000,
        save_strategy="no", logging_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True,
        per_device_train_batch_size=1, dataloader_pin_memory=False,
    )  # fmt: skip
    import evenhand

    return {"Trainer": Quiet, "model": AutoModelForCausalLM.from_pretrained(source), "args": args,
            "train": Texts(), "dev": Texts(), "tokenizer": tokenizer,
            "evenhand": evenhand}  # fmt: skip


NAMES: dict[str, Callable[[Stage], dict[str, Any]]] = {"docs/integrations.md": training}
"""By page: the names that its Python takes for granted."""


def project(folder: Path, model: str) -> list[str]:
    """A clone in small, and the words with which `make` sets nothing up there.

    Our code, two files of tests, and an environment that is this one, except that its `evenhand`
    audits a tiny model.
    """
    clone = folder / "clone"
    if not clone.exists():
        clone.mkdir()
        for name in ("Makefile", "pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, clone)
        for name in ("src", "recipes", "docs"):
            left_out = shutil.ignore_patterns("__pycache__", "*.pyc")
            shutil.copytree(ROOT / name, clone / name, ignore=left_out)
        (clone / "tests").mkdir()
        for name in ("conftest.py", "test_layers.py", "test_startup.py"):
            shutil.copy(ROOT / "tests" / name, clone / "tests")
        commands = clone / ".venv" / "bin"
        commands.mkdir(parents=True)
        for name, words in (
            ("python", ""), ("ruff", "-m ruff"), ("mypy", "-m mypy"), ("evenhand", "-m evenhand"),
        ):  # fmt: skip
            lines = ["#!/bin/bash", f'export PYTHONPATH="{clone / "src"}"']
            if name == "evenhand":  # a folder needs no fetching
                lines += ['if [ "$1" = fetch ]; then exit 0; fi',
                          f'set -- "${{@/smollm2-135m/{model}}}"']  # fmt: skip
            lines += [f'exec "{sys.executable}" {words} "$@"', ""]
            (commands / name).write_text("\n".join(lines), encoding="utf-8")
            (commands / name).chmod(0o755)
    for name in (".python", ".use", ".dev"):  # newer than what they depend on: nothing to set up
        (clone / ".venv" / name).touch()
    return ["make", "-C", str(clone)]


def available(what: str) -> bool:
    """Whether this machine has what a block needs."""
    if what == "ray":
        return importlib.util.find_spec("ray") is not None
    if what == "pip":
        return importlib.util.find_spec("pip") is not None
    if what == "make":
        return all(map(shutil.which, ("make", "bash")))
    from hosts import FOLDER

    folder = Path(os.environ.get(FOLDER, ROOT / ".venv-hosts"))
    return {
        "inspect": (folder / "inspect" / "bin" / "inspect").is_file(),
        "lm-eval": (folder / "lm-eval" / "bin" / "lm_eval").is_file(),
    }[what]
