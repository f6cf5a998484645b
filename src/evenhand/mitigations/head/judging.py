"""What an edit of the head buys and costs, from the settings that fitting judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evenhand.mitigations.base import Judgement
from evenhand.mitigations.head import stereo
from evenhand.runs.finding import Finding
from evenhand.runs.wording import count, defined, number

if TYPE_CHECKING:
    from evenhand.mitigations.head.fit import FittedHead
    from evenhand.mitigations.head.tradeoff import Point


def judged(fitted: FittedHead) -> Judgement:
    """Held-out pairs and text under every setting, the chosen one marked.

    They were asked while fitting, since the choice depends on them; nothing is asked again but
    StereoSet, where it is wanted.
    """
    tables = {"points": [_row(fitted.before, False), *_rows(fitted)]}
    proof: dict[str, Any] = {"reduction": fitted.facts["reduction"]}
    swept = _stereoset(fitted)
    if swept:
        proof["stereoset"] = swept
        tables["stereoset"] = [{**r, "alpha": str(r["alpha"])} for r in swept["rows"]]
    claim = _claim(fitted)
    return Judgement([claim], tables, _buys(fitted, claim), _costs(fitted), _sure(fitted), proof)


def _rows(fitted: FittedHead) -> list[dict[str, Any]]:
    chosen = fitted.chosen.setting
    return [_row(point, point.setting == chosen) for point in fitted.points]


def _row(point: Point, chosen: bool) -> dict[str, Any]:
    return {**point.as_dict(), "alpha": str(point.alpha), "chosen": chosen}


def _claim(fitted: FittedHead) -> Finding:
    fall, axis = fitted.facts["reduction"], fitted.settings.axis
    return Finding(
        id="tradeoff/reduction", probe="tradeoff", metric="relative_fall", value=fall["value"],
        low=fall["low"], high=fall["high"], n=fitted.facts["held_out_pairs"], attribute=axis,
        model=fitted.base.name, detected=fall["low"] > 0, units="pairs of contexts",
        generalises_over=("prompt",),
        sentence=(
            f"{fitted.settings.method} lowers the measured gap between {axis} contexts by "
            f"{fall['value']:.0%}, while perplexity changes by {fitted.chosen.increase:+.1%}."
        ),
        method="mean squared Hellinger of held-out pairs; bootstrap over prompts",
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


def _buys(fitted: FittedHead, claim: Finding) -> str:
    point = fitted.chosen
    how = f"({point.method}, {count(point.rounds, 'round')}, alpha {point.alpha})"
    where = f"{claim.value:.0%} between {claim.attribute} contexts {how}"
    return f"Yes, by {where}." if claim.detected else f"Not shown: {where}, which chance can give."


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
    fall, tried = fitted.facts["reduction"], len(fitted.points)
    out = [
        f"95 % interval of the fall: {fall['low']:.0%} to {fall['high']:.0%}, over "
        f"{count(fitted.facts['held_out_pairs'], 'held-out pair')} of contexts."
    ]
    if tried > 1:
        out.append(
            f"The setting was chosen among {tried} by these same pairs, so on fresh ones a "
            f"little less is to be expected."
        )
    return (*out, "A smaller gap here does not mean that other gaps are smaller: audit it.")
