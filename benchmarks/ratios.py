"""The ratios that the benchmarks stand for, read from their stored results.

    python -m benchmarks --table             print them
    python -m benchmarks --record            append them to history.jsonl

A ratio is measured within one run on one machine, so it may be compared between machines; seconds
may not. Each stands under what it is measured against. One line of history.jsonl is one date,
commit and machine.
"""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
HISTORY = HERE / "history.jsonl"
PAGE = HERE.parent / "docs" / "scale.md"
MARKS = "<!-- ratios: begin -->", "<!-- ratios: end -->"
SHOWN = 5

Pick = Callable[[Any], float | None]
Picks = dict[str, tuple[str, Pick]]

NAIVE: Picks = {
    "smollm2, options: times a padded batch loop": (
        "shared_prefixes", lambda r: r["option_shaped"]["ratio"]),
    "smollm2, unrelated prompts: times a padded batch loop": (
        "shared_prefixes", lambda r: r["unrelated"]["ratio"]),
    "minilm-qa, UnQover inputs: times one at a time": (
        "unqover_cpu", lambda r: r["ask_times"]["one_by_one"]),
    "attract-repel: times updating the whole table": ("attract_repel", lambda r: r[0]["ratio"]),
    "INLP 80 rounds: times a refitted classifier": (
        "erasure",
        lambda r: r["linear_svc_80_rounds_extrapolated_s"] / r["closed_form_80_rounds_s"]),
    "widening word sets: times comparing pair by pair": (
        "expansion", lambda r: r["times_faster"]),
    "twenty samplings of a corpus: times reading it for each": (
        "corpus_balancing", lambda r: r["times_faster_cpu"]),
}  # fmt: skip
TOOLS: Picks = {
    "WEAT with 10,000 resamples: times WEFE 1.0.1": (
        "weat_against_wefe", lambda r: r[0]["ratio"]),
    "RNSB, 6,238 words: times WEFE 1.0.1": ("against_peers", lambda r: _peer(r, "rnsb")),
    "RND: times WEFE 1.0.1": ("against_peers", lambda r: _peer(r, "rnd")),
    "applying LEACE: times concept-erasure 0.2.4": (
        "against_peers", lambda r: _peer(r, "leace")),
    "StereoSet from predictions: times the released rule": (
        "against_peers", lambda r: _peer(r, "stereoset")),
}  # fmt: skip
ORIGINALS: Picks = {
    "minilm-qa, UnQover inputs: times the released padding": (
        "unqover_cpu", lambda r: r["ask_times"]["padded_350"]),
    "SODAPOP generation, one name: released calls over ours": (
        "original_calls", lambda r: r[0]["times_fewer"]),
    "SODAPOP generation, 220 names, common pool: released calls over ours": (
        "original_calls", lambda r: r[1]["times_fewer"]),
    "Liang et al., a sample of 30 tokens: released positions over ours": (
        "original_calls", lambda r: r[3]["times_fewer"]),
    "Liang et al., local bias at 11 alphas: released passes over ours": (
        "original_calls", lambda r: r[4]["times_fewer"]),
}  # fmt: skip
DEVICE: Picks = {
    "H200: span scoring, share of the bf16 matrix rate": (
        "device_rate", lambda r: _rate(r, "span")),
    "H200: option scoring, share of the bf16 matrix rate": (
        "device_rate", lambda r: _rate(r, "choice")),
    "H200: mask scoring, share of the bf16 matrix rate": (
        "device_rate", lambda r: _rate(r, "masked")),
    "H200: span scoring compiled by layer: times plain": (
        "compiled_cuda", lambda r: _compiled(r, "span", "ratio")),
    "H200: SmolLM2 size compiled by layer: times plain": (
        "compiled_cuda", lambda r: _compiled(r, "causal", "ratio")),
    "CPU: span scoring compiled by layer: times plain": (
        "compiled_cpu", lambda r: _compiled(r, "span", "ratio_of_processor_seconds")),
    "CPU: smollm2 compiled by layer: times plain": (
        "compiled_cpu", lambda r: _compiled(r, "causal", "ratio_of_processor_seconds")),
    "CPU: smollm2 in 8-bit: times float32": ("cpu_ways", lambda r: _way(r, "int8")),
    "CPU: smollm2 in bfloat16: times float32": ("cpu_ways", lambda r: _way(r, "bfloat16")),
}  # fmt: skip
GROWTH: Picks = {
    "11 to 22 million questions: processor time over work (1 = linear)": (
        "streaming", lambda r: _last(r["doubling"])["cpu_over_work"]),
    "11 to 22 million questions: peak memory (1 = flat)": (
        "streaming", lambda r: _last(r["doubling"])["peak_memory"]),
    "check, worst of three suites: forecast over run, processor time": (
        "check_forecast",
        lambda r: max((s["forecast_over_run"]["cpu_seconds"] for s in r["suites"]),
                      key=lambda x: abs(x - 1))),
    "check, worst of three suites: forecast over run, by the clock": (
        "check_forecast",
        lambda r: max((s["forecast_over_run"]["seconds"] for s in r["suites"]),
                      key=lambda x: abs(x - 1))),
}  # fmt: skip
MITIGATION: Picks = {
    "mixture at rank 64 while decoding: cost of a step at batch 1": (
        "mitigated_decoding_cpu_float32", lambda r: _overhead(r, 1)),
    "mixture at rank 64 while decoding: cost of a step at batch 64": (
        "mitigated_decoding_cpu_float32", lambda r: _overhead(r, 64)),
}  # fmt: skip
HEADINGS: dict[str, Picks] = {
    "Against the naive way": NAIVE,
    "Against other tools": TOOLS,
    "Against the original algorithms": ORIGINALS,
    "Against what the device can do": DEVICE,
    "Growth, and its forecast": GROWTH,
    "What a mitigation costs": MITIGATION,
}
EARLIER = "No longer measured"
"""Heads what the history holds under a label that is not above."""


