"""What a mitigated head costs while decoding: plain `generate` against every kind of edit.

    python benchmarks/mitigated_decoding.py          # shape of SmolLM2-135M, random weights
    python benchmarks/mitigated_decoding.py --model smollm2-135m --batches 1 64 --tokens 32
    python benchmarks/mitigated_decoding.py --device cuda --dtype bfloat16 --out benchmarks/results

Decoding time does not depend on the values of the weights, so random ones of the right shape do.
Plain and edited runs take turns within one process, in another order each round, and every step is
timed, so that a busy machine disturbs all alike. Prints one row per (batch, rank, edit): median
seconds of a step, overhead with a 95 % interval over rounds, overhead in processor time (which
other work on the machine hardly moves), and how much the plain rounds vary.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from evenhand.models.head import AppliedEdit, HeadEdit


def load(args: argparse.Namespace) -> Any:
    if args.model:
        from evenhand.models.resolver import resolve
        from evenhand.models.transformer import LoadOptions

        return resolve(args.model, options=LoadOptions(dtype=args.dtype, device=args.device)).model  # type: ignore[attr-defined]
    config = transformers.LlamaConfig(
        vocab_size=49_152, hidden_size=576, intermediate_size=1_536, num_hidden_layers=args.layers,
        num_attention_heads=9, num_key_value_heads=3, max_position_embeddings=8_192,
        tie_word_embeddings=True, eos_token_id=None, bos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).to(getattr(torch, args.dtype)).to(args.device)
    return model.eval()


def edits(width: int, vocabulary: int, rank: int) -> dict[str, HeadEdit]:
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((width, rank)))[0].astype(np.float32)
    q = rng.uniform(0, 1, vocabulary).astype(np.float32)
    inside = np.zeros(vocabulary, bool)
    inside[:1_000] = True
    return {
        "projection": HeadEdit(basis, basis),
        "mixture": HeadEdit(basis, basis, alpha=0.5),
        "learned": HeadEdit(basis, basis, rule="eq8", sensitivity=q, sensitive=inside),
    }


def timed(model: Any, ids: Any, tokens: int, applied: AppliedEdit | None) -> tuple[Any, float]:
    """Seconds of every step but the first, and processor seconds of the whole call."""
    handles = applied.attach() if applied else []
    at: list[float] = []

    def note(input_ids: Any, scores: Any, **_: Any) -> Any:
        at.append(time.perf_counter())
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)

    if ids.is_cuda:
        torch.cuda.synchronize()
    begun = time.process_time()
    model.generate(
        input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=False, pad_token_id=0,
        min_new_tokens=tokens, max_new_tokens=tokens, stopping_criteria=[note],
    )  # fmt: skip
    if ids.is_cuda:
        torch.cuda.synchronize()
    spent = time.process_time() - begun
    for handle in handles:
        handle.remove()
    return np.diff(at), spent


def compare(model: Any, ids: Any, kinds: dict[Any, AppliedEdit | None], args: Any) -> list[Any]:
    """Overheads of every kind against the kind None, all taking turns."""
    names = list(kinds)
    for name in names:
        timed(model, ids, 4, kinds[name])
    steps: dict[Any, list[Any]] = {name: [] for name in names}
    cpu: dict[Any, list[float]] = {name: [] for name in names}
    for turn in range(args.repeats):
        for name in np.roll(np.arange(len(names)), turn):
            seconds, processor = timed(model, ids, args.tokens, kinds[names[name]])
            steps[names[name]].append(np.median(seconds))
            cpu[names[name]].append(processor)
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, args.repeats, (2_000, args.repeats))
    plain, rows = np.asarray(steps[None]), []
    for name in names[1:]:
        mine = np.asarray(steps[name])
        over = np.median(mine[drawn], axis=1) / np.median(plain[drawn], axis=1) - 1
        rows.append({
            "batch": len(ids), "rank": name[0], "edit": name[1],
            "plain_step_s": float(np.median(plain)), "step_s": float(np.median(mine)),
            "overhead": float(np.median(mine) / np.median(plain) - 1),
            "low": float(np.quantile(over, 0.025)), "high": float(np.quantile(over, 0.975)),
            "overhead_best": float(mine.min() / plain.min() - 1),
            "overhead_processor": float(np.median(cpu[name]) / np.median(cpu[None]) - 1),
            "plain_spread": float(plain.max() / plain.min() - 1),
        })  # fmt: skip
        print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 64])
    parser.add_argument("--ranks", type=int, nargs="+", default=[16, 64, 240])
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--kinds", nargs="+", default=["projection", "mixture", "learned"])
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    model = load(args)
    width, vocabulary = model.config.hidden_size, model.config.vocab_size
    rows = []
    with torch.inference_mode():
        for batch in args.batches:
            ids = torch.randint(5, 1_000, (batch, 8), device=args.device)
            kinds: dict[Any, AppliedEdit | None] = {None: None}
            for rank in args.ranks:
                for kind, edit in edits(width, vocabulary, rank).items():
                    if kind in args.kinds and (kind != "projection" or rank == args.ranks[0]):
                        kinds[rank, kind] = AppliedEdit(torch, model, edit)
            rows += compare(model, ids, kinds, args)
    facts = {
        "device": torch.cuda.get_device_name() if ids.is_cuda else platform.machine(),
        "threads": torch.get_num_threads(), "dtype": args.dtype, "tokens": args.tokens,
        "repeats": args.repeats, "cores": len(os.sched_getaffinity(0)), "torch": torch.__version__,
        "transformers": transformers.__version__,
        "model": args.model or "shape of SmolLM2-135M, random weights", "rows": rows,
    }  # fmt: skip
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        name = f"mitigated_decoding_{args.device.split(':')[0]}_{args.dtype}.json"
        facts["note"] = "projection is folded into the head: its rank does not matter"
        (args.out / name).write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
