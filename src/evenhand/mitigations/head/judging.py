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

GAP = "gap"


def concluded(grounds: Grounds, label: str) -> Judgement:
    """The chosen setting on pairs, text and questions that it was not chosen by."""
    on, found = On.read(grounds), followed(grounds)
    if on.pairs:
        gap = decided([_gap(on)], RATE, (), ())
        found = replace(found, tests=(*gap, *found.tests))
    told = judgement(label, grounds.model, found)
    rows = [_row(on.before, False), *(_row(p, p.setting == on.chosen.setting) for p in on.points)]
    tables = {"points": rows, **told.tables}
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
        pairs: gaps before and after with terms and prompts; empty where none were kept.
        reduction: the fall of the typical gap.
    """

    grounds: Grounds
    before: Point
    chosen: Point
    points: tuple[Point, ...]
    pairs: tuple[Any, ...]
    reduction: Mapping[str, Any]

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
        return cls(grounds, before, chosen, tuple(points), pairs, reduction)

    @property
    def axis(self) -> str:
        return str(self.grounds.facts["settings"]["axis"])


def _gap(on: On) -> Followed:
    """How far contexts of two groups lie apart, pair by pair; a distance is never 0."""
    *sizes, change = logs(*on.pairs)
    before, after = (Estimate(float(np.exp(e.value)), p=0.0, units=e.units) for e in sizes)
    about = f"typical distance between {on.axis} contexts (log change)"
    over = ("terms", "prompts")
    return Followed(GAP, "pairs", about, before, after, change, "terms", over)


def _row(point: Point, chosen: bool) -> dict[str, Any]:
    return {**point.as_dict(), "alpha": str(point.alpha), "chosen": chosen}


def _claim(on: On) -> Finding:
    reduced, axis = on.reduction, on.axis
    how = f"between {axis} contexts that it was not chosen by"
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
        f"Fall of the typical gap between {claim.attribute} contexts: {100 * claim.value:.0f} %, "
        f"95 % interval {100 * claim.low:.0f} % to {100 * claim.high:.0f} % {how}."
    )


def _costs(on: On) -> tuple[str, ...]:
    before, after, facts = on.before, on.chosen, on.grounds.facts
    out = [
        f"Perplexity {number(before.perplexity)} before, {number(after.perplexity)} after "
        f"({100 * after.increase:+.1f} %), on {facts['text_tokens']} tokens ({facts['text']})."
    ]
    if defined(before.kept) and defined(after.kept):
        out.append(
            f"Probability of the favourite next word {number(before.kept)} before, "
            f"{number(after.kept)} after."
        )
    if defined(after.change):
        out.append(f"Next-word distributions moved by {number(after.change)} (KL) on those pairs.")
    return tuple(out)


def _sure(on: On) -> tuple[str, ...]:
    facts, tried = on.grounds.facts, len(on.points)
    if tried < 2:
        return ()
    return (
        f"The setting was chosen among {tried} by {count(facts['chosen_on'], 'pair')} of contexts, "
        f"and judged on {facts['held_out_pairs']} others: no term, prompt or text is in both.",
    )
