"""Keys and questions go to servers that the user has named, and to none that only a file names."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.audit.suites import parse_suite
from evenhand.errors import ModelError, RunError, SpecError
from evenhand.models.endpoints import known
from evenhand.models.endpoints.address import Address
from evenhand.seals import write_sealed
from scripted_server import NAME, ScriptedServer

KEY = "sk-secret-key-of-the-user"
SUITE = {
    "name": "small",
    "probe": [{
        "name": "underspecified", "pairs": 2, "templates": ["same_city"], "attributes": ["nurse"],
    }],
}  # fmt: skip


@pytest.fixture
def nobody_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A user with a key who has named no server yet; gives the folder of the state."""
    monkeypatch.setenv("EVENHAND_API_KEY", KEY)
    monkeypatch.setenv("EVENHAND_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(known, "_NAMED", set())
    return tmp_path / "state"


def forget(monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    """Become another user, to whom the run folder was sent."""
    shutil.rmtree(state)
    monkeypatch.setattr(known, "_NAMED", set())


def finished(server: ScriptedServer, out: Path) -> eh.Run:
    return eh.audit(server.url, parse_suite(SUITE, "test", "small"), out=out)


def scripted() -> eh.ScriptedModel:
    """A model in this process."""

    def choose(prompt: str, options: str) -> list[float]:
        return [0.5 for _ in options.split("\t")]

    return eh.ScriptedModel({"choose": choose})


def unfinish(folder: Path) -> None:
    """Take the scores away, so that the server must be asked to resume the run."""
    for name in ("scores", "requests", "calls"):
        shutil.rmtree(folder / name, ignore_errors=True)


def evenhand(*words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "evenhand", *words]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)


def test_a_run_of_somebody_else_is_resumed_only_at_a_server_that_is_named(
    nobody_named: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedServer() as server:
        folder = finished(server, tmp_path / "run").folder
        unfinish(folder)
        forget(monkeypatch, nobody_named)
        before = len(server.headers)
        with pytest.raises(RunError, match="neither your key nor a question") as refusal:
            eh.resume(folder)
        done = evenhand("resume", str(folder))
        assert len(server.headers) == before
        assert done.returncode == 2
        command = f"evenhand resume {folder} --model {server.url}"
        assert command in str(refusal.value)
        assert command in " ".join(done.stderr.split())
        with pytest.raises(SpecError, match="does not ask this server"):
            eh.resume(folder, model="http://127.0.0.1:9/v1")
        assert len(server.headers) == before
        assert not nobody_named.exists()
        named = evenhand("resume", str(folder), "--model", server.url)
        assert named.returncode == 0, named.stderr
        assert f"Bearer {KEY}" in server.headers[before:]
        unfinish(folder)
        assert eh.resume(folder).status == "finished"  # it is remembered from then on


def test_a_gate_asks_more_only_at_a_server_that_is_named(
    nobody_named: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedServer() as server:
        run = finished(server, tmp_path / "run")
        earlier = finished(server, tmp_path / "earlier")
        forget(monkeypatch, nobody_named)
        before = len(server.headers)
        with pytest.raises(RunError, match=r"gate \S+ --until-decided --model http"):
            eh.gate(run, until_decided="3s")
        with pytest.raises(RunError, match=r"--model http"):
            eh.gate(run, baseline=earlier, until_decided="3s")
        done = evenhand("gate", str(run.folder), "--until-decided")
        assert done.returncode == 2
        assert f"--until-decided --model {server.url}" in " ".join(done.stderr.split())
        assert evenhand("gate", str(run.folder), "--model", server.url).returncode == 2
        assert len(server.headers) == before
        assert eh.gate(run).outcome  # what is in the folder is judged as before
        decided = eh.gate(run, until_decided=3.0, model=server.url)
        assert decided.looks >= 1
        assert {h for h in server.headers[before:] if h} <= {f"Bearer {KEY}"}


def test_the_address_is_remembered_before_the_first_question(
    nobody_named: Path, tmp_path: Path
) -> None:
    seen: list[bool] = []
    path = nobody_named / known.FILE

    def look(place: str, number: int) -> None:
        seen.append(path.is_file() and f":{port}/v1" in path.read_text())

    with ScriptedServer(fault=look) as server:
        port = server.url.rsplit(":", 1)[1].split("/")[0]
        finished(server, tmp_path / "run")
    assert seen
    assert all(seen)
    text = path.read_text()
    assert KEY not in text
    assert text.splitlines()[1:] == [server.url]
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(nobody_named.stat().st_mode) == 0o700


def test_suites_and_mitigations_name_no_server(
    nobody_named: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A suite that somebody sent asks its reference model nowhere, and gets no key sent there."""
    with ScriptedServer() as server:
        row = {"name": "underspecified", "pairs": 2, "model": server.url}
        sent = parse_suite({"name": "sent", "probe": [row]}, "test", "sent")
        own = parse_suite(SUITE, "test", "small")
        both = replace(own, entries=(*own.entries, *sent.entries))
        with pytest.raises(ModelError, match=f"{server.url}: this address comes from a file"):
            eh.audit(scripted(), both, out=tmp_path / "run")
        folder = tmp_path / "mitigation"
        folder.mkdir()
        facts = {"format": 1, "family": "head", "model": {"spec": server.url, "kind": None}}
        write_sealed(folder / "evenhand-mitigation.json", facts, {})
        with pytest.raises(ModelError, match=f"{server.url}: this address comes from a file"):
            eh.load_model(str(folder))
        assert server.headers == []
        eh.load_model(server.url, model=NAME)  # named now
        assert server.headers


@pytest.mark.parametrize("key", ["", KEY])
def test_a_server_of_this_machine_needs_no_name_where_there_is_no_key(
    nobody_named: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("EVENHAND_API_KEY", key)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    here, there = Address.of("http://localhost:1/v1"), Address.of("http://192.0.2.1:1/v1")
    assert known.may_be_asked(here) is not bool(key)
    assert not known.may_be_asked(there)
    with ScriptedServer() as server:
        folder = finished(server, tmp_path / "run").folder
        unfinish(folder)
        forget(monkeypatch, nobody_named)
        if key:
            with pytest.raises(RunError, match="--model"):
                eh.resume(folder)
        else:
            assert eh.resume(folder).status == "finished"


def test_a_file_of_others_or_a_broken_one_names_nothing(nobody_named: Path) -> None:
    address = Address.of("https://example.org/v1")
    known.remember(address)
    path = nobody_named / known.FILE
    known._NAMED.clear()
    assert known.is_known(address)
    if os.name == "posix":
        path.chmod(0o666)
        assert not known.is_known(address)
        path.chmod(0o600)
    path.write_bytes(b"\xff\xfe\0https://example.org/v1\n# https://example.org/v1\n")
    assert not known.is_known(address)
    path.unlink()
    path.mkdir()
    assert not known.is_known(address)
    known.remember(address)  # cannot be written: known to this process at least
    assert known.is_known(address)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("http://127.0.0.1:1/v1", True), ("http://[::1]:1/v1", True), ("http://LOCALHOST/v1", True),
        ("http://127.0.0.1.example.org/v1", False), ("http://localhost.example.org/v1", False),
        ("http://user@example.org/v1", False), ("https://2130706433/v1", False),
    ],
)  # fmt: skip
def test_what_is_this_machine(given: str, named: bool) -> None:
    assert known.is_loopback(Address.of(given)) is named


def test_a_run_without_a_server_takes_no_address(tmp_path: Path) -> None:
    run = eh.audit(scripted(), parse_suite(SUITE, "test", "small"), out=tmp_path / "run")
    with pytest.raises(SpecError, match="its models are not behind addresses"):
        eh.resume(run.folder, model="http://127.0.0.1:1/v1")


def test_gate_takes_the_other_option_for_the_baseline(
    nobody_named: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedServer() as one, ScriptedServer() as other:
        run, earlier = finished(one, tmp_path / "run"), finished(other, tmp_path / "earlier")
        forget(monkeypatch, nobody_named)
        known.remember(Address.of(one.url))
        asking: dict[str, Any] = {"baseline": earlier, "until_decided": 3.0}
        with pytest.raises(RunError, match=f"--baseline .* --baseline-model {other.url}"):
            eh.gate(run, **asking)
        assert eh.gate(run, **asking, baseline_model=other.url).looks >= 1
