"""More than ten secrets are planted; none of them is in anything that is printed or written."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from evenhand.exports import FORMATS as EXPORTS
from in_process import evenhand

SUITE = """
[[probe]]
name = "underspecified"
pairs = 4
templates = 1
attributes = ["nurse"]
resamples = 50
"""
VARIABLES = ("OPENAI_API_KEY", "EVENHAND_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY",
             "AWS_SESSION_TOKEN", "MY_GENERATOR", "MY_CONTEXTS")  # fmt: skip

FORMATS = tuple(name for name in EXPORTS if name != "figures")  # which needs a renderer
HOME = "hidden-home-folder"


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    found = {name: f"hidden-{n}-word" for n, name in enumerate(VARIABLES)}
    for name, value in found.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PIP_INDEX_URL", "http://me:hidden-index-word@127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    for name in ("HTTP_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://me:hidden-proxy-word@127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    home = tmp_path / HOME
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    places = ("index", "proxy", "store", "address")
    return {**found, **{name: f"hidden-{name}-word" for name in places}}


@pytest.fixture
def said(secrets: dict[str, str], tmp_path: Path, tiny: Any, monkeypatch: Any) -> dict[str, str]:
    """What was printed, and every file that was written, by name."""
    home, work = tmp_path / HOME, tmp_path / "work"
    work.mkdir()
    model = shutil.copytree(tiny("choice"), home / "model")
    (work / "s.toml").write_text(SUITE)
    for name in ("generator", "contexts"):
        text = f'[[probe]]\nname = "discovery"\n{name} = "$MY_{name.upper()}"\n'
        (work / f"{name}.toml").write_text(text)
    store = ["--store", "memory://me:hidden-store-word@place/scores"]
    address = "http://me:hidden-address-word@127.0.0.1:9/v1"
    told: dict[str, str] = {}

    def tell(code: int, *words: str) -> None:
        done = evenhand(*words, cwd=work)
        assert done.returncode == code, done.stderr
        told[" ".join(words)] = done.stdout + done.stderr

    tell(0, "check", str(model), "--suite", "s.toml")
    tell(0, "audit", str(model), "--suite", "s.toml", "--out", "r", *store)
    tell(0, "audit", str(model), "--suite", "s.toml", "--out", "whole")
    for words in (("resume", "r"), ("report", "r"), ("show", "r"), ("compare", "r", "whole")):
        tell(0, *words)
    evenhand("gate", "r", "--junit", "g.xml", "--sarif", "g.sarif", "--summary", "g.md", cwd=work)
    for name in FORMATS:
        tell(0, "export", "whole", "--format", name, "--out", f"out-{name}")
    tell(0, "bundle", "whole", "--out", "e.tar")
    tell(0, "verify", "e.tar")
    for name in ("generator", "contexts"):
        tell(2, "check", str(model), "--suite", f"{name}.toml")
        tell(2, "audit", str(model), "--suite", f"{name}.toml", "--out", name)
    tell(2, "audit", address, "--model", "m", "--out", "u")
    tell(2, "check", address, "--model", "m")
    monkeypatch.setenv("EVENHAND_CACHE", str(work / "cache"))
    tell(2, "fetch", "glove-6b-50d")
    files = (p for p in work.rglob("*") if p.is_file())
    return told | {f"file {p.relative_to(work)}": p.read_bytes().decode("latin1") for p in files}


def test_no_secret_is_printed_or_written(said: dict[str, str], secrets: dict[str, str]) -> None:
    """Pages and exports, which are for others, do not show the home folder either."""
    assert len(set(secrets.values())) >= 10
    assert "file r/report.html" in said
    for place, text in said.items():
        if "://" in place:  # the words that were typed, in the name of the place alone
            place = place.split(" ")[0]
        for name, secret in secrets.items():
            assert secret not in text, (place, name)
    ends = (".html", ".md", ".xml", ".sarif")
    shown = [p for p in said if p.endswith(ends) or p.startswith("file out-")]
    shown = [p for p in shown if not p.endswith(".parquet")]
    assert len(shown) > 5
    for place in shown:
        assert HOME not in said[place], place
