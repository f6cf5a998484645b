"""How much of the device's matrix rate do span, option and mask scoring reach?

    python benchmarks/device_rate.py                 BERT-base size, random weights, on the GPU
    python benchmarks/device_rate.py --tiny          a small check of the script itself, any machine

The matrix rate is measured in the same process just before: large
bfloat16 products. Work is counted as 2 x parameters of the trunk x tokens, padding left out, plus
attention; the vocabulary head is counted for mask scoring. Baselines on the same inputs: one input
at a time, and float32 batches padded to 128.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from evenhand.models.resolver import resolve
from evenhand.models.transformer import LoadOptions
from evenhand.requests import MASK, LazyRequests, MaskScore, Option, Requests, Span
from evenhand.runner.ask import Ask

RESULTS = Path(__file__).parent / "results" / "device_rate.json"
NAMES = [f"name{i}" for i in range(60)]
JOBS = [f"job{i}" for i in range(60)]


def vocabulary(size: int) -> list[str]:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = [*"a the lives in same city with who was can never be of to and .".split(), "?", ","]
    known = special + words + NAMES + JOBS
    return known + [f"word{i}" for i in range(size - len(known))]


def checkpoint(kind: str, folder: Path, tiny: bool) -> str:
    """A random checkpoint of BERT-base size with a word-level vocabulary of 30,522 pieces."""
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = vocabulary(400 if tiny else 30_522)
    backend = Tokenizer(models.WordPiece({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
    size = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
            "intermediate_size": 128} if tiny else {}  # fmt: skip
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=len(words), num_labels=2, **size)
    model = {
        "span": transformers.BertForQuestionAnswering,
        "choice": transformers.BertForMultipleChoice,
        "masked": transformers.BertForMaskedLM,
    }[kind](config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def requests(kind: str, size: int) -> LazyRequests:
    """About 24 tokens an input; two rows (candidates) share an input for span and mask."""

    def pick(row: int) -> tuple[str, str, str]:
        return NAMES[row % 60], NAMES[(row // 60 + 1 + row % 59) % 60], JOBS[(row // 3600) % 60]

    def make(start: int, stop: int) -> Requests:
        rows = [pick(i // 2) for i in range(start, stop)]
        contexts = [f"{a} lives in the same city with {b} ." for a, b, _ in rows]
        sides = [(i % 2) for i in range(start, stop)]
        who = [(a, b)[s] for (a, b, _), s in zip(rows, sides)]
        other = [(b, a)[s] for (a, b, _), s in zip(rows, sides)]
        asked = [f"who was can never be a {job} of the city ?" for _, _, job in rows]
        if kind == "span":
            return Span(asked, contexts, who, other)
        if kind == "masked":
            return MaskScore(
                [f"{c} {MASK} was can never be a {j} in the same city ." for c, (_, _, j)
                 in zip(contexts, rows)], who,
            )  # fmt: skip
        return Option(
            [f"{c} {q}" for c, q in zip(contexts, asked)],
            [f"{w} was a word{i % 50}" for i, w in zip(range(start, stop), who)],
        )

    types: dict[str, type[Requests]] = {"span": Span, "masked": MaskScore, "choice": Option}
    return LazyRequests(types[kind], size, make, group=2)


def matrix_rate(torch: Any, device: str, tiny: bool) -> float:
    """FLOP/s of bfloat16 products of 8192 x 8192, best of several rounds."""
    n = 512 if tiny else 8192
    a = torch.randn(n, n, device=device, dtype=torch.bfloat16)
    best = 0.0
    for _ in range(3 if tiny else 10):
        begun = time.perf_counter()
        for _ in range(5):
            a @ a
        wait(torch, device)
        best = max(best, 5 * 2 * n**3 / (time.perf_counter() - begun))
    return best


def wait(torch: Any, device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def work_of(model: Any, lengths: np.ndarray, heads: int) -> float:
    """FLOPs: the trunk's products and attention over real tokens, and the head where asked."""
    config = model.model.config
    trunk = sum(
        p.numel() for n, p in model.model.base_model.named_parameters()
        if p.ndim == 2 and "embeddings" not in n
    )  # fmt: skip
    attention = 4.0 * config.num_hidden_layers * config.hidden_size * float((lengths**2).sum())
    head = 2.0 * heads * config.hidden_size * (config.vocab_size + config.hidden_size)
    return 2.0 * trunk * float(lengths.sum()) + attention + head


def measure(kind: str, rows: int, tiny: bool, device: str, rate: float) -> dict[str, Any]:
    import torch

    with tempfile.TemporaryDirectory() as scratch:
        folder = checkpoint(kind, Path(scratch), tiny)
        dtype = "float32" if device == "cpu" else "bfloat16"
        model: Any = resolve(folder, options=LoadOptions(dtype=dtype, device=device))
    lazy = requests(kind, rows)
    ask = Ask(model)
    warm = lazy.make(0, min(rows, 8_192))
    ask(warm)
    wait(torch, device)
    begun = time.perf_counter()
    scores = ask(lazy)
    wait(torch, device)
    spent = time.perf_counter() - begun
    sample = lazy.make(0, 2_000 if rows > 2_000 else rows)
    inputs, lengths = distinct_inputs(model, kind, sample)
    total = inputs / len(sample) * rows
    heads = int(total) if kind == "masked" else 0
    flops = work_of(model, np.full(int(total), lengths.mean()), heads)
    ones = sample.take(range(min(128, len(sample))))
    begun = time.perf_counter()
    for i in range(0, len(ones), 2):
        model.answer(ones.take([i, i + 1]), model.prepare(ones.take([i, i + 1])))
    wait(torch, device)
    single = (time.perf_counter() - begun) / (len(ones) / 2 if kind != "choice" else len(ones))
    first = next(iter(scores.columns))
    return {
        "kind": kind,
        "rows": rows,
        "inputs": int(total),
        "tokens_per_input": round(float(lengths.mean()), 1),
        "seconds": round(spent, 3),
        "inputs_per_s": round(total / spent),
        "tflops": round(flops / spent / 1e12, 2),
        "share_of_matrix_rate": round(flops / spent / rate, 4),
        "times_one_by_one": round(single / (spent / total), 1),
        "checksum": round(float(np.nansum(scores[first])), 4),
    }


def distinct_inputs(model: Any, kind: str, sample: Requests) -> tuple[int, np.ndarray]:
    """How many forward inputs the sample needs, and their lengths in tokens."""
    shared = [sample.columns.index(c) for c in sample.shared]
    if kind == "choice":
        shared = list(range(len(sample.columns)))
    keys = list(dict.fromkeys(tuple(row[c] for c in shared) for row in sample.rows()))
    if kind == "masked":
        texts = [key[0].replace(MASK, "[MASK]") for key in keys]
        encoded = model.tokenizer(texts)["input_ids"]
    else:
        encoded = model.tokenizer([k[0] for k in keys], [k[1] for k in keys])["input_ids"]
    return len(keys), np.asarray([len(ids) for ids in encoded], dtype=float)


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--kinds", default="span,choice,masked")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = 2_000 if options.tiny else options.rows
    rate = matrix_rate(torch, device, options.tiny)
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    table = [measure(kind, rows, options.tiny, device, rate) for kind in options.kinds.split(",")]
    result = {"device": name, "matrix_tflops": round(rate / 1e12, 1), "rows": table}
    print(json.dumps(result, indent=1))
    if not options.tiny:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
