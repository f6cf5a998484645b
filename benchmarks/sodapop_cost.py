"""What generation and scoring cost against the released program, on the same contexts.

    SOCIAL_IQA=socialIQa_v1.4_dev_Bethany_0_2191.jsonl python benchmarks/sodapop_cost.py

Released: n + 10 n^2 + 100 n^3 fills of a text each (k = 3, M = 10), then 1.5 rows per distractor,
padded to 128 tokens. Here: distinct masks that are needed for what is kept, and one score per
distinct answer, unpadded. Fills come from a made-up model: only their number matters. Tokens are
counted as words and punctuation plus the special ones.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Sequence

from evenhand.contexts import read_contexts
from evenhand.models.scripted import ScriptedModel
from evenhand.probes.discovery_generate import Filler, Generation, generate, split_words
from evenhand.probes.discovery_published import word_tokens
from evenhand.runner.ask import Ask

WORDS = [f"word{i}" for i in range(2_000)]


def fills(text: str) -> dict[str, list[float] | list[str]]:
    start = zlib.crc32(text.encode()) % 1_900
    return {"fills": WORDS[start : start + 20], "logprobs": [0.0] * 20}


def length(*texts: str) -> int:
    return 1 + sum(1 + len(word_tokens(t)) for t in texts)


def one_context(filled: Sequence[tuple[str, object]], keep: int) -> dict[str, float]:
    """Costs of one context and name, both ways."""
    name, context = filled[0]
    settings = Generation(3, 10, keep)
    filler = Filler(Ask(ScriptedModel({"fill-mask": fills})), settings)
    kept = len(generate([(name, context)], filler, settings, 0)[0])
    n = len(split_words(context.answer))
    fill_length = length(f"{context.context} {context.prompt} {context.answer}")
    row_length = length(f"{context.context} {context.question}", context.answer)
    calls = n + 10 * n**2 + 100 * n**3
    return {
        "kept": kept,
        "calls": calls,
        "fills": filler.asked,
        "released": calls * fill_length + 1.5 * kept * 128,
        "here": filler.asked * fill_length + (kept + 1) * row_length,
        "scoring_released": 1.5 * kept * 128,
        "scoring_here": (kept + 1) * row_length,
        "prefix_here": row_length + kept * (len(word_tokens(context.answer)) + 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contexts", default="$SOCIAL_IQA")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--keep", type=int, default=10_000)
    parser.add_argument("--names", type=int, default=200, help="names that share a common pool")
    arguments = parser.parse_args()
    found = read_contexts(arguments.contexts, limit=arguments.count)
    rows = [one_context([("Tia", c.filled("Tia"))], arguments.keep) for c in found]
    total = {key: sum(row[key] for row in rows) for key in rows[0]}
    kept = total["kept"]
    print(f"{len(found)} contexts, one name: {kept:,.0f} distractors kept")
    print(f"fills: released {total['calls']:,.0f}, here {total['fills']:,.0f} "
          f"({total['calls'] / total['fills']:.1f} times fewer)")  # fmt: skip
    fewer = total["released"] / total["here"]
    print(f"forward tokens per kept distractor: released {total['released'] / kept:.0f}, here "
          f"{total['here'] / kept:.1f} ({fewer:.1f} times fewer)")  # fmt: skip
    pooled = (total["here"] - total["scoring_here"]) * 8 / arguments.names
    common = pooled + total["scoring_here"]
    print(f"common pool of {arguments.names} names, written for 8 of them: fills per name "
          f"{total['fills'] * 8 / arguments.names:,.0f} "
          f"({total['calls'] * arguments.names / (8 * total['fills']):.0f} times fewer), tokens "
          f"{common / kept:.1f} ({total['released'] / common:.1f} times fewer)")  # fmt: skip
    shared = pooled + total["prefix_here"]
    print(f"the same with a causal chooser, which shares the prompt: {shared / kept:.1f} "
          f"({total['released'] / shared:.1f} times fewer)")  # fmt: skip
    print("answer words  released calls  here fills  kept")
    seen = set()
    for context, row in zip(found, rows):
        n = len(split_words(context.answer))
        if n not in seen:
            seen.add(n)
            print(f"{n:>12}  {row['calls']:>14,}  {row['fills']:>10,}  {row['kept']:>6,}")


if __name__ == "__main__":
    main()
