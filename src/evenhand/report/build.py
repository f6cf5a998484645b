"""The report: one self-contained HTML page that opens offline and sends nothing anywhere.

Model text is escaped wherever it lands: jinja2 escapes HTML, chart data travels as JSON with
`<`, `>` and `&` written as escapes, and a content-security policy lets only the page's own
scripts run (by their hash), so that text can never become code.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

from jinja2 import ChainableUndefined, Environment, FileSystemLoader, Template
from markupsafe import Markup

from evenhand.charts import theme
from evenhand.charts.base import Chart, Drawn
from evenhand.errors import name_problem
from evenhand.report import sources
from evenhand.runs import wording as words
from evenhand.runs.drawing import charts_of
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import kind_of
from evenhand.runs.record import Run
from evenhand.runs.safe_text import readable
from evenhand.runs.story import DIFFERING, UNSEEN

FOLDER = Path(__file__).parent
VENDOR = ("vega.min.js", "vega-lite.min.js", "vega-embed.min.js")
LISTED = 250


def _spoken(facts: Mapping[str, Any], finding: Finding) -> str:
    """The language of a finding's examples; "" for English, the language of the page."""
    entry = facts["probes"].get(finding.probe) or {}
    told = (entry.get("settings") or {}).get("language")
    told = told or (entry.get("summary") or {}).get("language")
    return str(told) if told and name_problem(told) == "" and told != "en" else ""


@dataclass(frozen=True)
class Section:
    """One probe's part of the page."""

    label: str
    entry: dict[str, Any]
    drawn: list[Drawn]
    whole: list[Finding]
    tests: list[Finding]
    more: int


def prepared(*members: type) -> Callable[[Run], str]:
    """`render`, with all that it and the packages of these classes may need in memory.

    What the end of a long run needs is read before it begins: an upgrade, or an edit of the source
    under it, would else mix two versions hours later.
    """
    own = ("evenhand.report", "evenhand.runs", "evenhand.charts", "evenhand.stats")
    folders = (m.__module__.rpartition(".")[0] for m in members)
    # An instrument of one file lies in the room of all; what it needs came with it.
    theirs = [f for f in folders if not (f.startswith("evenhand.") and f.count(".") == 1)]
    for room in dict.fromkeys((*own, *theirs)):
        there = getattr(importlib.import_module(room), "__path__", ()) if room else ()
        for module in walk_packages(there, f"{room}."):
            with contextlib.suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(module.name)
    _ = vendored(), script("report.js"), script("report.css"), template()
    return render


def render(run: Run) -> str:
    """The report of a finished run as one HTML page, under 3 MB."""
    facts = run.facts
    sections = [_section(run, label, entry) for label, entry in facts["probes"].items()]
    charts = [d for s in sections for d in s.drawn if isinstance(d, Chart)]
    places = {id(c): f"chart-{i}" for i, c in enumerate(charts)}
    scripts = [*vendored(), script("report.js")]
    kind = kind_of(facts)
    command, suite = kind.command(facts)
    return homeless(
        template().render(
            story=kind.story(run),
            unseen=UNSEEN,
            card=partial(kind.card, facts),
            spoken=partial(_spoken, facts),
            run=run,
            facts=facts,
            sections=[s for s in sections if s.tests or s.whole or s.drawn],
            loop_ids=lambda d: places.get(id(d), ""),
            data=as_json(
                {
                    "charts": [c.spec for c in charts],
                    "themes": {m: theme.config(m) for m in theme.COLOURS},
                }
            ),
            scripts=[Markup(s) for s in scripts],
            policy=policy(scripts),
            style=Markup(script("report.css")),
            lexicons=sources.lexicons(facts),
            command=command,
            suite=suite,
            settings=json.dumps(facts["work"], indent=1, ensure_ascii=False),
        )
    )


def homeless(page: str) -> str:
    """A page for others to see, in which no path tells whose machine it was made on.

    >>> homeless("evenhand audit /home/ann/models/m")
    'evenhand audit ~/models/m'
    """
    own = re.escape(str(Path.home()))
    return re.sub(rf"(?<![\w.])(?:/home/[\w.-]+|/Users/[\w.-]+|/root|{own})(?=/[\w.])", "~", page)


def _section(run: Run, label: str, entry: dict[str, Any]) -> Section:
    if entry.get("skipped"):
        return Section(label, entry, [], [], [], 0)
    own = [f for f in run.findings if f.probe == label]
    tests = [f for f in own if f.detected is not None or not words.defined(f.value)]
    tests.sort(key=lambda f: (f.q if words.defined(f.q) else 1.0, -abs(f.value - f.ideal), f.id))
    whole = [f for f in own if f.detected is None and words.defined(f.value)][:LISTED]
    return Section(
        label, entry, charts_of(run, label), whole, tests[:LISTED], max(0, len(tests) - LISTED)
    )


def environment(*folders: Path) -> Environment:
    """Templates with escaping always on; those of this package, and of more folders."""
    env = Environment(
        loader=FileSystemLoader([FOLDER, *folders]),
        autoescape=True,
        undefined=ChainableUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda v: readable(v) if isinstance(v, str) and not isinstance(v, Markup) else v,
    )
    env.globals["differing"] = DIFFERING
    env.filters |= {
        "number": words.number,
        "chance": words.chance,
        "subject": words.subject,
        "defined": words.defined,
        "count": words.count,
        "interval_name": words.interval_name,
        "cell": cell,
    }
    env.tests["chart"] = lambda drawn: isinstance(drawn, Chart)
    return env


def cell(value: Any) -> str:
    """Any value as the text of a table cell."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return words.number(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, (list, tuple)):
        return ", ".join(cell(v) for v in value)
    return readable(str(value))


def as_json(value: Any) -> Markup:
    """JSON that may stand inside a script element.

    >>> as_json({"a": "</script>"})
    Markup('{"a": "\\\\u003c/script\\\\u003e"}')
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


@cache
def template() -> Template:
    """The page with its parts, compiled once."""
    env = environment()
    for name in env.list_templates(extensions=["jinja"]):
        env.get_template(name)
    return env.get_template("report.html.jinja")


@cache
def script(name: str) -> str:
    """A script or style of this package."""
    return (FOLDER / name).read_text(encoding="utf-8")


@cache
def vendored() -> tuple[str, ...]:
    """Vega, Vega-Lite and Vega-Embed (BSD-3-Clause), without their source-map notes."""
    texts = [(FOLDER / "vendor" / name).read_text(encoding="utf-8") for name in VENDOR]
    return tuple(text.split("//# sourceMappingURL=")[0] for text in texts)


def policy(scripts: list[str]) -> str:
    """A content-security policy under which only exactly these inline scripts run."""
    hashes = " ".join(
        "'sha256-" + base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() + "'"
        for s in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        f"base-uri 'none'; form-action 'none'"
    )
