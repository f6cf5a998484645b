"""What is said about answers in two guises."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.probes.matched_guise.material import Kind
from evenhand.probes.matched_guise.measure import ALL, Answered, GapRow
from evenhand.probes.matched_guise.ratios import WordRatio
from evenhand.probes.shared.estimates import claim
from evenhand.probes.shared.refusals import REFUSED, parity
from evenhand.runs.finding import Finding
from evenhand.stats.estimate import Estimate
from evenhand.strict import record

METHOD = "t with the variance of {}"


def sampled(rows: Answered) -> tuple[str, ...]:
    """What claims about single questions generalise over."""
    return ("texts", "features of the dialect") if rows.over_features else ("texts",)


def gap_finding(row: GapRow, kind: Kind, groups: tuple[str, str], rows: Answered) -> Finding:
    """A kind of question, or one of them."""
    value, (first, second) = row.found.value, groups
    more, less = (first, second) if not value < 0 else (second, first)
    over = sampled(rows)
    if row.question == ALL:
        over = (*over, "questions")
        asked, answer = f"questions about {kind.about}", kind.worse
        place = f"matched-guise/{row.kind}"
    else:
        which = next(q for q in kind.questions if q.worse == row.question)
        asked = f"questions like “{which.form.format(one=which.worse, two=which.better)}”"
        answer = f"“{which.worse}”"
        place = f"matched-guise/{row.kind}/{which.name}"
    return claim(
        place,
        "guise_gap",
        row.found,
        q=row.q,
        groups=groups,
        sentence=f"Of 100 {asked}, {100 * abs(value):.1f} more get {answer} when the same thing is "
        f"said in {more} than in {less}.",
        otherwise=f"Of {asked}, no difference in the share that gets {answer} was detected between "
        f"the same thing said in {first} and in {second}.",
        units="texts",
        over=over,
        method=METHOD.format(", ".join(over)),
        attribute=row.question or row.kind,
        coverage=row.n / (row.n + row.n_missing) if row.n else 0.0,
        details={k: v for k, v in record(row).items() if k.startswith(("share", "n_"))},
        examples=_examples(row, rows, groups),
    )


def _examples(
    row: GapRow, rows: Answered, groups: tuple[str, str]
) -> tuple[dict[str, object], ...]:
    """The median text in the direction of the claim, and how many agree."""
    at = [
        i
        for i, (k, q) in enumerate(zip(rows.kind, rows.question))
        if k == row.kind and row.question in (ALL, q) and rows.gap[i] == rows.gap[i]
    ]
    side = 1 if row.found.value > 0 else -1
    agree = sorted((i for i in at if side * rows.gap[i] > 0), key=lambda i: side * rows.gap[i])
    if not agree:
        return ()
    one = agree[len(agree) // 2]
    return (
        {
            "typical": f"the median of the {len(agree)} of {len(at)} answers that go this way",
            "text": rows.unit[one],
            "question": rows.question[one],
            **{name: round(float(share), 4) for name, share in zip(groups, rows.shares[one])},
        },
    )


def refusal_findings(
    rows: Answered, groups: tuple[str, str], found: Estimate, others: int
) -> list[Finding]:
    """Questions that the model declines to answer, by guise; `rows` hold the shares declined.

    `others` is how many tests are made beside this one.
    """
    over = (*sampled(rows), "questions")
    return parity(
        f"matched-guise/{REFUSED}",
        groups,
        *rows.shares.T,
        units="texts",
        over=over,
        found=found,
        about="questions about somebody who speaks",
        family=others + 1,
        method=METHOD.format(", ".join(over)),
    )


def ratio_findings(made: Sequence[WordRatio]) -> list[Finding]:
    """Words as the publication ranks them, which it prints without tests."""
    return [
        Finding(
            id=f"matched-guise/ratio/{row.word}",
            probe="matched-guise",
            metric="guise_ratio",
            value=row.found.value,
            low=row.found.low,
            high=row.found.high,
            n=row.found.n_clusters,
            units="texts",
            as_published=True,
            attribute=row.word,
            reason=row.found.reason or "",
            sentence=f"Matched guises, as published: after the dialect “{row.word}” is "
            f"{10**row.found.value:.2f} times as likely as after the standard "
            f"(log10 ratio {row.found.value:+.3f}, place {place} of {len(made)}).",
            details={"favorability": row.favorability},
        )
        for place, row in enumerate(made, 1)
    ]
