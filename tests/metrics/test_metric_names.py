"""`from evenhand.metrics import ...`: every name is there, documented, and loads nothing early."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

from evenhand import metrics
from evenhand.metrics import divergence, kl_divergence, rnsb, success_rate, unqover, weat


def test_functions_and_modules_are_imported_by_name() -> None:
    assert weat.__module__ == rnsb.__module__ == "evenhand.metrics.association"
    assert success_rate(1, 2) == 0.5
    assert divergence.kl_divergence is kl_divergence
    assert unqover.intensity is metrics.intensity


@pytest.mark.parametrize("name", metrics.__all__)
def test_every_name_exists_and_says_what_it_is(name: str) -> None:
    found = getattr(metrics, name)
    assert found.__doc__
    assert isinstance(found, ModuleType) or callable(found)
    assert name in dir(metrics)


def test_unknown_names_are_attribute_errors_and_nothing_is_loaded_early() -> None:
    assert not hasattr(metrics, "waet")
    code = "import sys, evenhand.metrics; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
