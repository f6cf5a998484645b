"""Ways to compute on a processor: how fast is each, and what does it do to the findings?

    python benchmarks/cpu_ways.py                       smollm2-135m, and minilm-qa where it is
    python benchmarks/cpu_ways.py MODEL [--pairs 4]     another span, masked or causal model

    float32       what is used here
    int8          8-bit linear layers, scaled as they run (torch.ao.quantization.quantize_dynamic)
    int8_careful  the same with a scale for each output, the head and the second layer of every MLP
                  left in float32: what goes into that one holds a few very large numbers, beside
                  which the others vanish in 8 bits
    bfloat16      16-bit weights and arithmetic

Every way answers the same underspecified questions (real UnQover templates, names and occupations)
through `Ask`. Speed: the ways take turns on the questions about one pair of names, on one thread in
processor seconds, which other work on the machine moves least, and on two threads by the clock; the
best of the rounds counts. Findings, from all questions: how far single scores move from float32's,
and how many of the leans (gamma of each occupation) change sign, with the size of those leans.
torch marks quantize_dynamic as deprecated in favour of the separate package torchao.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.unqover_precision import asked, compared

RESULTS = Path(__file__).parent / "results" / "cpu_ways.json"
SHARED = os.environ.get("EVENHAND_SHARED") or Path(__file__).resolve().parents[2] / "shared"
WAYS = ("float32", "int8", "int8_careful", "bfloat16")
TIMED = ("nurse", "pilot", "doctor", "hunter", "dancer", "judge")


def made(name: str, way: str) -> Any:
    from evenhand.models.loading.resolver import resolve
    from evenhand.models.protocol import LoadOptions

    dtype = "bfloat16" if way == "bfloat16" else "float32"
    model: Any = resolve(name, options=LoadOptions(device="cpu", dtype=dtype))
    if way.startswith("int8"):
        eight_bit(model, careful=way == "int8_careful")
    return model


def eight_bit(model: Any, *, careful: bool) -> None:
    """Replace the linear layers by 8-bit ones, all or those that bear it."""
    import torch
    from torch.ao.quantization import per_channel_dynamic_qconfig, quantize_dynamic

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not careful:
            model.model = quantize_dynamic(model.model, {torch.nn.Linear}, dtype=torch.qint8)
            return
        trunk = model.model.base_model
        chosen = {
            name: per_channel_dynamic_qconfig
            for name, layer in trunk.named_modules()
            if isinstance(layer, torch.nn.Linear)
            and layer.in_features <= model.model.config.hidden_size
        }
        quantize_dynamic(trunk, chosen, inplace=True)


def measured(name: str, pairs: int, rounds: int, ways: list[str]) -> dict[str, Any]:
    import torch

    from evenhand.probes.underspecified.probe import Underspecified

    models = {way: made(name, way) for way in ways}
    best = timed(models, Underspecified(pairs=2, templates_per_pair=1, attributes=TIMED), rounds)
    torch.set_num_threads(2)
    probe = Underspecified(pairs=pairs, templates_per_pair=1)
    answers = {way: asked(model, probe, 200) for way, model in models.items()}
    full = answers["float32"]
    one, two = best["float32"]
    return {
        "model": Path(name).name,
        "asked_by": full["asked_by"],
        "rows": full["rows"],
        "leans": len(full["leans"]),
        "largest_score": float(np.abs(full["scores"]).max()),
        "two_threads_times_one": round(one / two, 3),
        "ways": [
            {
                "way": way,
                "times_float32": round(one / best[way][0], 3),
                "times_float32_two_threads_by_the_clock": round(two / best[way][1], 3),
                **moved(full, answers[way]),
            }
            for way in ways
        ],
    }


def timed(models: dict[str, Any], probe: Any, rounds: int) -> dict[str, tuple[float, float]]:
    """Of each way the least processor seconds on one thread, and seconds on two threads."""
    import torch

    times: dict[str, dict[int, list[float]]] = {way: {1: [], 2: []} for way in models}
    for number in range(rounds + 1):
        for threads, what in ((1, "cpu_seconds"), (2, "seconds")):
            torch.set_num_threads(threads)
            for way, model in models.items():
                spent = asked(model, probe, 50)[what]
                if number:  # the first round warms up
                    times[way][threads].append(spent)
    for way, found in times.items():
        print(way, {n: [round(t, 2) for t in all_of] for n, all_of in found.items()}, flush=True)
    return {way: (min(found[1]), min(found[2])) for way, found in times.items()}


def moved(full: Any, answer: Any) -> dict[str, Any]:
    """What a way does to scores and leans, against float32."""
    against = compared(full, answer)
    changed = against["leans"]["signs_changed"]
    sizes = [abs(full["leans"][n]["gamma"]) for n in changed]
    return {
        "score_difference": against["score_difference"],
        "signs_changed": len(changed),
        "signs_changed_of_detected": sum(full["leans"][n]["q"] <= 0.05 for n in changed),
        "largest_lean_that_changed_sign": max(sizes, default=0.0),
        "largest_lean": against["leans"]["largest_lean"],
        "detected": against["leans"]["detected"],
        "verdicts_changed": len(against["leans"]["verdicts_changed"]),
        "rank_correlation": against["leans"]["rank_correlation"],
    }


def instructions() -> list[str]:
    """Which fast instructions for 8 and 16 bits the processor has: they decide the ratios."""
    file = Path("/proc/cpuinfo")
    flags = set(file.read_text().split()) if file.is_file() else set()
    wanted = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16")
    return [flag for flag in wanted if flag in flags]


def here() -> list[tuple[str, int]]:
    """The models that are at hand, with the pairs of names each is asked about."""
    small = Path(SHARED) / "models" / "minilm-qa"
    return [("smollm2-135m", 4), *([(str(small), 12)] if small.is_dir() else [])]


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?")
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--json", default=str(RESULTS))
    options = parser.parse_args()
    ways = list(dict.fromkeys(["float32", *options.ways]))
    chosen = [(options.model, 4)] if options.model else here()
    models = [measured(m, options.pairs or pairs, options.rounds, ways) for m, pairs in chosen]
    result = {
        "torch": torch.__version__,
        "instructions": instructions(),
        "engine": torch.backends.quantized.engine,
        "models": models,
    }
    print(json.dumps(result, indent=1))
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
