"""Suites: named lists of probes with their settings, read from TOML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from evenhand import plugins
from evenhand.errors import EvenhandError, SpecError, name_problem, unknown
from evenhand.opening import read_toml, understood
from evenhand.probes.base import FDR, Probe
from evenhand.probes.registry import make_probe

SUITE_KEYS = {"name", "title", "kinds", "false_discovery_rate", "probe"}
ENTRY_KEYS = {"name", "model", "as", "label"}


@dataclass(frozen=True)
class Entry:
    """One probe of a suite; on a model of its own its findings are context and never count."""

    label: str
    probe: Probe
    model: str | None = None
    kind: str | None = None

    def as_dict(self) -> dict[str, Any]:
        settings = self.probe.model_dump(mode="json", exclude_defaults=True)
        own = {"model": self.model, "as": self.kind, "label": self.label}
        return {"name": self.probe.name, **{k: v for k, v in own.items() if v}, **settings}


@dataclass(frozen=True)
class Suite:
    """A named list of probes with their settings."""

    name: str
    title: str
    entries: tuple[Entry, ...]
    false_discovery_rate: float = FDR
    kinds: tuple[str, ...] = ()
    """The kinds of model that are audited with it when no suite is given."""

    def asks(self, answers: frozenset[str]) -> bool:
        """Whether something of it can be asked of a model that answers these request kinds."""
        return any(not e.model and not e.probe.lacks(answers) for e in self.entries)

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            **({"kinds": list(self.kinds)} if self.kinds else {}),
            "false_discovery_rate": self.false_discovery_rate,
            "probe": [entry.as_dict() for entry in self.entries],
        }


def recipe_files() -> dict[str, Path]:
    """Everything in the recipes folder: suites, and studies (which have a corpus)."""
    packaged = Path(str(resources.files("evenhand"))) / "recipes"
    folder = packaged if packaged.is_dir() else Path(__file__).parents[3] / "recipes"
    return {p.stem: p for p in sorted(folder.glob("*.toml"))}


def is_study(path: Path) -> bool:
    """Whether a recipe is a study and not a suite of probes: it names a corpus."""
    try:
        return "corpus" in read_toml(path)
    except EvenhandError:
        return False


def suite_names() -> list[str]:
    """The packaged suites, then those of other packages."""
    own = [name for name, path in recipe_files().items() if not is_study(path)]
    return [*own, *(name for name in plugins.places(plugins.SUITES) if name not in own)]


def load_suite(name: str | Path) -> Suite:
    """A suite by its name, or from a TOML file.

    Raises:
        SpecError: unknown name, malformed TOML (with its line), or a wrong setting.
    """
    packaged, called = recipe_files(), str(name)
    if Path(name).is_file():
        return _read(Path(name))
    if called not in suite_names():
        if called in packaged:
            raise SpecError(f"{called!r} is a study. Run it with: evenhand study {called}")
        hint = "It is no file either. List suites with: evenhand ls suites"
        raise SpecError(unknown("suite", called, suite_names(), hint=hint))
    if called in packaged:
        return _read(packaged[called])
    found = plugins.load(plugins.SUITES, called, what="suite")
    if isinstance(found, Mapping):
        return parse_suite(found, f"suite {called!r}", called)
    return _read(Path(found))


def _read(path: Path) -> Suite:
    return parse_suite(read_toml(path), str(path), path.stem)


def parse_suite(data: Mapping[str, Any], where: str, name: str) -> Suite:
    """A suite from its TOML data."""
    with understood(where):
        return _parsed(data, where, name)


def _parsed(data: Mapping[str, Any], where: str, name: str) -> Suite:
    for key in ("name", "title"):
        if not isinstance(data.get(key, ""), str):
            raise SpecError(f"{where}: {key} {data[key]!r}: expected text.")
    for key in data:
        if key not in SUITE_KEYS:
            raise SpecError(unknown("key", key, SUITE_KEYS, where=where))
    rows = data.get("probe") or []
    if not rows:
        raise SpecError(f"{where}: the suite has no [[probe]], so there is nothing to run.")
    entries: list[Entry] = []
    for number, row in enumerate(rows, start=1):
        place = f"{where}, probe[{number}]"
        if not isinstance(row, Mapping) or not isinstance(row.get("name", ""), str):
            raise SpecError(f"{place}: {row!r:.60}: expected a table with the name of a probe.")
        for key in ("model", "as"):
            if not isinstance(row.get(key, ""), str):
                raise SpecError(f"{place}: {key} {row[key]!r}: expected text.")
        if "name" not in row:
            raise SpecError(f"{place}: has no name. List probes with: evenhand ls probes")
        settings = {k: v for k, v in row.items() if k not in ENTRY_KEYS}
        probe = make_probe(row["name"], settings, place)
        wanted = row.get("label") or probe.name
        if name_problem(wanted):
            raise SpecError(f"{place}: label {wanted!r}: {name_problem(wanted)}.")
        label = _free_label(wanted, entries)
        entries.append(Entry(label, probe, row.get("model"), row.get("as")))
    return Suite(
        data.get("name", name),
        data.get("title", ""),
        tuple(entries),
        _rate(data.get("false_discovery_rate", FDR), where),
        tuple(map(str, data.get("kinds", ()))),
    )


def _rate(given: Any, where: str) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given < 1:
        raise SpecError(
            f"{where}: false_discovery_rate {given!r}: expected a number between 0 and 1, such as "
            f"{FDR}."
        )
    return float(given)


def _free_label(wanted: str, entries: list[Entry]) -> str:
    taken = {e.label for e in entries}
    label, number = wanted, 2
    while label in taken:
        label, number = f"{wanted}-{number}", number + 1
    return label
