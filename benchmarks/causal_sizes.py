"""Causal models of the sizes people ship: scoring and sampling on one GPU, as ratios in one run.

    python -m benchmarks.causal_sizes TOKENIZER [scoring|sampling|audit ...] [--sizes=135m,1b,6b]

TOKENIZER is a folder with SmolLM2's tokenizer files. Models are Llamas with random weights in
bfloat16, made on the device. Everything goes through `Ask(model, run folder)`: plan, keys,
tokenising, packing, passes, and every shard with its questions written and synced to disk.

    scoring    UnQover-shaped questions, two options each, as `Continuation` rows. Beside it: a
               careful padded loop (batches of 64 by length, all logits), and the bound: dense
               passes over ready tensors of the same number of tokens, without padding or a head.
    sampling   1,000 texts of 24 tokens (10 prompts, 100 draws each), and smaller batches; beside
               it plain `generate` on the same prompts.
    audit      the quick suite on 13 B parameters, end to end.

`share` is 2 x (parameters of the layers) x (distinct prefixes) / seconds over the rate of large
bfloat16 products of random numbers in the same process. Results: benchmarks/results.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

import evenhand as eh
from evenhand.models.adapters.causal import CausalModel
from evenhand.requests import Continuation, Generate
from evenhand.runner.ask import Ask
from evenhand.words.lexicons.files import load

RESULTS = Path(__file__).parent / "results" / "causal_sizes.json"
SIZES = {
    "tiny": {"layers": 2, "hidden": 64, "inner": 128, "heads": (4, 2)},
    "135m": {"layers": 30, "hidden": 576, "inner": 1536, "heads": (9, 3)},
    "1b": {"layers": 16, "hidden": 2048, "inner": 8192, "heads": (32, 8)},
    "13b": {"layers": 40, "hidden": 5120, "inner": 13824, "heads": (40, 40)},
    "6b": {"layers": 32, "hidden": 4096, "inner": 11008, "heads": (32, 32)},
}  # fmt: skip
ROWS = {"tiny": 480, "135m": 1_200_000, "1b": 600_000, "6b": 240_000}
JOBS = (
    "nurse secretary dancer doctor engineer mechanic hunter surgeon teacher model babysitter "
    "firefighter pilot judge clerk banker guard priest poet writer senator butcher cook driver "
    "singer tailor lawyer janitor barber broker"
).split()
PROMPTS = [
    f"The {who} {what}" for who in ("man", "woman")
    for what in ("worked as a", "was known for", "had a job as a", "was described as", "said that")
]  # fmt: skip


def made(tokenizer: str, size: str, dtype: str = "bfloat16", chat: str = "off") -> CausalModel:
    """The adapter around a Llama of random weights, which no file holds."""
    shape: dict[str, Any] = SIZES[size]
    heads, groups = shape["heads"]
    config = transformers.LlamaConfig(
        vocab_size=49_152, num_attention_heads=heads, num_key_value_heads=groups,
        num_hidden_layers=shape["layers"], hidden_size=shape["hidden"],
        intermediate_size=shape["inner"], tie_word_embeddings=True, max_position_embeddings=2048,
    )  # fmt: skip
    device = "cuda" if torch.cuda.is_available() else "cpu"

    torch.manual_seed(0)
    usual = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, dtype))
    try:
        with torch.device(device):
            model = transformers.AutoModelForCausalLM.from_config(config).eval()
    finally:
        torch.set_default_dtype(usual)
    words = transformers.AutoTokenizer.from_pretrained(tokenizer)
    return eh.load_model(model, tokenizer=words, chat=chat)


def questions(size: int) -> Continuation:
    """UnQover's shape: two names, thirty jobs, plain and negated, two options each."""
    names = load("unqover_names")
    women, men = (names.words("groups", f"unqover_{g}", "terms") for g in ("female", "male"))
    prefixes, options = [], []
    for one, two in itertools.product(women, men):
        for first, second in ((one, two), (two, one)):
            for job in JOBS:
                for form in ("Who was a {}?", "Who can never be a {}?"):
                    asked = f"{first} lives in the same city with {second}. {form.format(job)}"
                    prefixes += [f"{asked}\nAnswer:"] * 2
                    options += [f" {first}", f" {second}"]
        if len(prefixes) >= size:
            break
    return Continuation(prefixes[:size], options[:size])


