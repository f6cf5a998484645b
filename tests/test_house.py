"""Instruments own what they know: nothing outside their folders is keyed by their name."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand import plugins
from evenhand.probes.base import Probe
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


OWN_WALK = {"underspecified", "divergence", "discovery", "generation"}
"""Probes that stream, or ask in several rounds, and so run by themselves."""
DERIVED = ("run", "measure", "preview", "limits")
"""What the base makes of what a probe says."""


@pytest.mark.parametrize("name", sorted(set(plugins.BUILT_IN[plugins.PROBES]) - OWN_WALK))
def test_a_probe_says_what_is_compared_and_the_base_does_the_rest(name: str) -> None:
    kind = probe_class(name)
    said = {hook for base in kind.__mro__[: kind.__mro__.index(Probe)] for hook in vars(base)}
    assert {"gather", "ask", "read", "declare", "say"} <= said
    assert not said & set(DERIVED)


def test_a_run_of_a_probe_of_one_file_loads_no_other_probe(tmp_path: Path) -> None:
    vectors = tmp_path / "v.txt"
    vectors.write_text("art 1 0.1\nmath 0.1 1\nshe 1 0\nhe 0 1\npoem 1 0.2\nsum 0.2 1\n")
    tests = tmp_path / "t.json"
    tests.write_text(
        '{"t": {"x": ["art", "poem"], "y": ["math", "sum"], "a": ["she"], "b": ["he"]}}'
    )
    code = (
        "import sys\n"
        "from evenhand.cli.main import app\n"
        f"words = ['probe', 'association', {str(vectors)!r}, '--set', 'tests=' + {str(tests)!r},\n"
        f"         '--out', {str(tmp_path / 'run')!r}]\n"
        "try:\n    app(words)\nexcept SystemExit as stop:\n    assert not stop.code, stop.code\n"
        "print(*(m for m in sys.modules if m.startswith('evenhand')), sep='\\n')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = [line for line in done.stdout.splitlines() if line.startswith("evenhand")]
    others = set(plugins.BUILT_IN[plugins.PROBES]) - {"association"}
    theirs = {f"evenhand.probes.{name.replace('-', '_')}" for name in others}
    assert not theirs & set(loaded)
    assert len(loaded) <= 230  # 252 before comparisons were declared
