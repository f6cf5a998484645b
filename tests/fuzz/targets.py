"""Everything that reads files from elsewhere, each with valid files to begin with.

A target makes files in a folder and gives the words of a command line that reads them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

import made_runs
from reader_cases import CASES

Target = Callable[[Path], list[str]]
SUITE = """name = "mine"
title = "A suite"
false_discovery_rate = 0.05

[[probe]]
name = "underspecified"
label = "jobs"
pairs = 4
templates = 1
attributes = ["nurse"]

[[probe]]
name = "divergence"
"""
TESTS = ["--tests", "t.json"]


def measuring(name: str) -> Target:
    return lambda folder: ["measure", name, *CASES[name](folder), "--json", "-"]


def vectors(suffix: str) -> Target:
    """A table of word vectors in one of its formats."""

    def make(folder: Path) -> list[str]:
        words = ["art", "math", "she", "he"]
        rows = np.asarray([[1, 0.1], [0.1, 1], [1, 0], [0, 1]], np.float32)
        path = folder / f"v{suffix}"
        lines = [f"{w} {a} {b}" for w, (a, b) in zip(words, rows.tolist(), strict=True)]
        if suffix == ".vec":
            path.write_text("\n".join(["4 2", *lines]) + "\n")
        elif suffix == ".bin":
            pairs = zip(words, rows, strict=True)
            body = b"".join(w.encode() + b" " + r.tobytes() + b"\n" for w, r in pairs)
            path.write_bytes(b"4 2\n" + body)
        elif suffix == ".npz":
            np.savez(path, words=np.asarray(words), vectors=rows)
        else:
            path.write_text("\n".join(lines) + "\n")
        test = {"t": {"x": ["art"], "y": ["math"], "a": ["she"], "b": ["he"]}}
        (folder / "t.json").write_text(json.dumps(test))
        return ["measure", "association", "--vectors", str(path), "--tests", str(folder / "t.json")]

    return make


def showing(*words: str) -> Target:
    def make(folder: Path) -> list[str]:
        run = made_runs.ordinary(folder / "run")
        return [w.replace("RUN", str(run.folder)) for w in words]

    return make


def old_run(*words: str) -> Target:
    """A run without hashes, as older versions wrote it: whatever it holds is read."""

    def make(folder: Path) -> list[str]:
        run = made_runs.ordinary(folder / "run")
        facts = json.loads((run.folder / "run.json").read_text())
        del facts["sha256"], facts["files"]
        (run.folder / "run.json").write_text(json.dumps(facts))
        return [w.replace("RUN", str(run.folder)) for w in words]

    return make


def suite(folder: Path) -> list[str]:
    (folder / "s.toml").write_text(SUITE)
    return ["check", "no-such-model-here", "--suite", str(folder / "s.toml")]


def erasing(folder: Path) -> list[str]:
    rng = np.random.default_rng(0)
    given = {"X": rng.normal(size=(24, 3)), "y": np.arange(24) % 2, "split": np.arange(24) % 3}
    np.savez(folder / "x.npz", **given)
    out = ["--rounds", "1", "--out", str(folder / "p.npz")]
    return ["erase", str(folder / "x.npz"), *out]


TARGETS: dict[str, Target] = {
    **{f"measure {name}": measuring(name) for name in CASES},
    **{f"vectors {end}": vectors(end) for end in (".txt", ".vec", ".bin", ".npz")},
    "suite": suite,
    "erase": erasing,
    "show": showing("show", "RUN"),
    "gate": showing("gate", "RUN", "--json", "-"),
    "show old": old_run("show", "RUN"),
    "report old": old_run("report", "RUN"),
    "gate old": old_run("gate", "RUN", "--json", "-"),
    "export old": old_run("export", "RUN", "--format", "csv", "--out", "x.csv"),
}
