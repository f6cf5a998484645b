"""Ten secrets are planted; none of them is in anything that is printed or written."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

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
             "MY_GENERATOR", "MY_CONTEXTS")  # fmt: skip
FORMATS = ("csv", "json", "lm-eval", "eee", "model-card", "junit", "sarif", "markdown", "latex")


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    found = {name: f"hidden-{n}-word" for n, name in enumerate(VARIABLES)}
    for name, value in found.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PIP_INDEX_URL", "http://me:hidden-6-word@127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    home = tmp_path / "hidden-7-word"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return {**found, "pip": "hidden-6-word", "home": "hidden-7-word", "store": "hidden-8-word",
            "address": "hidden-9-word"}  # fmt: skip


def test_no_secret_is_printed_or_written(
    secrets: dict[str, str], tmp_path: Path, tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, work = Path(tmp_path / "hidden-7-word"), tmp_path / "work"
    work.mkdir()
    model = shutil.copytree(tiny("choice"), home / "model")
    (work / "s.toml").write_text(SUITE)
    for name in ("generator", "contexts"):
        text = f'[[probe]]\nname = "discovery"\n{name} = "$MY_{name.upper()}"\n'
        (work / f"{name}.toml").write_text(text)
    store = ["--store", "memory://me:hidden-8-word@place/scores"]
    said = []

    def tell(code: int, *words: str) -> None:
        done = evenhand(*words, cwd=work)
        assert done.returncode == code, done.stderr
        said.append(done.stdout + done.stderr)

    tell(0, "audit", str(model), "--suite", "s.toml", "--out", "r", *store)
    tell(0, "resume", "r")
    tell(0, "report", "r")
    tell(0, "show", "r")
    for name in FORMATS:
        done = evenhand("export", "r", "--format", name, cwd=work)
        said.append(done.stdout + done.stderr)
    for name in ("generator", "contexts"):
        tell(2, "check", str(model), "--suite", f"{name}.toml")
        tell(2, "audit", str(model), "--suite", f"{name}.toml", "--out", name)
    tell(2, "audit", "http://me:hidden-9-word@127.0.0.1:9/v1", "--model", "m", "--out", "u")
    monkeypatch.setenv("EVENHAND_CACHE", str(work / "cache"))
    tell(2, "fetch", "glove-6b-50d")
    texts = {"output": "\n".join(said)}
    texts |= {str(p): p.read_bytes().decode("latin1") for p in work.rglob("*") if p.is_file()}
    own = {secrets["home"]}  # what was typed may be said again; pages for others hide it
    for name, text in texts.items():
        for secret in set(secrets.values()) - (set() if name.endswith(".html") else own):
            assert secret not in text, (name, secret)
    assert (work / "r" / "report.html").is_file()
