"""Packed rows against a straightforward batched loop, on the packaged causal model.

Option-shaped work: questions that share contexts, two names each. Unrelated work: prompts of 4 to
90 words that share nothing, one word asked after each. Both ways run in this process, on the
same rows; the scores are compared. `load_s` is the time to load the model, `first_score_s` the
time from there to the first score.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np

from evenhand.models.loading.resolver import resolve
from evenhand.probes.underspecified.asking import asking
from evenhand.probes.underspecified.probe import Underspecified
from evenhand.requests import Continuation
from evenhand.runner.ask import Ask

RESULTS = Path(__file__).parent / "results" / "shared_prefixes.json"
BATCH = 16


def naive(model, requests: Continuation) -> np.ndarray:
    """Pad 16 texts at a time, take all logits, sum the continuation's log-probabilities."""
    import torch

    out = np.empty(len(requests))
    for low in range(0, len(requests), BATCH):
        rows = range(low, min(low + BATCH, len(requests)))
        starts = model.encode([requests.prefix[i] for i in rows], special=True)
        whole = model.encode(
            [requests.prefix[i] + requests.continuation[i] for i in rows], special=True
        )
        width = max(map(len, whole))
        ids = torch.zeros((len(whole), width), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for i, tokens in enumerate(whole):
            ids[i, : len(tokens)] = torch.tensor(tokens)
            mask[i, : len(tokens)] = 1
        with torch.inference_mode():
            logp = model.model(input_ids=ids, attention_mask=mask).logits.float().log_softmax(-1)
        for i, tokens in enumerate(whole):
            steps = range(len(starts[i]), len(tokens))
            out[low + i] = sum(float(logp[i, t - 1, tokens[t]]) for t in steps)
    return out


def unrelated(rows: int) -> Continuation:
    """Prompts of mixed length without common beginnings."""
    rng = np.random.default_rng(0)
    words = [
        *"river market engine garden winter letter doctor bridge window number".split(),
        *"music history colour travel question reason morning village answer light".split(),
    ]
    lengths = rng.integers(4, 90, rows)
    prompts = [" ".join(rng.choice(words, n)).capitalize() for n in lengths]
    return Continuation(prompts, [f" {w}" for w in rng.choice(words, rows)])


def compared(model, requests: Continuation) -> dict[str, float]:
    """The two ways in turns on the same rows, by the clock and in processor seconds.

    Processor seconds leave out what other work on the machine takes. The best of two rounds.
    """
    times: dict[str, list[tuple[float, float]]] = {"packed": [], "naive": []}
    scores = {}
    for _ in range(2):
        for name, way in (("packed", lambda r: Ask(model)(r)["logprob"]), ("naive", None)):
            begun = time.perf_counter(), time.process_time()
            scores[name] = way(requests) if way else naive(model, requests)
            times[name].append((time.perf_counter() - begun[0], time.process_time() - begun[1]))
    clock = {name: min(t[0] for t in rounds) for name, rounds in times.items()}
    work = {name: min(t[1] for t in rounds) for name, rounds in times.items()}
    return {
        "rows": len(requests),
        "packed_s": round(clock["packed"], 2),
        "naive_s": round(clock["naive"], 2),
        "ratio": round(clock["naive"] / clock["packed"], 2),
        "ratio_of_processor_seconds": round(work["naive"] / work["packed"], 2),
        "largest_difference": float(np.abs(scores["packed"] - scores["naive"]).max()),
    }


def main() -> None:
    begun = time.perf_counter()
    model = resolve("smollm2-135m")
    loaded = time.perf_counter() - begun
    probe = Underspecified(
        pairs=3, templates=1, attributes=("nurse", "doctor", "hunter", "pilot", "dancer", "judge")
    )
    design = probe.design("qa", 0)
    lazy = asking(Continuation.kind, probe.manner(probe.lists("qa"), 0)).requests(design)
    requests = lazy.make(0, len(lazy))
    begun = time.perf_counter()
    Ask(model)(requests.take([0]))
    first = time.perf_counter() - begun
    result = {
        "option_shaped": compared(model, requests),
        "unrelated": compared(model, unrelated(48)),
        "load_s": round(loaded, 2),
        "first_score_s": round(first, 3),
    }
    print(json.dumps(result))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
