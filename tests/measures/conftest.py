"""Reference data and small tables for the measure tests."""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Rows = list[dict[str, Any]]


@pytest.fixture(scope="session")
def golden_rows(shared: Path) -> Callable[[str], tuple[Rows, dict[str, Any]]]:
    """Rows in the file contract, and what is expected of them, for a golden file."""

    def load(name: str) -> tuple[Rows, dict[str, Any]]:
        data = json.loads((shared / "golden" / "unqover" / name).read_text())
        rows = []
        for entry in data["rows"]:
            for question, negated in (("q0", False), ("q1", True)):
                ends = entry["scores"][question]
                rows.append({
                    "template": entry["tid"], "attribute": entry["attr"].lower(),
                    "first": entry["subj1"].lower(), "second": entry["subj2"].lower(),
                    "negated": negated,
                    "score_first": math.sqrt(ends["ans0"][0] * ends["ans0"][1]),
                    "score_second": math.sqrt(ends["ans1"][0] * ends["ans1"][1]),
                    "group_first": entry["cluster1"], "group_second": entry["cluster2"],
                    "attribute_class": entry["attr_cluster"],
                })  # fmt: skip
        return rows, data["expected"]

    return load


def write_csv(path: Path, rows: Rows) -> Path:
    """Write rows with floats at full precision."""
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        out.writerows(
            {k: repr(v) if isinstance(v, float) else v for k, v in row.items()} for row in rows
        )
    return path


@pytest.fixture
def made_rows() -> Callable[..., Rows]:
    """Rows of a two-group design; group a leans to the first attribute by `lean`."""

    def make(
        terms: int = 4, attributes: int = 3, templates: int = 3, lean: float = 0.0, seed: int = 0
    ) -> Rows:
        rng = np.random.default_rng(seed)
        sides = [[f"{side}{k}" for k in range(terms)] for side in "ab"]
        rows: Rows = []
        for one, other in itertools.product(*sides):
            for attribute, template in itertools.product(range(attributes), range(templates)):
                for negated in (False, True):
                    for first, second in ((one, other), (other, one)):
                        scores = rng.uniform(0.4, 0.5, 2)
                        towards = lean * (attribute == 0) * (-1 if negated else 1)
                        scores += towards * (1 if first == one else -1) * np.array([0.5, -0.5])
                        rows.append({
                            "template": f"t{template}", "attribute": f"job{attribute}",
                            "first": first, "second": second, "negated": negated,
                            "score_first": float(scores[0]), "score_second": float(scores[1]),
                            "group_first": first[0], "group_second": second[0],
                        })  # fmt: skip
        return rows

    return make
