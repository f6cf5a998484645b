"""How much of the device's matrix rate do span, option and mask scoring reach?

    python benchmarks/device_rate.py                 BERT-base size, random weights, on the GPU
    python benchmarks/device_rate.py --tiny          a small check of the script itself, any machine

Through the public path, `Ask(model, run folder)`: making texts, keys, tokenising, uploads, passes,
downloads, checks, and every shard with its questions written and synced to disk. All inputs have 24
tokens. The matrix rate is measured in the same process just before: large bfloat16 products of
random numbers. Work is counted as 2 x parameters of the trunk's products x tokens, padding left
out, plus attention; the vocabulary head is counted for mask scoring. `device_waits` is the share of
the time in which the device does less than it would with inputs that are ready: 1 - (time of the
passes alone, on tokenised inputs) / (time of the whole).
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

from evenhand.models.loading.resolver import resolve
from evenhand.models.protocol import LoadOptions
from evenhand.requests import MASK, LazyRequests, MaskScore, Option, Requests, Span
from evenhand.runner.ask import Ask

RESULTS = Path(__file__).parent / "results" / "device_rate.json"
NAMES = [f"name{i}" for i in range(160)]
JOBS = [f"job{i}" for i in range(60)]


def vocabulary(size: int) -> list[str]:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = [*"a the lives in same city with who was can never be of to and .".split(), "?", ","]
    known = special + words + NAMES + JOBS
    return known + [f"word{i}" for i in range(size - len(known))]


def tokenizer_of(words: list[str]) -> Any:
    """A word-level tokenizer with BERT's special tokens."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    backend = Tokenizer(models.WordPiece({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def checkpoint(kind: str, folder: Path, tiny: bool) -> str:
    """A random checkpoint of BERT-base size with a word-level vocabulary of 30,522 pieces."""
    import torch
    import transformers

    words = vocabulary(400 if tiny else 30_522)
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
    tokenizer_of(words).save_pretrained(folder)
    return str(folder)


def requests(kind: str, size: int) -> LazyRequests:
    """Inputs of 24 tokens: every pair of names meets every job; mask and option take two rows."""
    pairs = [(a, b) for a in NAMES for b in NAMES if a != b]
    contexts = [f"{a} lives in the same city with {b} ." for a, b in pairs]
    asked = {
        "span": [f"who was can never be a {job} of the city in ?" for job in JOBS],
        "masked": [f"{MASK} was can never be a {job} in the same city with ." for job in JOBS],
        "choice": [f"who was can never be a {job} ?" for job in JOBS],
    }[kind]
    rows = 1 if kind == "span" else 2

    def make(start: int, stop: int) -> Requests:
        number = np.arange(start // rows, -(-stop // rows))
        which = (number // len(JOBS)).tolist()
        questions = [asked[j] for j in (number % len(JOBS)).tolist()]
        if kind == "span":
            firsts, seconds = zip(*[pairs[p] for p in which])
            return Span(questions, [contexts[p] for p in which], firsts, seconds)
        texts = [f"{contexts[p]} {q}" for p, q in zip(which, questions) for _ in range(2)]
        names = [name for p in which for name in pairs[p]]
        if kind == "masked":
            return MaskScore(texts, names)
        return Option(texts, [f"{name} was a word7" for name in names])

    types: dict[str, type[Requests]] = {"span": Span, "masked": MaskScore, "choice": Option}
    return LazyRequests(types[kind], size * rows, make, group=rows, distinct=True)


def matrix_rate(torch: Any, device: str, tiny: bool) -> float:
    """FLOP/s of bfloat16 products of 8192 x 8192, best of several rounds."""
    n = 512 if tiny else 8192
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    a, b = (torch.randn(n, n, device=device, dtype=dtype) for _ in range(2))
    best = 0.0
    for _ in range(3 if tiny else 10):
        begun = time.perf_counter()
        for _ in range(5):
            a @ b
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


def measure(
    kind: str, size: int, tiny: bool, device: str, rate: float, dtype: str | None
) -> dict[str, Any]:
    import torch

    with tempfile.TemporaryDirectory() as scratch:
        options = LoadOptions(dtype="float32" if device == "cpu" else dtype, device=device)
        model: Any = resolve(checkpoint(kind, Path(scratch) / "model", tiny), options=options)
        lazy = requests(kind, size)
        sample = lazy.make(0, min(len(lazy), 2_000))
        inputs, lengths = distinct_inputs(model, kind, sample)
        total = inputs / len(sample) * len(lazy)
        Ask(model)(requests(kind, min(size, 32_768)))  # warm up
        alone = passes_alone(torch, model, lazy, min(len(lazy), 131_072))
        wait(torch, device)
        begun = time.perf_counter()
        scores = Ask(model, Path(scratch) / "run")(lazy)
        spent = time.perf_counter() - begun
        single = one_by_one(torch, model, sample, inputs / len(sample))
    heads = int(total) if kind == "masked" else 0
    flops = work_of(model, np.full(int(total), lengths.mean()), heads)
    first = next(iter(scores.columns))
    return {
        "kind": kind,
        "dtype": model.dtype,
        "rows": len(lazy),
        "inputs": int(total),
        "tokens_per_input": round(float(lengths.mean()), 1),
        "seconds": round(spent, 3),
        "inputs_per_s": round(total / spent),
        "tflops": round(flops / spent / 1e12, 2),
        "share_of_matrix_rate": round(flops / spent / rate, 4),
        "passes_alone_share_of_matrix_rate": round(flops / len(lazy) / alone / rate, 4),
        "device_waits": round(max(0.0, 1 - alone * len(lazy) / spent), 4),
        "times_one_by_one": round(single / (spent / total), 1),
        "checksum": round(float(np.nansum(scores[first])), 4),
    }


def passes_alone(torch: Any, model: Any, lazy: LazyRequests, rows: int) -> float:
    """Seconds per row with everything tokenised before the clock starts."""
    step = min(rows, 65_536)
    pieces = [lazy.make(low, low + step) for low in range(0, rows - step + 1, step)]
    ready = [model.prepare(piece) for piece in pieces]
    begun = time.perf_counter()
    waiting = [model.begin(piece, prepared) for piece, prepared in zip(pieces, ready)]
    for finish in waiting:
        finish()
    return (time.perf_counter() - begun) / (step * len(pieces))


def one_by_one(torch: Any, model: Any, sample: Requests, inputs_per_row: float) -> float:
    """Seconds per input when each is tokenised and passed alone."""
    step = max(1, round(1 / inputs_per_row))
    starts = range(0, 128 * step, step)
    begun = time.perf_counter()
    for low in starts:
        one = sample.take(range(low, low + step))
        model.answer(one, model.prepare(one))
    wait(torch, model.device)
    return (time.perf_counter() - begun) / len(starts)


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
    parser.add_argument("--inputs", type=int, default=600_000)
    parser.add_argument("--json", default=str(RESULTS))
    parser.add_argument("--kinds", default="span,choice,masked")
    parser.add_argument("--dtype", help="of the model; without: what a run would choose")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = 2_000 if options.tiny else options.inputs
    rate = matrix_rate(torch, device, options.tiny)
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    table = [
        measure(kind, rows, options.tiny, device, rate, options.dtype)
        for kind in options.kinds.split(",")
    ]
    result = {"device": name, "matrix_tflops": round(rate / 1e12, 1), "rows": table}
    print(json.dumps(result, indent=1))
    if not options.tiny:
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
