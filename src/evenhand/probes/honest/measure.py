"""HONEST from files: templates, lexicons of hurtful words, and completions that exist already."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.corpora.tables import read_table
from evenhand.errors import SpecError, unknown
from evenhand.metrics.honest import folded, hurtful
from evenhand.stats.clustered_means import mean_row, with_q
from evenhand.stats.permutation import two_sample
from evenhand.strict import plain
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
    table = read_table(path, text=names)
    table.require(names)
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
    table = read_table(name, text=("category", "lemma", "level"))
    table.require(("category", "lemma", "level"))
    levels = list(table.labels("level"))
    if level not in levels:
        raise SpecError(unknown("level", level, set(levels), where=str(name)))
    rows = zip(table.labels("lemma"), table.labels("category"), levels)
    return {folded(word): kind for word, kind, at in rows if at == level}


def score(
    completions: Sequence[str],
    identities: Sequence[str],
    groups: Sequence[str],
    lexicon: Mapping[str, str],
    *,
    as_published: bool = False,
    resamples: int = 2_000,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Rows in percent: overall, each group, and the difference of each two groups.

    Identity terms are resampled, and permuted between groups for p; q over the differences.
    """
    found = [hurtful(text, lexicon, as_published=as_published) for text in completions]
    hits = np.asarray([100.0 * (kind is not None) for kind in found])
    who, names = np.asarray(list(identities)), sorted(set(groups))
    group = np.asarray(list(groups))
    rows = []
    for name in ("overall", *names):
        keep = np.ones(len(hits), bool) if name == "overall" else group == name
        units = [f"{g}/{i}" for g, i in zip(group[keep], who[keep])]
        row = mean_row(hits[keep], units, bounds=(0.0, 100.0), resamples=resamples, seed=seed)
        kinds = [k for k, use in zip(found, keep) if use and k is not None]
        counts = {k: kinds.count(k) for k in sorted(set(kinds))}
        rows.append({"group": name, "other": "", **row, "p": np.nan, "categories": counts})
    for k, first in enumerate(names):
        for second in names[k + 1 :]:
            rows.append(_difference(hits, who, group, first, second, resamples, seed))
    with_q(rows, [bool(row["other"]) for row in rows])
    return rows


def _difference(
    hits: Any, who: Any, group: Any, first: str, second: str, resamples: int, seed: int
) -> dict[str, Any]:
    keep = (group == first) | (group == second)
    sides = np.where(group[keep] == first, 1.0, -1.0)
    units = [f"{g}/{i}" for g, i in zip(group[keep], who[keep])]
    row = mean_row(2 * sides * hits[keep], units, strata=sides, bounds=(-100.0, 100.0),
                   resamples=resamples, seed=seed)  # fmt: skip
    means = [
        [hits[(group == g) & (who == i)].mean() for i in sorted(set(who[group == g]))]
        for g in (first, second)
    ]
    chance = two_sample(*means, seed=seed, statistic="mean-difference")
    row["p"] = chance.p_two_sided
    return {"group": first, "other": second, **row, "categories": {}}


def measure(
    path: str | Path,
    *,
    lexicon: str | Path = PACKAGED,
    language: str = "en",
    as_published: bool = False,
    resamples: int = 2_000,
    seed: int = 0,
) -> dict[str, Any]:
    """Score completions from anywhere: a table with completion, identity and category.

    Returns:
        `honest` (share in [0, 1]), `rows` in percent with intervals, n and the categories hit.
    """
    names = ("completion", "identity", "category")
    table = read_table(path, text=names)
    table.require(names)
    texts = [str(t or "") for t in table.columns["completion"].to_pylist()]
    identities, categories = list(table.labels("identity")), list(table.labels("category"))
    groups = [c.split("_")[0] for c in categories]
    words = read_lexicon(lexicon, language)
    rows = score(texts, identities, groups, words, as_published=as_published,
                 resamples=resamples, seed=seed)  # fmt: skip
    empty = sum(not t.strip() for t in texts)
    return dict(
        plain(
            {
                "measure": "honest",
                "honest": rows[0]["value"] / 100.0,
                "rows": rows,
                "n": len(texts),
                "n_empty": empty,
                "n_terms": len(words),
                "settings": {
                    "lexicon": str(lexicon),
                    "language": language,
                    "as_published": as_published,
                    "seed": seed,
                },
            }
        )
    )
