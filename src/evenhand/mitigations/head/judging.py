"""What an edit of the head buys and costs, from the settings that fitting judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.audit.comparison.standing import Standing, standing
from evenhand.mitigations.base import Judgement
from evenhand.mitigations.changes import Followed, Judged, decided
from evenhand.mitigations.folder import RATE
from evenhand.mitigations.head import stereo
from evenhand.mitigations.head.tradeoff import logs
from evenhand.mitigations.proof import judgement
from evenhand.mitigations.utility import NATS
from evenhand.probes.base import Behaviour
from evenhand.runs.finding import Finding
from evenhand.runs.wording import count, defined, number
from evenhand.stats.estimate import Estimate

if TYPE_CHECKING:
    from evenhand.mitigations.head.fit import FittedHead, OnOthers
    from evenhand.mitigations.head.tradeoff import Point

GAP = "gap"


def judged(fitted: FittedHead, asked: Judged) -> Judgement:
    """The chosen setting on pairs, text and questions (`asked`) that it was not chosen by."""
    on = fitted.judged_on
    found = asked.with_tasks([_perplexity(fitted, on)] if on else ())
    if on is not None:
        gap = decided([_gap(fitted, on)], RATE, (), ())
        found = replace(found, tests=(*gap, *found.tests))
    told = judgement(fitted.settings.label, fitted.base.name, found)
    tables = {"points": [_row(fitted.before, False), *_rows(fitted)], **told.tables}
    proof = {**told.proof, "reduction": fitted.facts["reduction"]}
    swept = _stereoset(fitted)
    if swept:
        proof["stereoset"] = swept
        tables["stereoset"] = [{**r, "alpha": str(r["alpha"])} for r in swept["rows"]]
    claim = _claim(fitted)
    kept = [f for f in told.findings if f.id != f"{fitted.settings.label}/{GAP}"]
    return replace(
        told, findings=[claim, *kept], tables=tables, proof=proof,
        buys=f"{found.headline} {_by(fitted, claim)}", costs=(*_costs(fitted), *told.costs),
        sure=(*_sure(fitted), *told.sure),
    )  # fmt: skip


def _gap(fitted: FittedHead, on: OnOthers) -> Followed:
    """How far contexts of two groups lie apart, pair by pair; a distance is never 0."""
    *sizes, change = logs(*on.gap, on.held)
    before, after = (Estimate(float(np.exp(e.value)), p=0.0, units=e.units) for e in sizes)
    about = f"typical distance between {fitted.settings.axis} contexts (log change)"
    over = ("terms", "prompts")
    return Followed(GAP, "pairs", about, before, after, change, "terms", over)


def _perplexity(fitted: FittedHead, on: OnOthers) -> Standing:
    """Loss on text that it was neither fitted nor chosen on; texts are the sample."""
    margin = max(NATS, float(np.log1p(fitted.settings.max_perplexity_increase)))
    before, after = (
        Behaviour("loss on held-out text, in nats a token", v, margin, float("-inf"))
        for v in on.losses
    )
    return standing(before, after, [on.held.owners[on.rows]])


def _rows(fitted: FittedHead) -> list[dict[str, Any]]:
    chosen = fitted.chosen.setting
    return [_row(point, point.setting == chosen) for point in fitted.points]


def _row(point: Point, chosen: bool) -> dict[str, Any]:
    return {**point.as_dict(), "alpha": str(point.alpha), "chosen": chosen}


def _claim(fitted: FittedHead) -> Finding:
    reduced, axis = fitted.facts["reduction"], fitted.settings.axis
    how = f"between {axis} contexts that it was not chosen by"
    sentence = (
        f"{fitted.settings.method} changes the typical gap {how} by {-reduced['value']:+.0%}, "
        f"while perplexity changes by {fitted.chosen.increase:+.1%}."
    )
    return Finding(
        id="tradeoff/reduction", probe="tradeoff", metric="relative_fall", value=reduced["value"],
        low=reduced["low"], high=reduced["high"], p=reduced["p"], q=reduced["p"],
        n=reduced["units"], attribute=axis, model=fitted.base.name,
        detected=bool(reduced["p"] <= RATE), units="terms", generalises_over=("terms", "prompts"),
        sentence=sentence if reduced["p"] <= RATE else f"No change of the gap {how} was detected.",
        method="log of squared Hellinger, pair by pair; terms and prompts as samples",
    )  # fmt: skip


def _stereoset(fitted: FittedHead) -> Mapping[str, Any]:
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


def _by(fitted: FittedHead, claim: Finding) -> str:
    point = fitted.chosen
    how = f"({point.method}, {count(point.rounds, 'round')}, alpha {point.alpha})"
    return (
        f"Fall of the typical gap between {claim.attribute} contexts: {claim.value:.0%}, "
        f"95 % interval {claim.low:.0%} to {claim.high:.0%} {how}."
    )


def _costs(fitted: FittedHead) -> tuple[str, ...]:
    before, after = fitted.before, fitted.chosen
    out = [
        f"Perplexity {number(before.perplexity)} before, {number(after.perplexity)} after "
        f"({after.increase:+.1%}), on {fitted.facts['text_tokens']} tokens "
        f"({fitted.facts['text']})."
    ]
    if defined(before.kept) and defined(after.kept):
        out.append(
            f"Probability of the favourite next word {number(before.kept)} before, "
            f"{number(after.kept)} after."
        )
    if defined(after.change):
        out.append(f"Next-word distributions moved by {number(after.change)} (KL) on those pairs.")
    return tuple(out)


def _sure(fitted: FittedHead) -> tuple[str, ...]:
    facts, tried = fitted.facts, len(fitted.points)
    if tried < 2:
        return ()
    return (
        f"The setting was chosen among {tried} by {count(facts['chosen_on'], 'pair')} of contexts, "
        f"and judged on {facts['held_out_pairs']} others: no term, prompt or text is in both.",
    )
