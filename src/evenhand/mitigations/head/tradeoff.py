"""Bias against language-model quality: one pass over cached states serves every setting.

The hidden states of held-out pairs and of ordinary text are kept; a projection costs a low-rank
product on cached logits, an alpha costs a mixture of two cached distributions (Liang et al. 2021,
Fig. 3 and 4). Quality is perplexity, e^(mean negative log-likelihood in nats). `concluded` says
what the chosen setting buys and costs, from the settings that were tried.

Deviates: the released code prints 2^(nats), and its loop over alpha mixes what it mixed before, so
that its alpha axis is mislabelled (see docs/papers/liang.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenhand.audit.comparison.items import changes
from evenhand.errors import SpecError
from evenhand.mitigations.base import Judgement, Measurements
from evenhand.mitigations.changes import PairedChange, decided
from evenhand.mitigations.head import stereo
from evenhand.mitigations.proof import judge_measurements, report_changes
from evenhand.mitigations.running import RATE
from evenhand.models.edits.head import AppliedEdit, HeadEdit
from evenhand.models.edits.head_handles import after_head, raw_logits
from evenhand.runs.finding import Finding
from evenhand.runs.wording import count, defined, number
from evenhand.stats.estimate import Estimate

if TYPE_CHECKING:
    from evenhand.mitigations.head.fit import FittedHead

Floats = npt.NDArray[np.float64]
Mixed = tuple[list[Any], Any, list[Any]]
ALPHAS = tuple(round(0.1 * i, 1) for i in range(11))
TEXT_ROWS = 1_000
NAN = float("nan")
REDUCTION = ("value", "low", "high", "p", "units")
"""What is kept of a fall."""
SMALLEST = 1e-9
"""Below this two distributions are one."""
GAP, JUDGING = "gap", "judging"


@dataclass(frozen=True)
class Held:
    """States to choose or to judge on: both sides of pairs, and text with its next tokens.

    `owners` are the texts of the tokens, `terms` and `prompts` what the pairs were made of, `half`
    is the name of the half ("choosing" or "judging").
    """

    first: npt.NDArray[np.float32]
    second: npt.NDArray[np.float32]
    text: npt.NDArray[np.float32]
    targets: npt.NDArray[np.int64]
    owners: npt.NDArray[np.int64]
    terms: npt.NDArray[np.int64] | None = None
    prompts: npt.NDArray[np.int64] | None = None
    half: str = ""


@dataclass(frozen=True)
class Candidate:
    """A projection to try: its arrays and how it came about."""

    method: str
    rounds: int
    edit: HeadEdit


@dataclass(frozen=True)
class Point:
    """One setting: what it does to the measured gap, and what it costs.

    Attributes:
        hellinger2, hellinger2_median, kl: over held-out pairs (kl: mean of both directions).
        perplexity: on held-out text; `increase` relative to the unchanged model.
        kept: mean p(w) of the unchanged model's favourite next word after the pairs' contexts.
        change: mean KL(unchanged || mitigated) on the pairs' contexts.
        half: the half of pairs and text that it was measured on; empty in runs of versions that
            did not say.
    """

    method: str
    rounds: int
    rank: int
    alpha: float | str
    mixture: str
    hellinger2: float
    hellinger2_median: float
    kl: float
    perplexity: float
    increase: float
    change: float
    kept: float
    alpha_mean: float
    half: str = ""

    @property
    def setting(self) -> tuple[str, int, str]:
        """Key of the setting: no two points of one fit share it."""
        return self.method, self.rounds, str(self.alpha)

    def as_dict(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if v or k != "half"}


class Bench:
    """Cached distributions of one model, on which any setting can be judged."""

    def __init__(self, model: Any, held: Held, seed: int = 0) -> None:
        self.torch, self.model, self.held = model.torch, model, held
        rows = np.random.default_rng(seed).permutation(len(held.targets))[:TEXT_ROWS]
        self.rows = np.sort(rows)
        self.device = model.model.get_output_embeddings().weight.device
        self.raw = raw_logits(model.torch, model.model)
        self.post = after_head(model.torch, model.model.config)
        with self.torch.inference_mode():
            self.sides = [self._own(held.first), self._own(held.second)]
            self.text = self._own(held.text[self.rows])
        self.targets = self.torch.as_tensor(held.targets[self.rows], device=self.device)

    def _own(self, states: npt.NDArray[np.float32]) -> tuple[Any, Any]:
        """Return states and the unchanged model's log-probabilities."""
        h = self.torch.as_tensor(np.array(states), device=self.device)
        raw = self.raw(h)
        return h, (raw if self.post is None else self.post(raw)).log_softmax(-1)

    def judge(
        self, candidate: Candidate, alphas: Sequence[float | str], *, full: bool = False
    ) -> list[Point]:
        """Return points of one projection at several alphas ("learned" uses the edit's own rule).

        `full` adds kl, change and kept, which cost more than all the rest; they are NaN otherwise.
        """
        with self.torch.inference_mode():
            return [
                self._point(candidate, alpha, mixed, full)
                for alpha, mixed in zip(alphas, self._mixed(candidate, alphas))
            ]

    def items(
        self, candidate: Candidate, alpha: float | str
    ) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """Return every pair's gap and every token's loss, unchanged and under a setting."""
        with self.torch.inference_mode():
            ((sides, new, _),) = self._mixed(candidate, (alpha,))
            gap = _hellinger2(*(own for _, own in self.sides)), _hellinger2(*sides)
            before, after = (-x.cpu().numpy() for x in (self._picked(self.text[1]), new))
            return gap, (before, after)

    def _mixed(self, candidate: Candidate, alphas: Sequence[float | str]) -> Iterator[Mixed]:
        """Yield both sides' log-probabilities, those of the true next tokens, and alpha by row."""
        applied = AppliedEdit(self.torch, self.model.model, candidate.edit)
        hats = [self._edited(applied, own) for own in (*self.sides, self.text)]
        mixture, owns = candidate.edit.mixture, [own for _, own in (*self.sides, self.text)]
        for alpha in alphas:
            weights = [self._alpha(applied, own, alpha) for own in owns]
            sides = [self._mix(o, h, w, mixture) for o, h, w in zip(owns[:2], hats, weights)]
            yield sides, self._of_targets(owns[2], hats[2], weights[2], mixture), weights

    def _edited(self, applied: AppliedEdit, own: tuple[Any, Any]) -> Any:
        h, logp = own
        raw = self.raw(h) if applied.post is not None else logp
        return applied._edited_logits(h @ applied.right, raw, logp).log_softmax(-1)

    def _point(self, candidate: Candidate, alpha: float | str, mixed: Mixed, full: bool) -> Point:
        sides, new, weights = mixed
        loss, base = -new.mean(), -self._picked(self.text[1]).mean()
        h2 = _hellinger2(*sides)
        owns = [own for _, own in self.sides]
        kl, change, kept = _details(owns, sides) if full else (NAN, NAN, NAN)
        return Point(
            candidate.method,
            candidate.rounds,
            candidate.edit.rank,
            alpha,
            candidate.edit.mixture,
            float(h2.mean()),
            float(np.median(h2)),
            kl,
            float(loss.exp()),
            float((loss - base).exp() - 1),
            change,
            kept,
            float(np.mean([float(w.mean()) for w in weights[:2]])),
            self.held.half,
        )

    def _picked(self, logp: Any) -> Any:
        return logp.gather(1, self.targets[:, None])[:, 0].double()

    def _of_targets(self, own: Any, hat: Any, weight: Any, mixture: str) -> Any:
        """Return the log-probability of the true next token; Eq. 7 needs that entry alone."""
        if mixture == "hidden":
            return self._picked(self._mix(own, hat, weight, mixture))
        w = weight.double()
        return self.torch.logaddexp(
            self._picked(own) + self.torch.log1p(-w), self._picked(hat) + w.log()
        )

    def _alpha(self, applied: AppliedEdit, own: Any, alpha: float | str) -> Any:
        if alpha == "learned":
            found = applied.alphas(own)
            return found if not isinstance(found, float) else self._full(own, found)
        return self._full(own, float(alpha))

    def _full(self, own: Any, alpha: float) -> Any:
        return self.torch.full((len(own),), alpha, device=own.device)

    def _mix(self, own: Any, hat: Any, weight: Any, mixture: str) -> Any:
        w = weight[:, None]
        if mixture == "hidden":
            return ((1 - w) * own + w * hat).log_softmax(-1)
        return self.torch.logaddexp(own + self.torch.log1p(-w), hat + w.log())


