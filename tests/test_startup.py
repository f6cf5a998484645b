"""Starting is quick: help, lists and imports load nothing heavy."""

from __future__ import annotations

import subprocess
import sys
import time
from importlib import metadata

import evenhand

HEAVY = ("torch", "scipy", "sklearn", "transformers", "pyarrow", "pandas")


def loaded_after(code: str) -> set[str]:
    """Which heavy packages a fresh interpreter has loaded after running some code."""
    probe = f"{code}\nimport sys\nprint([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return set(eval(done.stdout.strip().splitlines()[-1]))


def test_the_command_line_imports_nothing_heavy() -> None:
    assert loaded_after("import evenhand.cli.main") == set()


def test_importing_the_package_imports_nothing_heavy() -> None:
    assert loaded_after("import evenhand") == set()


def test_help_answers_quickly() -> None:
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "evenhand", "--help"], capture_output=True, text=True
        )
        times.append(time.perf_counter() - begun)
        assert done.returncode == 0
        assert "audit" in done.stdout
    # The budget is 0.5 s; a loaded machine gets a little more before this fails.
    assert min(times) < 0.8


def test_every_public_name_exists_and_is_listed() -> None:
    for name in evenhand.__all__:
        assert getattr(evenhand, name) is not None
    assert set(dir(evenhand)) == set(evenhand.__all__)
    assert len(evenhand.__all__) <= 17


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(evenhand, "no_such_name")


def test_a_plain_install_does_not_pull_torch() -> None:
    needed = [r for r in metadata.requires("evenhand") or [] if "extra ==" not in r]
    assert len(needed) >= 8
    assert not any(r.startswith(("torch", "transformers", "ray", "gensim")) for r in needed)
