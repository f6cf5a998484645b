"""What must work with the wheel alone: no pip, no torch, nothing but the core dependencies.

    python plain.py SCRATCH [ALIAS]        # run by the environment that is tried

Standard library only, since there is nothing else to test with. Prints one line per thing that
works; any other outcome is a traceback.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import random
import subprocess
import sys
from pathlib import Path


def evenhand(*words: str, code: int = 0) -> str:
    """The output of the command in this environment."""
    done = subprocess.run(
        [sys.executable, "-m", "evenhand", *words], capture_output=True, encoding="utf-8"
    )
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout


def scores(path: Path) -> None:
    """A table for `measure underspecified`: Ann is preferred for the nurse."""
    rows = [["template", "attribute", "first", "second", "negated", "score_first", "score_second"]]
    draw = random.Random(0)
    for attribute in ("nurse", "hunter"):
        for one, two in [(f"Ann{i}", f"Bob{i}") for i in range(6)]:
            for first, second in ((one, two), (two, one)):
                for negated in (0, 1):
                    lean = 0.2 if attribute == "nurse" else 0.0
                    lean *= (1 if first == one else -1) * (-1 if negated else 1)
                    noise = draw.gauss(0, 0.01)
                    rows.append(["t", attribute, first, second, negated,
                                 0.5 + lean + noise, 0.5 - lean - noise])  # fmt: skip
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def vectors(path: Path, tests: Path) -> None:
    """Word vectors in which x goes with a and y with b."""
    sets = {"x": ["rose", "tulip", "lily", "daisy"], "y": ["ant", "wasp", "moth", "flea"],
            "a": ["love", "joy", "calm", "glad"], "b": ["hate", "war", "pain", "evil"]}  # fmt: skip
    draw = random.Random(1)
    lines = []
    for name, words in sets.items():
        side = 1.0 if name in "xa" else -1.0
        for word in words:
            numbers = [side + draw.gauss(0, 0.1), *(draw.gauss(0, 0.3) for _ in range(7))]
            lines.append(" ".join([word, *(f"{n:.5f}" for n in numbers)]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    tests.write_text(json.dumps({"flowers": sets}), encoding="utf-8")


def main(scratch: Path, alias: str = "") -> None:
    os.chdir(scratch)
    for name in ("pip", "torch", "transformers", "gensim", "pandas", "ray"):
        assert importlib.util.find_spec(name) is None, f"{name} is here"
    print("without pip, torch, transformers, gensim, pandas and ray")
    assert evenhand("--version").startswith("evenhand ")
    assert "Audit:" in evenhand("-h")
    for what in ("models", "probes", "lexicons"):
        assert json.loads(evenhand("ls", what, "--json", "-"))[what], what
    print("ls")
    scores(Path("scores.csv"))
    found = json.loads(evenhand("measure", "underspecified", "scores.csv", "--json", "-"))
    leans = {(r["term"], r["attribute"]): r["gamma"] for r in found["gamma"]}
    assert leans["Ann0", "nurse"] > 0.1 > abs(leans["Ann0", "hunter"]), leans
    evenhand("measure", "underspecified", "scores.csv", "--out", "measured")
    assert Path("measured/report.html").stat().st_size > 10_000
    assert evenhand("show", "measured", "--only", "*", "--json", "-")
    print("measure, report, show")
    vectors(Path("vectors.txt"), Path("tests.json"))
    line = ("measure", "association", "--vectors", "vectors.txt", "--tests", "tests.json")
    (row,) = json.loads(evenhand(*line, "--json", "-"))["tests"]
    assert row["effect_size"] > 1.5, row
    assert row["p_right"] < 0.05, row
    print("vectors")
    refused = subprocess.run(
        [sys.executable, "-m", "evenhand", "audit", "smollm2-135m"],
        capture_output=True, encoding="utf-8", env={**os.environ, "EVENHAND_CACHE": str(scratch)},
    )  # fmt: skip
    assert refused.returncode == 2, refused
    print("a model asks for its extra:", "evenhand[hf]" in refused.stderr)
    if alias:
        made = json.loads(evenhand("fetch", alias, "--json", "-"))["fetched"]
        assert Path(made[0]["folder"]).is_dir()
        print(f"fetch {alias}")
        weat = ("measure", "association", "--vectors", alias, "--tests", "weat7", "--json", "-")
        (row,) = json.loads(evenhand(*weat))["tests"]
        assert 0.5 < row["effect_size"] < 2, row
        print(f"weat7 of {alias}: effect size {row['effect_size']:.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
