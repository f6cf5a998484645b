"""`--compile`: the same answers from compiled layers, kept apart from those of plain ones."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.audit.auditing import audit, resume
from evenhand.audit.suites import parse_suite
from evenhand.errors import ModelError, RunError
from evenhand.models.loading.resolver import resolve
from evenhand.models.protocol import LoadOptions
from evenhand.requests import Continuation, Generate
from evenhand.runner.ask import Ask

torch = pytest.importorskip("torch", reason="needs the hf extra")
COMPILED = LoadOptions(device="cpu", compile=True)
SUITE = parse_suite(
    {"name": "s", "probe": [{"name": "underspecified", "pairs": 3, "templates": 1,
     "attributes": ["nurse"], "resamples": 50}]}, "test", "s",
)  # fmt: skip


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """torch.compile that compiles nothing, and what it was asked for."""
    asked: list[Any] = []
    monkeypatch.setattr(torch, "compile", lambda f, **named: asked.append(f) or f)
    return asked


def test_compiled_layers_give_the_same_answers(tiny: Any) -> None:
    if not shutil.which("g++"):
        pytest.skip("needs a C++ compiler")
    rows = Continuation(
        ["the man said", "the woman said", "she"] * 3, [" he", " the man", " said"] * 3
    )
    plain = resolve(tiny("causal"), options=LoadOptions(device="cpu"))
    model = resolve(tiny("causal"), options=COMPILED)
    one, two = (Ask(m)(rows)["logprob"] for m in (plain, model))
    assert np.allclose(one, two, atol=1e-4)
    assert np.array_equal(two, Ask(model)(rows)["logprob"])
    assert model.fingerprint != plain.fingerprint
    assert model.describe()["compiled"] is True
    assert "compiled" not in plain.describe()
    texts = [Ask(m)(Generate(["the man"], ["0"], max_new_tokens=4))["text"] for m in (plain, model)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("kind", ["causal", "masked", "span", "choice"])
def test_every_layer_is_compiled_and_nothing_else(
    tiny: Any, kind: str, uncompiled: list[Any]
) -> None:
    model: Any = resolve(tiny(kind), options=COMPILED)
    assert len(uncompiled) == model.model.config.num_hidden_layers


def test_a_machine_that_cannot_compile_is_told_before_the_run(
    tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(forward: Any, **named: Any) -> Any:
        def refuse(*args: Any, **named: Any) -> Any:
            raise RuntimeError("no C++ compiler found\nmany\nlines")

        return refuse

    monkeypatch.setattr(torch, "compile", broken)
    with pytest.raises(ModelError, match=r"--compile: .* here \(no C\+\+ compiler found\)\. It"):
        resolve(tiny("causal"), options=COMPILED)


def test_a_run_goes_on_compiled_as_it_began(
    tiny: Any, tmp_path: Path, uncompiled: list[Any]
) -> None:
    run = audit(tiny("span"), SUITE, out=tmp_path / "run", options=COMPILED)
    assert run.facts["work"]["compile"] is True
    begun = len(uncompiled)
    assert resume(tmp_path / "run").facts["attempts"] == 2
    assert len(uncompiled) == 2 * begun
    with pytest.raises(RunError, match="holds a run with another compile"):
        audit(tiny("span"), SUITE, out=tmp_path / "run")
    audit(tiny("span"), SUITE, out=tmp_path / "plain")
    with pytest.raises(RunError, match="holds a run with another compile"):
        audit(tiny("span"), SUITE, out=tmp_path / "plain", options=COMPILED)
