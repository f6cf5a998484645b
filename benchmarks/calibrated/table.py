"""Plain tables of decisions: names and cases that are liked, whoever they are about."""

from __future__ import annotations

from itertools import product

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.corpora.tables import from_columns
from evenhand.measured.table import TableReader
from evenhand.measured.writing import judged

COVERS = ()
GROUPS = ("a", "b")


def path(names: int, cases: int, asked: int, what: str) -> Path:
    """Decisions about names of two groups in some cases, several answers each; a second column of
    groups, in which there is nothing. Without names or cases each row is a draw of its own.

    A case is kinder to one group or the other, of either column. Of a column that no case heeds the
    crossed design says less than it could (alarms in 0.02 instead of 0.05): the variance of what
    cases do is then 0 and cannot be estimated as less, so that on average it is more.
    """

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        rows = list(product(GROUPS, range(names), range(cases), range(asked)))
        group, name, case = (np.asarray([row[k] for row in rows]) for k in range(3))
        of = np.searchsorted(GROUPS, group)
        other = (name + case + np.arange(len(rows)) * (names == 1)) % 2
        liked = rng.normal(0, 0.1, (2, names))[of, name] if names > 1 else 0.0
        kinder = (rng.normal(0, 0.08, (2, cases))[side, case] for side in (of, other))
        about = rng.normal(0, 0.15, cases)[case] + sum(kinder)
        share = 0.5 + liked + (about if cases > 1 else 0.0) + effect * (0.5 - of)
        won = rng.random(len(rows)) < np.clip(share, 0, 1)
        columns = {
            "race": group.tolist(),
            "religion": np.where(other, "x", "y").tolist(),
            "decision": np.where(won, "approve", "reject").tolist(),
        }
        if names > 1:
            columns["name"] = [f"{g}{n}" for g, n in zip(group, name)]
        if cases > 1:
            columns["case"] = [f"case {c}" for c in case]
        claims = TableReader(table=from_columns(columns, "made")).read().claims()
        # Intervals at 95 %: those of detected gaps are wider once they were picked.
        return outcome(claims.findings, [effect, 0.0], np.asarray([f.q for f in judged(claims)]))

    return Path(f"table, {what}", draw)


PATHS = [
    path(1, 1, 100, "2 groups of 100 rows"),
    path(12, 1, 10, "2 groups of 12 names, 10 answers each"),
    path(1, 20, 4, "2 groups, 20 cases, 4 answers each"),
    path(12, 12, 1, "2 groups of 12 names, 12 cases"),
]
