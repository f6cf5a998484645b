"""Packed trees against a straightforward batched loop, on the packaged causal model.

Option-shaped work: questions that share contexts, two names each. Both ways run in this process,
one after the other, on the same rows; the scores are compared.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np

from evenhand.models.resolver import resolve
from evenhand.probes.underspecified import Underspecified
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


def main() -> None:
    model = resolve("smollm2-135m")
    probe = Underspecified(
        pairs=3, templates=1, attributes=("nurse", "doctor", "hunter", "pilot", "dancer", "judge")
    )
    lazy = probe._requests(Continuation.kind, probe.design("qa", 0))
    requests = lazy.make(0, len(lazy))
    Ask(model)(requests.take(range(16)))  # warm up
    begun = time.perf_counter()
    packed = Ask(model)(requests)["logprob"]
    fast = time.perf_counter() - begun
    begun = time.perf_counter()
    plain = naive(model, requests)
    slow = time.perf_counter() - begun
    result = {
        "rows": len(requests),
        "packed_s": round(fast, 2),
        "naive_s": round(slow, 2),
        "ratio": round(slow / fast, 2),
        "largest_difference": float(np.abs(packed - plain).max()),
    }
    print(json.dumps(result))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