def _hellinger2(log_p: Any, log_q: Any) -> Floats:
    root = (log_p / 2).exp_() - (log_q / 2).exp_()
    return np.asarray((root * root).sum(-1).double().cpu().numpy() / 2).clip(0.0, 1.0)


def _details(owns: list[Any], mixed: list[Any]) -> tuple[float, float, float]:
    """Return the mean symmetric KL of the sides, and the change against the unchanged model."""
    p, q = (m.double().clamp_min(-1e3) for m in mixed)
    kl = float((0.5 * (p.exp() - q.exp()) * (p - q)).sum(-1).mean())
    return (kl, *_against(owns, mixed))


def _against(owns: list[Any], mixed: list[Any]) -> tuple[float, float]:
    """Mean KL(own || mixed), and mean probability of the own favourite next word."""
    kls, kept = [], []
    for own, new in zip(owns, mixed):
        p = own.double().clamp_min(-1e3)
        kls.append(float((p.exp() * (p - new.double().clamp_min(-1e3))).sum(-1).mean()))
        best = own.argmax(-1, keepdim=True)
        kept.append(float(new.gather(1, best).exp().mean()))
    return max(float(np.mean(kls)), 0.0), float(np.mean(kept))  # NaN stays NaN


def pareto(points: Sequence[Point]) -> list[Point]:
    """Return the points that none beats on both measured gap and perplexity, by perplexity."""
    best: list[Point] = []
    for point in sorted(points, key=lambda p: (p.perplexity, p.hellinger2)):
        if not best or point.hellinger2 < best[-1].hellinger2:
            best.append(point)
    return best


