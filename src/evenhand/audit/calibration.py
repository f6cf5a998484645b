"""A short calibration: what answering a probe's own requests costs on this machine.

    time   = load + model + the rest
    model  = (seconds / characters of a few real pieces) x characters of all distinct rows
    rest   = the whole probe with made-up scores: texts, shards on disk, statistics, findings

Pieces are taken from different places of the real plan, the longest rows among them, so that
batches and shared prefixes are those of the run. Wall and CPU seconds are both measured: on a
machine that others use too, only the second is repeatable.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.errors import EvenhandError
from evenhand.models.protocol import Expected, Model
from evenhand.probes.base import Probe
from evenhand.requests import TYPES, Choose, Column, LazyRequests, Requests
from evenhand.runner.ask import Ask, shard_rows
from evenhand.runner.plan import make_plan

PIECE_ROWS = 256
MAX_PIECES = 12
LEAST_PIECES = 3
MODEL_S = 6.0
"""CPU seconds of model time after which no further piece is asked."""
REST_ROWS = 40_000
READ = {"span": ("question", "context"), "generate": ("prompt",)}
"""Columns that become tokens, where not all of them do."""


@dataclass(frozen=True)
class Clock:
    """Wall and CPU seconds."""

    wall: float = 0.0
    cpu: float = 0.0

    @classmethod
    def now(cls) -> Clock:
        return cls(time.perf_counter(), time.process_time())

    def __add__(self, other: Clock) -> Clock:
        return Clock(self.wall + other.wall, self.cpu + other.cpu)

    def __sub__(self, other: Clock) -> Clock:
        return Clock(self.wall - other.wall, self.cpu - other.cpu)

    def __mul__(self, factor: float) -> Clock:
        return Clock(self.wall * factor, self.cpu * factor)


@dataclass(frozen=True)
class Cost:
    """What asking all distinct rows will take."""

    time: Clock
    tokens: int | None
    """Tokens of all distinct rows as texts, before prefixes are shared; None without tokenizer."""
    pieces: int
    told: Expected | None = None
    """What the model says itself, where calls are paid."""


def pieces(requests: Requests | LazyRequests, *, device: bool = False) -> list[Requests]:
    """Parts of the real shards, spread over the plan: first, last, middle, then between."""
    plan = make_plan(requests, shard_rows(len(requests), device=device))
    group = requests.group if isinstance(requests, LazyRequests) else 1
    rows = max(group, PIECE_ROWS - PIECE_ROWS % group)
    spread = np.linspace(0, plan.count - 1, min(plan.count, MAX_PIECES)).round().astype(int)
    order = sorted(range(len(spread)), key=lambda k: (_turn(k, len(spread)), k))
    found = []
    for k in order:
        shard = plan.shard(int(spread[k])).requests
        found.append(shard.take(range(rows)) if len(shard) > rows else shard)
    return found


def _turn(k: int, n: int) -> int:
    """Ends first, then the middle, then the rest."""
    return {0: 0, n - 1: 1, n // 2: 2}.get(k, 3)


def model_cost(model: Model, requests: Requests | LazyRequests, distinct: int) -> Cost:
    """Ask a few pieces and multiply."""
    chosen = pieces(requests, device=model.on_gpu)
    if not chosen:
        return Cost(Clock(), 0, 0)
    told = model.expected(chosen[0], distinct)
    if told is not None:  # every call may be paid: nothing is tried out
        return Cost(Clock(told.seconds), told.tokens_in + told.tokens_out, 0, told)
    small = chosen[0].take(range(min(8, len(chosen[0]))))
    model.answer(small, model.prepare(small))  # the first call sets things up
    spent, characters, rows, tokens = Clock(), 0, 0, 0
    used = 0
    for piece in chosen:
        begun = Clock.now()
        model.answer(piece, model.prepare(piece))
        spent += Clock.now() - begun
        characters += _characters(piece)
        tokens += _tokens(model, piece)
        rows, used = rows + len(piece), used + 1
        if used >= LEAST_PIECES and spent.cpu > MODEL_S:
            break
    whole = characters / rows * distinct
    if not isinstance(requests, LazyRequests):  # duplicates are as long as the others on average
        whole = _characters(requests) * distinct / max(1, len(requests))
    known = model.count_tokens([]) is not None
    scale = whole / max(1, characters)
    return Cost(spent * scale, round(tokens * scale) if known else None, used)


def _characters(requests: Requests) -> int:
    names = READ.get(requests.kind, requests.columns)
    return sum(len(text) for name in names for text in getattr(requests, name))


def _tokens(model: Model, requests: Requests) -> int:
    names = READ.get(requests.kind, requests.columns)
    texts = [" ".join(row) for row in zip(*(getattr(requests, name) for name in names))]
    made = int(requests.settings.get("max_new_tokens", 0)) * len(texts)
    return (model.count_tokens(texts) or 0) + made


class Guesser(Model):
    """Answers everything with made-up numbers of the right form, at once."""

    kind = "guesser"
    name = "guesser"

    def __init__(self, answers: frozenset[str]) -> None:
        self.answers = answers

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(b"guesser").hexdigest()

    def answer(self, requests: Requests, prepared: Any) -> dict[str, Column]:
        n, top = len(requests), int(requests.settings.get("top", 8))
        rng = np.random.default_rng(n)
        words = ["people", "nurse", "doctor", "happy", "angry", "money", "work", "friend"]
        made: dict[str, Any] = {
            "float": lambda: rng.uniform(0.01, 0.99, n),
            "int": lambda: np.ones(n, np.int32),
            "string": lambda: ["they were good people"] * n,
            "strings": lambda: [[f"{words[k % 8]}" for k in range(top)]] * n,
            "floats": lambda: rng.uniform(0.01, 0.99, (n, top)).astype(np.float32),
        }
        outputs = {name: made[kind]() for name, kind in TYPES[requests.kind].outputs.items()}
        if isinstance(requests, Choose):
            shares = [rng.dirichlet(np.ones(1 + len(row))) for row in requests.listed]
            outputs["probabilities"] = [share[1:] for share in shares]
        return outputs


def rest_cost(probe: Probe, answers: frozenset[str], seed: int, rows: int) -> Clock | None:
    """The probe without a model; a share of a large one, scaled. None where scores matter."""
    share = min(1.0, REST_ROWS / max(1, rows))
    smaller = probe if share == 1.0 else probe.within(share)
    with tempfile.TemporaryDirectory(prefix="evenhand-check-") as folder:
        helpers = {name: Ask(Guesser(frozenset(TYPES)), Path(folder)) for name in probe.helpers()}
        ask = Ask(Guesser(answers), Path(folder), helpers=helpers)
        begun = Clock.now()
        try:
            smaller.run(ask, seed)
        except (EvenhandError, ValueError, IndexError, KeyError, ZeroDivisionError):
            return None
        spent = Clock.now() - begun
    return spent * (rows / max(1, ask.counts.rows) if share < 1.0 else 1.0)


def held_mib(requests: Requests | LazyRequests) -> int:
    """Memory of all scores in row order."""
    return len(requests) * 8 * len(TYPES[requests.kind].outputs) // 2**20
