"""Every measure that tests something can be told as a report, in the sentences of its probe."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.errors import SpecError
from evenhand.measured.writing import judged
from evenhand.probes.reading import Result, reader_of
from evenhand.probes.registry import probe_class, probe_names
from reader_cases import CASES


def made(name: str, folder: Path) -> Result:
    """The result of a reader's case, read without the command line."""
    reader = reader_of(name)
    assert reader is not None
    words, given = iter(CASES[name](folder)), {}
    places = iter(reader.positional)
    for word in words:
        if word.startswith("--"):
            key = word[2:].replace("-", "_")
            flag = reader.model_fields[key].annotation is bool
            given[key] = True if flag else next(words)
        else:
            given[next(places)] = word
    return reader(**given).read()


def every_p(value: Any) -> Iterator[float]:
    """Every p of a JSON contract."""
    if isinstance(value, dict):
        for key, part in value.items():
            if key == "p" and isinstance(part, float) and part == part:
                yield part
            yield from every_p(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from every_p(part)


PROBES = {name: reader for p in probe_names() for name, reader in probe_class(p).readers().items()}
NUMBERS_ONLY = {"implicit-link", "coreference", "guise-ratios"}
"""They test how two numbers go together, single files, or words as published: no groups."""


@pytest.mark.parametrize("name", sorted(PROBES))
def test_what_a_probe_reads_becomes_a_report(name: str, tmp_path: Path) -> None:
    result = made(name, tmp_path)
    claims = result.claims()
    if claims is None:
        assert name in NUMBERS_ONLY or not list(every_p(result.as_dict()))
        with pytest.raises(SpecError, match=f"measure {name}: gives numbers"):
            eh.as_run(result, tmp_path / "out")
        return
    assert claims.findings
    run = eh.as_run(result, tmp_path / "out", tmp_path / "page.html")
    assert all(f.sentence and f.id.startswith(f"{claims.name}/") for f in run.findings)
    assert all(f.probe == claims.name for f in run.findings)
    assert [f.value for f in run.findings] == pytest.approx(
        [f.value for f in judged(claims)], nan_ok=True
    )
    page = (tmp_path / "page.html").read_text()
    assert claims.source in page
    assert "items" in run.tables(claims.name)
