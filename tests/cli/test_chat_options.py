"""--chat and --system from the command line: asked, recorded, resumed, refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from in_process import evenhand

SUITE = """name = "small"
[[probe]]
name = "underspecified"
pairs = 8
templates = 1
attributes = ["nurse", "hunter"]
resamples = 50
"""
TEMPLATE = "{% for m in messages %}{{ m.role + ': ' + m.content + ' ' }}{% endfor %}assistant: "


@pytest.fixture
def talking(tiny: Any, tmp_path: Path) -> Path:
    """A tiny causal checkpoint with a chat template, and a small suite beside it."""
    folder = tmp_path / "talking"
    shutil.copytree(tiny("causal"), folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    (tmp_path / "small.toml").write_text(SUITE)
    return folder


def test_a_template_is_used_recorded_and_part_of_the_work(talking: Path, tmp_path: Path) -> None:
    (tmp_path / "system.txt").write_text("Be brief.\n")
    given = ("audit", "talking", "--suite", "small.toml", "--out", "r", "--system", "@system.txt")
    done = evenhand(*given, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    facts = json.loads((tmp_path / "r" / "run.json").read_text())
    assert (facts["chat"], facts["system"]) == (True, "Be brief.")
    assert facts["rung"] == "chat continuation"
    assert facts["work"]["options"] == {"system": "Be brief."}
    assert 0 < facts["mass"] < 1
    assert "with the system prompt 'Be brief.'" in " ".join(done.stdout.split())
    assert "--system" in (tmp_path / "r" / "report.html").read_text()
    other = evenhand(*given[:-2], "--chat", "off", cwd=tmp_path)
    assert other.returncode == 2
    assert "another options" in other.stderr
    again = evenhand("resume", "r", cwd=tmp_path)
    assert again.returncode == 0, again.stderr


def test_check_shows_the_conversation(talking: Path, tmp_path: Path) -> None:
    done = evenhand("check", "talking", "--suite", "small.toml", "--json", "-", cwd=tmp_path)
    (row,) = json.loads(done.stdout)["probes"]
    assert row["conversation"].startswith("user: ")
    assert row["conversation"].endswith("? assistant: ")
    plain = evenhand(
        "check", "talking", "--suite", "small.toml", "--chat", "off", "--json", "-", cwd=tmp_path
    )
    assert json.loads(plain.stdout)["probes"][0]["conversation"] == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--chat", "maybe"), "Known: auto, off, on"),
        (("--chat", "off", "--system", "Be brief."), "asked as plain text (--chat is off)"),
        (("--system", "@none.txt"), "none.txt: no such file"),
        (("--way", "dice"), "unknown way 'dice'"),
    ],
)
def test_mistakes_are_one_paragraph(
    talking: Path, tmp_path: Path, given: tuple[str, ...], said: str
) -> None:
    done = evenhand("audit", "talking", "--suite", "small.toml", "--out", "r", *given, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.strip().count("\n") <= 1
    assert not (tmp_path / "r").exists()


def test_chat_on_without_a_template_is_refused(tiny: Any, tmp_path: Path) -> None:
    done = evenhand("audit", str(tiny("causal")), "--chat", "on", "--out", "r", cwd=tmp_path)
    assert done.returncode == 2
    assert "has no chat template" in done.stderr
    assert "--chat off" in done.stderr
