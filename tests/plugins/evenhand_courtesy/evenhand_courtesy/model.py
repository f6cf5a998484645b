"""A model kind read from a file of its own: a phrasebook that leans to some terms."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.models.protocol import LoadOptions, Model
from evenhand.requests import Column, Requests

ENDING = ".phrasebook.json"


class Phrasebook(Model):
    """Gives a polite word -2 nats, more or less by the leans of the terms in its opening."""

    kind = "phrasebook"
    answers = frozenset({"continuation"})

    def __init__(self, leans: dict[str, float], name: str) -> None:
        self.leans, self.name, self.asked = leans, name, 0

    @classmethod
    def claims(cls, path: Path) -> bool:
        return path.name.endswith(ENDING)

    @classmethod
    def load(cls, source: str, name: str, options: LoadOptions | None = None) -> Phrasebook:
        return cls(json.loads(Path(source).read_text(encoding="utf-8")), name)

    @property
    def fingerprint(self) -> str:
        text = json.dumps([self.leans, *self.mitigations], sort_keys=True)
        return hashlib.sha256(f"phrasebook-1|{text}".encode()).hexdigest()

    def answer(self, requests: Requests, prepared: Any) -> dict[str, Column]:
        if self.asked:  # for a test that kills it before its second shard is done
            time.sleep(float(os.environ.get("PHRASEBOOK_PAUSE", "0")))
        self.asked += 1
        rows = requests.rows()
        lean = [
            sum(self.leans.get(w.strip(",."), 0.0) for w in prefix.split()) for prefix, _ in rows
        ]
        noise = [_noise(f"{prefix}|{word}") for prefix, word in rows]
        scores = np.asarray(lean) + np.asarray(noise) - 2.0
        return {"logprob": scores, "n_tokens": np.ones(len(rows), np.int32)}


def _noise(text: str) -> float:
    """A number between -0.02 and 0.02 that belongs to the text."""
    return (hashlib.sha256(text.encode()).digest()[0] / 255 - 0.5) * 0.04
