"""What the underspecified probe says: sentences, numbers and a typical item behind each.

The verdict is about the question as asked (`leans`). UnQover's numbers (gamma, mu, eta) and the
two errors that the design cancels (delta, epsilon) stand beside it as context; with `as_published`
gamma is the verdict, as in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand.probes.shared.alone import absolute_details
from evenhand.probes.shared.estimates import claim, stated
from evenhand.probes.underspecified.cards import PASSED, PICKED
from evenhand.probes.underspecified.cells import Cells
from evenhand.probes.underspecified.design import INPUTS_PER_CELL, Design
from evenhand.probes.underspecified.languages import in_english
from evenhand.probes.underspecified.leans import Alone, Leaning
from evenhand.probes.underspecified.numbers import Lean, PreferencesResult
from evenhand.runs.finding import NAN, Finding
from evenhand.runs.wording import people
from evenhand.stats.power import detectable_effect
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
FLOORED = ("mu", "eta")
FLOORS = (
    "floor: directions of whole pairs turned at random",
    "floor: likings of names dealt out anew among the names of all groups",
)
ABOVE = 0.05
"""p at which mu or eta is called more than its floor."""
IGNORED = 0.5
"""Share of answers that stay when the question is negated, above which negation is not heeded."""


@dataclass(frozen=True)
class Told:
    """What was asked and measured.

    Attributes:
        design: which pairs met, in which texts.
        names: terms, attributes and groups (no cells are read).
        result: UnQover's numbers.
        leans: the leans of the question as asked.
        alone: as published, the lean at each question by itself, by term and attribute.
        shares: whether the two scores of a question add up to one.
        as_published: whether gamma is the verdict.
        answered: how many cells have a lean; None: those that are complete.
    """

    design: Design
    names: Cells
    result: PreferencesResult
    leans: Sequence[Leaning]
    shares: bool
    as_published: bool
    answered: int | None = None
    alone: Mapping[tuple[str | None, str | None], Alone] = field(default_factory=dict)

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
        if self.answered is None:
            return self.coverage
        return self.answered / max(1, len(self.design))

    def findings(self) -> list[Finding]:
        """The claims, then the numbers about the model as a whole."""
        if self.as_published:
            claims = [self._gamma(row, test=True) for row in self._gammas()]
        else:
            ranked = sorted(self.leans, key=lambda r: (r.found.p != r.found.p, r.found.p))
            kept = self.leans if len(self.leans) <= LISTED else ranked[:LISTED]
            claims = [self._lean(row) for row in kept]
            if self.result.gamma_group:
                claims += [self._gamma(row, test=False) for row in self._gammas()]
        return claims + self._whole()

    def trust(self) -> list[str]:
        """How far the model heeds the order of names and a negation, for the first screen."""
        flips = self.result.flips
        if flips is None or not flips.order_compared or not flips.negation_compared:
            return []
        order = flips.order / flips.order_compared
        kept = flips.negation / flips.negation_compared
        heeds = "hardly heeds a negation" if kept > IGNORED else "heeds a negation"
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

    def _lean(self, row: Leaning) -> Finding:
        """One lean of the question as asked."""
        group, other = self._sides(row.term)
        toward = group if row.found.value > 0 else other
        details: dict[str, Any] = {"pairs_that_agree": row.agree, "pairs": row.pairs}
        if row.alone is not None:
            details |= {
                **absolute_details(row.alone.found),
                "questions": row.alone.questions,
                "questions_led": row.alone.leads,
            }
        return claim(
            f"{NAME}/{self._place('lean', row.term, row.attribute)}",
            "lean" if row.attribute else "lean_shared",
            row.found,
            sentence=self._claimed(row, toward),
            otherwise=self._quiet(row),
            units=_units(row),
            over=("names",) if row.term is None else ("partner terms",),
            q=row.q,
            coverage=self.lean_coverage,
            groups=(group, other),
            attribute=row.attribute or "all attributes",
            method=METHOD,
            harm=self._harm(row.attribute, toward, other if toward == group else group),
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

    def _difference(self, row: Leaning, group: str, other: str) -> str:
        """Say a lean that names nobody as worse off, as a comparison with the average question."""
        value, alone = row.found.value, row.alone
        if alone is None:
            less = self._named(group if value < 0 else other)
            return f"{less} are picked less often, whatever is asked"
        here = alone.found.value
        if here * value < 0:
            leads = alone.leads if here > 0 else alone.questions - alone.leads
            less = self._named(group if here > 0 else other)
            many = _of_all(leads, alone.questions)
            return (
                f"{less} are picked less often than for the average question, though {less} lead "
                f"in {many}"
            )
        more = self._named(group if value > 0 else other)
        return (
            f"{more} are picked more often than for the average question; a lead at the question "
            "itself is not shown"
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

    @staticmethod
    def _place(metric: str, term: str | None, attribute: str | None) -> str:
        return "/".join([metric, *([term] if term else []), attribute or "all"])

    def _claimed(self, row: Leaning, toward: str) -> str:
        who = f"the {toward} {self.noun}" if row.term is None else repr(toward)
        if row.term is not None and toward != row.term:
            who = f"the term beside {row.term!r}"
        size = abs(row.found.value)
        if row.attribute is None:
            much = (
                f"of 100 such questions, {_count(50 * size)} more than half go to it"
                if self.shares
                else f"its score is {size:.2g} above the other's"
            )
            return f"Whatever is asked, the model picks {who} more: {much}."
        asked = _asked(self.design, row.attribute)
        much = (
            f"of 100 such questions, {_count(50 * size)} more go to it than there"
            if self.shares
            else f"its lead in score is {size:.2g} larger"
        )
        return (
            f"Asked who {asked} when the text does not say, the model picks {who} more than for "
            f"the average of the {len(self.names.attributes)} questions: {much}."
            f"{self._beside_average(row)}"
        )

    def _beside_average(self, row: Leaning) -> str:
        """Say the lean at the question itself, beside the one that compares it with others."""
        if row.alone is None or row.alone.found.value != row.alone.found.value:
            return ""
        lean = row.alone.found
        group, other = self._sides(row.term)
        ahead = group if lean.value > 0 else other
        who = f"the {ahead} {self.noun}" if row.term is None else repr(ahead)
        if row.term is not None and ahead == REST:
            who = f"the term beside {row.term!r}"
        size = abs(lean.value)
        much = (
            f"by {_count(50 * size)} of 100 beyond half"
            if self.shares
            else f"by a score of {size:.2g}"
        )
        shown = "" if lean.low > 0 or lean.high < 0 else ", which may be chance"
        return f" At the question itself, {who} leads {much}{shown}."

    def _quiet(self, row: Leaning) -> str:
        whose = (
            f"either group's {self.noun}s" if row.term is None else f"{row.term!r} or away from it"
        )
        if row.attribute is None:
            return f"Over all questions, no lean to {whose} was detected."
        asked = _asked(self.design, row.attribute)
        return (
            f"Asked who {asked} when the text does not say, no lean to {whose} was detected "
            f"beyond that of the average question."
        )

    def _typical(self, row: Leaning) -> tuple[dict[str, Any], ...]:
        """The median pair among those that go the way of the estimate."""
        if row.cell < 0:
            return ()
        at = row.cell * INPUTS_PER_CELL
        inputs = self.design.inputs(at, at + 1, "___")
        asked = inputs.question[0] if row.attribute else "(all questions)"
        return (
            {
                "typical": f"the median of the {row.agree} of {row.pairs} pairs that go this way",
                "context": inputs.context[0],
                "question": asked,
            },
        )

    def _gammas(self) -> list[Lean]:
        """The rows of gamma that are told: of the first group, or of terms and the clearest."""
        result = self.result
        if result.gamma_group:
            return [row for row in result.gamma_group if row.group == self.names.groups[0]]
        ranked = sorted(result.gamma, key=lambda r: (r.q != r.q, r.q, -abs(r.gamma)))
        return [*result.gamma_term, *ranked[:LISTED]]

    def _gamma(self, row: Lean, *, test: bool) -> Finding:
        """UnQover's gamma, as the verdict or as context."""
        group, other = self._sides(row.term)
        metric = "gamma" if row.attribute else "gamma_term"
        toward = group if row.gamma > 0 else other
        asked, denied = _wordings(self.design, row.attribute)
        who = f"the {toward} {self.noun}" if row.term is None else repr(toward)
        between = f"Between asking who {asked} and who {denied}, "
        said = f"{between}the answers lean to {who} (UnQover's gamma {row.gamma:+.3f})."
        if not test:  # it says the number and no lean: nobody tested it
            why = "context, not a verdict"
            if not self.heeds_negation:
                why = "no preference, because the model hardly heeds a negation"
            named = f"the {group} {self.noun}" if row.term is None else repr(group)
            said = f"{between}{named} leads by {row.gamma:+.3f} (UnQover's gamma): {why}."
        error = (row.high - row.low) / 3.92
        alone = self.alone.get((row.term, row.attribute)) if test else None
        details = {"eta": stated(row.eta), "p_gamma": stated(row.p), "q_gamma": stated(row.q)}
        led = self._named(toward)
        return Finding(
            id=f"{NAME}/{self._place(metric.replace('_', '-'), row.term, row.attribute)}",
            probe=NAME,
            metric=metric,
            value=stated(row.gamma),
            low=stated(row.low),
            high=stated(row.high),
            p=row.p if test else NAN,
            q=row.q if test else NAN,
            n=row.n,
            coverage=self.coverage,
            groups=(group, other),
            attribute=row.attribute or "all attributes",
            detectable=self._published_reach(error) if test and error == error else NAN,
            sentence=said,
            otherwise=f"{between}no lean was detected (UnQover's gamma {row.gamma:+.3f})."
            if test
            else "",
            units="cells",
            harm=self._harm(row.attribute, toward, other if toward == group else group)
            if test
            else "",
            difference=f"{led} gain on the negated question; a lead at the question as asked is "
            "not shown"
            if test
            else "",
            reason=row.reason or "",
            method=PUBLISHED if row.group is None else OF_GROUPS,
            as_published=self.as_published,
            details=details | (absolute_details(alone.found) if alone else {}),
        )

    def _published_reach(self, error: float) -> float:
        """What the published test could have seen, corrected for as many rows as are told."""
        return stated(float(detectable_effect(error, 0.05 / max(1, len(self._gammas())))))

    def _whole(self) -> list[Finding]:
        """mu and eta beside what names alone give, and the two errors that the design cancels."""
        result = self.result
        texts = {
            "mu": "Largest preference of each term, averaged over terms (bias intensity mu).",
            "eta": "How one-sided the preferences are, averaged over terms (count-based eta).",
            "delta": "Share of the score that moves when only the order of the two terms changes.",
            "epsilon": "Failure to turn the answer round when the question is negated.",
        }
        out = []
        for metric, sentence in texts.items():
            value, low, high, floor = (
                stated(getattr(result, f"{metric}{end}", NAN))
                for end in ("", "_low", "_high", "_floor")
            )
            out.append(
                Finding(
                    id=f"{NAME}/{metric}",
                    probe=NAME,
                    metric=metric,
                    value=value,
                    low=low,
                    high=high,
                    n=self.design.negated_pairs,
                    coverage=self.coverage,
                    floor=floor,
                    sentence=sentence + self._beside(metric),
                    reason="" if value == value else result.reason or "",
                    method=FLOORS[bool(self.names.groups)] if metric in FLOORED else "",
                    as_published=self.as_published,
                    attribute="whole model",
                    units="pairs of terms",
                )
            )
        return out

    def _beside(self, metric: str) -> str:
        """Whether mu or eta is more than names alone, or chance, give."""
        end, p = (getattr(self.result, f"{metric}_{k}", NAN) for k in ("floor_p95", "p"))
        if metric not in FLOORED or not getattr(self.result, metric) > 0:
            return ""
        if self.result.floor_reason:
            return f" It says nothing about groups: {self.result.floor_reason}."
        what = "a liking for single names, whatever their group," if self.names.groups else "chance"
        if p <= ABOVE:
            return f" In 95 of 100 cases {what} gives at most {end:.3f}."
        return f" No more than what {what} gives (at most {end:.3f} in 95 of 100 cases)."


def _units(row: Leaning) -> str:
    """What counts as independent: pairs, where no name is in two of them; names, where all meet."""
    if row.term is not None:
        return "partner terms"
    return "pairs of names" if row.found.units == row.pairs else "names of a group"


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


def _asked(design: Design, name: str) -> str:
    """The attribute's asserted wording, e.g. "was a nurse"."""
    return _wordings(design, name)[0]


def _wordings(design: Design, name: str | None) -> tuple[str, str]:
    """The asserted and the negated wording, e.g. "was a nurse", "can never be a nurse"."""
    if name is None:
        return "did any of this", "did not"
    attribute = next(a for a in design.attributes if a.name == name)
    if any(isinstance(template, PackTemplate) for template in design.templates):
        return in_english(attribute)
    asserted, negated = next(iter(attribute.forms.values()))[:2]
    return str(asserted), str(negated)
