"""Ray: a worker, a node or the driver dies, and nothing is lost or doubled."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import clusters

pytestmark = pytest.mark.ray


def test_a_killed_worker_and_a_killed_driver_lose_and_double_nothing(
    cluster: str, local: tuple[str, Path, Path], tmp_path: Path
) -> None:
    model, suite, run = local
    folder = tmp_path / "run"
    driver = clusters.start(model, suite, folder, cluster)
    clusters.wait_for_shards(folder, 2, driver)
    for process in clusters.scorers()[:1]:
        os.kill(process, signal.SIGKILL)
    time.sleep(0.3)
    if driver.poll() is None:
        driver.send_signal(signal.SIGKILL)
    driver.communicate()
    clusters.finish(clusters.start(model, suite, folder, cluster))
    clusters.assert_same_run(folder, run)
    facts = json.loads((folder / "run.json").read_text())
    assert sum(facts["shards"]["scored_by_attempt"].values()) == facts["shards"]["total"]


OBJECT = (
    clusters.SLOW
    + """
run("local", 0.0)
run("run", 0.006, RayExecutor(address=sys.argv[2], workers=2), int(sys.argv[3]))
"""
)


@pytest.mark.parametrize("size", [0, 2_000_000], ids=["sent along", "kept in Ray's store"])
def test_a_killed_worker_gets_its_model_again(cluster: str, tmp_path: Path, size: int) -> None:
    driver = subprocess.Popen(
        [sys.executable, "-c", OBJECT, str(tmp_path), cluster, str(size)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    clusters.wait_for_shards(tmp_path / "run", 2, driver)
    begun = len(list((tmp_path / "run" / "scores").glob("*.parquet")))
    killed = clusters.scorers()
    for process in killed:
        os.kill(process, signal.SIGKILL)
    clusters.finish(driver)
    clusters.assert_same_run(tmp_path / "run", tmp_path / "local")
    assert killed
    assert begun < len(list((tmp_path / "run" / "scores").iterdir())) - 2, "it was over by then"


NODE_LOSS = (
    clusters.SLOW
    + """
import threading
import ray
from ray.cluster_utils import Cluster

run("local", 0.0)
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
run("run", 0.006, RayExecutor(address=cluster.address, workers=2, cpus=1, patience=3))
remover.join(120)
print("ALIVE", sum(n["Alive"] for n in ray.nodes()), flush=True)
ray.shutdown()
cluster.shutdown()
"""
)


def test_a_node_removed_in_the_middle_loses_and_doubles_nothing(
    token: dict[str, str], tmp_path: Path
) -> None:
    pytest.importorskip("ray", reason="needs the ray extra: pip install 'evenhand[ray]'")
    done = subprocess.run(
        [sys.executable, "-c", NODE_LOSS, str(tmp_path)],
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    removed_after = int(done.stdout.split("REMOVED ")[1].split()[0])
    shards = len(list((tmp_path / "run" / "scores").iterdir()))
    assert removed_after < shards - 2, "the node went after the run was over"
    assert "ALIVE 1" in done.stdout
    clusters.assert_same_run(tmp_path / "run", tmp_path / "local")
