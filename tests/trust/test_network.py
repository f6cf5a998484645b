"""An offline audit talks to nobody: the system calls of the whole command are looked at."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SUITE = """
[[probe]]
name = "underspecified"
pairs = 4
templates = 1
attributes = ["nurse"]
resamples = 100
"""


def traced(*words: str, cwd: Path) -> tuple[int, list[str]]:
    """Exit code of `evenhand WORDS`, and every system call by which it would reach others."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    log = cwd / "calls.txt"
    calls = "trace=connect,sendto,sendmsg,sendmmsg"
    done = subprocess.run(
        ["strace", "-f", "-qq", "-e", calls, "-o", str(log),
         sys.executable, "-m", "evenhand", *words],
        cwd=cwd, capture_output=True, text=True, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    if "PTRACE" in done.stderr or "ptrace" in done.stderr:
        pytest.skip(f"no process may be traced here: {done.stderr.strip()[:100]}")
    return done.returncode, log.read_text().splitlines()


def to_others(calls: list[str]) -> list[str]:
    """Calls that go beyond this machine's own processes (unix sockets, the kernel's netlink)."""
    named = [c for c in calls if re.search(r"sa_family=AF_\w+|sun_path", c)]
    return [c for c in named if not re.search(r"AF_UNIX|AF_NETLINK|sun_path", c)]


def test_an_offline_audit_makes_no_connection(tiny: Any, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SUITE)
    words = ("audit", tiny("causal"), "--chat", "off", "--suite", "s.toml", "--out", "r")
    code, calls = traced(*words, cwd=tmp_path)
    assert code == 0, calls[-5:]
    assert (tmp_path / "r" / "report.html").is_file()
    assert to_others(calls) == []


def test_a_connection_would_be_seen(tmp_path: Path) -> None:
    """The same look at a command that does ask a server, at a port where nobody listens."""
    words = ("check", "http://127.0.0.1:9/v1", "--model", "m")
    code, calls = traced(*words, cwd=tmp_path)
    assert code == 2
    assert any("htons(9)" in call for call in to_others(calls))
