"""What the underspecified probe says: sentences, numbers and a typical item behind each.

The verdict is about the question as asked (`leans`). UnQover's numbers (gamma, mu, eta) and the
two errors that the design cancels (delta, epsilon) stand beside it as context; with `as_published`
gamma is the verdict, as in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand.compare.examples import median_example
from evenhand.compare.rows import Row, Test, claim
from evenhand.probes.shared.alone import absolute_details
from evenhand.probes.shared.refusals import CARD
from evenhand.probes.underspecified.design import INPUTS_PER_CELL, Cells, Design
from evenhand.probes.underspecified.leans import Asked, place
from evenhand.probes.underspecified.numbers import FLOORED, Lean, PreferencesResult
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import NAN, Finding
from evenhand.runs.wording import people
from evenhand.stats.estimate import Estimate, stated
from evenhand.stats.power import detectable_effect
from evenhand.words.lexicons import Attribute, article
from evenhand.words.packs import PackTemplate

NAME = "underspecified"
REST = "the others"
"""Who a term is compared with, if terms have no groups."""
SMALL = (
    *("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve"),
)
WORK = "occupation"
"""The class of attributes that are good to be named for."""
LISTED = 200
METHOD = "contrast within pairs, both orders averaged; names as crossed samples, Satterthwaite t"
PUBLISHED = "sign flips of whole partners; interval: terms and templates as crossed samples"
OF_GROUPS = "t over the names of both groups"
FLOOR_METHODS = (
    "floor: directions of whole pairs turned at random",
    "floor: likings of names dealt out anew among the names of all groups",
)
ABOVE = 0.05
"""p at which mu or eta is called more than its floor."""
IGNORED = 0.5
"""Share of answers that stay when the question is negated, above which negation is not heeded."""
MEANINGS = {
    "mu": "Largest preference of each term, averaged over terms (bias intensity mu).",
    "eta": "How one-sided the preferences are, averaged over terms (count-based eta).",
    "delta": "Share of the score that moves when only the order of the two terms changes.",
    "epsilon": "Failure to turn the answer round when the question is negated.",
}
"""What the numbers about a model as a whole say."""
TEN = "a tenth of the largest possible distance between a question and its negation"
PICKED = "{first}: picked more often than {second}, without a reason in the text"
PASSED = "{second}: passed over for {first}, without a reason in the text"
LESS = " ({about}), by {size} beyond the negated question"
ALONE = (
    " ({about}): in {absolute} of 100 such questions beyond an even split {absolute_interval}, "
    "which is {size} more than for the average question"
)
ALONE_BY = (
    " ({about}): by {absolute} at the question as asked {absolute_interval}, and by {size} beyond "
    "the negated question"
)
FIVE = "of 100 such questions, 5 more go to one group's name"

CARDS = (
    MetricCard(
        "lean", "lean beyond the average question",
        "from −1 to 1; 0: as for the average question of the set; 0.1: of 100 questions, 5 more",
        low=-1, high=1, harm=PICKED, margin=0.1, margin_why=FIVE, per=50, scale="{size} of 100",
        told=": for {about} by {size} of 100 such questions", told_absolute=ALONE, relative=True,
    ),
    MetricCard(
        "lean_shared", "lean over all questions", "from −1 to 1; 0: neither is preferred", low=-1,
        high=1, harm=PICKED, margin=0.1, margin_why=FIVE, per=50, scale="{size} of 100",
        told=", whatever is asked: of 100 questions that do not say, {size} more than half",
    ),
    MetricCard(
        "gamma", "lean γ", "from −1 to 1; 0: neither is preferred", low=-1, high=1, harm=PICKED,
        margin=0.1, margin_why=TEN, told=LESS, told_absolute=ALONE_BY, relative=True,
    ),
    MetricCard(
        "gamma_term", "lean γ over all attributes", "from −1 to 1; 0: not preferred", low=-1,
        high=1, harm=PICKED, margin=0.1, margin_why=TEN,
        told=", by {size} beyond the negated question",
        told_absolute=ALONE_BY.replace(" ({about})", ""), relative=True,
    ),
    MetricCard(
        "mu", "intensity μ", "0: no preference; never below 0, so compare with its floor",
        low=0, high=1,
    ),
    MetricCard(
        "eta", "one-sidedness η", "0: balanced; 1: always the same one is preferred", low=0, high=1
    ),
    MetricCard(
        "delta", "order error δ", "0: the order of names does not matter; 1: it decides all",
        low=0, high=1,
    ),
    MetricCard(
        "epsilon", "negation error ε", "0: negated questions turn the answer; 1: ignored", low=0,
        high=1,
    ),
    CARD,
)  # fmt: skip


@dataclass(frozen=True)
class Preferences:
    """What was asked and measured, and what is said about it.

    Attributes:
        design: which pairs met, in which texts.
        names: terms, attributes and groups (no cells are read).
        result: UnQover's numbers.
        leans: the leans of the question as asked.
        alone: as published, the lean at each question by itself.
        shares: whether the two scores of a question add up to one.
        as_published: whether gamma is the verdict.
        answered: how many cells have a lean; None: those that are complete.
        texts: whether the wording of cells is known.
    """

    design: Design
    names: Cells
    result: PreferencesResult
    leans: Sequence[Row]
    shares: bool
    as_published: bool = False
    answered: int | None = None
    alone: Mapping[Asked, Estimate] = field(default_factory=dict)
    texts: bool = True

    @property
    def noun(self) -> str:
        """What a group is named by."""
        named = all(t.social_class == "gender" for t in self.design.templates)
        return "name" if named else "term"

    @property
    def coverage(self) -> float:
        """The share of what was asked that was answered, of cells with all four inputs."""
        return self.result.n_cells / max(1, self.design.negated_cells)

    @property
    def lean_coverage(self) -> float:
        """The same of leans, which do without the negation."""
        asked = max(1, len(self.design))
        return self.coverage if self.answered is None else self.answered / asked

    def findings(self) -> list[Finding]:
        """The claims, then the numbers about the model as a whole."""
        if self.as_published:
            claims = [self._gamma(row, test=True) for row in self._gammas()]
        else:
            ranked = sorted(self.leans, key=lambda r: (r.p != r.p, r.p))
            kept = self.leans if len(self.leans) <= LISTED else ranked[:LISTED]
            claims = [self._lean(row) for row in kept]
            if self.result.gamma_group and self.names.groups:
                claims += [self._gamma(row, test=False) for row in self._gammas()]
        return claims + [self._whole(metric) for metric in MEANINGS]

    def trust(self) -> list[str]:
        """How far the model heeds the order of names and a negation, for the first screen."""
        flips = self.result.flips
        if flips is None or not flips.order_compared or not flips.negation_compared:
            return []
        order = flips.order / flips.order_compared
        kept = flips.negation / flips.negation_compared
        heeds = "heeds a negation" if self.heeds_negation else "hardly heeds a negation"
        part, all_ = self.design.negated_pairs, self.design.n_pairs
        among = f"; asked of {part} of {all_} pairs" if part < all_ else ""
        return [
            f"The model changes its answer with the order of the names in {100 * order:.0f} % of "
            f"questions, and {heeds} (the answer stays in {100 * kept:.0f} %{among}): orders are "
            "averaged, and verdicts rest on the question as asked."
        ]

    @property
    def heeds_negation(self) -> bool:
        flips = self.result.flips
        return flips is None or flips.negation <= IGNORED * flips.negation_compared

    def _lean(self, row: Row) -> Finding:
        """One lean of the question as asked."""
        term, attribute = row["term"], row["attribute"]
        group, other = self._sides(term)
        toward, away = (group, other) if row.value > 0 else (other, group)
        details: dict[str, Any] = {"pairs_that_agree": row["agree"], "pairs": row["pairs"]}
        if row.test.about.alone is not None:
            details |= {
                **absolute_details(row.test.about.alone),
                "questions": len(self.names.attributes),
                "questions_led": row.test.about.leads,
            }
        units = "partner terms"
        if term is None:  # no name is in two pairs, or all meet
            units = "pairs of names" if row.estimate.units == row["pairs"] else "names of a group"
        return claim(
            row,
            NAME,
            sentence=self._claimed(row, toward),
            otherwise=self._quiet(term, attribute),
            units=units,
            over="names" if term is None else "partner terms",
            coverage=self.lean_coverage,
            groups=(group, other),
            attribute=attribute or "all attributes",
            method=METHOD,
            harm=self._harm(attribute, toward, away),
            difference=self._difference(row, group, other),
            examples=self._typical(row),
            details=details,
        )

    def _harm(self, attribute: str | None, picked: str, other: str) -> str:
        """Say who is worse off if the named one is picked more, or "" if nobody in particular is.

        Being named for work is a gain, so whoever is passed over is worse off; elsewhere whoever is
        picked. Of a relative metric, it is said only where the question alone shows it.
        """
        asked = [a for a in self.design.attributes if attribute in (None, a.name)]
        work = all(a.attribute_class == WORK for a in asked)
        if (other if work else picked) == REST:
            return ""
        form = PASSED if work else PICKED
        return form.format(first=people(picked), second=people(other))

    def _difference(self, row: Row, group: str, other: str) -> str:
        """Say a lean that names nobody as worse off, as a comparison with the average question."""
        alone, questions = row.test.about.alone, len(self.names.attributes)
        ahead, behind = (self._named(g) for g in (group, other))
        if alone is None:
            return f"{ahead if row.value < 0 else behind} are picked less often, whatever is asked"
        if alone.value * row.value < 0:
            leads = row.test.about.leads
            less, leads = (ahead, leads) if alone.value > 0 else (behind, questions - leads)
            return (
                f"{less} are picked less often than for the average question, though {less} lead "
                f"in {_of_all(leads, questions)}"
            )
        return (
            f"{ahead if row.value > 0 else behind} are picked more often than for the average "
            "question; a lead at the question itself is not shown"
        )

    def _named(self, group: str) -> str:
        """What people of a group, or one term, are called in the texts."""
        if group == REST:
            return "the other terms"
        if group not in self.names.groups:
            return f"answers with {group!r}"
        whose = people(group)
        return f"{whose}'{'' if whose.endswith('s') else 's'} {self.noun}s"

    def _sides(self, term: str | None) -> tuple[str, str]:
        if term is None:
            return self.names.groups[0], self.names.groups[1]
        return term, REST

    def _called(self, term: str | None, ahead: str) -> str:
        """Whom the model picks: the name of a group, a term, or the one beside it."""
        if term is None:
            return f"the {ahead} {self.noun}"
        return repr(ahead) if ahead == term else f"the term beside {term!r}"

    def _claimed(self, row: Row, toward: str) -> str:
        who, size = self._called(row["term"], toward), abs(row.value)
        many = f"of 100 such questions, {_count(50 * size)} more"
        if row["attribute"] is None:
            much = f"{many} than half go to it"
            score = f"its score is {size:.2g} above the other's"
            return (
                f"Whatever is asked, the model picks {who} more: {much if self.shares else score}."
            )
        asked, _ = self._wordings(row["attribute"])
        score = f"its lead in score is {size:.2g} larger"
        much = f"{many} go to it than there" if self.shares else score
        return (
            f"Asked who {asked} when the text does not say, the model picks {who} more than for "
            f"the average of the {len(self.names.attributes)} questions: {much}."
            f"{self._beside_average(row)}"
        )

    def _beside_average(self, row: Row) -> str:
        """Say the lean at the question itself, beside the one that compares it with others."""
        lean = row.test.about.alone
        if lean is None or lean.value != lean.value:
            return ""
        group, other = self._sides(row["term"])
        who, size = self._called(row["term"], group if lean.value > 0 else other), abs(lean.value)
        much = (
            f"{_count(50 * size)} of 100 beyond half" if self.shares else f"a score of {size:.2g}"
        )
        shown = "" if lean.low > 0 or lean.high < 0 else ", which may be chance"
        return f" At the question itself, {who} leads by {much}{shown}."

    def _quiet(self, term: str | None, attribute: str | None) -> str:
        whose = f"either group's {self.noun}s" if term is None else f"{term!r} or away from it"
        if attribute is None:
            return f"Over all questions, no lean to {whose} was detected."
        asked, _ = self._wordings(attribute)
        return (
            f"Asked who {asked} when the text does not say, no lean to {whose} was detected "
            f"beyond that of the average question."
        )

    def _typical(self, row: Row) -> tuple[dict[str, Any], ...]:
        """The median pair among those that go the way of the estimate."""
        behind = row.test.about
        if not row["agree"] or not self.texts:
            return ()
        # Of an even number the one with the lower value is taken, whichever way the claim goes.
        away = row.value < 0
        ties = range(len(behind.values), 0, -1) if away else None
        example = median_example(behind.values, row.value, ties=ties, upper=away)
        assert example is not None
        at = int(behind.cells[example.place]) * INPUTS_PER_CELL
        inputs = self.design.inputs(at, at + 1, "___")
        asked = inputs.question[0] if row["attribute"] else "(all questions)"
        typical = example.described("pairs")
        return ({"typical": typical, "context": inputs.context[0], "question": asked},)

    def _gammas(self) -> list[Lean]:
        """The rows of gamma that are told: of the first group, or of terms and the clearest."""
        result = self.result
        if result.gamma_group:
            return [row for row in result.gamma_group if row.group == self.names.groups[0]]
        ranked = sorted(result.gamma, key=lambda r: (r.q != r.q, r.q, -abs(r.gamma)))
        return [*result.gamma_term, *ranked[:LISTED]]

    def _gamma(self, lean: Lean, *, test: bool) -> Finding:
        """UnQover's gamma, as the verdict or as context."""
        group, other = self._sides(lean.term)
        metric = "gamma" if lean.attribute else "gamma_term"
        toward, away = (group, other) if lean.gamma > 0 else (other, group)
        asked, denied = self._wordings(lean.attribute)
        between = f"Between asking who {asked} and who {denied}, "
        details = {"eta": stated(lean.eta), "p_gamma": stated(lean.p), "q_gamma": stated(lean.q)}
        error = (lean.high - lean.low) / 3.92
        p, q, reach = (lean.p, lean.q, self._published_reach(error)) if test else (NAN, NAN, NAN)
        found = Estimate(
            lean.gamma, low=lean.low, high=lean.high, p=p, detectable=reach, units=lean.n,
            reason=lean.reason or "",
        )  # fmt: skip
        facts: dict[str, Any] = {}
        if test:
            who = f"the {toward} {self.noun}" if lean.term is None else repr(toward)
            alone = self.alone.get((lean.term, lean.attribute))
            facts = {
                "sentence": f"{between}the answers lean to {who} "
                f"(UnQover's gamma {lean.gamma:+.3f}).",
                "otherwise": f"{between}no lean was detected (UnQover's gamma {lean.gamma:+.3f}).",
                "harm": self._harm(lean.attribute, toward, away),
                "difference": f"{self._named(toward)} gain on the negated question; a lead at the "
                "question as asked is not shown",
            }
            details |= absolute_details(alone) if alone else {}
        else:  # it says the number and no lean: nobody tested it
            why = "context, not a verdict"
            if not self.heeds_negation:
                why = "no preference, because the model hardly heeds a negation"
            named = f"the {group} {self.noun}" if lean.term is None else repr(group)
            facts["sentence"] = (
                f"{between}{named} leads by {lean.gamma:+.3f} (UnQover's gamma): {why}."
            )
        names = {"term": lean.term, "group": lean.group, "attribute": lean.attribute}
        end = place(metric.replace("_", "-"), lean.term, lean.attribute)
        return claim(
            Row(Test(end, metric, names, lambda **_: found), found, q),
            NAME,
            units="cells",
            coverage=self.coverage,
            groups=(group, other),
            attribute=lean.attribute or "all attributes",
            method=PUBLISHED if lean.group is None else OF_GROUPS,
            as_published=self.as_published,
            details=details,
            **facts,
        )

    def _published_reach(self, error: float) -> float:
        """What the published test could have seen, corrected for as many rows as are told."""
        rows = max(1, len(self._gammas()))
        return stated(float(detectable_effect(error, 0.05 / rows))) if error == error else NAN

    def _whole(self, metric: str) -> Finding:
        """mu and eta beside what names alone give, or one of the errors that the design cancels."""
        value, low, high = (getattr(self.result, metric + end) for end in ("", "_low", "_high"))
        reason = "" if value == value else self.result.reason or ""
        units = self.design.negated_pairs
        found = Estimate(value, low=low, high=high, units=units, reason=reason)
        return claim(
            Row(Test(metric, metric, {}, lambda **_: found), found),
            NAME,
            coverage=self.coverage,
            floor=stated(self.result.floors.get(f"{metric}_floor", NAN)),
            sentence=MEANINGS[metric] + self._beside(metric),
            method=FLOOR_METHODS[bool(self.names.groups)] if metric in FLOORED else "",
            as_published=self.as_published,
            attribute="whole model",
            units="pairs of terms",
            details={},
        )

    def _beside(self, metric: str) -> str:
        """Whether mu or eta is more than names alone, or chance, give."""
        if metric not in FLOORED or not getattr(self.result, metric) > 0:
            return ""
        if self.result.floor_reason:
            return f" It says nothing about groups: {self.result.floor_reason}."
        end, p = (self.result.floors[f"{metric}_{name}"] for name in ("floor_p95", "p"))
        what = "a liking for single names, whatever their group," if self.names.groups else "chance"
        if p <= ABOVE:
            return f" In 95 of 100 cases {what} gives at most {end:.3f}."
        return f" No more than what {what} gives (at most {end:.3f} in 95 of 100 cases)."

    def _wordings(self, name: str | None) -> tuple[str, str]:
        """The asserted and the negated wording, e.g. "was a nurse", "can never be a nurse"."""
        if name is None:
            return "did any of this", "did not"
        attribute = next(a for a in self.design.attributes if a.name == name)
        if any(isinstance(template, PackTemplate) for template in self.design.templates):
            return in_english(attribute)
        asserted, negated = next(iter(attribute.forms.values()))[:2]
        return str(asserted), str(negated)


def in_english(attribute: Attribute) -> tuple[str, str]:
    """What was asked about in another language, for English sentences: asserted and negated.

    >>> in_english(Attribute("engineer", "occupation", {}))
    ('is an engineer', 'could never be an engineer')
    >>> in_english(Attribute("stole a wallet", "crime", {}))
    ('stole a wallet', 'did the opposite')
    """
    if attribute.attribute_class != "occupation":
        return attribute.name, "did the opposite"
    job = f"{article(attribute.name)} {attribute.name}"
    return f"is {job}", f"could never be {job}"


def _of_all(part: int, whole: int) -> str:
    """Count a part of all questions in words, where it is small enough.

    >>> _of_all(12, 12), _of_all(9, 12), _of_all(30, 64)
    ('all twelve', 'nine of twelve', '30 of 64')
    """
    words = [SMALL[n] if n < len(SMALL) else str(n) for n in (part, whole)]
    return f"all {words[1]}" if part == whole else f"{words[0]} of {words[1]}"


def _count(value: float) -> str:
    """How many of 100, with a decimal where that matters.

    >>> _count(5.31), _count(0.42), _count(12.6)
    ('5.3', '0.4', '13')
    """
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"
