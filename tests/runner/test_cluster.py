"""Ray: the same bytes as a local run, for audits and for studies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import clusters
from evenhand.systems import host

pytestmark = pytest.mark.ray


def test_a_cluster_gives_the_bytes_of_a_local_run(
    cluster: str, local: tuple[str, Path, Path], tmp_path: Path
) -> None:
    model, suite, run = local
    out = clusters.finish(clusters.start(model, suite, tmp_path / "run", cluster))
    assert "HOSTS" in out
    clusters.assert_same_run(tmp_path / "run", run)
    for part in ("scores", "requests"):
        names = [sorted(p.name for p in (r / part).iterdir()) for r in (run, tmp_path / "run")]
        assert names[0] == names[1]


OTHER = """
import dataclasses, sys
from evenhand.audit.auditing import audit
from evenhand.models.loading.resolver import resolve
from evenhand.runner.cluster import RayExecutor
model = resolve(sys.argv[1])
model.recipe = dataclasses.replace(model.recipe, spec=sys.argv[5])
audit(model, sys.argv[2], out=sys.argv[3], executor=RayExecutor(address=sys.argv[4]))
"""


@pytest.mark.parametrize("other", ["another model", "no model"])
def test_a_worker_with_another_model_refuses_and_the_run_stops(
    cluster: str, local: tuple[str, Path, Path], tiny: Any, tmp_path: Path, other: str
) -> None:
    model, suite, _ = local
    place = tiny("masked") if other == "another model" else str(tmp_path / "nowhere")
    done = subprocess.run(
        [sys.executable, "-c", OTHER, model, str(suite), str(tmp_path / "run"), cluster, place],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    why = "differs from the driver's" if other == "another model" else "no such file or folder"
    assert f"ModelError: worker on {host()}: " in done.stderr
    assert why in done.stderr
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "failed"


STUDY = """
import sys
from pathlib import Path
from evenhand.study.recipe import parse_recipe
from evenhand.study.running import Study
folder = Path(sys.argv[1])
recipe = parse_recipe({
    "corpus": {"files": ["{data}/text.txt"], "rare": 1},
    "training": {"dimensions": 8, "epochs": 2, "min_count": 1, "replicates": 2},
    "widening": {"neighbours": 0},
    "balancing": {"shares": []},
    "attract_repel": {"regularisations": [], "directions": []},
    "correlation": {"resamples": 99},
}, "here", "tiny")
address = sys.argv[2] if len(sys.argv) > 2 else None
job = Study(recipe, folder / ("ray" if address else "local"), folder,
            ray_address=address, on_ray=bool(address), workers=2 if address else None)
run = job.run()
print(run.status, [r["cell"] for r in run.table("study", "items").to_pylist()])
"""


def test_a_study_distributes_its_cells(cluster: str, tmp_path: Path) -> None:
    pytest.importorskip("gensim", reason="training word vectors needs the train extra")
    words = ["he", "she", "him", "her", "man", "woman", "nurse", "doctor", "carpenter", "teacher"]
    rows = [f"the {words[i % 10]} saw the {words[i // 10 % 10]} now ." for i in range(900)]
    (tmp_path / "text.txt").write_text("\n".join(rows) + "\n")
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    for address in ([], [cluster]):
        done = subprocess.run(
            [sys.executable, "-c", STUDY, str(tmp_path), *address],
            capture_output=True, text=True, timeout=240, env=env,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        assert done.stdout.count("original") == 2
    one, two = (tmp_path / name for name in ("local", "ray"))
    assert (one / "findings.json").read_bytes() == (two / "findings.json").read_bytes()
    for cell in (one / "cells").glob("word2vec-*"):
        same = cell / "vectors" / "vectors.npy"
        assert same.read_bytes() == (two / same.relative_to(one)).read_bytes()
