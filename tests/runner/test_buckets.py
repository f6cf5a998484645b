"""A bucket is somebody's: it is never made by a typing mistake, and what fails is named."""

from __future__ import annotations

import socket
import sys
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.audit.auditing import Audit, resume
from evenhand.audit.suites import parse_suite
from evenhand.errors import MissingExtra, RunError, SpecError
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.requests import Option
from evenhand.runner.places import settled
from evenhand.runner.store import ShardStore
from evenhand.runs.record import Run, RunWriter

fsspec = pytest.importorskip("fsspec")
COLUMNS = {"logit": np.linspace(0, 1, 9), "n_tokens": np.arange(9, dtype=np.int32)}
SUITE = {
    "name": "s",
    "probe": [{"name": "underspecified", "pairs": 4, "templates": 1, "attributes": ["nurse"],
               "resamples": 50}],
}  # fmt: skip


def audit(folder: Path, store: str | None) -> Any:
    model = ScriptedModel({"option": lambda p, o: float(len(p + o) % 7)}, name="m")
    suite = parse_suite(SUITE, "test", "s")
    return Audit(suite, "m", folder, loaded={"m": model}, store=store).run()


def test_a_missing_bucket_is_named_and_not_made(s3_settings: str, tmp_path: Path) -> None:
    import s3fs

    with pytest.raises(
        SpecError, match="bucket 'mistyped' does not exist.*aws s3 mb s3://mistyped"
    ):
        audit(tmp_path / "run", "s3://mistyped/prefix")
    assert not (tmp_path / "run").exists()
    assert not s3fs.S3FileSystem(use_listings_cache=False).exists("mistyped")


def test_a_bucket_that_vanishes_is_named(bucket: str) -> None:
    import s3fs

    fs = s3fs.S3FileSystem(use_listings_cache=False)
    fs.mkdir("short-lived")
    store = ShardStore("s3://short-lived/scores")
    fs.rmdir("short-lived")
    with pytest.raises(SpecError, match="bucket 'short-lived' does not exist"):
        store.write("k", COLUMNS, Option)


def test_credentials_that_are_refused_are_one_paragraph(bucket: str, s3_settings: str) -> None:
    def unchecked_calls(number: bytes) -> None:
        address, kind = f"{s3_settings}/moto-api/reset-auth", {"content-type": "text/plain"}
        urllib.request.urlopen(urllib.request.Request(address, number, kind)).close()

    unchecked_calls(b"0")
    try:
        with pytest.raises(RunError, match="does not answer as.*your credentials") as seen:
            ShardStore(f"{bucket}/refused")
    finally:
        unchecked_calls(b"inf")
    assert "\n" not in str(seen.value)


def test_no_credentials_are_one_paragraph(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import s3fs

    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(RunError, match="NoCredentialsError.*your credentials"):
        ShardStore(f"{bucket}/secret")


def test_an_endpoint_where_nobody_answers_is_one_paragraph(
    s3_settings: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import s3fs

    with socket.socket() as nobody:  # bound and not listening
        nobody.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{nobody.getsockname()[1]}")
        s3fs.S3FileSystem.clear_instance_cache()
        with pytest.raises(RunError, match="does not answer.*Look at its address"):
            audit(tmp_path / "run", "s3://somewhere")
    assert not (tmp_path / "run").exists()


def test_a_run_whose_driver_is_not_installed_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = audit(tmp_path / "run", f"file://{tmp_path}/s")
    facts = Run.open(done.folder).facts
    facts["work"]["store"] = "s3://bucket/prefix"
    del facts["object"]  # as if the model had been named
    RunWriter(done.folder).facts({**facts, "scores": "s3://bucket/prefix/run/scores"})
    before = (done.folder / "run.json").read_bytes()
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    with pytest.raises(MissingExtra, match="store 's3://bucket/prefix/run/scores'.*install s3fs$"):
        resume(done.folder)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtra, match="needs 'fsspec'.*evenhand.store"):
        resume(done.folder)
    assert (done.folder / "run.json").read_bytes() == before


@pytest.mark.parametrize("mistyped", ["s3:/bucket", "s3://", "gs:///", "memory:/x"])
def test_half_a_url_is_no_folder(mistyped: str) -> None:
    with pytest.raises(SpecError, match=f"--store '{mistyped}': names no place"):
        settled(mistyped)


def test_a_place_has_one_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert settled("s") == settled("s/") == f"{tmp_path}/s"
    assert settled("file://s") == f"file://{tmp_path}/s"
    assert settled("memory:///a/") == "memory:///a"
