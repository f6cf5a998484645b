"""Starting is quick because help, lists and imports load nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest

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


HELP = """
import sys
from evenhand.cli.main import app
try:
    app({words!r}, prog_name="evenhand")
except SystemExit as stop:
    assert not stop.code
"""


def test_help_imports_nothing_heavy() -> None:
    assert loaded_after(HELP.format(words=["--help"])) == set()


@pytest.mark.parametrize("name", ["association", "coreference", "correlation", "validity"])
def test_the_help_of_a_measure_loads_its_own_probe_and_no_model_library(name: str) -> None:
    """Tables are read with pyarrow; nothing that computes or loads models is needed for help."""
    assert loaded_after(HELP.format(words=["measure", name, "--help"])) <= {"pyarrow"}


def test_every_public_name_exists_and_is_listed() -> None:
    for name in evenhand.__all__:
        assert getattr(evenhand, name) is not None
    assert set(dir(evenhand)) == set(evenhand.__all__)
    assert len(evenhand.__all__) <= 28


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(evenhand, "no_such_name")


def test_a_plain_install_does_not_pull_torch() -> None:
    needed = [r for r in metadata.requires("evenhand") or [] if "extra ==" not in r]
    assert len(needed) >= 8
    assert not any(r.startswith(("torch", "transformers", "ray", "gensim")) for r in needed)
