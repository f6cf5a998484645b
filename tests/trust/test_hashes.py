"""What is installed can be compared with known hashes, and nobody's host is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PIN = re.compile(r"([\w.-]+)==([\w.+!-]+)")


def requirements(text: str) -> dict[str, tuple[str, list[str]]]:
    """Name to version and hashes, as pip reads the file: a line goes on after a backslash."""
    found = {}
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.startswith("#"):
            pin, *hashes = line.split()
            named = PIN.fullmatch(pin)
            assert named, line
            found[canonicalize_name(named[1])] = (named[2], hashes)
    return found


HELD = requirements((ROOT / "requirements-hashed.txt").read_text())
PINNED = requirements((ROOT / "constraints.txt").read_text())


def test_every_pin_has_hashes() -> None:
    if lost := sorted(set(PINNED) - set(HELD)):
        pytest.skip(f"{', '.join(lost)}: no hashes yet; write them with: python tools/hashes.py")


def test_hashes_are_of_the_versions_that_are_pinned() -> None:
    for name, (version, hashes) in HELD.items():
        assert PINNED[name][0] == version, name
        assert hashes, name
        assert len(set(hashes)) == len(hashes), name
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", h) for h in hashes), name


def test_no_file_of_pins_names_a_host() -> None:
    for name in ("constraints.txt", "requirements-hashed.txt", "tools/hashes.py"):
        assert "://" not in (ROOT / name).read_text(), name
