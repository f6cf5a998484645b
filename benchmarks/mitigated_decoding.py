"""What a mitigated head costs while decoding: plain `generate` against every kind of edit.

    python benchmarks/mitigated_decoding.py          # shape of SmolLM2-135M, random weights
    python benchmarks/mitigated_decoding.py --model smollm2-135m --batches 1 64 --tokens 32
    python benchmarks/mitigated_decoding.py --device cuda --dtype float16 --out benchmarks/results

Decoding time does not depend on the values of the weights, so random ones of the right shape do.
Within one `generate`, plain and edited steps take turns in random order and every step is timed, so
that whatever else the machine does disturbs all alike. Prints one row per (batch, rank, edit):
median seconds of a step, median overhead against the plain step of the same turn with a 95 %
interval over turns, and the same in processor time.
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

from evenhand.models.edits.head import AppliedEdit, HeadEdit


def load(args: argparse.Namespace) -> Any:
    if args.model:
        from evenhand.models.loading.resolver import resolve
        from evenhand.models.protocol import LoadOptions

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
    inside[rng.permutation(vocabulary)[:1_000]] = True
    return {
        "projection": HeadEdit(basis, basis),
        "mixture": HeadEdit(basis, basis, alpha=0.5),
        "learned": HeadEdit(basis, basis, rule="eq8", sensitivity=q, sensitive=inside),
    }


class Turns:
    """A stopping criterion that times each step and changes the edit for the next one."""

    def __init__(self, kinds: dict[Any, AppliedEdit | None], turns: int, cuda: bool) -> None:
        rng = np.random.default_rng(0)
        self.kinds, self.cuda = kinds, cuda
        self.order = [k for _ in range(turns) for k in rng.permutation(len(kinds))]
        self.seconds = np.zeros((turns, len(kinds), 2))
        self.step = -1
        self.handles: list[Any] = []

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        if self.cuda:
            torch.cuda.synchronize()
        now = time.perf_counter(), time.process_time()
        if self.step >= 0:
            turn, kind = self.step // len(self.kinds), self.order[self.step]
            self.seconds[turn, kind] = np.subtract(now, self.begun)
        self.close()
        self.step += 1
        if self.step < len(self.order):
            applied = list(self.kinds.values())[self.order[self.step]]
            self.handles = applied.attach() if applied else []
        self.begun = time.perf_counter(), time.process_time()
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)

    def close(self) -> None:
        for handle in self.handles:
            handle.remove()
        self.handles = []


def run(model: Any, ids: Any, kinds: dict[Any, AppliedEdit | None], turns: int) -> Any:
    """Seconds and processor seconds [turns, kinds, 2] of one `generate`."""
    timer = Turns(kinds, turns, ids.is_cuda)
    tokens = turns * len(kinds) + 1
    model.generate(
        input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=False, pad_token_id=0,
        min_new_tokens=tokens, max_new_tokens=tokens, stopping_criteria=[timer],
    )  # fmt: skip
    timer.close()
    return timer.seconds


def compare(model: Any, ids: Any, kinds: dict[Any, AppliedEdit | None], args: Any) -> list[Any]:
    """Overheads of every kind against the kind None."""
    run(model, ids, kinds, 3)
    found = np.concatenate([run(model, ids, kinds, args.tokens) for _ in range(args.repeats)])
    ratios = found / found[:, :1] - 1
    rng = np.random.default_rng(0)
    drawn = np.median(ratios[rng.integers(0, len(found), (1_000, len(found))), :, 0], axis=1)
    rows = []
    for i, name in enumerate(kinds):
        if name is None:
            continue
        rows.append({
            "batch": len(ids), "rank": name[0], "edit": name[1], "turns": len(found),
            "plain_step_s": float(np.median(found[:, 0, 0])),
            "step_s": float(np.median(found[:, i, 0])),
            "overhead": float(np.median(ratios[:, i, 0])),
            "low": float(np.quantile(drawn[:, i], 0.025)),
            "high": float(np.quantile(drawn[:, i], 0.975)),
            "overhead_of_medians": float(
                np.median(found[:, i, 0]) / np.median(found[:, 0, 0]) - 1
            ),
            "overhead_processor": float(np.median(ratios[:, i, 1])),
        })  # fmt: skip
        print(json.dumps(rows[-1]), flush=True)
    return rows


def check(model: Any, ids: Any, edits_: dict[Any, AppliedEdit | None]) -> float:
    """Largest difference between logits of recorded and of ordinary steps (CUDA)."""
    worst = 0.0
    for applied in edits_.values():
        if applied is None or applied.replays is None or applied.edit.linear:
            continue
        states = torch.randn(len(ids), 1, model.config.hidden_size, device=ids.device)
        own = model.get_output_embeddings()(states.to(model.dtype))
        for _ in range(3):
            got = applied.edited(states, own, own.clone())
        rows = own.reshape(len(ids), -1).float()
        right = applied.on_rows(states[:, 0].float(), None, rows)
        worst = max(worst, float((got[:, 0] - right).abs().max()))
        print(applied.edit.rule, "recorded:", applied.replays.made.get(len(ids)) is not None)
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 64])
    parser.add_argument("--ranks", type=int, nargs="+", default=[16, 64, 240])
    parser.add_argument("--tokens", type=int, default=64, help="of each kind")
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
            if ids.is_cuda:
                print("recorded against ordinary steps:", check(model, ids, kinds), flush=True)
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
