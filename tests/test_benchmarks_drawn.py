"""The pictures and the table of docs/scale.md are those of the stored measurements."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module", autouse=True)
def _benchmarks_are_importable() -> Iterator[None]:
    sys.path.insert(0, str(ROOT))
    yield
    sys.path.remove(str(ROOT))


@pytest.fixture
def drawing() -> Any:
    from benchmarks import drawing

    return drawing


def records(number: int) -> list[dict[str, Any]]:
    """A made-up history: one ratio stays, one doubles with every record, one comes later."""
    return [
        {"date": f"2026-01-{i + 1:02d}", "commit": f"{i:07x}", "ratios": {
            "WEAT with 10,000 resamples: times WEFE 1.0.1": 75_600.0, "doubling": 2.0**i,
            **({"later": 3.0} if i else {})}}
        for i in range(number)
    ]  # fmt: skip


def test_the_pictures_say_what_was_measured(drawing: Any) -> None:
    """Every stored value has its mark, whatever fonts the picture was drawn with."""
    growth = drawing.said(drawing.GROWTH.read_text())
    sizes = json.loads((ROOT / "benchmarks/results/streaming.json").read_text())["sizes"]
    expected = [f"{s['requests']:,} questions: {s['seconds']:g} s" for s in sizes]
    expected += [f"{s['requests']:,} questions: {s['peak_mib']:g} MiB" for s in sizes]
    probes = json.loads((ROOT / "benchmarks/results/streaming_probes.json").read_text())["probes"]
    for name in ("generation", "discovery"):
        sizes = probes[name]["sizes"]
        expected += [f"{s['rows']:,} rows of {name}: {s['cpu_seconds']:g} s" for s in sizes]
        expected += [f"{s['rows']:,} rows of {name}: {s['peak_mib']:g} MiB" for s in sizes]
    assert growth[: len(expected)] == expected
    history = drawing.said(drawing.HISTORY.read_text())
    lines = [json.loads(x) for x in (ROOT / "benchmarks/history.jsonl").read_text().splitlines()]
    marks = [
        f"{line['date']} {line['commit']}: {label} = {value:,g}"
        for line in lines
        for label, value in line["ratios"].items()
    ]
    assert sorted(history[: len(marks)]) == sorted(marks)


def test_the_pictures_are_drawn_from_the_stored_data(drawing: Any) -> None:
    """Bytes depend on the fonts of the machine; what is said and its order do not."""
    pytest.importorskip("vl_convert", reason="drawing needs the extra `report`")
    for path, spec in drawing.pictures().items():
        drawn = drawing.draw(spec, "svg")
        assert drawn == drawing.draw(spec, "svg"), "the same data gives the same bytes"
        assert drawing.said(drawn.decode()) == drawing.said(path.read_text()), (
            f"{path.name} is not that of the stored data. Next: python -m benchmarks --draw"
        )


def test_the_page_shows_the_stored_history_and_both_pictures() -> None:
    from benchmarks import ratios

    page = ratios.PAGE.read_text()
    assert ratios.drawn(page, ratios.history()) == page
    assert "](pictures/growth.svg)" in page
    assert "](pictures/history.svg)" in page


@pytest.mark.parametrize("number", [1, 2, 20])
def test_bands_do_not_overlap_and_share_a_scale(drawing: Any, number: int) -> None:
    _, bands, bottom = drawing._laid_out(records(number))
    places = [[p["y"] for p in band["points"]] for band in bands]
    for above, below in pairwise(places):
        assert max(above) < min(below)
    assert max(map(max, places)) < bottom
    doubling = next(b for b in bands if b["label"] == "doubling")["points"]
    steps = [a["y"] - b["y"] for a, b in pairwise(doubling)]
    assert steps == pytest.approx([steps[0]] * (number - 1) if steps else [], abs=0.02)
    assert all(step > 0 for step in steps), "up is more"


def test_a_value_left_out_has_no_mark(drawing: Any) -> None:
    pytest.importorskip("vl_convert", reason="drawing needs the extra `report`")
    marks = drawing.said(drawing.draw(drawing.history_spec(records(2)), "svg").decode())
    assert sum(" = " in text and "later" in text for text in marks) == 1
    assert "75,600 → 75,600" in marks


def test_the_table_is_grouped_by_what_is_measured_against() -> None:
    from benchmarks import ratios

    lines = ratios.table(ratios.ratios()).splitlines()
    assert [line for line in lines if line and not line.startswith(" ")] == list(ratios.HEADINGS)


def test_every_script_is_run_or_says_why_not() -> None:
    from benchmarks import __main__ as command

    scripts = {p.name for p in (ROOT / "benchmarks").glob("*.py")}
    assert scripts >= command.PARTS
    assert scripts >= set(command.BY_NAME_ONLY)


def test_every_probe_that_streams_was_run_to_ten_million_rows_in_flat_memory() -> None:
    stored = json.loads((ROOT / "benchmarks/results/streaming_probes.json").read_text())["probes"]
    assert set(stored) == {"underspecified", "generation", "discovery"}
    for name, result in stored.items():
        first, last = result["sizes"]
        assert last["rows"] > 9.9 * first["rows"] > 9.8e6, name
        assert last["peak_mib"] < 1.2 * first["peak_mib"], name
