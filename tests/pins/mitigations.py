"""Judged mitigations of tiny models, one bundle for each family and for methods that differ.

The bundles were written by the state a0ff45e of version 0.2.0.dev0 and are input here: what was
measured with a model is in them, so that what follows from it is the same on every machine.

    git worktree add /tmp/old a0ff45e
    cp -r tests/runs_0_2 tests/pins /tmp/old/tests/
    cd /tmp/old && PYTHONPATH=src:tests python tests/pins/mitigations.py
"""

from __future__ import annotations

import contextlib
import gzip
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import evenhand as eh
from evenhand.runs.kinds import kind_of
from pins.comparing import pinned, places
from pins.probes import of_run
from runs_0_2 import make

JUDGED = Path(__file__).parent / "judged"
METHODS = {
    "head": ("causal", "a-inlp"),
    "head-two-methods": ("causal", "inlp,leace"),
    "hidden": ("masked", "leace"),
    "hidden-sentence": ("masked", "sentence"),
    "reweighting": ("masked", "reweighting"),
    "training": ("masked", "cda"),
    "vectors": ("vectors", "attract-repel"),
    "vectors-projection": ("vectors", "hard-projection"),
}
"""By what is pinned: a kind of model and a method."""


def recorded(name: str) -> dict[str, Any]:
    """Return the judgement of a mitigation, computed again from what its bundle holds."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        raw = folder / "bundle.tar"
        raw.write_bytes(gzip.decompress((JUDGED / f"{name}.evidence.tar.gz").read_bytes()))
        with tarfile.open(raw) as archive:
            archive.extractall(folder, filter="data")
        run = eh.Run.open(folder / "run")
        (folder / "again").mkdir()
        again = kind_of(run.facts).again(run, folder / "again", {})
        record: dict[str, Any] = pinned(of_run(again.run), places(folder))
        return record


def write_bundles() -> None:
    """Fit and judge every mitigation; needs torch, and is not repeated when pins are."""
    JUDGED.mkdir(exist_ok=True)
    with contextlib.chdir(make.MADE), tempfile.TemporaryDirectory() as place:
        for name, (kind, method) in METHODS.items():
            spec = "data/vectors.txt" if kind == "vectors" else f"models/{kind}"
            settings = make.settings(kind, method)
            fitted = eh.mitigate(make.loaded(spec), method, **settings)
            folder = Path(place) / name
            run = fitted.judge(out=folder / "run", proof=folder / "proof")
            bundle = eh.bundle(run, Path(place) / f"{name}.evidence.tar")
            packed = gzip.compress(bundle.read_bytes(), 9, mtime=0)
            (JUDGED / f"{name}.evidence.tar.gz").write_bytes(packed)


if __name__ == "__main__":
    write_bundles()
