"""`evenhand push`: the layout of a model repository, and an upload to a Hub that listens here."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

import evenhand as eh
import made_runs
from evenhand.integrations.hub import BEGINS, ENDS, files_of, merged, push
from evenhand.runs.record import Run
from in_process import evenhand

hub = pytest.importorskip("huggingface_hub", reason="needs the hf extra")
ROOT = Path(__file__).resolve().parents[2]
THEIRS = """---
license: apache-2.0
tags: [mine]
model-index:
- name: mine
  results:
  - task: {type: text-generation}
    dataset: {name: HLE, type: cais/hle}
    metrics: [{type: acc, value: 0.2}]
---
# Mine

It writes.
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return made_runs.ordinary(tmp_path / "run")


def test_a_dry_run_writes_the_layout_and_says_so(run: Run, tmp_path: Path) -> None:
    done = evenhand("push", "run", "--to", "me/mine", "--dry-run", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Would upload  .eval_results/evenhand.yaml" in done.stdout
    assert "to me/mine; written below out" in done.stdout
    written = {p.relative_to(tmp_path / "out").as_posix()
               for p in (tmp_path / "out").rglob("*") if p.is_file()}  # fmt: skip
    assert written == {"README.md", ".eval_results/evenhand.yaml", "evenhand/findings.json"}
    assert (tmp_path / "out/evenhand/findings.json").read_bytes() == (
        run.folder / "findings.json"
    ).read_bytes()


def test_results_are_what_the_hubs_own_code_reads(run: Run) -> None:
    files = files_of(run)
    entries = hub.parse_eval_result_entries(yaml.safe_load(files[".eval_results/evenhand.yaml"]))
    own = {f"evenhand/{f.id}": f for f in run.findings if f.counts and f.value == f.value}
    assert {f"{e.dataset_id}/{e.task_id}": e.value for e in entries} == {
        name: f.value for name, f in own.items()
    }
    assert all(e.source_name.startswith("evenhand ") for e in entries)
    nurse = next(e for e in entries if e.task_id == "gamma/nurse")
    assert "95 % interval 0.200 to 0.410" in nurse.notes
    card = hub.ModelCard(files["README.md"].decode())
    assert card.data.model_name == "tiny-model"
    assert {r.dataset_type for r in card.data.eval_results} == {
        "evenhand/underspecified", "evenhand/divergence",
    }  # fmt: skip


def test_a_card_keeps_what_is_not_ours(run: Run) -> None:
    once = merged(run, THEIRS)
    card = hub.ModelCard(once)
    assert card.data.license == "apache-2.0"
    assert card.data.model_name == "mine"
    assert card.data.tags == ["mine", "evenhand", "bias-audit"]
    assert card.data.eval_results[0].dataset_type == "cais/hle"
    assert "# Mine\n\nIt writes.\n" in card.text
    assert card.text.count(BEGINS) == card.text.count(ENDS) == 1
    assert merged(run, once) == once  # a second time nothing is doubled
    later = merged(run, once.replace(ENDS, f"{ENDS}\nMore of mine.\n"))
    assert "More of mine." in later
    assert later.count("## Bias, Risks, and Limitations") == 1


def test_a_new_card_has_one_header_and_nothing_before_our_section(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    made = merged(run)
    _, header, body = made.split("---\n", 2)
    assert yaml.safe_load(header)["tags"] == ["evenhand", "bias-audit"]
    assert body.lstrip().startswith(BEGINS)
    assert caplog.text == ""


def test_mistakes_are_told(run: Run, tmp_path: Path) -> None:
    with pytest.raises(eh.EvenhandError, match="push --to 'mine': expected .*OWNER/NAME"):
        push(run, "mine", folder=tmp_path)
    with pytest.raises(eh.EvenhandError, match="README.md: its header cannot be read"):
        merged(run, "---\ntags: [a\n---\ntext")
    open_run = made_runs.write(tmp_path / "open", made_runs.facts() | {"status": "running"}, [], {})
    with pytest.raises(eh.EvenhandError, match="only finished runs"):
        push(open_run, "me/mine", folder=tmp_path / "x")


class Hub(BaseHTTPRequestHandler):
    """As much of the Hub as a commit needs."""

    card: str | None = THEIRS
    commits: list[dict[str, bytes]] = []  # noqa: RUF012 - one list for all calls
    requests: list[str] = []  # noqa: RUF012

    def log_message(self, *_: Any) -> None:
        pass

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self) -> None:
        if self.card is None:
            self._send(404, b"", X_Error_Code="EntryNotFound")
            return
        self._send(200, self.card.encode(), ETag='"abc"', X_Repo_Commit="0" * 40)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length")
        raw = self.rfile.read(int(length)) if length else self._chunks()
        self.requests.append(self.path)
        if "/preupload/" in self.path:
            files = [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False}
                     for f in json.loads(raw)["files"]]  # fmt: skip
            self._send(200, json.dumps({"files": files}).encode())
        elif "/commit/" in self.path:
            rows = [json.loads(line) for line in raw.splitlines()]
            self.commits.append({
                r["value"]["path"]: base64.b64decode(r["value"]["content"])
                for r in rows if r["key"] == "file"
            })  # fmt: skip
            place = f"http://{self.headers['Host']}/me/mine/commit/{'1' * 40}"
            told = {"success": True, "commitOid": "1" * 40, "commitUrl": place, "hookOutput": ""}
            self._send(200, json.dumps(told).encode())
        else:
            self._send(200, b'{"errors": [], "warnings": []}')

    def _chunks(self) -> bytes:
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)


@pytest.fixture
def listening() -> Iterator[str]:
    Hub.commits.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_upload_is_one_commit_merged_into_the_card(
    run: Run, listening: str, tmp_path: Path
) -> None:
    env = {
        **os.environ, "HF_ENDPOINT": listening, "HF_HUB_OFFLINE": "0", "HF_TOKEN": "hf_none",
        "HF_HOME": str(tmp_path / "hf"), "PYTHONPATH": str(ROOT / "src"),
        "HF_HUB_DISABLE_XET": "1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "evenhand", "push", str(run.folder), "--to", "me/mine"],
        env=env, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"to me/mine: {listening}/me/mine/commit/{'1' * 40}" in done.stdout.replace("\n", "")
    (commit,) = Hub.commits
    assert commit == files_of(run, THEIRS)
