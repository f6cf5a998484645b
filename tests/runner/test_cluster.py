"""Ray: the same bytes as a local run, whatever dies on the way."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.ray

SUITE = """
name = "small"
[[probe]]
name = "underspecified"
pairs = 24
templates = 2
attributes = ["nurse", "doctor", "hunter", "pilot"]
resamples = 60
"""

AUDIT = """
import sys
from pathlib import Path
from evenhand.auditing import audit
from evenhand.runner.cluster import RayExecutor
executor = RayExecutor(address=sys.argv[4]) if len(sys.argv) > 4 else None
audit(sys.argv[1], Path(sys.argv[2]), out=sys.argv[3], executor=executor)
if executor:
    print("HOSTS", sum(executor.hosts.values()))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A head and two more nodes as processes of their own, stopped afterwards."""
    pytest.importorskip("ray", reason="needs the ray extra: pip install 'evenhand[ray]'")
    binary = str(Path(sys.executable).parent / "ray")
    folder = tmp_path_factory.mktemp("ray")
    env = {**os.environ, "RAY_ENABLE_AUTO_CONNECT": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    common = ["--num-cpus", "1", "--object-store-memory", "100000000", "--disable-usage-stats"]
    head = subprocess.run(
        [binary, "start", "--head", "--port", "0", "--include-dashboard=false",
         "--temp-dir", str(folder), *common],
        capture_output=True, text=True, env=env, timeout=120,
    )  # fmt: skip
    assert head.returncode == 0, head.stderr
    address = next(
        word.strip("'\"")
        for line in head.stdout.splitlines()
        if "--address=" in line
        for word in [line.split("--address=")[1].split()[0]]
    )
    join = [binary, "start", "--address", address, *common]
    for _ in range(2):
        subprocess.run(join, capture_output=True, env=env, timeout=120)
    yield address
    subprocess.run([binary, "stop", "--force"], capture_output=True, env=env, timeout=60)


def start(model: str, suite: Path, out: Path, *address: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", AUDIT, model, str(suite), str(out), *address],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(worker: subprocess.Popen[str]) -> str:
    out, err = worker.communicate(timeout=240)
    assert worker.returncode == 0, err
    return out


def scorers() -> list[int]:
    """Process numbers of the actors that hold a model."""
    import psutil

    found = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        with contextlib.suppress(psutil.Error):
            if any("ray::Scorer" in part for part in process.info["cmdline"] or []):
                found.append(process.info["pid"])
    return found


@pytest.fixture(scope="module")
def local(tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Path]:
    """The model, the suite, and a finished local run."""
    folder = tmp_path_factory.mktemp("local")
    suite = folder / "small.toml"
    suite.write_text(SUITE)
    finish(start(tiny("causal"), suite, folder / "run"))
    return tiny("causal"), suite, folder / "run"


def test_a_cluster_gives_the_bytes_of_a_local_run(
    cluster: str, local: tuple[str, Path, Path], tmp_path: Path
) -> None:
    model, suite, run = local
    out = finish(start(model, suite, tmp_path / "run", cluster))
    assert "HOSTS" in out
    assert (tmp_path / "run" / "findings.json").read_bytes() == (run / "findings.json").read_bytes()
    for part in ("scores", "requests"):
        names = [sorted(p.name for p in (r / part).iterdir()) for r in (run, tmp_path / "run")]
        assert names[0] == names[1]


def test_a_killed_worker_and_a_killed_driver_lose_and_double_nothing(
    cluster: str, local: tuple[str, Path, Path], tmp_path: Path
) -> None:
    model, suite, run = local
    folder = tmp_path / "run"
    driver = start(model, suite, folder, cluster)
    deadline = time.monotonic() + 120
    while len(list((folder / "scores").glob("*.parquet"))) < 2 and driver.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    for process in scorers()[:1]:
        os.kill(process, signal.SIGKILL)
    time.sleep(0.3)
    if driver.poll() is None:
        driver.send_signal(signal.SIGKILL)
    driver.communicate()
    finish(start(model, suite, folder, cluster))
    assert (folder / "findings.json").read_bytes() == (run / "findings.json").read_bytes()
    keys = [p.name.split(".")[0] for p in (folder / "scores").glob("*.parquet")]
    assert len(keys) == len(set(keys)) == len(list((run / "scores").iterdir()))
    facts = json.loads((folder / "run.json").read_text())
    assert sum(facts["shards"]["scored_by_attempt"].values()) == facts["shards"]["total"]


OTHER = """
import sys
from evenhand.auditing import audit
from evenhand.models.resolver import resolve
from evenhand.runner.cluster import RayExecutor
model = resolve(sys.argv[1])
model.recipe = {**model.recipe, "spec": sys.argv[5]}
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
    assert f"ModelError: worker on {os.uname().nodename}: " in done.stderr
    assert why in done.stderr
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "failed"


