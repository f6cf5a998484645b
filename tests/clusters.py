"""A Ray cluster of three nodes on this machine, each a process of its own, and audits on it."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

QUIET = {
    "RAY_ENABLE_AUTO_CONNECT": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",  # nothing to wait for when a test is over
}
NODES: list[int] = []
"""Process numbers of the nodes started here."""
SMALL = ["--num-cpus", "1", "--object-store-memory", "100000000", "--disable-usage-stats"]

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
from evenhand.audit.auditing import audit
from evenhand.runner.cluster import RayExecutor
executor = RayExecutor(address=sys.argv[4]) if len(sys.argv) > 4 else None
audit(sys.argv[1], Path(sys.argv[2]), out=sys.argv[3], executor=executor)
if executor:
    print("HOSTS", sum(executor.hosts.values()))
"""
# A model that is a Python object of a chosen size, so slow that something can happen to it.
SLOW = """
import json, sys, time, zlib
from pathlib import Path
from evenhand.audit.auditing import Audit
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.runner.cluster import RayExecutor
from evenhand.audit.suites import parse_suite

def answer(prefix, continuation, pause=0.0):
    time.sleep(pause)
    return -(zlib.crc32((prefix + continuation).encode()) % 1000) / 100 - 0.01

def model(pause, size=0):
    made = ScriptedModel({"continuation": lambda p, c: answer(p, c, pause)}, name="slow")
    made.ballast = bytes(size)
    return made

suite = parse_suite({"name": "s", "probe": [{
    "name": "underspecified", "pairs": 60, "templates": 2, "resamples": 50,
    "attributes": ["nurse", "doctor", "hunter", "pilot"]}]}, "test", "s")
folder = Path(sys.argv[1])

def run(name, pause, executor=None, size=0):
    job = Audit(suite, "slow", folder / name, loaded={"slow": model(pause, size)})
    job.executor = executor
    return job.run()
"""


def own_token() -> dict[str, str]:
    """Settings of a token of its own: tests neither read nor write the user's ~/.ray/auth_token."""
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}


@contextlib.contextmanager
def head(settings: dict[str, str], others: int = 0) -> Iterator[str]:
    """The address of a cluster that lives inside; no other Ray of this machine is touched.

    Its folder is no test's own: names of sockets may have 107 letters, and Ray needs 80 of them.
    """
    pytest.importorskip("ray", reason="needs the ray extra: pip install 'evenhand[ray]'")
    env = {**os.environ, **QUIET, **settings}
    with contextlib.ExitStack() as running:
        folder = running.enter_context(TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True))
        start = ["--head", "--port", "0", "--include-dashboard=false", "--temp-dir", folder]
        address = _started(running, start, env)
        for _ in range(others):
            _started(running, ["--address", address], env)
        yield address


def _started(running: contextlib.ExitStack, options: list[str], env: dict[str, str]) -> str:
    """Start one node; gives the address that a head prints for others."""
    binary = str(Path(sys.executable).parent / "ray")
    node = subprocess.Popen(
        [binary, "start", *options, *SMALL, "--block"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env,
    )  # fmt: skip
    assert node.stdout is not None
    said, address = "", ""
    for line in node.stdout:
        said += line
        if "--address=" in line:
            address = line.split("--address=")[1].split()[0].strip("'\"")
        if "block forever" in line:  # the node is up
            break
    if "block forever" not in said:
        _stop(node)
        node.stdout.close()
        pytest.fail(said[-2000:])
    NODES.append(node.pid)
    reader = threading.Thread(target=node.stdout.read, daemon=True)  # so that it never waits
    reader.start()
    running.callback(node.stdout.close)
    running.callback(reader.join, 30)
    running.callback(_stop, node)
    return address


def _stop(node: subprocess.Popen[str]) -> None:
    node.terminate()
    try:
        node.wait(30)
    except subprocess.TimeoutExpired:
        node.kill()


def start(model: str, suite: Path, out: Path, *address: str) -> subprocess.Popen[str]:
    """An audit in a process of its own, on the cluster at the address if one is given."""
    return subprocess.Popen(
        [sys.executable, "-c", AUDIT, model, str(suite), str(out), *address],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(worker: subprocess.Popen[str]) -> str:
    """What it said; it must have ended well."""
    out, err = worker.communicate(timeout=240)
    assert worker.returncode == 0, err[-3000:]
    return out


def scorers() -> list[int]:
    """Process numbers of the actors that hold a model, on nodes started here."""
    import psutil

    found = []
    for node in NODES:
        with contextlib.suppress(psutil.Error):
            for process in psutil.Process(node).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if any("ray::Scorer" in part for part in process.cmdline()):
                        found.append(process.pid)
    return found


def wait_for_shards(folder: Path, least: int, worker: subprocess.Popen[str]) -> None:
    """Until so many shards are finished, or the worker is."""
    deadline = time.monotonic() + 120
    while len(list((folder / "scores").glob("*.parquet"))) < least and worker.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def assert_same_run(one: Path, two: Path) -> None:
    """Equal findings, and every shard once under the same name."""
    assert (one / "findings.json").read_bytes() == (two / "findings.json").read_bytes()
    keys = [sorted(p.name.split(".")[0] for p in (r / "scores").iterdir()) for r in (one, two)]
    assert keys[0] == keys[1]
    assert len(keys[0]) == len(set(keys[0]))
