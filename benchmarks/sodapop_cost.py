"""What generation and scoring cost against the released program, on the same contexts.

    SOCIAL_IQA=socialIQa_v1.4_dev_Bethany_0_2191.jsonl python benchmarks/sodapop_cost.py \\
        --generator minilm-mlm --chooser minilm-mcq [--causal smollm2-135m] [--out FILE]

Released (k = 3, M = 10): every masked text is filled by itself, one after the other, repeats and
all (n + 10 n^2 + 100 n^3 calls), with the vocabulary at every position; then two distractors and
the right answer make a question, three rows of 128 tokens each, 24 rows at a time, float32.
Here: distinct masks that are needed for what is kept, the vocabulary at the mask only, and one
score per distinct answer, in batches of like length. Real models write and real tokenizers count:

    tokens      that go through the trunk, padding included, per kept distractor
    operations  floating-point, from the shapes: layers, attention, vocabulary head
    seconds     measured on this machine with the same weights, both ways, samples of the work
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sodapop_released as released

from evenhand.models.loading.resolver import resolve
from evenhand.models.protocol import LoadOptions
from evenhand.probes.discovery.generate import Filler, Generation, generate
from evenhand.probes.discovery.score import Pool, option_requests, prompt
from evenhand.requests import Option
from evenhand.runner.ask import Ask
from evenhand.words.social_iqa import Context, read_contexts

RESULTS = Path(__file__).parent / "results"
NAME = "Tia"
POOL_NAMES, NAMES = 8, 200
REPEATS = 2


class Meter:
    """Counts what a model really computes: rows, tokens with padding, operations."""

    def __init__(self, model: Any, *, head: bool) -> None:
        self.model, self.head = model, head
        self.total: Counter[str] = Counter()
        self._prepare = model.prepare
        model.prepare = self.prepare

    def prepare(self, requests: Any) -> Any:
        made = self._prepare(requests)
        config = self.model.model.config
        for batch in getattr(made, "batches", made):
            rows, width = batch.ids.shape
            heads = rows if self.head else 0
            self.total["rows"] += rows
            self.total["tokens"] += rows * width
            self.total["operations"] += released.operations(config, rows, width, heads)
        return made

    def close(self) -> dict[str, Any]:
        """Stop counting; what was counted."""
        self.model.prepare = self._prepare
        return dict(self.total)


def generation(found: Sequence[Context], model: Any, keep: int) -> tuple[dict[str, Any], list]:
    """Distractors of one name in every context, and what writing them cost here."""
    settings = Generation(3, 10, keep)
    done = []
    for _ in range(REPEATS if str(model.device).startswith("cuda") else 1):
        meter = Meter(model, head=True)
        pools = []
        begun = time.perf_counter()
        for context in found:
            filler = Filler(Ask(model), settings)
            filled = context.filled(NAME)
            pools.append(Pool(0, filled, generate([(NAME, filled)], filler, settings, 0)[0]))
        done.append({**meter.close(), "seconds": time.perf_counter() - begun})
    return min(done, key=lambda total: total["seconds"]), pools


def scoring(pools: Sequence[Pool], model: Any, timed: int) -> dict[str, Any]:
    """One score per distinct answer: counted for all, timed on a sample."""
    requests = option_requests(pools, model.answers)
    meter = Meter(model, head=False)
    for low in range(0, len(requests), 65_536):
        meter.prepare(requests.make(low, min(low + 65_536, len(requests))))
    counted = meter.close()
    rows = np.random.default_rng(0).permutation(len(requests))[:timed]
    every = requests.make(0, len(requests))
    part = every.take(np.sort(rows))
    assert isinstance(part, Option)
    spent = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        Ask(model)(part)
        spent.append(time.perf_counter() - begun)
    counted["seconds"] = min(spent) * len(requests) / len(part)
    return counted


def shared_prompts(pools: Sequence[Pool], model: Any) -> int:
    """Tokens of a causal chooser, which reads each prompt once."""
    from evenhand.models.batching.packing import pack

    tokens = 0
    for pool in pools:
        begin = model.encode([prompt(pool.filled, model.answers)], special=True)[0]
        ends = model.encode([f" {d}" for d in (pool.filled.answer, *pool.distractors)],
                            special=False)  # fmt: skip
        tokens += sum(len(row) for row in pack([begin + e for e in ends], 4_096))
    return tokens


def compare(before: dict[str, Any], after: dict[str, Any], kept: int) -> dict[str, Any]:
    """Both ways per kept distractor, and how many times less."""
    out: dict[str, Any] = {}
    for unit in ("tokens", "operations", "seconds"):
        if before.get(unit) and after.get(unit):
            out[unit] = {
                "released": before[unit] / kept,
                "here": after[unit] / kept,
                "times_less": before[unit] / after[unit],
            }
    return out


def added(*parts: dict[str, Any]) -> dict[str, Any]:
    units = [u for u in ("tokens", "operations", "seconds") if all(u in p for p in parts)]
    return {u: sum(p[u] for p in parts) for u in units}


def scaled(part: dict[str, Any], share: float) -> dict[str, Any]:
    return {k: v * share for k, v in part.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contexts", default="$SOCIAL_IQA")
    parser.add_argument("--generator", required=True)
    parser.add_argument("--chooser", required=True)
    parser.add_argument("--causal", help="a causal chooser to count tokens for")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--keep", type=int, default=10_000)
    parser.add_argument("--timed", type=int, default=2_000, help="answers to time")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    found = read_contexts(arguments.contexts, placeholder="Bethany", limit=arguments.count)
    writer, chooser = resolve(arguments.generator), resolve(arguments.chooser)
    writing, pools = generation(found, writer, arguments.keep)
    kept = sum(len(p.distractors) for p in pools)
    choosing = scoring(pools, chooser, arguments.timed)
    old_writing = released.generation([p.filled for p in pools], writer)
    old_choosing = released.scoring(pools, chooser)
    common = scaled(writing, POOL_NAMES / NAMES)
    result: dict[str, Any] = {
        "device": released.device_name(chooser), "dtype": chooser.dtype, "contexts": len(found),
        "cpus": os.cpu_count(), "kept": kept, "released_calls": old_writing["rows"],
        "formula_calls": old_writing["formula"], "fills": writing["rows"],
        "released_rows": old_choosing["rows"], "scores": choosing["rows"],
        "generator": compare(old_writing, writing, kept),
        "chooser": compare(old_choosing, choosing, kept),
        "total": compare(added(old_writing, old_choosing), added(writing, choosing), kept),
        "generator_common_pool": compare(old_writing, common, kept),
        "total_common_pool": compare(
            added(old_writing, old_choosing), added(common, choosing), kept
        ),
    }  # fmt: skip
    if chooser.dtype != "float32":  # seconds with the released precision, too
        options = LoadOptions(dtype="float32")
        plain = generation(found, resolve(arguments.generator, options=options), arguments.keep)[0]
        slow = scoring(pools, resolve(arguments.chooser, options=options), arguments.timed)
        total = compare(added(old_writing, old_choosing), added(plain, slow), kept)
        result["total_float32_seconds"] = total["seconds"]
        result["chooser_float32_seconds"] = compare(old_choosing, slow, kept)["seconds"]
    if arguments.causal:
        tokens = {"tokens": shared_prompts(pools, resolve(arguments.causal))}
        result["causal_chooser"] = compare(old_choosing, tokens, kept)
        result["total_causal_chooser"] = compare(
            added(old_writing, old_choosing), added(common, tokens), kept
        )
    text = json.dumps(result, indent=1, default=float)
    print(text)
    (arguments.out or RESULTS / f"sodapop_cost_{chooser.device}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