def pick(points: Sequence[Point], max_increase: float) -> Point:
    """Return the point with the smallest gap within `max_increase` of perplexity (0.02: 2 %)."""
    if not max_increase >= 0:
        raise SpecError(f"--max-perplexity-increase '{max_increase}': expected 0 or more.")
    allowed = [p for p in points if p.increase <= max_increase]
    if not allowed:
        least = min(points, key=lambda p: p.increase)
        raise SpecError(
            f"no setting stays within a perplexity increase of {100 * max_increase:.1f} %; the "
            f"mildest needs {100 * least.increase:.1f} %. Allow more with: "
            "--max-perplexity-increase"
        )
    return min(allowed, key=lambda p: (p.hellinger2, p.increase))


def area(points: Sequence[Point], reach: float = 0.1) -> float:
    """Return the area under the front: mean relative gap over increases of 0 to `reach`.

    1 means that no perplexity buys anything; 0 that the gap vanishes at no cost. Comparable
    between methods only with the same pairs and text.
    """
    front = [p for p in pareto(points) if p.increase <= reach]
    start = max(p.hellinger2 for p in points)
    if not front or start <= 0:
        return float("nan")
    steps = np.linspace(0.0, reach, 101)
    values = [min([p.hellinger2 for p in front if p.increase <= s], default=start) for s in steps]
    return float(np.mean(values) / start)


Codes = npt.NDArray[np.int64] | None


def logs(
    before: Any, after: Any, terms: Codes, prompts: Codes
) -> tuple[Estimate, Estimate, Estimate]:
    """Return the mean log gap before and after, and their difference, over terms and prompts.

    Logarithms, since a few pairs in which the group decides the next word ("known for her") are a
    hundred times as far apart as the rest and would be all that a mean sees.
    """
    a, b = (np.log(np.maximum(np.asarray(v, np.float64), SMALLEST)) for v in (before, after))
    every = np.arange(len(a))
    factors = [every if codes is None else codes for codes in (terms, prompts)]
    one, two, change = changes(np.stack([a, b, b - a], axis=1), factors, family=1)
    return one, two, change


def fall(before: Any, after: Any, terms: Codes, prompts: Codes) -> Estimate:
    """Return the relative fall of the typical gap, 1 - e^(mean log after - mean log before).

    0 is what a setting gets that does nothing; the pairs must not be those it was chosen by.
    """
    change = logs(before, after, terms, prompts)[2]
    value, low, high, seen = (
        1 - float(np.exp(x)) for x in (change.value, change.high, change.low, -change.detectable)
    )
    return replace(change, value=value, low=low, high=high, detectable=seen, error=NAN)


