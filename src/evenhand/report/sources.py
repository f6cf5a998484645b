"""Where the words and texts of a run come from, and how to make the run again."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Mapping
from typing import Any

from evenhand.errors import EvenhandError
from evenhand.mitigations import story as content_mitigation
from evenhand.words.lexicons.files import Lexicon, load

UNQOVER = {
    "gender": ("unqover_names", "unqover_occupations", "unqover_templates"),
    "nationality": ("unqover_nationality", "prejudices", "unqover_templates"),
    "ethnicity": ("unqover_ethnicity", "prejudices", "unqover_templates"),
    "religion": ("unqover_religion", "prejudices", "unqover_templates"),
}


def lexicon_names(entry: Mapping[str, Any]) -> list[str]:
    """Lexicons behind one probe of run.json.

    A probe may list them itself under `lexicons` in its summary.

    >>> lexicon_names({"probe": "divergence", "settings": {"lexicon": "contexts"}})
    ['contexts', 'divergence_controls']
    """
    settings = entry.get("settings") or {}
    listed = (entry.get("summary") or {}).get("lexicons")
    if isinstance(listed, list):
        return [str(name) for name in listed]
    kind = entry.get("probe")
    if kind == "underspecified":
        return list(UNQOVER.get(str(settings.get("social_class", "gender")), ()))
    if kind == "divergence":
        return [] if settings.get("file") else [str(settings.get("lexicon")), "divergence_controls"]
    if kind == "association":
        return ["weat"]
    return [v for k, v in settings.items() if "lexicon" in k and isinstance(v, str)]


def lexicons(facts: Mapping[str, Any]) -> list[Lexicon]:
    """The lexicons of a run, each once; one that is no longer there is left out."""
    found: dict[str, Lexicon] = {}
    for entry in facts["probes"].values():
        for name in [] if entry.get("skipped") else lexicon_names(entry):
            with contextlib.suppress(EvenhandError, OSError):
                found[name] = load(name)
    return list(found.values())


def command(facts: Mapping[str, Any]) -> tuple[str, str]:
    """The command that does the same work again, and the suite file it needs (or "").

    A packaged suite is named; one that was changed or sampled to a time budget comes as TOML.
    """
    work = facts["work"]
    if work.get("kind") == "study":
        return _study_command(work)
    if content_mitigation.is_mitigation(facts):
        (entry,) = facts["probes"].values()
        return content_mitigation.command(work, entry.get("settings") or {}), ""
    if not work["suite"]["probe"]:  # pages of single commands
        return shlex.join(
            ["evenhand", str(work["suite"]["name"]).replace("_", "-"), str(work["model"])]
        ), ""
    options = ["--seed", str(work.get("seed", 0))]
    for flag, key in (("--as", "as"), ("--dtype", "dtype")):
        if work.get(key):
            options += [flag, str(work[key])]
    suite = work["suite"]
    if _packaged(suite):
        return shlex.join(
            ["evenhand", "audit", work["model"], "--suite", suite["name"], *options]
        ), ""
    text = suite_toml(suite)
    line = ["evenhand", "audit", work["model"], "--suite", "suite.toml", *options]
    return shlex.join(line), text


def _study_command(work: Mapping[str, Any]) -> tuple[str, str]:
    """A study again: its recipe is kept whole in run.json."""
    line = ["evenhand", "study", "study.toml"]
    if work.get("data"):
        line += ["--data", str(work["data"])]
    recipe = work["recipe"]
    flat = {k: v for k, v in recipe.items() if not isinstance(v, Mapping)}
    text = [f"{k} = {_toml(v)}" for k, v in flat.items() if v is not None]
    for name, part in recipe.items():
        if isinstance(part, Mapping):
            text += ["", f"[{name}]"]
            text += [f"{k} = {_toml(v)}" for k, v in part.items() if v is not None]
    return shlex.join(line), "\n".join(text)


def _packaged(suite: Mapping[str, Any]) -> bool:
    from evenhand.audit.suites import load_suite, recipes

    with contextlib.suppress(EvenhandError):
        name = suite["name"]
        return name in recipes() and load_suite(name).as_dict() == suite
    return False


def suite_toml(suite: Mapping[str, Any]) -> str:
    """A suite as TOML.

    >>> print(suite_toml({"name": "a", "probe": [{"name": "divergence", "axes": ["race"]}]}))
    name = "a"
    <BLANKLINE>
    [[probe]]
    name = "divergence"
    axes = ["race"]
    """
    lines = [f"{k} = {_toml(v)}" for k, v in suite.items() if k != "probe" and v is not None]
    for probe in suite["probe"]:
        lines += ["", "[[probe]]"]
        lines += [f"{k} = {_toml(v)}" for k, v in probe.items() if v is not None]
    return "\n".join(lines)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items())
        return "{" + inner + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=True)
