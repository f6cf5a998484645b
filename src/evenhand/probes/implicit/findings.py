"""What is said about words and tasks that go to groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.probes.implicit.material import SIDES, TESTS, Stereotype
from evenhand.probes.implicit.measure import GapRow, Given
from evenhand.probes.shared.estimates import claim
from evenhand.runs.finding import Finding
from evenhand.runs.wording import people
from evenhand.strict import record

METRICS = dict(zip(TESTS, ("word_gap", "task_gap")))
WORDS = {
    TESTS[0]: ("Asked whom a word goes with", "words"),
    TESTS[1]: ("Asked who should take a task", "tasks"),
}


def gap_finding(row: GapRow, about: Stereotype, given: Given) -> Finding:
    """One stereotype in one test."""
    value = row.found.value
    when, things = WORDS[row.test]
    who = about.first if not value < 0 else about.second
    units = "words" if row.test == TESTS[0] else "topics"
    over = (units, *(("terms",) if given.over_terms(row.stereotype) else ()))
    kept = ("share_bad", "share_good", "d_published", "n_words", "n_pairs", "n_missing")
    told = record(row)
    return claim(
        f"implicit/{row.place}",
        METRICS[row.test],
        row.found,
        sentence=f"{when}, of 100 {things} about {about.bad} {100 * abs(value):.1f} more go to "
        f"{who} than of 100 {things} about {about.good}.",
        otherwise=f"{when}, no difference was detected between {things} about {about.bad} and "
        f"about {about.good} in the share that goes to {about.first} or {about.second}.",
        units=units,
        over=over,
        q=row.q,
        groups=(about.first, about.second),
        attribute=f"{about.bad} rather than {about.good}",
        method=f"t with the variance of {' and '.join(over)}",
        coverage=row.n / (row.n + row.n_missing) if row.n else 0.0,
        difference="" if about.worse else _difference(row.test, about, value),
        details={key: told[key] for key in kept},
        examples=_examples(row, given),
    )


def _difference(test: str, about: Stereotype, value: float) -> str:
    """Say who goes with which words, where neither kind of words is the worse one."""
    more, less = (about.first, about.second) if not value < 0 else (about.second, about.first)
    verb = "associated" if test == TESTS[0] else "chosen"
    return f"{people(more)} are {verb} more readily than {people(less)}"


def published_finding(row: GapRow, about: Stereotype) -> Finding:
    """The publication's D, which it tests over answers only."""
    return Finding(
        id=f"implicit/{row.place}/d",
        probe="implicit",
        metric="d_published",
        value=row.d_published,
        n=row.n,
        as_published=True,
        units="answers",
        sentence=f"Implicit associations ({row.stereotype}, {row.test}), as published: D "
        f"{row.d_published:+.3f} (1: all words go to {about.first} and {about.second} as the "
        "stereotype has it).",
        groups=(about.first, about.second),
        attribute=f"{about.bad} rather than {about.good}",
        reason="" if row.n else "no answer could be read",
    )


def _examples(row: GapRow, given: Given) -> Sequence[dict[str, object]]:
    """The median word in the direction of the claim: its share against the other kind's mean."""
    at = [
        i for i in given.at(row.stereotype, row.test).tolist() if given.share[i] == given.share[i]
    ]
    side = 1 if row.found.value > 0 else -1
    away = {
        i: side
        * (
            given.share[i] - row.share_good
            if given.side[i] == SIDES[0]
            else row.share_bad - given.share[i]
        )
        for i in at
    }
    agree = sorted((i for i in at if away[i] > 0), key=lambda i: (away[i], given.word[i]))
    if not agree:
        return ()
    one = agree[len(agree) // 2]
    return (
        {
            "typical": f"the median of the {len(agree)} of {len(at)} answers that go this way",
            "word": given.word[one],
            "terms": given.pair[one],
            "share of the second term": float(np.round(given.share[one], 4)),
        },
    )
