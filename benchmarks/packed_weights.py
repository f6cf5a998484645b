"""A linear layer's product by its weight as it lies, and by the same weight put in order once.

One thread, float32, layers of smollm2-135m and of MiniLM, one row to 512; both ways take turns and
the best of five counts, in processor seconds. `ratio` is how many times as fast the ordered weight
is (`models/loading/packed.py`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "packed_weights.json"
SHAPES = {"smollm2 mlp": (576, 1_536), "smollm2 head": (576, 49_152), "minilm mlp": (384, 1_536)}
ROWS = (1, 16, 64, 256, 512)
WORK = 5e8
"""Multiplications of a round, about."""


def seconds(work: Callable[[], Any], times: int) -> float:
    begun = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - begun) / times


def main() -> None:
    import torch

    from evenhand.models.loading.packed import pack_linears

    torch.set_num_threads(1)
    rows = []
    for name, (width, out) in SHAPES.items():
        plain = torch.nn.Linear(width, out, bias=False)
        ordered = torch.nn.Linear(width, out, bias=False)
        ordered.load_state_dict(plain.state_dict())
        if not pack_linears(torch, ordered):
            raise SystemExit("torch has no oneDNN here: nothing is put in order.")
        for count in ROWS:
            x = torch.randn(1, count, width)
            times = max(3, int(WORK / (count * width * out)))
            best = {"plain": 1e9, "ordered": 1e9}
            with torch.inference_mode():
                gap = float((plain(x) - ordered(x)).abs().max())
                for _ in range(5):
                    for way, layer in (("plain", plain), ("ordered", ordered)):
                        best[way] = min(best[way], seconds(partial(layer, x), times))
            rows.append({
                "layer": name, "rows": count, "ratio": round(best["plain"] / best["ordered"], 2),
                "ordered_gflops": round(2e-9 * count * width * out / best["ordered"], 1),
                "largest_difference": gap,
            })  # fmt: skip
            print(rows[-1], flush=True)
    RESULTS.write_text(json.dumps({"torch": torch.__version__, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
