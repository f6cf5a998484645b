"""`from evenhand.metrics import ...`: every name is there, documented, and loads nothing early."""

from __future__ import annotations

import inspect
import subprocess
import sys
from types import ModuleType

import numpy as np
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


def test_a_paper_and_a_probe_can_be_called() -> None:
    cell = [[[[0.26, 0.73], [0.35, 0.62]], [[0.54, 0.45], [0.12, 0.86]]]]
    found = unqover(cell * 2, ["Gerald", "Ann"], ["Jennifer", "Bo"], ["hunter", "nurse"])
    assert found.mu == pytest.approx(0.1575)
    assert found.n_cells == 2
    rows = np.log([[0.5, 0.5], [0.2, 0.8]])
    assert divergence(rows, rows[::-1]).kl_ab == pytest.approx(kl_divergence(rows, rows[::-1]))
    assert list(inspect.signature(unqover).parameters) == ["scores", "first", "second", "attribute"]


@pytest.mark.parametrize("name", metrics.__all__)
def test_every_function_has_one_shape_of_result(name: str) -> None:
    function = inspect.unwrap(getattr(metrics, name))
    if isinstance(function, ModuleType):
        return
    told = inspect.signature(function).return_annotation
    assert told not in (inspect.Signature.empty, "Any", "None")
    assert "|" not in str(told).removesuffix(" | None")


def test_unknown_names_are_attribute_errors_and_nothing_is_loaded_early() -> None:
    assert not hasattr(metrics, "waet")
    code = "import sys, evenhand.metrics; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
