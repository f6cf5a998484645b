"""Are even models called even? Models without a group effect through a whole suite and its gate.

    python -m benchmarks.even_models                 100 seeds of `quick`
    python -m benchmarks.even_models --seeds 20

Every name, name and question, name and text, order, term, term and word, and every single answer
has a random effect of its own, as in real models; no group has one. Printed: how many of the models
pass with nothing detected (nominal: 95 of 100), into `benchmarks/results/even_models.json`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import ndtri

import evenhand as eh
from evenhand.audit.suites import load_suite
from evenhand.probes.base import Way
from evenhand.probes.decision.probe import INSTRUCTIONS, Decision
from evenhand.probes.divergence.probe import Divergence
from evenhand.requests import Choose, Continuation

RESULT = Path(__file__).parent / "results" / "even_models.json"
SUITE, SEEDS = "quick", 100
ASKS = INSTRUCTIONS[Decision().answers]


@dataclass(frozen=True)
class Spread:
    """Standard deviations of the random effects, in nats."""

    name: float = 0.6
    question: float = 0.25
    text: float = 0.25
    order: float = 0.8
    side: float = 0.25
    word: float = 0.3
    answer: float = 0.3


USUAL = Spread()


class Effects:
    """Random effects by what they belong to; the same for the same seed, whoever asks first."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._known: dict[tuple[str, ...], float] = {}

    def __call__(self, size: float, *what: str) -> float:
        if what not in self._known:
            raw = hashlib.blake2b(f"{self.seed}|{'|'.join(what)}".encode(), digest_size=8).digest()
            self._known[what] = float(ndtri((int.from_bytes(raw) + 0.5) / 2**64))
        return size * self._known[what]


@cache
def _terms() -> Mapping[tuple[str, str], tuple[str, str]]:
    """(text, word) of the next-word questions -> the term, and the side of the list."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for entry in load_suite(SUITE).entries:
        if isinstance(entry.probe, Divergence):
            asked = entry.probe.material().questions()
            for text, word, term, name, side in zip(
                *(asked[k] for k in ("text", "word", "term", "list", "side"))
            ):
                found[text, f" {word}"] = term, f"{name} {side}"
    return found


@cache
def _decisions(seed: int) -> Mapping[str, tuple[str, str, bool]]:
    """Last line of a question about a decision -> the case, the name if any, whether yes is good.

    Names are drawn with the seed of the audit, which is that of the model.
    """
    found = {}
    for entry in load_suite(SUITE).entries:
        if isinstance(entry.probe, Decision):
            asked = entry.probe.gather(Way(Choose.kind, seed=seed))
            columns = (asked[name] for name in ("text", "scenario", "name", "good_answer"))
            for text, scenario, name, good in zip(*columns):
                found[text.rpartition("\n")[2]] = scenario, name, good == "yes"
    return found


def even_model(seed: int, spread: Spread = USUAL) -> eh.ScriptedModel:
    """A causal model in which every name and word is liked differently, and no group is."""
    effect = Effects(seed)

    def picked(prefix: str, said: str) -> float:
        text, _, question = prefix.partition("\nQuestion: ")
        names = re.findall(r"\b[A-Z]\w+", text)
        plain = re.sub(r"\b[A-Z]\w+", "", text)
        first = text.lstrip().startswith(said.strip())
        return (
            effect(spread.name, said)
            + effect(spread.question, said, question)
            + effect(spread.text, said, plain)
            + first * effect(spread.order, "first", plain)
            + first * effect(spread.question, "first", question)
            + effect(spread.answer, said, *names, question, plain)
        )

    def decided(case: str, name: str, good: bool, prefix: str, said: str) -> float:
        # A name is liked in every case and differently in each, towards what is good for it; words
        # for groups are liked differently in each case, and alike on average.
        liked = effect(spread.question, prefix)
        if name:
            liked += effect(spread.name, name) + effect(spread.text, name, case)
        yes = said.strip().lower() == "yes"
        way = 0.5 if yes == good else -0.5
        even = effect(1.0, "yes", case) * (0.5 if yes else -0.5)
        return way * liked + even + effect(spread.answer, prefix, said)

    def answered(prefix: str, said: str) -> float:
        if (prefix, said) in _terms():
            return expected(prefix, said)
        lines = (line.removeprefix(f"{ASKS} ") for line in prefix.splitlines())
        known = next((found for line in lines if (found := _decisions(seed).get(line))), None)
        return decided(*known, prefix, said) if known else picked(prefix, said)

    def expected(prefix: str, word: str) -> float:
        term, side = _terms()[prefix, word]
        return (
            effect(1.0, word)
            + effect(spread.side, term, side)
            + effect(spread.word, term, word)
            + effect(spread.answer, prefix, word)
        )

    def follows(requests: Continuation) -> dict[str, np.ndarray]:
        values = [answered(*row) for row in zip(requests.prefix, requests.continuation)]
        return {
            "logprob": np.asarray(values) - 5.0,
            "n_tokens": np.ones(len(values), np.int32),
        }

    return eh.ScriptedModel({"continuation": follows}, name=f"even {seed}", whole=True)


@dataclass(frozen=True)
class Outcome:
    """What a suite made of one model."""

    seed: int
    detected: tuple[str, ...]
    gate: str

    @property
    def even(self) -> bool:
        return not self.detected and self.gate == "passed"


def judged(seed: int, spread: Spread = USUAL) -> Outcome:
    """The suite and its gate on one even model."""
    with tempfile.TemporaryDirectory() as folder:
        run = eh.audit(even_model(seed, spread), SUITE, out=f"{folder}/run", seed=seed)
        found = tuple(f.id for f in run.findings if f.counts and f.detected)
        return Outcome(seed, found, eh.gate(run).outcome)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seeds", type=int, default=SEEDS)
    options.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    given = options.parse_args()
    seeds = given.seeds
    with ProcessPoolExecutor(given.jobs) as pool:
        outcomes = list(pool.map(judged, range(seeds)))
    passed = sum(o.even for o in outcomes)
    for o in outcomes:
        if not o.even:
            print(f"seed {o.seed}: {o.gate}, {', '.join(o.detected)}")
    print(f"{passed} of {seeds} even models pass {SUITE} and its gate")
    kept = {"suite": SUITE, "seeds": seeds, "passed": passed,
            "failed": {o.seed: list(o.detected) for o in outcomes if not o.even}}  # fmt: skip
    RESULT.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
