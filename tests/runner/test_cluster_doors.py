"""Ray: who may come in, and what is said when a cluster is not there or does not open."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import clusters
from evenhand.errors import MissingExtra, RunError, SpecError
from evenhand.runner.cluster import RayExecutor
from evenhand.runner.cluster_address import meant

ray = pytest.importorskip("ray", reason="needs the ray extra: pip install 'evenhand[ray]'")
pytestmark = pytest.mark.ray


def knocked(address: str, env: dict[str, str] | None = None, *unset: str) -> str:
    """What a process of its own hears at the door: Ray keeps what it knows of tokens."""
    program = "from evenhand.runner.cluster import RayExecutor as R; R(address={!r}).knock()"
    settings = {k: v for k, v in {**os.environ, **(env or {})}.items() if k not in unset}
    done = subprocess.run(
        [sys.executable, "-c", program.format(address)],
        capture_output=True, text=True, timeout=120, env=settings,
    )  # fmt: skip
    return done.stderr if done.returncode else "in"


def test_with_its_token_a_cluster_opens(cluster: str) -> None:
    assert knocked(cluster) == "in"


def test_a_cluster_that_wants_a_token_says_so_before_a_model_is_loaded(
    cluster: str, token: dict[str, str], tmp_path: Path
) -> None:
    saved = tmp_path / ".ray" / "auth_token"
    saved.parent.mkdir()
    saved.write_text(token["RAY_AUTH_TOKEN"])
    tokens = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN")
    said = knocked(cluster, {"HOME": str(tmp_path)}, *tokens)
    assert f"RunError: --address {cluster!r}: the Ray cluster asks for a token" in said
    assert "export RAY_AUTH_MODE=token" in said
    assert knocked(cluster, {"HOME": str(tmp_path), "RAY_AUTH_MODE": "token"}, *tokens[1:]) == "in"


@pytest.mark.parametrize("what", ["another", "none"])
def test_a_wrong_or_missing_token_is_named(cluster: str, tmp_path: Path, what: str) -> None:
    env = {"HOME": str(tmp_path), "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "another"}
    said = knocked(cluster, env, *(["RAY_AUTH_TOKEN"] if what == "none" else []))
    assert "there is none here or it is another cluster's" in said
    assert "ray get-auth-token" in said


def test_a_cluster_without_a_token_is_sent_none(tmp_path: Path) -> None:
    """Sent one, it lets the driver in and then never starts a worker."""
    saved = tmp_path / "home" / ".ray" / "auth_token"
    saved.parent.mkdir(parents=True)
    saved.write_text("left by another cluster")
    tokens = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_ADDRESS")
    home = {"HOME": str(tmp_path / "home")}
    with clusters.head({"RAY_AUTH_MODE": "disabled"}) as address:
        said = knocked(address, {**home, "RAY_AUTH_MODE": "token"}, *tokens[1:])
        assert "has no token, and RAY_AUTH_MODE=token sends it one" in said
        assert knocked(address, home, *tokens) == "in"
        env = {k: v for k, v in {**os.environ, **home}.items() if k not in tokens}
        found = ALONE.format(address=address)
        done = subprocess.run(
            [sys.executable, "-c", found], capture_output=True, text=True, timeout=120, env=env
        )
        assert done.stdout.split()[-2:] == ["WORKED", "disabled"], done.stderr[-2000:]


ALONE = """
import os
from ray._private import services
services.get_ray_address_from_environment = lambda addr, folder: {address!r}  # what auto finds
from evenhand.runner.cluster import RayExecutor
ray = RayExecutor(address="auto").connect()
@ray.remote
class Actor:
    def work(self):
        return "WORKED"
print(ray.get(Actor.remote().work.remote()), os.environ["RAY_AUTH_MODE"])
"""


OWN = """
import sys
from evenhand.runner.cluster import RayExecutor
ray = RayExecutor(workers=1).connect()
print("NODES", len(ray.nodes()), ray.get_runtime_context().gcs_address)
"""


def test_ray_started_here_is_its_own_and_leaves_no_token_behind(
    cluster: str, tmp_path: Path
) -> None:
    unset = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_ADDRESS")
    env = {k: v for k, v in {**os.environ, "HOME": str(tmp_path)}.items() if k not in unset}
    done = subprocess.run(
        [sys.executable, "-c", OWN], capture_output=True, text=True, timeout=120, env=env
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:2] == ["NODES", "1"]
    assert cluster not in done.stdout
    assert not (tmp_path / ".ray").exists()


def test_the_note_of_a_cluster_that_is_gone_does_not_hang(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ray._private import services

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(services, "find_gcs_addresses", set)  # none runs
    monkeypatch.setattr(services, "find_bootstrap_address", lambda folder: place)
    with pytest.raises(RunError, match="no Ray cluster answers at"):
        RayExecutor(address="auto").knock()
    monkeypatch.setattr(services, "find_bootstrap_address", lambda folder: None)
    with pytest.raises(RunError, match="at 'auto' .Could not find any running Ray instance"):
        RayExecutor(address="auto").knock()


@contextlib.contextmanager
def other_program(answer: bytes) -> Iterator[str]:
    """The address of a server that is no Ray: it says one thing to every caller."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                caller, _ = server.accept()
                with caller:
                    caller.recv(64)
                    caller.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("answer", [b"HTTP/1.0 505 no\r\n\r\n", b"", b"-ERR"])
def test_the_port_of_another_program_is_named_at_once(answer: bytes) -> None:
    with (
        other_program(answer) as address,
        pytest.raises(RunError, match=f"at '{address}' .another program"),
    ):
        RayExecutor(address=address).knock()


@pytest.mark.parametrize("address", ["nonsense", "localhost:abc", "", "host:1/x", "::1:6379"])
def test_an_address_that_is_none_is_refused_before_anything_is_loaded(address: str) -> None:
    with pytest.raises(SpecError, match="expected HOST:PORT"):
        RayExecutor(address=address).knock()


def test_rays_client_is_asked_for_before_a_model_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"ray\[client\]"):
        RayExecutor(address="ray://127.0.0.1:1").knock()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    with pytest.raises(RunError, match="no Ray cluster answers at 'ray://127.0.0.1:1'"):
        RayExecutor(address="ray://127.0.0.1:1").knock()


@pytest.mark.parametrize("address", ["127.0.0.1:1", "[::1]:1"])
def test_nobody_at_an_address_is_said(address: str) -> None:
    with pytest.raises(RunError, match="no Ray cluster answers at"):
        RayExecutor(address=address).knock()


def test_ray_address_counts_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    assert (meant(None), meant("head:2"), meant("local")) == ("127.0.0.1:1", "head:2", None)
    with pytest.raises(RunError, match="no Ray cluster answers at '127.0.0.1:1'"):
        RayExecutor().knock()
    monkeypatch.setenv("RAY_ADDRESS", "nonsense")
    with pytest.raises(SpecError, match="RAY_ADDRESS='nonsense': expected HOST:PORT"):
        RayExecutor().knock()


def test_no_cluster_at_an_address_is_one_paragraph(tiny: Any, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "evenhand", "probe", "divergence", tiny("causal"), "--executor",
         "ray", "--address", "127.0.0.1:1", "--out", str(tmp_path / "r")],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "no Ray cluster answers at '127.0.0.1:1'" in done.stderr
    assert "Traceback" not in done.stderr
