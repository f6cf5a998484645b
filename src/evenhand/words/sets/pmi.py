"""Words that go with a label: pointwise mutual information under Naive Bayes.

    PMI(l, w) = log2 theta[l, w] - log2( sum over l' of mu[l'] theta[l', w] )

mu[l] is the share of documents with label l, theta[l, w] the share of label l's tokens that are w
(Kato and Miyao 2024, section 4). Maximum likelihood without smoothing: a word that a label
never uses has no PMI for it. A word only one label uses has PMI = -log2 mu[l], the largest value.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evenhand.errors import DataError, SpecError, unknown

DIGITS = 12


@dataclass(frozen=True, slots=True)
class PmiRow:
    """One word under one label: `count` tokens and `documents` with it, over all labels."""

    label: str
    word: str
    pmi: float
    count: int
    documents: int
    theta: tuple[float, ...]


def pmi_table(
    documents: Iterable[Sequence[str]], labels: Iterable[object], *, floor: int = 10
) -> list[PmiRow]:
    """PMI of every label and word that occurs in at least `floor` documents of all labels.

    Args:
        labels: the label of each document; shown as text.
        floor: documents a word must occur in, whatever their label.

    Returns:
        Rows by label, then word; `theta` in the order of the labels' names.

    >>> rows = pmi_table([["a", "b"], ["a", "a"], ["b", "c"]], [1, 1, 0], floor=1)
    >>> [(r.label, r.word, round(r.pmi, 3)) for r in rows]
    [('0', 'b', 0.585), ('0', 'c', 1.585), ('1', 'a', 0.585), ('1', 'b', -0.415)]
    """
    tokens: dict[str, Counter[str]] = {}
    sizes: Counter[str] = Counter()
    spread: Counter[str] = Counter()
    for document, given in zip(documents, labels, strict=True):
        if isinstance(document, str):
            raise SpecError(f"pmi: a document is the text {document[:30]!r}; pass its tokens.")
        label = str(given)
        sizes[label] += 1
        tokens.setdefault(label, Counter()).update(document)
        spread.update(set(document))
    _check(sizes, tokens, floor)
    names = sorted(sizes)
    share = {name: sizes[name] / sizes.total() for name in names}
    totals = {name: tokens[name].total() for name in names}
    rows = []
    for word in sorted(w for w, n in spread.items() if n >= floor):
        theta = tuple(tokens[name][word] / totals[name] for name in names)
        mixed = math.log2(sum(share[name] * value for name, value in zip(names, theta)))
        count = sum(tokens[name][word] for name in names)
        rows += [
            PmiRow(name, word, math.log2(value) - mixed, count, spread[word], theta)
            for name, value in zip(names, theta)
            if value
        ]
    return sorted(rows, key=lambda row: (row.label, row.word))


def pmi_ranking(
    rows: Iterable[PmiRow], label: object, *, as_published: bool = False
) -> list[PmiRow]:
    """A label's words, highest PMI first; ties by frequency, then alphabetically.

    PMIs that agree to 12 decimals are ties. `as_published` compares the raw numbers, where the
    last bit decides between words of one label, and falls back to the reverse alphabet.
    """
    held = list(rows)
    own = [row for row in held if row.label == str(label)]
    if not own:
        known = sorted({row.label for row in held})
        raise SpecError(unknown("label", str(label), known, where="pmi"))
    if as_published:
        return sorted(own, key=lambda r: (r.pmi, r.count, r.word), reverse=True)
    return sorted(own, key=lambda r: (-round(r.pmi, DIGITS), -r.count, r.word))


def pmi_candidates(
    rows: Iterable[PmiRow], label: object, top: int = 40, *, as_published: bool = False
) -> list[str]:
    """The first `top` words to choose a set from by hand.

    Markers (<URL>), numbers and bare punctuation are left out; `as_published` keeps them.

    >>> rows = pmi_table([["a", "<URL>", "7"], ["b"]], ["x", "y"], floor=1)
    >>> pmi_candidates(rows, "x"), pmi_candidates(rows, "x", as_published=True)
    (['a'], ['a', '<URL>', '7'])
    """
    ranked = [row.word for row in pmi_ranking(rows, label, as_published=as_published)]
    return [word for word in ranked if as_published or is_word(word)][:top]


def candidates_by_label(
    rows: Sequence[PmiRow], top: int = 40, *, as_published: bool = False
) -> dict[str, list[PmiRow]]:
    """The first `top` candidates of every label, with their numbers."""
    found = {}
    for label in sorted({row.label for row in rows}):
        ranked = {r.word: r for r in pmi_ranking(rows, label, as_published=as_published)}
        kept = pmi_candidates(rows, label, top, as_published=as_published)
        found[label] = [ranked[word] for word in kept]
    return found


def is_word(token: str) -> bool:
    """Whether a token is a word or an emoji rather than a marker, a number or punctuation."""
    if token.startswith("<") and token.endswith(">"):
        return False
    return any(c.isalpha() or ord(c) > 0x2190 for c in token)


def _check(sizes: Counter[str], tokens: dict[str, Counter[str]], floor: int) -> None:
    if floor < 1:
        raise SpecError(f"pmi: floor {floor}. Accepted: 1 document or more.")
    if len(sizes) < 2:
        raise DataError(
            f"pmi: {len(sizes)} label(s) ({', '.join(sizes)}). It compares at least two labels."
        )
    for label, counted in tokens.items():
        if not counted:
            raise DataError(f"pmi: the documents of label {label!r} hold no token.")
