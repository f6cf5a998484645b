"""HONEST from files: templates, lexicons of hurtful words, and completions that exist already."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from evenhand.corpora.tables import read_table
from evenhand.errors import SpecError, unknown
from evenhand.metrics.honest import folded, hurtful
from evenhand.probes.base import Measured, Placebo
from evenhand.probes.reading import BenchmarkReader, Claims, Input, Result, Shown, listed
from evenhand.stats.clustered_means import (
    STEADY,
    Cells,
    ClusteredMean,
    clustered_mean,
    halves,
    of_shares,
    with_q,
)
from evenhand.stats.permutation import two_sample
from evenhand.strict import INLINE, record
from evenhand.words.lexicons import load

SLOT = "[M]"
PACKAGED = "hurtful_words"


@dataclass(frozen=True)
class Template:
    """A sentence about a person with a slot, and whom it is about."""

    text: str
    identity: str
    group: str
    category: str
    kind: str


def read_templates(path: str | Path) -> list[Template]:
    """Read HONEST's template file; the group is the first part of its category.

    "queer_gender" and "queer_orientation" are of the group "queer".
    """
    names = ("template_masked", "identity", "category", "type")
    table = read_table(path, text=names, needed=names)
    rows = zip(*(table.labels(name) for name in names))
    found = [Template(t, i, c.split("_")[0], c, k) for t, i, c, k in rows]
    for number, template in enumerate(found, 1):
        if template.text.count(SLOT) != 1:
            raise SpecError(
                f"{path}, row {number}: {template.text!r} has {template.text.count(SLOT)} slots. "
                f"Accepted: one {SLOT}."
            )
    return found


def read_lexicon(
    name: str | Path = PACKAGED, language: str = "en", level: str = "conservative"
) -> dict[str, str]:
    """Hurtful terms (lower case, no accents) -> category.

    Args:
        name: the packaged "hurtful_words", or HurtLex's file (hurtlex_EN.tsv: category, lemma,
            level), which is not part of this package.
        language: of the words; a lexicon without it is refused.
        level: HurtLex: conservative (as HONEST uses it) or inclusive.
    """
    if Path(name).suffix.lower() not in (".tsv", ".csv", ".txt", ".gz", ".xz"):
        languages = load(name).table("languages")
        if language not in languages:
            hint = "Give HurtLex's file of that language with: --set lexicon=hurtlex_XX.tsv"
            raise SpecError(unknown("language", language, languages, where=str(name), hint=hint))
        listed = languages[language]
        return {folded(word): kind for kind, words in listed.items() for word in words}
    coded = re.search(r"hurtlex_([A-Za-z]{2})\b", Path(name).name)
    if coded and coded[1].lower() != language.lower():
        raise SpecError(
            f"{name}: is HurtLex for the language {coded[1].lower()!r}, but {language!r} is asked "
            f"for. Pass the other file, or: --set language={coded[1].lower()}"
        )
    names = ("category", "lemma", "level")
    table = read_table(name, text=names, needed=names)
    levels = list(table.labels("level"))
    if level not in levels:
        raise SpecError(unknown("level", level, set(levels), where=str(name)))
    rows = zip(table.labels("lemma"), table.labels("category"), levels)
    return {folded(word): kind for word, kind, at in rows if at == level}


@dataclass(frozen=True)
class HonestRow:
    """Percent of hurtful completions of a group, or the difference of two (with `other`)."""

    group: str
    other: str
    mean: ClusteredMean = field(metadata=INLINE)
    categories: Mapping[str, int]
    p_permuted: float = float("nan")
    q: float = float("nan")


def score(
    completions: Sequence[str],
    identities: Sequence[str],
    groups: Sequence[str],
    lexicon: Mapping[str, str],
    *,
    as_published: bool = False,
    rate: float = 0.05,
    seed: int = 0,
) -> list[HonestRow]:
    """Rows in percent: overall, each group, and the difference of each two groups.

    p is over identity terms like these; `p_permuted` permutes these very terms between groups.
    q over the differences.
    """
    found = [hurtful(text, lexicon, as_published=as_published) for text in completions]
    hits = np.asarray([100.0 * (kind is not None) for kind in found])
    who, names = np.asarray(list(identities)), sorted(set(groups))
    group = np.asarray(list(groups))
    rows = []
    for name in ("overall", *names):
        keep = np.ones(len(hits), bool) if name == "overall" else group == name
        units = [f"{g}/{i}" for g, i in zip(group[keep], who[keep])]
        mean = clustered_mean(hits[keep], units, bounds=(0.0, 100.0))
        kinds = [k for k, use in zip(found, keep) if use and k is not None]
        counts = {k: kinds.count(k) for k in sorted(set(kinds))}
        rows.append(HonestRow(name, "", replace(mean, p=np.nan, detectable=np.nan), counts))
    family = len(names) * (len(names) - 1) // 2
    for k, first in enumerate(names):
        for second in names[k + 1 :]:
            rows.append(_difference(hits, who, group, (first, second), family, rate, seed))
    return with_q(rows, [row.mean.p if row.other else np.nan for row in rows])


def placebos(
    completions: Sequence[str],
    identities: Sequence[str],
    groups: Sequence[str],
    lexicon: Mapping[str, str],
    *,
    seed: int,
) -> Placebo:
    """Random halves of the identity terms of a group against each other."""
    hits = np.asarray([float(hurtful(text, lexicon) is not None) for text in completions])
    found = []
    for name in sorted(set(groups)):
        units = [i for i, g in zip(identities, groups) if g == name]
        values = [h for h, g in zip(hits, groups) if g == name]
        found.append(halves(values, units, seed=seed, splits=STEADY // 2))
    return Placebo.of("random halves of the identity terms of a group", found)


def _difference(
    hits: Any, who: Any, group: Any, pair: tuple[str, str], family: int, rate: float, seed: int
) -> HonestRow:
    first, second = pair
    keep = (group == first) | (group == second)
    sides = np.where(group[keep] == first, 1.0, -1.0)
    units = [f"{g}/{i}" for g, i in zip(group[keep], who[keep])]
    mean = clustered_mean(
        2 * sides * hits[keep],
        units,
        strata=sides,
        bounds=(-100.0, 100.0),
        family=family,
        rate=rate,
    )
    # Hurtful completions are rare, and vary the more the more there are.
    cells, way = Cells.of(hits[keep], units, -sides), np.asarray([1.0, -1.0])
    found = cells.estimate(way, family=family, rate=rate)
    if found.detectable > 0:
        seen = of_shares(found, cells, (0.0, 100.0), cells.from_items(way), way)
        mean = replace(mean, detectable=seen)
    means = [
        [hits[(group == g) & (who == i)].mean() for i in sorted(set(who[group == g]))] for g in pair
    ]
    chance = two_sample(*means, seed=seed, statistic="mean-difference")
    return HonestRow(first, second, mean, {}, chance.p_two_sided)


@dataclass(frozen=True, kw_only=True)
class HonestResult(Result):
    """`honest` is a share in [0, 1]; rows are in percent, with intervals and categories hit."""

    measure: ClassVar[str] = "honest"

    honest: float
    rows: Sequence[HonestRow]
    n: int
    n_empty: int
    n_terms: int
    settings: Mapping[str, Any]

    def shown(self) -> Iterator[Shown]:
        title = f"HONEST, percent ({self.n_terms} terms, {self.n_empty} empty completions)"
        keys = ("group", "other", "value", "low", "high", "p", "q", "n", "n_clusters")
        yield listed(title, self.rows, keys)


class HonestReader(BenchmarkReader):
    name = "honest"
    help = """HONEST from completions (words or sentences): how many hold a hurtful word.

    One row per completion: completion, identity, category.
    """
    positional = ("table",)

    table: Input
    lexicon: str = Field(PACKAGED, description="hurtful_words, or HurtLex's file.")
    language: str = Field("en", description="Language of the lexicon.")

    def read(self) -> HonestResult:
        names = ("completion", "identity", "category")
        table = read_table(self.table, text=names, needed=names)
        texts = [str(t or "") for t in table.columns["completion"].to_pylist()]
        identities, categories = list(table.labels("identity")), list(table.labels("category"))
        groups = [c.split("_")[0] for c in categories]
        words = read_lexicon(self.lexicon, self.language)
        rows = score(texts, identities, groups, words, **self.how)
        return HonestResult(
            honest=rows[0].mean.value / 100.0,
            rows=rows,
            n=len(texts),
            n_empty=sum(not t.strip() for t in texts),
            n_terms=len(words),
            settings=self.only("lexicon", "language", "as_published"),
        ).telling(
            lambda: self._claims((texts, identities, groups, words), categories, rows, table.source)
        )

    def _claims(
        self,
        given: tuple[list[str], list[str], list[str], dict[str, str]],
        categories: list[str],
        rows: list[HonestRow],
        source: str,
    ) -> Claims:
        from evenhand.probes.honest.probe import Honest, score_table

        texts, identities, _, words = given
        probe = Honest.model_validate(self.only("lexicon", "language", "as_published"))
        kinds = [hurtful(t, words, as_published=self.as_published) or "" for t in texts]
        items = pa.table(
            {
                "template": texts,
                "identity": identities,
                "category": categories,
                "completion": texts,
                "hurtful": kinds,
            }
        )
        found = Measured(
            probe.findings(rows),
            items,
            {"scores": score_table(rows)},
            {"scores": record(rows)},
            (placebos(*given, seed=0),),
        )
        return Claims.of(probe, self, source, found, empty=sum(not t.strip() for t in texts))


READERS = (HonestReader,)
