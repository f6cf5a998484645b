"""Choose names that are mostly given to one group, from public tables of names.

Proportion_r(n) = count(n, r) / sum over races of count(n, r)      (An et al. 2023, Eq. 6)
Proportion_g(n) = count(n, g) / sum over genders of count(n, g)    (Eq. 7)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evenhand.errors import DataError, SpecError
from evenhand.opening import read_rows

THRESHOLDS = {"white": 0.9, "black": 0.9, "hispanic": 0.8, "asian": 0.7}
"""Section 2 of the paper: European and African American .9, Hispanic .8, Asian .7."""
FREQUENCY = 200
SUPPRESSED = ("", "(S)", "NA", "S", "-")
"""What tables write where they do not tell."""
_RACES = {
    "white": ("white", "pctwhite"),
    "black": ("black", "pctblack"),
    "hispanic": ("hispanic", "pcthispanic"),
    "asian": ("asian", "pctapi"),
}
_NYC = {
    "WHITE NON": "white",
    "WHITE NON HISPANIC": "white",
    "BLACK NON": "black",
    "BLACK NON HISPANIC": "black",
    "ASIAN AND PACI": "asian",
    "ASIAN AND PACIFIC ISLANDER": "asian",
    "HISPANIC": "hispanic",
}


@dataclass
class Name:
    """What the tables know about one name: shares by race and gender, and how often it is given."""

    name: str
    race: dict[str, float] = field(default_factory=dict)
    female: float | None = None
    count: float = 0.0


def read_names(paths: Iterable[Path]) -> dict[str, Name]:
    """Names of several tables put together; later tables fill in what earlier ones lack.

    The kind of a table is read from its columns: New York City baby names (a name, gender,
    ethnicity and count per row), Social Security totals (name, sex, n_total), Rosenman (name and
    race shares), or Census (percentages, and sex where given). CSV, plain or packed (.gz, .xz).
    """
    found: dict[str, Name] = {}
    for path in paths:
        rows = _rows(Path(path))
        columns = set(rows[0])
        if {"ethnicity", "gender", "count"} <= columns:
            _nyc(rows, found, path)
        elif {"name", "sex"} <= columns:
            _ssa(rows, found, path)
        elif "name" in columns:
            _shares(rows, found, path)
        else:
            raise DataError(
                f"{path}: no name table that is known. Accepted: NYC baby names, SSA totals, "
                f"Rosenman or Census shares; columns found: {', '.join(rows[0])}."
            )
    return found


def _rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, column names in lower case with underscores."""
    rows = read_rows(path, "a CSV file")
    if not rows:
        raise DataError(f"{path}: no rows. The first line of a name table names its columns.")
    head = {c: c.lower().replace("'s ", " ").replace(" ", "_") for c in rows[0]}
    return [{head[c]: cell for c, cell in row.items()} for row in rows]


def _number(path: Path, text: str | None) -> float:
    """A number, 0 for an empty or suppressed cell; anything else would be a guess."""
    if (text or "").strip() in SUPPRESSED:
        return 0.0
    if text is None or not re.fullmatch(r"\d+(\.\d*)?(e[+-]?\d+)?", text.strip(), re.ASCII | re.I):
        raise DataError(
            f"{path}: {text!r} where a count or share is expected. Accepted: a number of 0 or "
            f"more, or one of {', '.join(filter(None, SUPPRESSED))} where it is not given."
        )
    return float(text)


def _name(found: dict[str, Name], raw: str) -> Name:
    tidy = "-".join(part.capitalize() for part in raw.strip().split("-"))
    return found.setdefault(tidy, Name(tidy))


def _nyc(rows: list[dict[str, str]], found: dict[str, Name], path: Path) -> None:
    which = next((key for key in rows[0] if "name" in key), None)
    if which is None:
        raise DataError(f"{path}: no column of names; columns found: {', '.join(rows[0])}.")
    by_race: dict[str, dict[str, float]] = {}
    by_gender: dict[str, list[float]] = {}
    for row in rows:
        name, count = _name(found, row[which]).name, _number(path, row["count"])
        race = _NYC.get(row["ethnicity"].upper(), row["ethnicity"].lower())
        share = by_race.setdefault(name, {})
        share[race] = share.get(race, 0.0) + count
        sides = by_gender.setdefault(name, [0.0, 0.0])
        sides[row["gender"].upper().startswith("F")] += count
    for name, share in by_race.items():
        total = sum(share.values())
        if not total:
            continue
        made = found[name]
        made.race = made.race or {race: value / total for race, value in share.items()}
        made.female = by_gender[name][1] / total if made.female is None else made.female
        made.count = max(made.count, total)


