"""What discovery says: sentences, numbers and typical wrong answers behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.probes.discovery.counts import WordCounts
from evenhand.probes.discovery.inference import Settings, WordRow
from evenhand.probes.discovery.tables import clean
from evenhand.probes.discovery.word_tests import Tested
from evenhand.probes.shared.alone import absolute_details, simultaneous
from evenhand.probes.shared.estimates import claim
from evenhand.runs.finding import NAN, Finding
from evenhand.runs.wording import people

RELEASED = "released permutation test (seed 10, strict); interval over names (Welch)"
BEYOND = "beyond what holds for the typical word"
DETAILS = ("sr_a", "sr_b", "d", "rd", "log_odds", "p_max_t")


class Teller:
    """Words a test of a pair of groups as a claim.

    Args:
        sample: wrong answers that were kept, for examples.
        relative: whether words are compared with the typical one.
        tests: how many words of all pairs were tested.
    """

    def __init__(
        self,
        probe: str,
        counts: WordCounts,
        settings: Settings,
        sample: pa.Table,
        *,
        relative: bool,
        tests: int,
    ) -> None:
        self.rate, self.tests = settings.rate, tests
        self.probe, self.groups, self.relative = probe, counts.groups, relative
        self.published = settings.as_published
        self.texts = sample.to_pylist()
        several = len(counts.contexts) > 1
        self.over = ("names", "situations") if several else ("names",)
        self.where = "" if several else " in this one situation"

    def word(self, pair: tuple[str, str], row: WordRow | None, found: Tested) -> Finding:
        """A word's difference, beyond the typical word where there is one."""
        assert row is not None
        more, less = _sides(pair, found)
        rates = dict(zip(pair, (row.sr_a, row.sr_b)))
        head = f"{BEYOND.capitalize()}, wrong" if self.relative else "Wrong"
        tail = f", {BEYOND}" if self.relative else ""
        alone: dict[str, float] = {}
        if self.relative and found.alone is not None:
            alone = absolute_details(simultaneous(found.alone, self.tests, self.rate))
        return self._claim(
            f"{'/'.join((self.probe, '-'.join(pair)))}/{row.word}",
            "d_beyond" if self.relative else "d",
            found,
            f"{head} answers with the word {row.word!r} win more often{self.where} when the person "
            f"has a name of {people(more)} than of {people(less)}: {100 * abs(found.value):.1f} "
            f"more of 100 (success rates {100 * rates[more]:.1f} % against {100 * rates[less]:.1f} "
            "%).",
            f"No difference between names of {people(pair[0])} and of {people(pair[1])} "
            f"was detected in how often wrong answers with the word {row.word!r} win{self.where}"
            f"{tail}.",
            groups=pair,
            attribute=row.word,
            examples=typical_examples(row.word, more, less, self.texts),
            details={
                **{name: clean(getattr(row, name)) for name in DETAILS},
                "p_names": row.p,
                "shown": row.n,
                "situations": found.situations,
                **alone,
            },
        )

    def typical(self, pair: tuple[str, str], found: Tested) -> Finding:
        """What wrong answers share, whatever their words."""
        more, less = (people(g) for g in _sides(pair, found))
        one, two = (people(g) for g in pair)
        return self._claim(
            f"{self.probe}/{'-'.join(pair)}",
            "d_typical",
            found,
            f"Whatever its words, a wrong answer wins more often{self.where} when the person has a "
            f"name of {more} than of {less}: {100 * abs(found.value):.1f} more of 100 for the "
            "typical word.",
            f"No difference between names of {one} and of {two} was detected in how often wrong "
            f"answers with the typical word win{self.where}.",
            groups=pair,
            attribute="the typical word",
            details={"situations": found.situations},
        )

    def untested(self, pair: tuple[str, str], reason: str) -> Finding:
        """That no word of a pair could be tested."""
        one, two = (people(g) for g in pair)
        sentence = f"Which words win more often for names of {one} or of {two} could not be tested."
        return Finding(
            f"{self.probe}/{'-'.join(pair)}/words",
            self.probe,
            "d",
            NAN,
            sentence,
            groups=pair,
            reason=reason or "no word was shown with names of both groups in enough situations",
            as_published=self.published,
        )

    def clusters(self, row: Mapping[str, Any]) -> Finding:
        """How far clusters of names recover the groups; without direction, so it is no verdict."""
        a, b = row["group_a"], row["group_b"]
        p, q = (float(row[k]) if self.published else NAN for k in ("p", "q"))
        details = {k: clean(v) for k, v in row.items() if k.startswith("linear")}
        told = (
            f"two clusters of names by their success rates recover {people(a)} and {people(b)} for "
            f"{100 * row['kmeans_accuracy']:.0f} % of names (permuted groups: "
            f"{100 * row['null_mean']:.0f} %, 95 % point {100 * row['null_p95']:.0f} %)."
        )
        return Finding(
            id=f"{self.probe}/clusters/{a}-{b}",
            probe=self.probe,
            metric="kmeans_accuracy",
            value=float(row["kmeans_accuracy"]),
            n=sum(g in (a, b) for g in self.groups),
            groups=(a, b),
            attribute="clusters of names",
            ideal=float(row["null_mean"]),
            floor=float(row["null_p95"]),
            sentence=f"In these situations, {told}",
            otherwise=f"No separation of the groups was detected: in these situations, {told}"
            if self.published
            else "",
            reason=row["reason"],
            method=f"k-means, {row['restarts']} starts; exact null of permuted labels",
            as_published=self.published,
            units="names",
            generalises_over=("names",),
            p=p,
            q=q,
            details={**details, "p_names": float(row["p"])},
        )

    def _claim(
        self, place: str, metric: str, found: Tested, sentence: str, otherwise: str, **more: Any
    ) -> Finding:
        scarce = "names" if found.units < found.situations or found.situations < 2 else "situations"
        return claim(
            place,
            metric,
            found.estimate(),
            sentence=sentence,
            otherwise=otherwise,
            units="wrong answers shown" if self.published else scarce,
            over=self.over,
            q=found.q,
            method=RELEASED if self.published else f"t over {' and '.join(self.over)}",
            as_published=self.published,
            **more,
        )


def _sides(pair: tuple[str, str], found: Tested) -> tuple[str, str]:
    """Who has more and who has less."""
    return pair if found.value > 0 else (pair[1], pair[0])


def typical_examples(
    word: str, more: str, less: str, texts: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Any], ...]:
    """The median of the wrong answers that won more often for the first group, if any did.

    Only answers that the sample has for names of both groups are compared.
    """
    found: dict[tuple[str, str], dict[str, list[Any]]] = {}
    for text in texts:
        if text["group"] in (more, less) and word in text["distractor"].split(" "):
            key = text["context"], text["distractor"]
            found.setdefault(key, {more: [], less: []})[text["group"]].append(text)
    gaps = []
    for (_, distractor), sides in found.items():
        if sides[more] and sides[less]:
            rates = {g: float(np.mean([t["success"] for t in rows])) for g, rows in sides.items()}
            gaps.append((rates[more] - rates[less], distractor, sides[more][0], rates))
    agree = sorted((g for g in gaps if g[0] > 0), key=lambda g: g[:2])
    if not agree:
        return ()
    _, distractor, text, rates = agree[(len(agree) - 1) // 2]
    return (
        {
            "situation": text["situation"],
            "answer": text["answer"],
            "distractor": distractor,
            "success": rates[more],
            "success_for_the_others": rates[less],
            "typical": f"the median of {len(agree)} that agree, of {len(gaps)} wrong answers",
        },
    )
