"""Labels of first names from tables of probabilities (race shares, sexes)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evenhand.errors import DataError, SpecError, unknown
from evenhand.words.names.select import Name, read_names

KINDS = ("race", "gender")


@dataclass(frozen=True, slots=True)
class NameLabel:
    """A name with its most probable group, or None and the reason."""

    name: str
    label: str | None
    probability: float
    reason: str = ""


def label_names(
    names: Sequence[str],
    tables: Iterable[str | Path] | dict[str, Name],
    *,
    by: str = "race",
    least: float = 0.0,
) -> list[NameLabel]:
    """The most probable group of each name, as in tables such as Rosenman et al. (2023).

    Args:
        tables: files for `evenhand.words.names.select.read_names`, or what it gave.
        by: "race" (argmax of the race shares) or "gender" (female or male share).
        least: probability below which a name gets no label.

    >>> table = {"Tia": Name("Tia", {"black": 0.93, "white": 0.07}, 0.99, 900)}
    >>> [(n.label, n.reason) for n in label_names(["tia", "Xq"], table)]
    [('black', ''), (None, 'not in the tables')]
    """
    if by not in KINDS:
        raise SpecError(unknown("kind of label", by, KINDS, where="--by"))
    known = tables if isinstance(tables, dict) else read_names(map(Path, tables))
    shares = [_shares(known, name, by) for name in names]
    if names and not any(shares):
        raise DataError(
            f"names: none of {len(names)} names (first: {names[0]!r}) has a {by} in the tables. "
            "Accepted for race: Rosenman or Census shares; for gender: SSA or Census."
        )
    return [_label(name, share, least) for name, share in zip(names, shares)]


def _shares(known: dict[str, Name], name: str, by: str) -> dict[str, float]:
    tidy = "-".join(part.capitalize() for part in name.strip().split("-"))
    found = known.get(tidy)
    if found is None:
        return {}
    if by == "race":
        return found.race
    return {} if found.female is None else {"female": found.female, "male": 1 - found.female}


def _label(name: str, shares: dict[str, float], least: float) -> NameLabel:
    if not shares:
        return NameLabel(name, None, float("nan"), "not in the tables")
    best = max(shares, key=lambda group: shares[group])
    if shares[best] < least:
        return NameLabel(name, None, shares[best], f"most probable {best} is below {least:g}")
    return NameLabel(name, best, shares[best])
