"""Every benchmark has a chart."""

from __future__ import annotations

import pyarrow as pa
import pytest

from evenhand.charts.base import About, Chart
from evenhand.probes.registry import probe_class


@pytest.mark.parametrize(
    ("probe", "table", "columns"),
    [
        ("crows-pairs", "scores", {"bias_type": "age", "direction": "both"}),
        ("bbq", "scores", {"category": "Age", "metric": "bias_ambiguous"}),
        ("winobias", "scores", {"kind": "type 1"}),
        ("winogender", "scores", {"refers": "occupation"}),
        ("honest", "scores", {"group": "female", "other": "male"}),
        ("seat", "tests", {"test": "t", "x_label": "x", "y_label": "y", "a_label": "a",
                           "b_label": "b"}),
        ("ceat", "tests", {"test": "t", "x_label": "x", "y_label": "y", "a_label": "a",
                           "b_label": "b"}),
    ],
)  # fmt: skip
def test_every_benchmark_has_a_chart_with_its_ideal_value(
    probe: str, table: str, columns: dict[str, str]
) -> None:
    numbers = {"value": 60.0, "low": 55.0, "high": 65.0, "p": 0.01, "q": 0.02, "n": 9}
    rows = pa.Table.from_pylist([{**columns, **numbers}])
    build = probe_class(probe).charts()[table]
    drawn = build(rows, About(probe, probe, table, 0.05))
    (chart,) = drawn
    assert isinstance(chart, Chart)
    assert chart.rows[0]["verdict"] == "difference detected"
    ideal = 50.0 if probe == "crows-pairs" else 0.0
    assert chart.spec["layer"][0]["encoding"]["x"]["datum"] == ideal
    assert build(rows.slice(0, 0), About(probe, probe, table, 0.05)) == []
