"""The trainings that are killed: tiny data, few steps."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trust.killed_commands import Command, _model


@dataclass(frozen=True)
class Resumed(Command):
    """A training that keeps its state in its folder until it is finished."""

    def outputs(self, folder: Path) -> dict[str, bytes]:
        out = folder / "out"
        if not (out / "training.json").is_file() or list(out.glob("resume*")):
            return {}
        return super().outputs(folder)


def _rows(path: Path, words: list[str]) -> None:
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(len(words), 6)).round(4).tolist()
    path.write_text("".join(f"{w} {' '.join(map(str, r))}\n" for w, r in zip(words, rows)))


def span(folder: Path, top: Path) -> Command:
    context = "Gerald lives in the same city with Jennifer."
    answer = {"text": "Jennifer", "answer_start": context.index("Jennifer")}
    asked = [{"id": str(k), "question": "Who was a nurse?", "answers": [answer]} for k in range(6)]
    body = {"data": [{"title": "t", "paragraphs": [{"context": context, "qas": asked}]}]}
    (folder / "s.json").write_text(json.dumps(body))
    words = ["train", "span", _model("span", top), "--train", "s.json", "--dev", "s.json",
             "--epochs", "2", "--batch", "2", "--length", "48", "--stride", "8", "--device", "cpu",
             "--resume", "--out", "out"]  # fmt: skip
    return Resumed(words, ("out/*.safetensors", "out/config.json", "out/tokenizer.json"))


def hate_speech(folder: Path, top: Path) -> Command:
    draw, fill = np.random.default_rng(0), ["the", "a", "day", "so", "he", "she", "go"]
    _rows(folder / "v.txt", ["vile", "kind", *fill])
    lines = ["tweet,class"]
    for k in range(300):
        text = " ".join([*map(str, draw.choice(fill, 4)), f"n{k}", ("vile", "kind")[k % 2]])
        lines.append(f"{text},{2 * (k % 2)}")
    (folder / "d.csv").write_text("\n".join(lines) + "\n")
    words = ["train", "hate-speech", "v.txt", "--data", "d.csv", "--filters", "4", "--epochs", "2",
             "--min-count", "3", "--out", "out"]  # fmt: skip
    return Command(words, ("out/*",), once=True)


def coreference(folder: Path, top: Path) -> Command:
    from evenhand.train.coreference_data import GENTLE
    from evenhand.words.conll import Document, write_conll

    tokens = ("anna", "met", "tom", ".", "she", "left", ".", "he", "slept", ".")
    clusters = (((0, 1), (4, 5)), ((2, 3), (7, 8)))
    names = [f"d-{n + 1}" for n in range(GENTLE + 16)]
    write_conll([Document(n, tokens, (4, 7, 10), clusters) for n in names], folder / "g.conll")
    _rows(folder / "v.txt", sorted({*tokens}))
    words = ["train", "coreference", "v.txt", "--ontogum", "g.conll", "--epochs", "1", "--plans",
             "1", "--hidden", "4", "--feed", "4", "--device", "cpu", "--out", "out"]  # fmt: skip
    return Command(words, ("out/*",), once=True)


TRAININGS: dict[str, Callable[[Path, Path], Command]] = {
    "train span": span,
    "train hate-speech": hate_speech,
    "train coreference": coreference,
}
