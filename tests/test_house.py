"""Instruments own what they know: nothing outside their folders is keyed by their name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand import plugins
from evenhand.probes.registry import probe_class, probe_names

SOURCE = Path(__file__).resolve().parents[1] / "src" / "evenhand"
ROOMS = ("audit", "charts", "cli", "exports", "report", "runs", "viewer")
"""Rooms that ask a run's kind, and know no instrument by name."""
KINDS = {".py", ".jinja", ".js"}
OF_ONE = {"erase.py", "names.py", "ratings.py", "tokens.py", "train.py"}
"""Commands that belong to one instrument, or whose own word is also the name of one."""
DOORS = {"base", "registry", "reading", "choosing", "running"}
"""Modules of the instruments' rooms that stand for all of them."""


def instruments() -> set[str]:
    """Probes and mitigations; a name that is a kind of model too is no name of theirs alone."""
    named = {**plugins.BUILT_IN[plugins.PROBES], **plugins.BUILT_IN[plugins.MITIGATIONS]}
    return set(named) - set(plugins.BUILT_IN[plugins.MODELS])


def metrics() -> set[str]:
    return {card.metric for name in probe_names() for card in probe_class(name).cards}


def named(text: str, names: set[str]) -> Iterator[str]:
    """Names that stand in quotes (no HTML attributes), and modules of single instruments."""
    text = re.sub(r'(class|type)="[^"]*"', "", text)
    listed = "|".join(sorted(map(re.escape, names)))
    yield from (m[2] for m in re.finditer(rf"""(["'])({listed})\1""", text))
    for found in re.finditer(r"evenhand\.(?:probes|mitigations)(?:\.(\w+)| import (\w+))", text):
        if (found[1] or found[2]) not in DOORS:
            yield found[0]


def files_of(room: str) -> list[Path]:
    found = [p for p in sorted((SOURCE / room).rglob("*")) if p.suffix in KINDS]
    spared = OF_ONE if room == "cli" else set()
    return [p for p in found if "vendor" not in p.parts and p.name not in spared]


def positional(text: str) -> Iterator[tuple[str, int]]:
    """Functions with the number of their positional parameters."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if any(ast.unparse(d) == "triton.jit" for d in node.decorator_list):
                continue  # a kernel takes pointers and sizes, and nothing else
            given = [*node.args.posonlyargs, *node.args.args]
            yield node.name, len([a for a in given if a.arg not in ("self", "cls")])


def test_no_function_takes_more_than_seven_positional_arguments() -> None:
    found = [
        f"{path.relative_to(SOURCE)}: {name} takes {count}"
        for path in sorted(SOURCE.rglob("*.py"))
        for name, count in positional(path.read_text())
        if count > 7
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_knows_an_instrument_or_a_metric_by_name(room: str) -> None:
    names = instruments() | metrics()
    files = files_of(room)
    assert files
    found = [f"{p.relative_to(SOURCE)}: {n}" for p in files for n in named(p.read_text(), names)]
    assert not found, "\n".join(found)


def test_a_planted_name_is_caught() -> None:
    assert list(named('if kind == "bbq":', {"bbq"}))
    assert list(named("from evenhand.probes.bbq.measure import score", set()))
    assert list(named("from evenhand.mitigations import story", set()))
    assert not list(named("from evenhand.probes.base import Probe", {"bbq"}))


def test_every_probe_says_how_to_read_what_it_finds() -> None:
    for name in plugins.BUILT_IN[plugins.PROBES]:  # others may be made by examples
        cards = probe_class(name).cards
        assert cards, name
        for card in cards:
            assert card.low <= card.ideal <= card.high, card
            assert bool(card.margin_why) == (card.margin == card.margin), card
            assert card.harm or card.difference or card.margin != card.margin, card
