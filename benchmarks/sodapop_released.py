"""SODAPOP the released way, counted and timed: used by sodapop_cost.py."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from evenhand.probes.discovery.generate import Filler, Generation, _masked, _one_edit, word_tokens
from evenhand.probes.discovery.score import Pool, prompt
from evenhand.requests import MASK
from evenhand.runner.ask import Ask
from evenhand.words.social_iqa import Context

WIDTH, QUESTIONS = 128, 8
TIMED_FILLS, TIMED_BATCHES = 200, 12


def operations(config: Any, rows: int, width: int, heads: int) -> float:
    """Floating-point operations of a pass: trunk, attention, and `heads` vocabulary rows."""
    d, inner = config.hidden_size, config.intermediate_size
    layer = 2 * (4 * d * d + 2 * d * inner) * width + 4 * width * width * d
    return float(rows * config.num_hidden_layers * layer + heads * 2 * d * (d + config.vocab_size))


def device_name(model: Any) -> str:
    if str(model.device).startswith("cuda"):
        return str(model.torch.cuda.get_device_name())
    return "CPU"


def calls(context: Context, fill: Filler) -> Counter[str]:
    """Every masked text the released recursion fills, with how often it does so."""
    made: Counter[str] = Counter()
    edge = Counter({" ".join(word_tokens(context.answer)): 1})
    for level in (1, 2, 3):
        new: Counter[str] = Counter()
        texts = {
            answer: [_masked(context, words, i) for i in range(len(words))]
            for answer in edge
            for words in [word_tokens(answer)]
        }
        for answer, times in edge.items():
            for text in texts[answer]:
                made[text] += times
        if level < 3:
            fill(sorted({t for group in texts.values() for t in group}))
            for answer, times in edge.items():
                for child in _one_edit(context, answer, fill):
                    new[child] += times
            edge = new
    return made


def generation(filled: Sequence[Context], model: Any) -> dict[str, Any]:
    """Rows, tokens, operations and seconds of filling every call by itself."""
    total: Counter[str] = Counter()
    texts: list[str] = []
    for context in filled:
        made = calls(context, Filler(Ask(model), Generation(3, 10, None, False), pieces=True))
        n = len(word_tokens(context.answer))
        total["formula"] += n + 10 * n**2 + 100 * n**3
        distinct = list(made)
        times = np.asarray([made[t] for t in distinct])
        shown = [t.replace(MASK, model.tokenizer.mask_token) for t in distinct]
        lengths = np.asarray([len(i) for i in model.encode(shown, special=True)])
        total["rows"] += int(times.sum())
        total["tokens"] += int((times * lengths).sum())
        for width in np.unique(lengths):
            rows = int(times[lengths == width].sum())
            total["operations"] += operations(model.model.config, rows, int(width), rows * width)
        rng = np.random.default_rng(len(texts))
        drawn = rng.choice(len(shown), size=100, p=times / times.sum())
        texts += [shown[i] for i in drawn]
    seconds = _one_by_one(texts, model)
    return {**total, "seconds": seconds * total["rows"]}


def _one_by_one(texts: list[str], model: Any) -> float:
    """Seconds of one call, float32, as the released loop makes it."""
    torch = model.torch
    loaded = _float32(model)
    some = np.random.default_rng(0).choice(len(texts), TIMED_FILLS + 5)
    with torch.inference_mode():
        for number, i in enumerate(some):
            if number == 5:
                begun = time.perf_counter()
            ids = model.tokenizer(texts[i], return_tensors="pt").to(model.device)
            at = (ids["input_ids"][0] == model.tokenizer.mask_token_id).nonzero()[0, 0]
            loaded(**ids).logits[0, at].topk(10).indices.tolist()
    return (time.perf_counter() - begun) / TIMED_FILLS


def scoring(pools: Sequence[Pool], model: Any) -> dict[str, Any]:
    """Three rows of 128 tokens for every two distractors, 24 rows at a time."""
    rows = sum(3 * -(-len(p.distractors) // 2) for p in pools)
    torch, loaded = model.torch, _float32(model)
    first, second = [], []
    for pool in pools:
        shown = pool.distractors[: 2 * QUESTIONS]
        for a, b in zip(shown[::2], shown[1::2]):
            first += [prompt(pool.filled, model.answers, as_published=True)] * 3
            second += [pool.filled.answer, a, b]
    batch = 3 * QUESTIONS
    first, second = (x * -(-batch // len(x)) for x in (first, second))
    spent = []
    with torch.inference_mode():
        for number in range(TIMED_BATCHES + 2):
            low = number * batch % (len(first) - batch + 1)
            begun = time.perf_counter()
            made = model.tokenizer(
                first[low : low + batch], second[low : low + batch], padding="max_length",
                truncation=True, max_length=WIDTH, return_tensors="pt",
            )  # fmt: skip
            inputs = {k: v.view(QUESTIONS, 3, WIDTH).to(model.device) for k, v in made.items()}
            loaded(**inputs).logits.softmax(-1).cpu().numpy()
            spent.append(time.perf_counter() - begun)
    model.tokenizer.backend_tokenizer.no_padding()
    model.tokenizer.backend_tokenizer.no_truncation()
    seconds = float(np.mean(spent[2:])) / batch
    return {
        "rows": rows,
        "tokens": rows * WIDTH,
        "operations": operations(model.model.config, rows, WIDTH, 0),
        "seconds": seconds * rows,
    }


def _float32(model: Any) -> Any:
    """The same checkpoint in float32, as released."""
    if model.dtype == "float32":
        return model.model
    kind = type(model.model)
    return kind.from_pretrained(model.source, dtype=model.torch.float32).to(model.device).eval()
