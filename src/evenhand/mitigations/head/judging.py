"""What an edit of the head buys and costs, from the settings that fitting judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.mitigations.base import Judgement
from evenhand.mitigations.changes import Followed, decided
from evenhand.mitigations.folder import RATE
from evenhand.mitigations.grounds import Grounds
from evenhand.mitigations.head import stereo
from evenhand.mitigations.head.tradeoff import REDUCTION, Point, fall, logs
from evenhand.mitigations.proof import followed, judgement
from evenhand.runs.finding import Finding
from evenhand.runs.wording import count, defined, number
from evenhand.stats.estimate import Estimate

if TYPE_CHECKING:
    from evenhand.mitigations.head.fit import FittedHead

GAP, JUDGING = "gap", "judging"


def concluded(grounds: Grounds, label: str) -> Judgement:
    """The chosen setting on pairs, text and questions that it was not chosen by.

    Table `points` is the choosing half alone, `verdict` the judging half alone: a number of one is
    never set beside a number of the other. Runs of versions that did not keep the unchanged model
    on the choosing half (`On.unchanged`) come out as they were written.
    """
    on, found = On.read(grounds), followed(grounds)
    if on.pairs:
        gap = decided([_gap(on)], RATE, (), ())
        found = replace(found, tests=(*gap, *found.tests))
    told = judgement(label, grounds.model, found)
    first = on.before if on.unchanged is None else on.unchanged
    rows = [_row(first, False), *(_row(p, p.setting == on.chosen.setting) for p in on.points)]
    verdict = [] if on.unchanged is None else _verdict(on)
    tables = {"points": rows, **({"verdict": verdict} if verdict else {}), **told.tables}
    proof = {**told.proof, "reduction": on.reduction}
    swept = grounds.facts["stereoset"]
    if swept:
        proof["stereoset"] = swept
        tables["stereoset"] = [{**r, "alpha": str(r["alpha"])} for r in swept["rows"]]
    claim = _claim(on)
    kept = [f for f in told.findings if f.id != f"{label}/{GAP}"]
    return replace(
        told,
        findings=[claim, *kept],
        tables=tables,
        proof=proof,
        buys=f"{found.headline} {_by(on, claim)}",
        costs=(*_costs(on), *told.costs),
        sure=(*_sure(on), *told.sure),
    )


@dataclass(frozen=True)
class On:
    """What was measured, as the sentences below need it.

    Attributes:
        before, chosen: the unchanged model and the chosen setting on the judging half.
        points: every setting on the choosing half.
        pairs: gaps before and after with terms and prompts; empty where none were kept.
        reduction: the fall of the typical gap.
        unchanged: the unchanged model on the choosing half; None in runs of earlier versions.
    """

    grounds: Grounds
    before: Point
    chosen: Point
    points: tuple[Point, ...]
    pairs: tuple[Any, ...]
    reduction: Mapping[str, Any]
    unchanged: Point | None = None

    @classmethod
    def read(cls, grounds: Grounds) -> On:
        facts, numbers = grounds.facts, grounds.numbers
        before, chosen, *points = (
            Point(**row) for row in (facts["before"], facts["chosen"], *facts["points"])
        )
        pairs: tuple[Any, ...] = ()
        reduction = facts["reduction"]
        if "gap.before" in numbers:
            levels = (grounds.codes(f"gap.{name}") for name in ("terms", "prompts"))
            pairs = (numbers["gap.before"], numbers["gap.after"], *levels)
            reduced = fall(*pairs)
            reduction = {name: getattr(reduced, name) for name in REDUCTION}
        sweep = facts.get("sweep")
        unchanged = Point(**sweep["before"]) if sweep else None
        return cls(grounds, before, chosen, tuple(points), pairs, reduction, unchanged)

    @property
    def axis(self) -> str:
        return str(self.grounds.facts["settings"]["axis"])

    @property
    def contexts(self) -> str:
        """The contexts that the verdict is about."""
        of = "" if self.unchanged is None else f" of the {JUDGING} half"
        return f"{self.axis} contexts{of}"


def _gap(on: On) -> Followed:
    """How far contexts of two groups lie apart, pair by pair; a distance is never 0."""
    *sizes, change = logs(*on.pairs)
    before, after = (Estimate(float(np.exp(e.value)), p=0.0, units=e.units) for e in sizes)
    about = f"typical distance between {on.contexts} (log change)"
    over = ("terms", "prompts")
    return Followed(GAP, "pairs", about, before, after, change, "terms", over)


def _row(point: Point, chosen: bool) -> dict[str, Any]:
    return {**point.as_dict(), "alpha": str(point.alpha), "chosen": chosen}


def _verdict(on: On) -> list[dict[str, Any]]:
    """The judging half, before and after: what the verdict compares."""
    pairs = on.grounds.facts["held_out_pairs"]
    return [
        {**_row(point, stage == "after"), "stage": stage, "pairs": pairs}
        for stage, point in (("before", on.before), ("after", on.chosen))
    ]


def _claim(on: On) -> Finding:
    reduced, axis = on.reduction, on.axis
    how = f"between {on.contexts}"
    if on.unchanged is None:
        how += " that it was not chosen by"
    method = on.grounds.facts["settings"]["method"]
    sentence = (
        f"{method} changes the typical gap {how} by {-100 * reduced['value']:+.0f} %, while "
        f"perplexity changes by {100 * on.chosen.increase:+.1f} %."
    )
    return Finding(
        id="tradeoff/reduction",
        probe="tradeoff",
        metric="relative_fall",
        value=reduced["value"],
        low=reduced["low"],
        high=reduced["high"],
        p=reduced["p"],
        q=reduced["p"],
        n=reduced["units"],
        attribute=axis,
        model=on.grounds.model,
        detected=bool(reduced["p"] <= RATE),
        units="terms",
        generalises_over=("terms", "prompts"),
        sentence=sentence if reduced["p"] <= RATE else f"No change of the gap {how} was detected.",
        method="log of squared Hellinger, pair by pair; terms and prompts as samples",
    )


def stereoset(fitted: FittedHead) -> Mapping[str, Any]:
    """StereoSet for all settings that were judged, and where the learned alpha lies."""
    from evenhand.mitigations.head import fit

    examples = fitted.settings.examples()
    if not examples or fitted.material is None:
        return {}
    settings = fitted.settings
    mine = [p for p in fitted.points if p.method == settings.method]
    increases = {(p.rounds, p.alpha): p.increase for p in mine}
    tried = fit.candidates(fitted.base, fitted.material, settings)
    rows = stereo.sweep(fitted.base, tried, increases, examples, settings.seed)
    return {"n": len(examples), **stereo.learned_against_fixed(rows), "rows": rows}


def _by(on: On, claim: Finding) -> str:
    point = on.chosen
    how = f"({point.method}, {count(point.rounds, 'round')}, alpha {point.alpha})"
    return (
        f"Fall of the typical gap between {on.contexts}: {100 * claim.value:.0f} %, "
        f"95 % interval {100 * claim.low:.0f} % to {100 * claim.high:.0f} % {how}."
    )


def _costs(on: On) -> tuple[str, ...]:
    before, after, facts = on.before, on.chosen, on.grounds.facts
    out = [
        f"Perplexity {number(before.perplexity)} before, {number(after.perplexity)} after "
        f"({100 * after.increase:+.1f} %), on {facts['text_tokens']} tokens"
        f"{_of(on)} ({facts['text']})."
    ]
    if defined(before.kept) and defined(after.kept):
        out.append(
            f"Probability of the favourite next word {number(before.kept)} before, "
            f"{number(after.kept)} after."
        )
    if defined(after.change):
        out.append(f"Next-word distributions moved by {number(after.change)} (KL) on those pairs.")
    return tuple(out)


def _of(on: On) -> str:
    return "" if on.unchanged is None else f" of the {JUDGING} half"


def _sure(on: On) -> tuple[str, ...]:
    facts, tried = on.grounds.facts, len(on.points)
    if on.unchanged is not None:
        return _halves(on, on.unchanged)
    if tried < 2:
        return ()
    return (
        f"The setting was chosen among {tried} by {count(facts['chosen_on'], 'pair')} of contexts, "
        f"and judged on {facts['held_out_pairs']} others: no term, prompt or text is in both.",
    )


def _halves(on: On, unchanged: Point) -> tuple[str, ...]:
    """The mean gap on each half, before and after, and what each half was for."""
    facts, tried = on.grounds.facts, len(on.points)
    swept = next(p for p in on.points if p.setting == on.chosen.setting)
    start = f"The setting was chosen among {tried} by" if tried > 1 else "One setting was tried on"
    return (
        f"{start} {count(facts['chosen_on'], 'pair')} of contexts (choosing half: mean squared "
        f"Hellinger distance {number(unchanged.hellinger2)} before, {number(swept.hellinger2)} "
        f"after), and judged on {facts['held_out_pairs']} others (judging half: "
        f"{number(on.before.hellinger2)} before, {number(on.chosen.hellinger2)} after).",
        "No term, prompt or text is in both halves, so a number of one does not compare with a "
        "number of the other.",
    )