def grouped(labels: Iterable[str]) -> dict[str, list[str]]:
    """The labels under their headings, in the order above; headings without one are left out.

    >>> grouped(["so it was", "WEAT with 10,000 resamples: times WEFE 1.0.1"])
    {'Against other tools': ['WEAT with 10,000 resamples: times WEFE 1.0.1'],
     'No longer measured': ['so it was']}
    """
    left = dict.fromkeys(labels)
    out = {}
    for heading, picks in HEADINGS.items():
        out[heading] = [label for label in picks if label in left]
    out[EARLIER] = [label for label in left if not any(label in p for p in HEADINGS.values())]
    return {heading: found for heading, found in out.items() if found}


def _peer(result: Any, what: str) -> float | None:
    return next((r["ratio"] for r in result if r["what"] == what), None)


def _rate(result: Any, kind: str) -> float | None:
    found = [r["share_of_matrix_rate"] for r in result["rows"] if r["kind"] == kind]
    return found[0] if found else None


def _overhead(result: Any, batch: int) -> float | None:
    """1 + the overhead of the learned mixture at rank 64."""
    wanted = batch, 64, "learned"
    found = [r["overhead"] for r in result["rows"] if (r["batch"], r["rank"], r["edit"]) == wanted]
    return 1 + found[0] if found else None


def _compiled(result: Any, kind: str, what: str) -> float | None:
    found = [c for c in result["cells"] if (c["kind"], c["way"]) == (kind, "layers")]
    return found[0].get(what) if found else None


def _way(result: Any, way: str) -> float | None:
    """Of smollm2-135m, on one thread in processor seconds."""
    ways = next(m["ways"] for m in result["models"] if m["model"] == "smollm2-135m")
    return next(w["times_float32"] for w in ways if w["way"] == way)


def _last(values: dict[str, Any]) -> Any:
    return list(values.values())[-1]


def ratios() -> dict[str, float]:
    """Every ratio whose benchmark has left a result."""
    found = {}
    every = [pick for picks in HEADINGS.values() for pick in picks.items()]
    for label, (name, pick) in every:
        path = HERE / "results" / f"{name}.json"
        if not path.is_file():
            continue
        try:
            value = pick(json.loads(path.read_text()))
        except (KeyError, IndexError, TypeError, StopIteration):
            continue
        if value is not None:
            found[label] = float(f"{value:.3g}")
    return found


def table(values: dict[str, float]) -> str:
    width = max(map(len, values), default=0) + 2
    lines = []
    for heading, labels in grouped(values).items():
        lines += ["", heading]
        lines += [f"{'  ' + label:<{width}}  {values[label]:>10,g}" for label in labels]
    return "\n".join(lines[1:])


def record(values: dict[str, float]) -> None:
    """Append one line to the history."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True
    ).stdout.strip()
    line = {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit,
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "ratios": values,
    }
    with HISTORY.open("a") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def history() -> list[dict[str, Any]]:
    if not HISTORY.is_file():
        return []
    return [json.loads(line) for line in HISTORY.read_text().splitlines() if line.strip()]


def drawn(page: str, lines: list[dict[str, Any]]) -> str:
    """The page with the last few lines of history as a table between its marks.

    >>> page = f"a\\n{MARKS[0]}\\nold\\n{MARKS[1]}\\nb"
    >>> rows = [{"date": "d", "commit": "c", "ratios": {"x": 2.0}}]
    >>> print(drawn(page, rows).splitlines()[5])
    | x | 2 |
    """
    before, rest = page.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    last = lines[-SHOWN:]
    labels = list(dict.fromkeys(label for line in last for label in line["ratios"]))
    rows = ["| | " + " | ".join(f"{x['date']} {x['commit']}" for x in last) + " |"]
    rows.append("|---|" + "---|" * len(last))
    for heading, found in grouped(labels).items():
        rows.append(f"| **{heading}** |" + " |" * len(last))
        for label in found:
            cells = (x["ratios"].get(label) for x in last)
            shown = ("" if c is None else f"{c:,g}" for c in cells)
            rows.append(f"| {label} | " + " | ".join(shown) + " |")
    return "\n".join([before.rstrip("\n"), MARKS[0], *rows, MARKS[1]]) + after
