"""Matched guise probing as published: log-probabilities of words after the released prompts.

Needs the publication's folder: pairs_*.tsv, prompts.json, a list of words (katz.txt or
occupations.txt) and, for human lists, human_ratings.json.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.errors import DataError
from evenhand.opening import read_json, read_text
from evenhand.probes.matched_guise.material import Pair
from evenhand.probes.matched_guise.ratios import Human
from evenhand.requests import MASK, Continuation, MaskScore, Requests

PROMPTS = {"katz": "TRAIT_PROMPTS", "occupations": "OCCUPATION_PROMPTS"}


@dataclass(frozen=True)
class Published:
    """Words and prompts of the release, and human ratings where there are some."""

    words: tuple[str, ...]
    prompts: tuple[str, ...]
    human: Human | None

    @classmethod
    def read(cls, folder: Path, words: str) -> Published:
        """The release's list of this name with its prompts."""
        if not folder.is_dir():
            raise DataError(
                f"{folder}: as_published needs the publication's folder (pairs_*.tsv, "
                f"prompts.json, {words}.txt), not a file of pairs. Name it with --data FOLDER."
            )
        held = read_json(folder / "prompts.json")
        rated = folder / "human_ratings.json"
        return cls(
            tuple(dict.fromkeys(read_text(folder / f"{words}.txt").split())),
            tuple(held[PROMPTS[words]]),
            Human.read(rated) if rated.exists() else None,
        )

    def fits(self, prompt: str, word: str) -> bool:
        """Prompts that end in "a" or "an" are asked of words with that article only."""
        end = prompt.rpartition(" ")[2]
        return end not in ("a", "an") or (word[0] in "aeiou") == (end == "an")

    def rows(self, pairs: Sequence[Pair]) -> list[tuple[Pair, str, str]]:
        """Every pair, prompt and word that is asked."""
        return [
            (pair, prompt, word)
            for pair in pairs
            for prompt in self.prompts
            for word in self.words
            if self.fits(prompt, word)
        ]


def asked(rows: Sequence[tuple[Pair, str, str]], kind: str) -> Requests:
    """The word after (or at the mask at the end of) the prompt, in both guises."""
    texts = [
        prompt.format(text) for pair, prompt, _ in rows for text in (pair.dialect, pair.standard)
    ]
    words = [word for _, _, word in rows for _ in range(2)]
    if kind == MaskScore.kind:
        return MaskScore([f"{text} {MASK}" for text in texts], words)
    return Continuation(texts, [f" {word}" for word in words])


def items_of(rows: Sequence[tuple[Pair, str, str]], logprobs: Any) -> pa.Table:
    """Log-probabilities by text, prompt and word."""
    both = np.asarray(logprobs, np.float64).reshape(-1, 2)
    return pa.table(
        {
            "text": [pair.dialect for pair, _, _ in rows],
            "unit": [pair.unit for pair, _, _ in rows],
            "prompt": [prompt for _, prompt, _ in rows],
            "attribute": [word for _, _, word in rows],
            "logprob_dialect": both[:, 0],
            "logprob_standard": both[:, 1],
        }
    )
