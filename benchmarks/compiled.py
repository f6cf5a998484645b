"""Does `torch.compile` pay? Plain against compiled scoring, same process, same questions.

    python benchmarks/compiled.py                        on the GPU where there is one, else here
    python benchmarks/compiled.py --device cpu --tiny    a small check of the script itself

Span, mask and option scoring with BERT-base size and random weights, inputs of 24 tokens, and a
causal model of SmolLM2's size (`smollm2-135m` where it has been fetched, else random weights), all
through `Ask(model)`. Ways to compile:

    layers            each layer, so that one compilation serves all; dynamic=None, torch's default:
                      the first shape for itself, from the second on one for all
    layers_per_shape  each layer, dynamic=False: compiled anew for every shape of a batch
    trunk             the whole trunk at once, dynamic=True

The head is left as it is: which of its positions are wanted differs from batch to batch, and
a compiled one would be compiled anew each time. `compile_s` is what the first round takes longer
than a later one; what an earlier cell of the same run compiled is found again where the next one
needs the same. After it the two ways take turns; the best of the rounds counts. On a processor one
thread is used and `ratio_of_processor_seconds` is the number to go by: other work on the machine
moves it least. `order_moves_scores_by`: the same questions asked in parts of three sizes, once from
the smallest to the largest and once the other way round, each time compiled anew; where it is not
0, a run that was resumed would not end with the bytes of one that was not. A cell that would begin
after `--limit` seconds is not started, and is named.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.device_rate import checkpoint, requests, tokenizer_of, vocabulary

from evenhand.models.loading.compiling import stack_of
from evenhand.models.loading.fetch import PACKAGES
from evenhand.models.loading.resolver import resolve
from evenhand.models.protocol import LoadOptions
from evenhand.runner.ask import Ask

RESULTS = Path(__file__).parent / "results"
CAUSAL = "smollm2-135m"
SMOLLM2 = {
    "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
    "num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 49_152,
}  # fmt: skip
TINY = {
    "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2,
    "num_attention_heads": 3, "num_key_value_heads": 1, "vocab_size": 400,
}  # fmt: skip
WAYS: dict[str, bool | None] = {"layers": None, "layers_per_shape": False, "trunk": True}
CELLS: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "cuda": [
        ("causal", ("layers",)),
        ("span", ("layers",)),
        ("masked", ("layers",)),
        ("choice", ("layers",)),
        ("span", ("layers_per_shape",)),
    ],
    "cpu": [("span", ("layers",)), ("causal", ("layers",)), ("span", ("trunk",))],
}
"""What is tried by default, the telling ones first, the long compilations last."""


def causal_checkpoint(folder: Path, tiny: bool) -> str:
    import torch
    import transformers

    torch.manual_seed(0)
    size = TINY if tiny else SMOLLM2
    config = transformers.LlamaConfig(**size, tie_word_embeddings=True)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer_of(vocabulary(size["vocab_size"])).save_pretrained(folder)
    return str(folder)


def model_of(kind: str, folder: Path, device: str, tiny: bool, causal: str) -> Any:
    """The model in the precision a run would choose."""
    options = LoadOptions(device=device)
    if kind != "causal":
        return resolve(checkpoint(kind, folder, tiny), options=options)
    if causal == "random" or tiny:
        return resolve(causal_checkpoint(folder, tiny), options=options)
    return resolve(causal, options=options)


@contextlib.contextmanager
def put_in(modules: list[Any], forwards: list[Callable[..., Any]]) -> Iterator[None]:
    """Inside: the modules run these forwards; hooks (only the asked positions) stay in place."""
    for module, forward in zip(modules, forwards):
        module.forward = forward
    try:
        yield
    finally:
        for module in modules:
            del module.forward


def scored(model: Any, kind: str, size: int) -> tuple[float, float, np.ndarray]:
    """Seconds by the clock, processor seconds, and the scores."""
    rows = requests("choice" if kind == "causal" else kind, size)
    begun = time.perf_counter(), time.process_time()
    scores = Ask(model)(rows)
    spent = time.perf_counter() - begun[0], time.process_time() - begun[1]
    return *spent, np.asarray(scores[next(iter(scores.columns))])


def size_for(model: Any, kind: str, seconds: float, first: int) -> int:
    """How many questions the plain way answers in about that time on a quiet machine."""
    scored(model, kind, first)
    clock, work, _ = scored(model, kind, first)
    return max(16, round(first * seconds / (clock if model.device != "cpu" else work)))


def shapes_of(model: Any, kind: str, size: int) -> int:
    """How many shapes of batches the questions make."""
    seen = set()

    def note(module: Any, inputs: Any, named: Any) -> None:
        ids = named.get("input_ids", inputs[0] if inputs else None)
        seen.add(tuple(ids.shape))

    handle = model.model.base_model.register_forward_pre_hook(note, with_kwargs=True)
    scored(model, kind, size)
    handle.remove()
    return len(seen)


def cell(model: Any, kind: str, way: str, size: int, rounds: int) -> dict[str, Any]:
    import torch

    torch._dynamo.reset()
    trunk = model.model.base_model
    modules = [trunk] if way == "trunk" else stack_of(torch, model.model)
    forwards = [torch.compile(module.forward, dynamic=WAYS[way]) for module in modules]
    with put_in(modules, forwards):
        first, _, _ = scored(model, kind, size)
    times: dict[str, list[tuple[float, float]]] = {"plain": [], "compiled": []}
    scores = {}
    for _ in range(rounds):
        *spent, scores["plain"] = scored(model, kind, size)
        times["plain"].append(tuple(spent))
        with put_in(modules, forwards):
            *spent, scores["compiled"] = scored(model, kind, size)
        times["compiled"].append(tuple(spent))
    clock, work = ({k: min(t[i] for t in v) for k, v in times.items()} for i in range(2))
    return {
        "kind": kind,
        "way": way,
        "dtype": model.dtype,
        "questions": size,
        "plain_s": round(clock["plain"], 3),
        "compiled_s": round(clock["compiled"], 3),
        "ratio": round(clock["plain"] / clock["compiled"], 3),
        "ratio_of_processor_seconds": round(work["plain"] / work["compiled"], 3),
        "compile_s": round(first - clock["compiled"], 1),
        "largest_difference": float(np.nanmax(np.abs(scores["plain"] - scores["compiled"]))),
        "largest_score": float(np.nanmax(np.abs(scores["plain"]))),
    }


def moved_by_order(model: Any, kind: str, way: str, size: int) -> dict[str, float]:
    """How far scores lie apart when parts of three sizes come in the other order."""
    import torch

    sizes = [max(2, size // 23), max(3, size // 5), max(4, size // 2)]
    trunk = model.model.base_model
    modules = [trunk] if way == "trunk" else stack_of(torch, model.model)
    found: dict[str, float] = {}
    for compiled in (False, True):
        scores: list[dict[int, np.ndarray]] = []
        for order in (sizes, sizes[::-1]):
            torch._dynamo.reset()
            make = torch.compile if compiled else (lambda forward, dynamic: forward)
            forwards = [make(module.forward, dynamic=WAYS[way]) for module in modules]
            with put_in(modules, forwards):
                scores.append({part: scored(model, kind, part)[2] for part in order})
        apart = max(float(np.nanmax(np.abs(scores[0][n] - scores[1][n]))) for n in sizes)
        found["compiled" if compiled else "plain"] = apart
    return found


def chosen(options: argparse.Namespace) -> list[tuple[str, tuple[str, ...]]]:
    """The default cells, or every named way of every named kind."""
    default = CELLS[options.device.split(":")[0]]
    if not (options.kinds or options.ways):
        return default
    kinds = options.kinds or list(dict.fromkeys(kind for kind, _ in default))
    return [(kind, tuple(options.ways or WAYS)) for kind in kinds]


def measured(options: argparse.Namespace) -> dict[str, Any]:
    import torch

    begun = time.perf_counter()
    torch.set_num_threads(options.threads)
    cuda = options.device.startswith("cuda")
    first = 32_768 if cuda and not options.tiny else 32
    cells, left = [], []
    for kind, kept in chosen(options):
        if time.perf_counter() - begun > options.limit:
            left += [f"{kind}, {way}" for way in kept]
            continue
        with tempfile.TemporaryDirectory() as scratch:
            model = model_of(kind, Path(scratch), options.device, options.tiny, options.causal)
        size = size_for(model, kind, options.seconds, first)
        shapes = shapes_of(model, kind, size)
        for way in kept:
            if time.perf_counter() - begun > options.limit:
                left.append(f"{kind}, {way}")
                continue
            try:
                row = cell(model, kind, way, size, options.rounds)
                row["order_moves_scores_by"] = moved_by_order(model, kind, way, size)
            except Exception as error:  # no compiler, or one that refuses the model
                row = {"kind": kind, "way": way, "failed": str(error).strip().splitlines()[0]}
            cells.append({**row, "shapes": shapes})
            print(json.dumps(cells[-1]), flush=True)
        del model
    return {
        "device": torch.cuda.get_device_name() if cuda else "cpu",
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "causal": "random weights" if options.causal == "random" else options.causal,
        "rounds": options.rounds,
        "cells": cells,
        "not_started": left,
        "seconds": round(time.perf_counter() - begun, 1),
    }


def causal_here() -> str:
    """The packaged model where it has been fetched, else random weights of its size."""
    return CAUSAL if PACKAGES[CAUSAL].ready else "random"


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--seconds", type=float, help="of one plain round in each cell")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, help="seconds after which no cell is started")
    parser.add_argument("--threads", type=int, default=1, help="on a processor")
    parser.add_argument("--kinds", nargs="+", choices=["span", "causal", "masked", "choice"])
    parser.add_argument("--ways", nargs="+", choices=list(WAYS))
    parser.add_argument("--causal", help="a causal model, or `random`")
    parser.add_argument("--json", help="where the result goes; not written with --tiny without it")
    options = parser.parse_args()
    cuda = options.device.startswith("cuda")
    options.seconds = options.seconds or (0.2 if options.tiny else 0.7 if cuda else 3.0)
    options.limit = options.limit or (85.0 if cuda else 200.0)
    options.causal = options.causal or ("random" if options.tiny else causal_here())
    # A cache of its own: what an earlier process compiled would hide what compiling costs.
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
        result = measured(options)
    print(json.dumps(result, indent=1))
    if options.json or not options.tiny:
        default = RESULTS / f"compiled_{'cuda' if cuda else 'cpu'}.json"
        Path(options.json or default).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
