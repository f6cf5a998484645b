"""Underspecified questions on a CPU: `ask` against three plain ways, in one run.

    python benchmarks/unqover_cpu.py MODEL [--inputs 160]      MODEL: a span model, e.g. minilm-qa

Inputs are drawn at random from the full gender set and come in arbitrary order. Every plain way
tokenises each question and context as it comes, pads, runs float32 batches and takes the softmax of
all start and end logits:

    padded_350    batches of 100 padded to 350 tokens, the default length of the released program
    padded_128    batches of 100 padded to 128 tokens, a usual fixed length
    longest       batches of 100 padded to the longest of the batch
    one_by_one    one input at a time

The ways take turns; the best of the rounds counts. The long ones get fewer inputs. Measured in
processor seconds of this process, on one thread, so other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "unqover_cpu.json"


def plain_way(model: Any, rows: Any, batch: int, width: int | None) -> float:
    """Seconds per input."""
    torch, tokenizer = model.torch, model.tokenizer
    begun = time.process_time()
    for low in range(0, len(rows), batch):
        pairs = range(low, min(low + batch, len(rows)))
        made = [tokenizer(rows.question[i], rows.context[i]) for i in pairs]
        size = width or max(len(m["input_ids"]) for m in made)
        tensors = {
            name: torch.tensor([m[name] + [0] * (size - len(m[name])) for m in made])
            for name in ("input_ids", "token_type_ids", "attention_mask")
        }
        with torch.inference_mode():
            out = model.model(**tensors)
            out.start_logits.softmax(-1).numpy(), out.end_logits.softmax(-1).numpy()
    return (time.process_time() - begun) / len(rows)


def asked(model: Any, rows: Any) -> float:
    from evenhand.runner.ask import Ask

    begun = time.process_time()
    Ask(model)(rows)
    return (time.process_time() - begun) / len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--inputs", type=int, default=160)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", default=str(RESULTS))
    options = parser.parse_args()
    import torch

    from evenhand.models.loading.resolver import resolve
    from evenhand.models.protocol import LoadOptions
    from evenhand.probes.underspecified.asking import asking
    from evenhand.probes.underspecified.probe import Underspecified
    from evenhand.requests import Span

    torch.set_num_threads(1)
    model: Any = resolve(options.model, options=LoadOptions(device="cpu"))
    probe = Underspecified()
    design = probe.design("qa", 0)
    lazy = asking("span", probe.manner(probe.lists("qa"), 0)).requests(design)
    drawn = np.random.default_rng(0).choice(len(lazy), options.inputs, replace=False)
    single = [lazy.make(i, i + 1) for i in drawn.tolist()]
    rows = Span(*([getattr(r, c)[0] for r in single] for c in Span.columns))
    n = options.inputs
    ways = {
        "ask": lambda: asked(model, rows),
        "padded_350": lambda: plain_way(model, rows.take(range(max(1, n // 8))), 100, 350),
        "padded_128": lambda: plain_way(model, rows.take(range(max(1, n // 4))), 100, 128),
        "longest": lambda: plain_way(model, rows, 100, None),
        "one_by_one": lambda: plain_way(model, rows.take(range(max(1, n // 8))), 1, None),
    }
    asked(model, rows.take(range(8)))  # warm up
    times = [{name: way() for name, way in ways.items()} for _ in range(options.rounds)]
    best = {name: min(t[name] for t in times) for name in ways}
    result = {
        "model": model.name,
        "threads": model.torch.get_num_threads(),
        "inputs": n,
        "inputs_per_s": {name: round(1 / t, 1) for name, t in best.items()},
        "ask_times": {k: round(t / best["ask"], 2) for k, t in best.items() if k != "ask"},
    }
    print(json.dumps(result, indent=1))
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
