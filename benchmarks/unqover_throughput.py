"""How fast underspecified questions are asked: a span model of BERT-base size, random weights.

    python benchmarks/unqover_throughput.py --tokenizer DIR           # on a GPU: BERT-base size
    python benchmarks/unqover_throughput.py --tokenizer DIR --tiny    # on a CPU, to try it out

Prints one JSON object: the bf16 (CPU: float32) matrix rate measured here, questions per second
through `ask` and for the model alone, the share of the matrix rate in useful work (padding not
counted), the one-example-at-a-time and the plain padded-batch ways, and how long the device waits
for tokenising.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np


def matrix_rate(torch: Any, device: str, dtype: Any, size: int) -> float:
    """FLOP/s of a square product of random matrices, best of five."""
    a = torch.randn(size, size, device=device, dtype=dtype)
    b = torch.randn(size, size, device=device, dtype=dtype)
    best = 0.0
    for _ in range(6):
        wait(torch, device)
        begun = time.perf_counter()
        for _ in range(4):
            a @ b
        wait(torch, device)
        best = max(best, 4 * 2 * size**3 / (time.perf_counter() - begun))
    return best


def wait(torch: Any, device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def checkpoint(folder: Path, tokenizer_from: str, tiny: bool) -> str:
    """A span model with random weights and a real tokenizer."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(tokenizer_from)
    size = {
        "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 512,
    }  # fmt: skip
    config = transformers.BertConfig(vocab_size=len(tokenizer), **(size if tiny else {}))
    torch.manual_seed(0)
    transformers.BertForQuestionAnswering(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def flops_per_token(config: Any, length: float) -> float:
    """Multiply-adds of the encoder per token, twice; attention over `length` tokens."""
    h, layers, inner = config.hidden_size, config.num_hidden_layers, config.intermediate_size
    return 2.0 * layers * (4 * h * h + 2 * h * inner + 2 * length * h)


def naive(model: Any, texts: list[tuple[str, str]], batch: int) -> float:
    """Questions per second the plain way: pairs tokenised together, padded, in given order."""
    torch = model.torch
    begun = time.perf_counter()
    for low in range(0, len(texts), batch):
        part = texts[low : low + batch]
        made = model.tokenizer(
            [q for q, _ in part], [c for _, c in part], padding=True, return_tensors="pt"
        ).to(model.device)
        with torch.inference_mode():
            out = model.model(**made)
            out.start_logits.softmax(-1).cpu(), out.end_logits.softmax(-1).cpu()
    return len(texts) / (time.perf_counter() - begun)


def pipeline(model: Any, pieces: list[Any]) -> tuple[float, float]:
    """Seconds for all pieces with tokenising one ahead, and the share spent waiting for it."""
    waited, begun = 0.0, time.perf_counter()
    with ThreadPoolExecutor(1) as ahead:
        pending = ahead.submit(model.prepare, pieces[0])
        for i, piece in enumerate(pieces):
            asked = time.perf_counter()
            ready = pending.result()
            waited += time.perf_counter() - asked
            if i + 1 < len(pieces):
                pending = ahead.submit(model.prepare, pieces[i + 1])
            model.answer(piece, ready)
    total = time.perf_counter() - begun
    return total, waited / total


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--model", default="", help="a span checkpoint instead of random weights")
    parser.add_argument("--tokenizer", required=True, help="a folder or Hub id with a tokenizer")
    parser.add_argument("--cells", type=int, default=0)
    parser.add_argument("--budget", type=int, default=0)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    import torch

    from evenhand.models.adapters.span import SpanModel
    from evenhand.models.protocol import LoadOptions
    from evenhand.probes.underspecified.asking import asking
    from evenhand.probes.underspecified.probe import Underspecified
    from evenhand.runner.ask import Ask

    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    facts: dict[str, Any] = {"device": device, "torch": torch.__version__}
    if device == "cuda":
        facts["name"] = torch.cuda.get_device_name()
    side = 8192 if device == "cuda" else 1024
    facts["matrix_tflops"] = matrix_rate(torch, device, dtype, side) / 1e12
    with tempfile.TemporaryDirectory() as folder:
        source = options.model or checkpoint(
            Path(folder) / "model", options.tokenizer, options.tiny
        )
        model = SpanModel(source, "random", LoadOptions(token_budget=options.budget or None))
    if options.compile:
        model.model = torch.compile(model.model, dynamic=True)
    probe = Underspecified()
    design = probe.design("qa", 0)
    way = asking("span", probe.manner(probe.lists("qa"), 0))
    cells = options.cells or (65_536 if device == "cuda" else 512)
    requests = way.requests(design, 0, cells)
    step = 32_768 if device == "cuda" else 512
    starts = range(0, len(requests), step)
    pieces = [requests.make(low, min(low + step, len(requests))) for low in starts]
    warm = pieces[0]
    model.answer(warm, model.prepare(warm))
    tokens = sum(int(b.lengths.sum()) for b in model.prepare(warm).batches) / len(warm)
    work = tokens * flops_per_token(model.model.config, tokens)
    n = len(requests)
    facts |= {"inputs": n, "tokens_per_input": tokens, "gflop_per_input": work / 1e9}
    wait(torch, device)
    total, waited = pipeline(model, pieces)
    facts |= {"pipeline_inputs_per_s": n / total, "share_waiting_for_tokens": waited}
    facts["pipeline_share_of_matrix_rate"] = n / total * work / 1e12 / facts["matrix_tflops"]
    ready = model.prepare(warm)
    wait(torch, device)
    begun = time.perf_counter()
    for _ in range(4):
        model.answer(warm, ready)
    alone = 4 * len(warm) / (time.perf_counter() - begun)
    facts |= {"model_inputs_per_s": alone}
    facts["model_share_of_matrix_rate"] = alone * work / 1e12 / facts["matrix_tflops"]
    begun = time.perf_counter()
    Ask(model, shard_rows=step)(requests)
    facts["ask_inputs_per_s"] = n / (time.perf_counter() - begun)
    facts["ask_share_of_matrix_rate"] = (
        facts["ask_inputs_per_s"] * work / 1e12 / facts["matrix_tflops"]
    )
    some = list(zip(warm.question, warm.context))
    pick = np.random.default_rng(0).permutation(len(some))
    few = [some[i] for i in pick[: 400 if device == "cuda" else 100]]
    many = [some[i] for i in pick[: 8_000 if device == "cuda" else 512]]
    facts["one_by_one_inputs_per_s"] = naive(model, few, 1)
    facts["padded_batches_of_100_inputs_per_s"] = naive(model, many, 100)
    facts["ask_times_one_by_one"] = facts["ask_inputs_per_s"] / facts["one_by_one_inputs_per_s"]
    facts["ask_times_padded_batches"] = (
        facts["ask_inputs_per_s"] / facts["padded_batches_of_100_inputs_per_s"]
    )
    print(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
