"""Run folders made on the spot, without a model: an ordinary one and a hostile one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from evenhand.runs.finding import NAN, Finding
from evenhand.runs.record import Run, RunWriter

SCRIPT = "<script>window.owned=1</script>"
HOSTILE = {
    "script": SCRIPT,
    "closing": "</script><img src=x onerror=window.owned=1>",
    "quotes": "\"'><b onmouseover=window.owned=1>bold</b>{{ 7*7 }}${7*7}",
    "direction": "abc\u202egnp.exe\u2066hidden\u2069",
    "terminal": "\x1b[31mred\x1b[0m\x1b]0;title\x07\r",
    "long": "A" * 100_000,
    "surrogate": "broken \ud800 utf-8 \udfff",
    "formula": "=cmd|' /C calc'!A0",
    "plus": "+1+1",
    "at": "@SUM(A1)",
    "tab": "\t=1+1",
}


def facts(model: str = "tiny-model", **more: Any) -> dict[str, Any]:
    """What run.json holds for a finished run of three probes, one of them skipped."""
    suite = {
        "name": "made",
        "title": "Made up for tests",
        "false_discovery_rate": 0.05,
        "probe": [{"name": "underspecified", "pairs": 8}, {"name": "divergence"}],
    }
    return {
        "status": "finished",
        "work": {"model": model, "as": None, "dtype": None, "seed": 7, "suite": suite},
        "models": {
            model: {
                "name": model,
                "kind": "causal",
                "parameters": 1000,
                "answers": ["continuation", "divergence"],
                "fingerprint": "ab" * 32,
            }
        },
        "probes": {
            "underspecified": {
                "probe": "underspecified",
                "title": "Whom does the model pick when the text does not say?",
                "paper": "Li et al. 2020 (UnQover)",
                "model": model,
                "as_published": False,
                "settings": {"social_class": "gender", "pairs": 8},
                "counts": {"rows": 4, "distinct": 4, "shards": 1},
                "summary": {},
            },
            "divergence": {
                "probe": "divergence",
                "title": "How far does the next word move when only the group changes?",
                "paper": "Liang et al. 2021",
                "model": model,
                "as_published": False,
                "settings": {"lexicon": "contexts"},
                "counts": {"rows": 4},
                "summary": {},
            },
            "association": {
                "probe": "association",
                "skipped": "a causal model cannot answer embed",
            },
        },
        "attempts": 1,
        "started": "2026-01-02T03:04:05+00:00",
        "finished": "2026-01-02T03:05:05+00:00",
        "environment": {"evenhand": "0.1.0", "python": "3.11"},
        "timings": {"underspecified": 1.0, "total_s": 2.0},
        **more,
    }


def findings(model: str = "tiny-model", text: str = "Ann met Bob.") -> list[Finding]:
    """A detected one, a quiet one, a whole-model number, an undefined one, a swap."""
    shown = ({"context": text, "prefers": "Ann", "C": 0.2, "scores": [0.5, 0.25]},)
    common: dict[str, Any] = {"probe": "underspecified", "model": model, "method": "sign flips"}
    pair: dict[str, Any] = {"groups": ("female", "male"), "examples": shown}
    return [
        Finding(
            "underspecified/gamma/nurse", metric="gamma", value=0.3125, low=0.2, high=0.41,
            p=0.0001, q=0.0004, n=48, attribute="nurse", detectable=0.05, detected=True,
            sentence="Asked who was a nurse, the model leans to the female name.", margin=0.1,
            harm="men: passed over for women, without a reason in the text", **common, **pair,
        ),
        Finding(
            "underspecified/gamma/hunter", metric="gamma", value=-0.0123, low=-0.05, high=0.03,
            p=0.4, q=0.41, n=48, attribute="hunter", detectable=0.0567, detected=False,
            sentence="Asked who was a hunter, the model leans to the male name.", **common, **pair,
        ),
        Finding(
            "underspecified/mu", metric="mu", value=0.0791, low=0.06, high=0.1, n=96, floor=0.0775,
            sentence="Largest preference of each term.", attribute="whole model", **common,
        ),
        Finding(
            "underspecified/gamma/chef", metric="gamma", value=NAN, n=0, attribute="chef",
            sentence="Could not be computed.", reason="no cell had both names", **common,
        ),
        Finding(
            "divergence/gender/female-male", "divergence", "hellinger2", 0.0865,
            "Changing only 'female' to 'male' moves the next word.", 0.01, 0.22, 0.4, 0.7, 10,
            groups=("female", "male"), attribute="gender", model=model, floor=0.0358,
            detectable=0.188, detected=False,
        ),
    ]  # fmt: skip


def tables(term: str = "Ann") -> dict[str, dict[str, pa.Table]]:
    """The tables that those probes write."""
    both = {"low": [0.2, -0.05], "high": [0.41, 0.03], "p": [0.0, 0.4], "q": [0.0004, 0.41]}
    jobs = ["nurse", "hunter"]
    group = {"group": ["female"] * 2, "attribute": jobs, "gamma": [0.3125, -0.0123], "n": [48, 48]}
    terms = {"term": [term, "Bob"], "gamma": [0.1, -0.1], "n": [8, 8], **both}
    cells = {
        "term": [term, term, "Bob", "Bob"], "attribute": jobs * 2, "gamma": [0.3, -0.1, -0.3, 0.1],
        "n": [4] * 4, "low": [0.1] * 4, "high": [0.4] * 4, "q": [0.5] * 4,
    }  # fmt: skip
    items = {
        "first": [term, "Cat"] * 3, "second": ["Bob"] * 6, "template": ["city", "city", "trip"] * 2,
        "attribute": jobs * 3, "lean": [0.2, -0.1, 0.3, 0.0, 0.1, -0.2],
    }  # fmt: skip
    swaps = {
        "attribute": ["gender"], "value": [0.0865], "low": [0.01], "high": [0.22], "p": [0.4],
        "q": [0.7], "n": [10], "floor": [0.0358], "swap": ["female / male"],
    }  # fmt: skip
    contexts = {
        "axis": ["gender"],
        "context_a": ["The woman"],
        "context_b": ["The man"],
        "js": [0.1],
    }
    return {
        "underspecified": {
            "items": pa.table(items), "gamma_group": pa.table({**group, **both}),
            "gamma_term": pa.table(terms), "gamma": pa.table(cells),
        },
        "divergence": {"items": pa.table(contexts), "swaps": pa.table(swaps)},
    }  # fmt: skip


def write(
    folder: Path,
    run_facts: dict[str, Any],
    claims: list[Finding],
    probe_tables: dict[str, dict[str, pa.Table]],
) -> Run:
    """A run folder with these contents."""
    writer = RunWriter(folder)
    for probe, named in probe_tables.items():
        for name, table in named.items():
            writer.table(probe, name, table)
    writer.findings(claims)
    writer.facts(run_facts)
    return Run.open(folder)


def ordinary(folder: Path, model: str = "tiny-model") -> Run:
    return write(folder, facts(model), findings(model), tables())


def hostile(folder: Path) -> Run:
    """Every text that a model or a user can bring, made to attack whoever shows it."""
    claims = findings(SCRIPT, HOSTILE["closing"])
    for name, text in HOSTILE.items():
        claims.append(
            Finding(
                f"underspecified/gamma/{name}", "underspecified", "gamma", 0.2, text, 0.1, 0.3,
                0.001, 0.002, 12, groups=(text[:500], "male"), attribute=text[:500],
                model=SCRIPT, detected=True, method=HOSTILE["quotes"],
                examples=({"context": text, text[:40]: text},),
            )
        )  # fmt: skip
    known = facts(SCRIPT)
    known["work"]["suite"]["title"] = HOSTILE["quotes"]
    known["probes"]["underspecified"]["title"] = HOSTILE["closing"]
    known["probes"]["association"]["skipped"] = SCRIPT + HOSTILE["terminal"]
    known["environment"]["torch"] = HOSTILE["closing"]
    return write(folder, known, claims, tables(HOSTILE["closing"]))
