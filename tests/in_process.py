"""The command in this process: torch is loaded once for all tests that use it."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from pathlib import Path
from unittest import mock


def evenhand(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Exit code, output and errors of `evenhand WORDS`, run in a folder."""
    from evenhand.cli.main import main

    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", ["evenhand", *words]),
    ):
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())
