"""Choose names that are mostly given to one group, from public tables of names.

Proportion_r(n) = count(n, r) / sum over races of count(n, r)      (An et al. 2023, Eq. 6)
Proportion_g(n) = count(n, g) / sum over genders of count(n, g)    (Eq. 7)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evenhand.errors import DataError, SpecError
from evenhand.measures.tables import Table, read_table

THRESHOLDS = {"white": 0.9, "black": 0.9, "hispanic": 0.8, "asian": 0.7}
"""Section 2 of the paper: European and African American .9, Hispanic .8, Asian .7."""
FREQUENCY = 200
_RACES = {
    "white": ("white", "pctwhite"), "black": ("black", "pctblack"),
    "hispanic": ("hispanic", "pcthispanic"), "asian": ("asian", "pctapi"),
}  # fmt: skip
_NYC = {"WHITE NON": "white", "WHITE NON HISPANIC": "white", "BLACK NON": "black",
        "BLACK NON HISPANIC": "black", "ASIAN AND PACI": "asian",
        "ASIAN AND PACIFIC ISLANDER": "asian", "HISPANIC": "hispanic"}  # fmt: skip


@dataclass
class Name:
    """What the tables know about one name: shares by race and gender, and how often it is given."""

    name: str
    race: dict[str, float] = field(default_factory=dict)
    female: float | None = None
    count: float = 0.0


def read_names(paths: Iterable[Path]) -> dict[str, Name]:
    """Names of several tables put together; later tables fill in what earlier ones lack.

    The kind of a table is read off its columns: New York City baby names (a name, gender,
    ethnicity and count per row), Social Security totals (name, sex, n_total), Rosenman (name and
    race shares), or Census (percentages, and sex where given).
    """
    found: dict[str, Name] = {}
    for path in paths:
        table = read_table(path)
        columns = {c.lower().replace("'s ", " ").replace(" ", "_"): c for c in table.columns}
        if {"ethnicity", "gender", "count"} <= set(columns):
            _nyc(table, columns, found)
        elif {"name", "sex"} <= set(columns):
            _ssa(table, columns, found)
        elif "name" in columns:
            _shares(table, columns, found)
        else:
            raise DataError(
                f"{path}: no name table that is known. Accepted: NYC baby names, SSA totals, "
                f"Rosenman or Census shares; columns found: {', '.join(table.columns)}."
            )
    return found


def _name(found: dict[str, Name], raw: str) -> Name:
    tidy = "-".join(part.capitalize() for part in raw.strip().split("-"))
    return found.setdefault(tidy, Name(tidy))


def _nyc(table: Table, columns: Mapping[str, str], found: dict[str, Name]) -> None:
    which = next(c for key, c in columns.items() if "name" in key)
    races, genders = table.labels(columns["ethnicity"]), table.labels(columns["gender"])
    names, counts = table.labels(which), table.numbers(columns["count"])
    by_race: dict[str, dict[str, float]] = {}
    by_gender: dict[str, list[float]] = {}
    for row in range(table.n_rows):
        name = _name(found, names[row]).name
        race = _NYC.get(races[row].upper(), races[row].lower())
        share = by_race.setdefault(name, {})
        share[race] = share.get(race, 0.0) + counts[row]
        sides = by_gender.setdefault(name, [0.0, 0.0])
        sides[genders[row].upper().startswith("F")] += counts[row]
    for name, share in by_race.items():
        total = sum(share.values())
        made = found[name]
        made.race = made.race or {race: value / total for race, value in share.items()}
        made.female = by_gender[name][1] / total if made.female is None else made.female
        made.count = max(made.count, total)


def _ssa(table: Table, columns: Mapping[str, str], found: dict[str, Name]) -> None:
    count = next((c for key, c in columns.items() if key in ("n_total", "n", "count")), None)
    if count is None:
        raise DataError(f"{table.source}: no column of counts (n_total, n or count).")
    names, sexes = table.labels(columns["name"]), table.labels(columns["sex"])
    counts = table.numbers(count)
    sides: dict[str, list[float]] = {}
    for row in range(table.n_rows):
        name = _name(found, names[row]).name
        sides.setdefault(name, [0.0, 0.0])[sexes[row].upper() == "F"] += counts[row]
    for name, (male, female) in sides.items():
        made = found[name]
        made.count = max(made.count, male + female)
        made.female = female / (male + female) if made.female is None else made.female


def _shares(table: Table, columns: Mapping[str, str], found: dict[str, Name]) -> None:
    names = table.labels(columns["name"])
    races = {
        race: table.numbers(columns[key])
        for race, keys in _RACES.items()
        for key in keys
        if key in columns
    }
    percent = any(key.startswith("pct") for key in columns)
    female = table.numbers(columns["pctfemale"]) if "pctfemale" in columns else None
    counts = table.numbers(columns["count"]) if "count" in columns else None
    for row in range(table.n_rows):
        made = _name(found, names[row])
        scale = 100.0 if percent else 1.0
        if not made.race:
            made.race = {race: float(values[row]) / scale for race, values in races.items()}
        if female is not None and made.female is None:
            made.female = float(female[row]) / 100
        if counts is not None:
            made.count = max(made.count, float(counts[row]))


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
        most: at most so many per group, the most frequent ones.

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
        f"title = {json.dumps(title)}", 'kind = "names"', f"source = {json.dumps(source)}",
        'licence = "See the tables it was made from"',
        'caveats = ["A first name is a signal that readers attach to a group, not a fact about '
        'the person who bears it."]',
    ]  # fmt: skip
    for group, members in groups.items():
        if members:
            race, _, gender = group.rpartition("_")
            axis = f'{{ gender = "{gender}", race = "{race}" }}'
            terms = json.dumps([n.name for n in members], ensure_ascii=False)
            lines += ["", f"[groups.selected_{group}]", f"axis = {axis}", f"terms = {terms}"]
    return "\n".join(lines) + "\n"