NODE_LOSS = """
import json, sys, threading, time, zlib
from pathlib import Path
import ray
from ray.cluster_utils import Cluster
from evenhand.auditing import Audit
from evenhand.models.scripted import ScriptedModel
from evenhand.runner.cluster import RayExecutor
from evenhand.suite import parse_suite

def answer(prefix, continuation, pause=0.0):
    time.sleep(pause)
    return -(zlib.crc32((prefix + continuation).encode()) % 1000) / 100 - 0.01

def model(pause):
    return ScriptedModel({"continuation": lambda p, c: answer(p, c, pause)}, name="slow")

suite = parse_suite({"name": "s", "probe": [{
    "name": "underspecified", "pairs": 60, "templates": 2, "resamples": 50,
    "attributes": ["nurse", "doctor", "hunter", "pilot"]}]}, "test", "s")
folder = Path(sys.argv[1])
Audit(suite, "slow", folder / "local", loaded={"slow": model(0.0)}).run()
common = {"num_cpus": 1, "object_store_memory": 100_000_000}
cluster = Cluster(initialize_head=True, head_node_args={**common, "include_dashboard": False})
node = cluster.add_node(**common)
cluster.wait_for_nodes()
ray.init(address=cluster.address, log_to_driver=False)

def remove():
    shards = folder / "run" / "scores"
    while len(list(shards.glob("*.parquet"))) < 3:
        time.sleep(0.02)
    begun = len(list(shards.glob("*.parquet")))
    cluster.remove_node(node, allow_graceful=False)
    print("REMOVED", begun, flush=True)

remover = threading.Thread(target=remove, daemon=True)
remover.start()
executor = RayExecutor(address=cluster.address, workers=2, cpus=1, patience=3)
run = Audit(suite, "slow", folder / "run", loaded={"slow": model(0.006)}, executor=executor).run()
remover.join(120)
alive = sum(n["Alive"] for n in ray.nodes())
print("ALIVE", alive, json.dumps(run.facts["shards"]), flush=True)
ray.shutdown()
cluster.shutdown()
"""


def test_a_node_removed_in_the_middle_loses_and_doubles_nothing(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs the ray extra: pip install 'evenhand[ray]'")
    env = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_AUTO_CONNECT": "0"}
    done = subprocess.run(
        [sys.executable, "-c", NODE_LOSS, str(tmp_path)],
        capture_output=True, text=True, timeout=240, env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    removed_after = int(done.stdout.split("REMOVED ")[1].split()[0])
    local, run = tmp_path / "local", tmp_path / "run"
    keys = [p.name.split(".")[0] for p in (run / "scores").glob("*.parquet")]
    assert removed_after < len(keys) - 2, "the node went after the run was over"
    assert "ALIVE 1" in done.stdout
    assert (run / "findings.json").read_bytes() == (local / "findings.json").read_bytes()
    wanted = sorted(p.name for p in (local / "scores").glob("*.parquet"))
    assert sorted(p.name for p in (run / "scores").glob("*.parquet")) == wanted
    assert len(keys) == len(set(keys))


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
job = Study(recipe, folder / ("ray" if address else "local"), folder, 1, (),
            ray_address=address, on_ray=bool(address))
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


def test_no_cluster_at_an_address_is_one_paragraph(tiny: Any, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs the ray extra: pip install 'evenhand[ray]'")
    done = subprocess.run(
        [sys.executable, "-m", "evenhand", "probe", "divergence", tiny("causal"), "--executor",
         "ray", "--address", "127.0.0.1:1", "--out", str(tmp_path / "r")],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "no Ray cluster answers at '127.0.0.1:1'" in done.stderr
    assert "Traceback" not in done.stderr
