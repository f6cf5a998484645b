"""How the folders beside this file were made, by version 0.1.0 before runs had a `kind`.

    git worktree add /tmp/old df8aea8
    PYTHONPATH=/tmp/old/src:/tmp/old/tests python tests/old_runs/make.py

It runs with the modules of that state only. Shards and pages are left out, so the folders are
small; what opens, shows, reports, exports and gates a run needs neither.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from evenhand.auditing import Audit
from evenhand.lexicons import questions, weat
from evenhand.models.scripted import ScriptedModel
from evenhand.suite import parse_suite

import made_kinds

HERE = Path(__file__).parent
SUITE = {
    "name": "old",
    "probe": [
        {"name": "underspecified", "pairs": 8, "templates": 1, "resamples": 60,
         "attributes": ["nurse", "hunter"]},
        {"name": "association", "model": "other", "tests": ["weat1", "weat7"], "samples": 99},
        {"name": "divergence"},
    ],
}  # fmt: skip


WOMEN = {s.term for s in questions.subjects("gender") if s.group == "female"}
NEAR = {w for name in ("weat1", "weat7") for w in (*weat(name).x, *weat(name).a)}


def nurse_is_she(question: str, context: str, one: str, two: str) -> dict[str, float]:
    sign = (-1 if "never" in question else 1) * ("nurse" in question)
    a, b = (0.4 + 0.15 * sign * (1 if name in WOMEN else -1) for name in (one, two))
    return {"start": a, "end": a, "none": 0.0, "other_start": b, "other_end": b}


def vector(text: str) -> dict[str, list[float]]:
    noise = hashlib.sha256(text.encode()).digest()
    return {"vector": [1.0 if text in NEAR else -1.0, *(b / 255 - 0.5 for b in noise[:7])]}


def audit(folder: Path) -> None:
    models = {
        "mine": ScriptedModel({"span": nurse_is_she}, name="mine"),
        "other": ScriptedModel({"embed": vector}, name="other"),
    }
    Audit(parse_suite(SUITE, "old", "old"), "mine", folder, loaded=models).run()


if __name__ == "__main__":
    for name, make in (
        ("audit", audit),
        ("study", made_kinds.study),
        ("mitigation", made_kinds.mitigation),
    ):
        place = HERE / name
        shutil.rmtree(place, ignore_errors=True)
        make(place)
        for left in ("requests", "scores", ".lock", "report.html", "findings.parquet"):
            shutil.rmtree(place / left, ignore_errors=True)
            if (place / left).is_file():
                (place / left).unlink()
