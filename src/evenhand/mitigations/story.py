"""What the page of a mitigation says: what it buys, what it costs, how sure that is."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from evenhand.runs.finding import Finding
from evenhand.runs.kinds import RunKind
from evenhand.runs.record import Run
from evenhand.runs.story import Place, Step, Story, Verdict, audited_name, quiet_parts, rate_of
from evenhand.runs.wording import count, defined, number

QUESTIONS = (
    "Does the mitigation lower the measured gap?",
    "What does it cost?",
    "How sure is that?",
    "What next?",
)
NEAR = 1e-9


def tell(run: Run, kind: RunKind) -> Story:
    """The first screen of a mitigation that was judged."""
    facts, found = run.facts, falls(run)
    name = audited_name(facts)
    hits = tuple(f for f in found if f.detected)
    return Story(
        title=f"{name}: what the mitigation buys and costs",
        model=name,
        problem=answer(run),
        clearest="",
        where=tuple(map(Place, costs(run))),
        sure=tuple(sure(run)),
        steps=tuple(steps(run)),
        verdicts=(Verdict(name, "mitigation", True, len(found), hits),),
        strongest=hits,
        quiet=quiet_parts(facts, found, kind.card),
        undefined=tuple(f for f in found if not defined(f.value)),
        rate=rate_of(facts),
        questions=QUESTIONS,
        noun="change",
        kind="mitigation",
        intro="Measured on held-out contexts, before and after.",
    )


def falls(run: Run) -> list[Finding]:
    return [f for f in run.findings if f.metric == "relative_fall"]


def chosen(points: list[dict[str, Any]], fall: float) -> dict[str, Any] | None:
    """The setting whose measured gap fell by exactly this share of the first point's.

    >>> rows = [{"hellinger2": 0.5, "alpha": "0"}, {"hellinger2": 0.25, "alpha": "1"}]
    >>> chosen(rows, 0.5)["alpha"]
    '1'
    """
    if not points or not points[0]["hellinger2"]:
        return None
    first = points[0]["hellinger2"]
    return next((p for p in points[1:] if abs(1 - p["hellinger2"] / first - fall) < NEAR), None)


def judged(run: Run) -> tuple[dict[str, Any], dict[str, Any] | None, int]:
    """The unmitigated point, the chosen one, and how many were judged."""
    label = next(iter(run.facts["probes"]))
    points = run.table(label, "points").to_pylist() if "points" in run.tables(label) else []
    found = falls(run)
    if not points or not found:
        return {}, None, len(points)
    return points[0], chosen(points, found[0].value), len(points)


def answer(run: Run) -> str:
    """The headline."""
    found = falls(run)
    if not found:
        return "Nothing was judged: the run holds no measured change."
    f = found[0]
    after = judged(run)[1]
    how = f" ({after['method']}, {_setting(after)})" if after else ""
    if f.detected:
        return f"Yes, by {f.value:.0%} between {f.attribute} contexts{how}."
    return f"Not shown: {f.value:.0%} between {f.attribute} contexts{how}, which chance can give."


def _setting(point: Mapping[str, Any]) -> str:
    return f"{count(int(point['rounds']), 'round')}, alpha {point['alpha']}"


def costs(run: Run) -> list[str]:
    """What else changed, before and after."""
    before, after, _ = judged(run)
    if after is None:
        return ["Not known: the chosen setting is not among the judged points."]
    out = [
        f"Perplexity {number(before['perplexity'])} before, {number(after['perplexity'])} after "
        f"({after['increase']:+.1%})."
    ]
    if defined(before.get("kept")) and defined(after.get("kept")):
        out.append(
            f"Probability of the favourite next word {number(before['kept'])} before, "
            f"{number(after['kept'])} after."
        )
    if defined(after.get("change")):
        out.append(f"Next-word distributions moved by {number(after['change'])} on plain text.")
    return out


def sure(run: Run) -> list[str]:
    found = falls(run)
    if not found:
        return []
    f, tried = found[0], judged(run)[2]
    out = []
    if defined(f.low):
        out.append(
            f"95 % interval of the fall: {f.low:.0%} to {f.high:.0%}, over "
            f"{count(f.n, 'held-out pair')} of contexts."
        )
    if tried > 2:
        out.append(
            f"The setting was chosen among {tried - 1} by these same pairs, so on fresh ones a "
            f"little less is to be expected."
        )
    out.append("A smaller gap here does not mean that other gaps are smaller: audit it.")
    return out


def steps(run: Run) -> list[Step]:
    model = shlex.quote(str(run.facts["work"]["model"]))
    made, place = shlex.quote(str(run.folder.parent)), shlex.quote(str(run.folder))
    return [
        Step("Audit the mitigated model", f"evenhand audit {made} --out after"),
        Step(
            "Audit the model before it, with the same questions",
            f"evenhand audit {model} --out before",
        ),
        Step("Set them side by side", "evenhand compare before after --html change.html"),
        Step("Look at every setting that was tried", f"evenhand view {place}"),
    ]


def command(work: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """The command that makes the mitigation again."""
    line = ["evenhand", "mitigate", str(work["model"])]
    for key in ("method", "axis", "alpha", "rounds", "classifier", "mixture"):
        if settings.get(key) is not None:
            line += [f"--{key}", str(settings[key])]
    if settings.get("max_increase") is not None:
        line += ["--max-perplexity-increase", f"{100 * settings['max_increase']:g}%"]
    if settings.get("as_published"):
        line.append("--as-published")
    return shlex.join([*line, "--out", "DIR"])
