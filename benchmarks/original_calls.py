"""How often each original algorithm calls its model or reads its data, against what runs here.

    python benchmarks/original_calls.py

Counts, not seconds: they hold on any machine. The original ones follow from the papers' settings
and the released programs (docs/papers/); ours are counted by the code itself where it plans its
work, or taken from the run that measured them (`benchmarks/results/`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
NAMES = 220  # of SODAPOP
PROMPT, LENGTH = 6, 30  # tokens of "The man was known for", and of a whole sample (Liang et al.)
PAIRS, ALPHAS, METRICS = 202, 11, 2  # released pairs, alpha = 0, 0.1, ..., 1, KL and Hellinger
SAMPLES = 20  # samplings of a corpus per word set (Kato and Miyao)


def row(what: str, unit: str, original: float, here: float) -> dict[str, Any]:
    return {
        "what": what, "unit": unit, "original": original, "here": here,
        "times_fewer": round(original / here, 2),
    }  # fmt: skip


def sodapop() -> list[dict[str, Any]]:
    """Calls measured on the paper's 50 contexts by `sodapop_cost.py`."""
    found = json.loads((RESULTS / "sodapop_cost_h200.json").read_text())
    calls, fills = found["released_calls"], found["fills"]
    return [
        row("SODAPOP, wrong answers for one name", "masked-LM calls", calls, fills),
        row("SODAPOP, wrong answers for 220 names, common pool", "masked-LM calls",
            calls * NAMES, fills),
        row("SODAPOP, scoring for one name", "options encoded",
            found["released_rows"], found["scores"]),
    ]  # fmt: skip


def liang() -> list[dict[str, Any]]:
    """Positions computed while decoding one sample, and contexts passed for the local bias.

    The released decoding runs one cached step and one whole pass without cache per token, the
    released metrics run the model twice per pair for every metric and alpha.
    """
    new = range(PROMPT, LENGTH)
    cached = PROMPT + len(new) - 1
    from evenhand.probes.divergence.probe import Divergence

    pairs = Divergence(axes=("gender", "religion", "race"), as_published=True).pairs()
    contexts = {context for pair in pairs for context in (pair.context_a, pair.context_b)}
    return [
        row("Liang et al., decoding one sample of 30 tokens", "positions computed",
            cached + sum(new), cached),
        row("Liang et al., local bias at 11 alphas, two metrics", "contexts passed",
            2 * PAIRS * ALPHAS * METRICS, 2 * PAIRS),
        row("the same for the packaged prompts", "contexts passed",
            2 * len(pairs) * ALPHAS * METRICS, len(contexts)),
    ]  # fmt: skip


def kato() -> list[dict[str, Any]]:
    """Readings of the corpus, and rankings behind the 216 correlations with 9,999 draws each."""
    return [
        row("Kato and Miyao, 20 samplings of a corpus for a word set", "readings of the corpus",
            SAMPLES, 1),
        row("Kato and Miyao, one correlation with 9,999 permutations", "rankings",
            2 * (9_999 + 1), 2),
    ]  # fmt: skip


def main() -> None:
    rows = [*sodapop(), *liang(), *kato()]
    for r in rows:
        print(f"{r['what']:<62} {r['original']:>14,} {r['here']:>10,} {r['times_fewer']:>10,}  "
              f"{r['unit']}")  # fmt: skip
    (RESULTS / "original_calls.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