def _ssa(rows: list[dict[str, str]], found: dict[str, Name], path: Path) -> None:
    count = next((c for c in ("n_total", "n", "count") if c in rows[0]), None)
    if count is None:
        raise DataError(f"{path}: no column of counts (n_total, n or count).")
    sides: dict[str, list[float]] = {}
    for row in rows:
        name = _name(found, row["name"]).name
        sides.setdefault(name, [0.0, 0.0])[row["sex"].upper() == "F"] += _number(path, row[count])
    for name, (male, female) in sides.items():
        made = found[name]
        made.count = max(made.count, male + female)
        if made.female is None and male + female:
            made.female = female / (male + female)


def _shares(rows: list[dict[str, str]], found: dict[str, Name], path: Path) -> None:
    columns = {r: k for r, keys in _RACES.items() for k in keys if k in rows[0]}
    scale = 100.0 if any(key.startswith("pct") for key in rows[0]) else 1.0
    for row in rows:
        made = _name(found, row["name"])
        race = {race: _number(path, row[key]) / scale for race, key in columns.items()}
        made.race = made.race or race
        for key in (k for k in row if k.startswith("pct")):
            _number(path, row[key])
        if made.female is None and row.get("pctfemale"):
            made.female = _number(path, row["pctfemale"]) / 100
        made.count = max(made.count, _number(path, row.get("count")))


def select(
    names: Mapping[str, Name],
    *,
    thresholds: Mapping[str, float] = THRESHOLDS,
    gender: float = 0.9,
    frequency: float = FREQUENCY,
    most: int | None = None,
) -> dict[str, list[Name]]:
    """Names by race and gender: a share of at least the threshold, given often enough.

    Args:
        names: from `read_names`; names without a race or gender are left out.
        thresholds: least share of a race, by race.
        gender: least share of the gender.
        frequency: least number of bearers.
        most: at most this many per group, the most frequent ones.

    >>> table = {"Tia": Name("Tia", {"black": 0.95, "white": 0.05}, 0.99, 900)}
    >>> [n.name for n in select(table)["black_female"]]
    ['Tia']
    """
    if not 0.5 <= gender <= 1:
        raise SpecError(f"gender: {gender!r}. Accepted: a share from 0.5 to 1.")
    groups: dict[str, list[Name]] = {f"{r}_{g}": [] for r in thresholds for g in ("female", "male")}
    for name in names.values():
        if name.count < frequency or name.female is None:
            continue
        side = "female" if name.female >= 0.5 else "male"
        if max(name.female, 1 - name.female) < gender:
            continue
        for race, least in thresholds.items():
            if name.race.get(race, 0.0) >= least:
                groups[f"{race}_{side}"].append(name)
    for members in groups.values():
        members.sort(key=lambda n: (-n.count, n.name))
        del members[len(members) if most is None else most :]
    return groups


def as_lexicon(groups: Mapping[str, list[Name]], title: str, source: str) -> str:
    """The groups as a lexicon file that every probe can read."""
    import json

    lines = [
        f"title = {json.dumps(title)}",
        'kind = "names"',
        f"source = {json.dumps(source)}",
        'licence = "See the tables it was made from"',
        'caveats = ["A first name is a signal that readers attach to a group, not a fact about '
        'the person who bears it."]',
    ]
    for group, members in groups.items():
        if members:
            race, _, gender = group.rpartition("_")
            axis = f'{{ gender = "{gender}", race = "{race}" }}'
            terms = json.dumps([n.name for n in members], ensure_ascii=False)
            lines += ["", f"[groups.selected_{group}]", f"axis = {axis}", f"terms = {terms}"]
    return "\n".join(lines) + "\n"