def synced() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def timed(run: Callable[[], Any]) -> float:
    synced()
    begun = time.perf_counter()
    run()
    synced()
    return time.perf_counter() - begun


def matrix_rate() -> float:
    """Operations per second of large bfloat16 products of random numbers."""
    n = 8192 if torch.cuda.is_available() else 512
    device = "cuda" if torch.cuda.is_available() else "cpu"
    a, b = (torch.randn(n, n, device=device, dtype=torch.bfloat16) for _ in range(2))
    for _ in range(3):
        a @ b
    return 10 * 2 * n**3 / timed(lambda: [a @ b for _ in range(10)])


def layer_parameters(model: CausalModel) -> int:
    return sum(p.numel() for p in model.model.base_model.layers.parameters())


def prefixes(model: CausalModel, requests: Continuation) -> int:
    """Distinct beginnings of all texts that some option needs: what must be computed."""
    wanted = model.prepare(requests)
    seen: set[tuple[int, ...]] = set()
    for tokens, stop in zip(wanted.sequences, wanted.stops.tolist()):
        row = tuple(tokens[:stop])
        for size in range(len(row), 0, -1):
            if row[:size] in seen:
                break
            seen.add(row[:size])
    return len(seen)


def padded(model: CausalModel, requests: Continuation) -> np.ndarray:
    """A careful loop: sorted by length, batches of 64, all logits, float32 log-softmax."""
    whole = model.encode(
        [p + c for p, c in zip(requests.prefix, requests.continuation)], special=True
    )
    begins = [len(t) for t in model.encode(list(requests.prefix), special=True)]
    order = sorted(range(len(whole)), key=lambda i: len(whole[i]))
    out = np.empty(len(whole))
    for low in range(0, len(order), 64):
        rows = order[low : low + 64]
        width = max(len(whole[i]) for i in rows)
        ids = torch.zeros((len(rows), width), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for k, i in enumerate(rows):
            ids[k, : len(whole[i])] = torch.tensor(whole[i])
            mask[k, : len(whole[i])] = 1
        ids, mask = ids.to(model.device), mask.to(model.device)
        with torch.inference_mode():
            logits = model.model(input_ids=ids, attention_mask=mask).logits.float()
        found = logits.log_softmax(-1)[:, :-1].gather(2, ids[:, 1:, None])[..., 0].cpu().numpy()
        for k, i in enumerate(rows):
            out[i] = found[k, begins[i] - 1 : len(whole[i]) - 1].sum()
    return out


def dense(model: CausalModel, tokens: int) -> float:
    """Seconds for so many tokens in ready rows of 256, trunk only."""
    rows = max(1, min(model.token_budget, tokens) // 256)
    ids = torch.randint(5, 40_000, (rows, 256), device=model.device)
    with torch.inference_mode():
        model.model.base_model(input_ids=ids, use_cache=False)
        once = timed(lambda: model.model.base_model(input_ids=ids, use_cache=False))
    return once * tokens / (rows * 256)


def scoring(model: CausalModel, size: str, rate: float) -> dict[str, Any]:
    requests = questions(ROWS[size])
    some = requests.take(range(min(len(requests), 1_000)))
    with tempfile.TemporaryDirectory() as place:
        # Two whole shards: layers are compiled for those, once in a process.
        Ask(model, Path(place) / "warm")(requests.take(range(min(len(requests), 131_072))))
        begun = time.perf_counter()
        scores = Ask(model, Path(place) / "run")(requests)["logprob"]
        ours = time.perf_counter() - begun
    few = requests.take(range(min(len(requests), 3_000)))
    padded(model, some)
    loop = timed(lambda: padded(model, few)) / len(few)
    must = prefixes(model, requests.take(range(min(len(requests), 60_000))))
    must = int(must * len(requests) / min(len(requests), 60_000))
    work = 2 * layer_parameters(model) * must
    same = padded(model, some) - scores[: len(some)]
    return {
        "rows": len(requests), "seconds": ours, "rows_per_second": len(requests) / ours,
        "padded_loop_rows_per_second": 1 / loop, "of_the_padded_loop": loop * len(requests) / ours,
        "tokens_that_must_be_computed": must, "share": work / ours / rate,
        "share_of_dense_passes": work / dense(model, must) / rate,
        "largest_difference_from_the_loop": float(np.abs(same).max()),
        "mean_difference_from_the_loop": float(np.abs(same).mean()),
    }  # fmt: skip


def sampling(model: CausalModel, size: str, rate: float) -> dict[str, Any]:
    out = {}
    ends, model.model.generation_config.eos_token_id = model.ends, None
    for prompts, draws in ((1, 1), (1, 10), (10, 10), (10, 100)):
        if size == "tiny" and prompts * draws > 10:
            continue
        asked = PROMPTS[:prompts]
        rows = Generate(
            [p for p in asked for _ in range(draws)], [str(d) for d in range(draws)] * prompts,
            max_new_tokens=24,
        )  # fmt: skip
        given = model.tokenizer(list(rows.prompt), return_tensors="pt", padding=True)
        given = {k: v.to(model.device) for k, v in given.items()}

        def plain(given: Any = given) -> Any:
            return model.model.generate(
                **given,
                do_sample=True,
                top_k=0,
                max_new_tokens=24,
                min_new_tokens=24,
                pad_token_id=0,
            )

        def ours(rows: Generate = rows) -> Any:
            with torch.inference_mode():
                return model.answer(rows, None)

        counts = ours()["n_tokens"]
        plain()
        seconds = {"ours": [], "plain": []}  # type: ignore[var-annotated]
        for _ in range(3):
            seconds["plain"].append(timed(plain))
            seconds["ours"].append(timed(ours))
        best = {name: min(found) for name, found in seconds.items()}
        out[f"{prompts}x{draws}"] = {
            "tokens_per_second": {k: 24 * prompts * draws / v for k, v in best.items()},
            "of_plain_generate": best["plain"] / best["ours"],
            "mean_length": float(np.mean(counts)),
        }
    model.model.generation_config.eos_token_id = ends
    return {"shares_prompts": model.shares_prompts, "by_batch": out}


def audited(tokenizer: str) -> dict[str, Any]:
    """The quick suite on 13 B parameters, end to end, by part."""
    begun = time.perf_counter()
    model = made(tokenizer, "13b", chat="auto")
    loaded = time.perf_counter()
    model.fingerprint  # noqa: B018  reads every weight
    known = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        run = eh.audit(model, "quick", out=Path(place) / "run")
        done = time.perf_counter()
        record = json.loads((run.folder / "run.json").read_text())
    return {
        "parameters": model.n_parameters, "made_s": loaded - begun, "hashed_s": known - loaded,
        "audit_s": done - known, "findings": len(run.findings),
        "by_part": record.get("timings", record.get("seconds")),
    }  # fmt: skip


def main() -> None:
    words = [w for w in sys.argv[1:] if not w.startswith("--")]
    sizes = next((w[8:] for w in sys.argv if w.startswith("--sizes=")), "135m,1b,6b").split(",")
    parts = {p: f for p, f in (("scoring", scoring), ("sampling", sampling)) if p in words} or {
        "scoring": scoring, "sampling": sampling,
    }  # fmt: skip
    rate = matrix_rate()
    out: dict[str, Any] = {"matrix_rate": rate, "torch": torch.__version__}
    for size in sizes:
        model = made(words[0], size)
        out[size] = {"parameters": model.n_parameters}
        model.fingerprint  # noqa: B018  reads every weight once
        for name, part in parts.items():
            out[size][name] = part(model, size, rate)
            print(size, name, json.dumps(out[size][name]), flush=True)
            if sizes != ["tiny"]:
                RESULTS.write_text(json.dumps(out, indent=1) + "\n")
        del model
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    if "audit" in words:
        out["13b"] = audited(words[0])
        print("13b", json.dumps(out["13b"]), flush=True)
    if sizes != ["tiny"]:
        RESULTS.write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
