"""Suites: named lists of probes with their settings, read from TOML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from evenhand import plugins
from evenhand.errors import EvenhandError, SpecError, name_problem, unknown
from evenhand.opening import read_toml, understood
from evenhand.probes.base import FDR, Probe
from evenhand.probes.registry import adopted, make_probe, probe_class, probe_names
from evenhand.words.packs import load_pack

SUITE_KEYS = {"name", "title", "kinds", "language", "left_out", "false_discovery_rate", "probe"}
ANY = "any"
"""The language of a suite that is chosen when some language is asked for."""
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
    language: str = ""
    """What its probes ask in (docs/languages.md); English when empty, ANY: what is asked for."""
    left_out: tuple[str, ...] = ()
    """Probes that were left out because they ask in English only."""

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of its packs that are asked of the audited model."""
        own = (e.probe.spoken for e in self.entries if not e.model)
        return tuple(dict.fromkeys(language for language in own if language))

    def in_language(self, language: str) -> Suite:
        """The same asked in another language, without the probes that know English only.

        Raises:
            SpecError: there is no such pack, or no probe knows other languages.
        """
        load_pack(language)
        able = [e for e in self.entries if e.probe.packs]
        if not able:
            names = ", ".join(e.label for e in self.entries)
            raise SpecError(
                f"suite {self.name!r} asks {names}, in English only, and language is {language!r}. "
                f"Probes that know other languages: {', '.join(_multilingual())}."
            )
        entries = tuple(replace(e, probe=_translated(e.probe, language)) for e in able)
        lost = tuple(e.label for e in self.entries if e not in able)
        return replace(self, entries=entries, language=language, left_out=lost)

    def asks(self, answers: frozenset[str]) -> bool:
        """Whether something of it can be asked of a model that answers these request kinds."""
        return any(not e.model and not e.probe.lacks(answers) for e in self.entries)

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            **({"kinds": list(self.kinds)} if self.kinds else {}),
            **({"language": self.language} if self.language else {}),
            **({"left_out": list(self.left_out)} if self.left_out else {}),
            "false_discovery_rate": self.false_discovery_rate,
            "probe": [entry.as_dict() for entry in self.entries],
        }


Asked = str | Path | Suite | Probe | type[Probe] | Mapping[str, Any] | Sequence[Any]
"""What a suite may be given as."""


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
        if called in probe_names():
            raise SpecError(
                f"suite {called!r}: is the name of a probe. Run it alone with: evenhand probe "
                f"{called} MODEL; from Python, give a list of probes: [{called!r}]"
            )
        hint = "It is not a file either. List suites with: evenhand ls suites"
        raise SpecError(unknown("suite", called, suite_names(), hint=hint))
    if called in packaged:
        return _read(packaged[called])
    found = plugins.load(plugins.SUITES, called, what="suite")
    if isinstance(found, Mapping):
        return parse_suite(found, f"suite {called!r}", called)
    return _read(Path(found))


def as_suite(given: Asked) -> Suite:
    """Whatever a suite may be given as: itself, a name, a TOML file, or a list of probes."""
    if isinstance(given, Suite):
        return given
    if isinstance(given, str | Path):
        return load_suite(given)
    entries: list[Entry] = []
    for number, one in enumerate(given if isinstance(given, Sequence) else [given], start=1):
        probe = _one_probe(one, f"probe[{number}]")
        entries.append(Entry(_free_label(probe.name, entries), probe))
    if not entries:
        raise SpecError("a suite without a probe: there is nothing to run.")
    names = list(dict.fromkeys(entry.probe.name for entry in entries))
    return Suite(names[0] if len(names) == 1 else "probes", "", tuple(entries))


def _one_probe(given: Any, where: str) -> Probe:
    """A probe from an object, a class, a name, or a mapping with a name and settings."""
    if isinstance(given, Probe):
        return adopted(given)
    if isinstance(given, type) and issubclass(given, Probe):
        return adopted(given())
    if isinstance(given, str):
        return make_probe(given, {}, where)
    if isinstance(given, Mapping) and isinstance(given.get("name"), str):
        settings = {k: v for k, v in given.items() if k != "name"}
        return make_probe(given["name"], settings, where)
    raise SpecError(
        f"{where}: {given!r:.60}: expected a probe, its name, or a mapping with its name and "
        f"settings. List them with: evenhand ls probes"
    )


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
    made = Suite(
        data.get("name", name),
        data.get("title", ""),
        tuple(entries),
        _rate(data.get("false_discovery_rate", FDR), where),
        tuple(map(str, data.get("kinds", ()))),
        str(data.get("language", "")),
        tuple(map(str, data.get("left_out", ()))),
    )
    if made.language in ("", ANY) or made.language in made.languages:
        return made
    return replace(made.in_language(made.language), left_out=made.left_out or ())


def _translated(probe: Probe, language: str) -> Probe:
    """The probe with all its settings in a language; what it then lacks is told as usual."""
    settings = probe.model_dump(mode="json", exclude_defaults=True)
    return make_probe(probe.name, settings | {"language": language}, f"probe {probe.name!r}")


def _multilingual() -> list[str]:
    names = (name for name in probe_names() if "language" in probe_class(name).model_fields)
    return sorted(names)


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
