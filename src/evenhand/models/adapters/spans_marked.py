"""The vector of a part of a text: which tokens belong to what is marked.

A text may mark any number of parts, ⟦Tia⟧ met Bo and ⟦Tia⟧ left. The marks are taken out before
the model reads the text; the vector is the mean over the tokens of the marked parts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.errors import DataError
from evenhand.requests import MARKS, Embed

if TYPE_CHECKING:
    from evenhand.models.adapters.causal import CausalModel

_MARKED = re.compile(f"{MARKS[0]}([^{MARKS[0]}{MARKS[1]}]+){MARKS[1]}")


def unmarked(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text without marks, and where the marked parts stand in it.

    >>> unmarked("⟦Tia⟧ met ⟦Bo⟧.")
    ('Tia met Bo.', [(0, 3), (8, 10)])
    """
    plain, spans, at = "", [], 0
    for found in _MARKED.finditer(text):
        plain += text[at : found.start()]
        spans.append((len(plain), len(plain) + len(found[1])))
        plain += found[1]
        at = found.end()
    plain += text[at:]
    if not spans or any(mark in plain for mark in MARKS):
        raise DataError(
            f"embed request: {text!r} has no marked part. Put {MARKS[0]} and {MARKS[1]} around the "
            "part whose vector is wanted."
        )
    return plain, spans


def encoded(tokenizer: Any, texts: Sequence[str], *, special: bool) -> dict[str, list[list[int]]]:
    """Token ids (and what else the tokenizer gives) with `marked`: 1 for tokens of marked parts."""
    parts = [unmarked(text) for text in texts]
    made = tokenizer(
        [plain for plain, _ in parts],
        add_special_tokens=special,
        truncation=False,
        return_offsets_mapping=True,
    )
    out = {k: [list(row) for row in v] for k, v in made.items() if k != "offset_mapping"}
    out["marked"] = [
        [int(any(a < high and b > low for low, high in spans) and b > a) for a, b in offsets]
        for offsets, (_, spans) in zip(made["offset_mapping"], parts)
    ]
    return out


def causal_vectors(model: CausalModel, requests: Embed) -> np.ndarray:
    """Mean hidden state (what the head sees) over a text's tokens, or over the marked ones.

    A causal model's first token has nothing before it, so its state says next to nothing about
    the text; it is left out when there are other tokens to take.
    """
    from evenhand.models.adapters.causal_pass import Wanted

    begin = len(model.start)
    if requests.marked:
        made = encoded(model.tokenizer, requests.text, special=False)
        rows, picked = made["input_ids"], [np.flatnonzero(m) for m in made["marked"]]
    else:
        rows = model.encode(requests.text, special=False)
        picked = [np.arange(len(ids)) for ids in rows]
    sequences, positions, owners = [], [], []
    for owner, (ids, places) in enumerate(zip(rows, picked)):
        at = [int(p) + begin for p in places]
        at = [p for p in at if p > 0] or at
        sequences += [[*model.start, *ids]] * len(at)
        positions += [range(p, p + 1) for p in at]
        owners += [owner] * len(at)
    model.check_lengths([len(s) for s in sequences], "text")
    states = model.states(Wanted.of(sequences, positions)).astype(np.float64)
    total = np.zeros((len(rows), states.shape[1]))
    np.add.at(total, owners, states)
    counts = np.bincount(owners, minlength=len(rows))[:, None]
    return np.asarray(np.where(counts > 0, total / np.maximum(counts, 1), np.nan))