def report(measurements: Measurements, label: str) -> Judgement:
    """Report the chosen setting on pairs, text and questions that it was not chosen by.

    Table `points` is the choosing half alone, `verdict` the judging half alone: a number of one is
    never set beside a number of the other. Runs of versions that did not keep the unchanged model
    on the choosing half (`On.unchanged`) come out as they were written.
    """
    on, found = On.read(measurements), judge_measurements(measurements)
    if on.pairs:
        gap = decided([_gap(on)], RATE, (), ())
        found = replace(found, tests=(*gap, *found.tests))
    told = report_changes(label, measurements.model, found)
    first = on.before if on.unchanged is None else on.unchanged
    rows = [_row(first, False), *(_row(p, p.setting == on.chosen.setting) for p in on.points)]
    verdict = [] if on.unchanged is None else _verdict(on)
    tables = {"points": rows, **({"verdict": verdict} if verdict else {}), **told.tables}
    proof = {**told.proof, "reduction": on.reduction}
    swept = measurements.facts["stereoset"]
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

    measurements: Measurements
    before: Point
    chosen: Point
    points: tuple[Point, ...]
    pairs: tuple[Any, ...]
    reduction: Mapping[str, Any]
    unchanged: Point | None = None

    @classmethod
    def read(cls, measurements: Measurements) -> On:
        facts, numbers = measurements.facts, measurements.numbers
        before, chosen, *points = (
            Point(**row) for row in (facts["before"], facts["chosen"], *facts["points"])
        )
        pairs: tuple[Any, ...] = ()
        reduction = facts["reduction"]
        if "gap.before" in numbers:
            levels = (measurements.codes(f"gap.{name}") for name in ("terms", "prompts"))
            pairs = (numbers["gap.before"], numbers["gap.after"], *levels)
            reduced = fall(*pairs)
            reduction = {name: getattr(reduced, name) for name in REDUCTION}
        sweep = facts.get("sweep")
        unchanged = Point(**sweep["before"]) if sweep else None
        return cls(measurements, before, chosen, tuple(points), pairs, reduction, unchanged)

    @property
    def axis(self) -> str:
        return str(self.measurements.facts["settings"]["axis"])

    @property
    def contexts(self) -> str:
        """Words for the contexts that the verdict is about."""
        of = "" if self.unchanged is None else f" of the {JUDGING} half"
        return f"{self.axis} contexts{of}"


def _gap(on: On) -> PairedChange:
    """Return the change of the distance between contexts of two groups, pair by pair."""
    *sizes, change = logs(*on.pairs)
    before, after = (Estimate(float(np.exp(e.value)), p=0.0, units=e.units) for e in sizes)
    about = f"typical distance between {on.contexts} (log change)"
    over = ("terms", "prompts")
    return PairedChange(GAP, "pairs", about, before, after, change, "terms", over)


def _row(point: Point, chosen: bool) -> dict[str, Any]:
    return {**point.as_dict(), "alpha": str(point.alpha), "chosen": chosen}


def _verdict(on: On) -> list[dict[str, Any]]:
    """Return the rows of the judging half, before and after."""
    pairs = on.measurements.facts["held_out_pairs"]
    return [
        {**_row(point, stage == "after"), "stage": stage, "pairs": pairs}
        for stage, point in (("before", on.before), ("after", on.chosen))
    ]


def _claim(on: On) -> Finding:
    reduced, axis = on.reduction, on.axis
    how = f"between {on.contexts}"
    if on.unchanged is None:
        how += " that it was not chosen by"
    method = on.measurements.facts["settings"]["method"]
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
        model=on.measurements.model,
        detected=bool(reduced["p"] <= RATE),
        units="terms",
        generalises_over=("terms", "prompts"),
        sentence=sentence if reduced["p"] <= RATE else f"No change of the gap {how} was detected.",
        method="log of squared Hellinger, pair by pair; terms and prompts as samples",
    )


def stereoset(fitted: FittedHead) -> Mapping[str, Any]:
    """Score StereoSet under all settings that were judged, and place the learned alpha."""
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
    before, after, facts = on.before, on.chosen, on.measurements.facts
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
    facts, tried = on.measurements.facts, len(on.points)
    if on.unchanged is not None:
        return _halves(on, on.unchanged)
    if tried < 2:
        return ()
    return (
        f"The setting was chosen among {tried} by {count(facts['chosen_on'], 'pair')} of contexts, "
        f"and judged on {facts['held_out_pairs']} others: no term, prompt or text is in both.",
    )


def _halves(on: On, unchanged: Point) -> tuple[str, ...]:
    """Say the mean gap on each half, before and after, and the purpose of each half."""
    facts, tried = on.measurements.facts, len(on.points)
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
