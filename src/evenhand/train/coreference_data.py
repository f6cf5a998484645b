"""Open coreference corpora, their split, and the head-match baseline that a model must beat.

OntoGUM has no published split in the joined file, so ours is by place: of the usable documents
after the 26 of GENTLE, in file order (sorted by genre), number 3 of every 8 is kept for testing
and number 7 for development. GENTLE is out of domain and never trained on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evenhand.errors import DataError
from evenhand.words.conll import Document, Span, read_conll, sentence_bounds

GENTLE = 26
WINOBIAS = tuple((kind, side) for kind in ("type1", "type2") for side in ("pro", "anti"))

_PRONOUNS = {
    form: kind
    for kind, forms in {
        "he": "he him his himself",
        "she": "she her hers herself",
        "it": "it its itself",
        "they": "they them their theirs themselves",
        "i": "i me my mine myself",
        "you": "you your yours yourself yourselves",
        "we": "we us our ours ourselves",
    }.items()
    for form in forms.split()
}
_OPEN = frozenset("the a an this that these those my your his her its our their no every".split())
_CLOSED = frozenset(
    """
    the a an this that these those and or but nor so yet if because while when where who whom which
    what whose how why of in on at by for with from to into onto over under about after before
    between through during against is are was were be been being am has have had do does did will
    would can could may might must shall should not n't 's ' as than then there here very also just
    i you he she it we they me him her us them my your his its our their
    """.split()
)


@dataclass(frozen=True)
class Corpora:
    """Documents to train on, to choose on, and to judge on."""

    train: list[Document]
    dev: list[Document]
    test: list[Document]
    gentle: list[Document]
    skipped: list[str]


def read_corpora(ontogum: Path, litbank: Path | None = None) -> Corpora:
    """OntoGUM split as above, LitBank added to the training part when given.

    Documents with blanked-out words (Reddit) and with brackets that do not match are left out and
    named in `skipped`.
    """
    skipped: list[str] = []
    found = read_conll(ontogum, genre="ontogum", skipped=skipped)
    first = _renumbered(found)
    skipped += [f"{d.name}: words are blanked out" for d in found if d.masked]
    gentle = [d for n, d in first if n < GENTLE and not d.masked]
    rest = [d for n, d in first if n >= GENTLE and not d.masked]
    if len(rest) < 8:
        raise DataError(f"{ontogum}: {len(rest)} usable documents after GENTLE; expected OntoGUM.")
    train = [d for k, d in enumerate(rest) if k % 8 not in (3, 7)]
    if litbank is not None:
        train += read_conll(litbank, genre="litbank", skipped=skipped)
    return Corpora(train, rest[7::8], rest[3::8], gentle, skipped)


def read_split(train: Path, dev: Path, test: Path) -> Corpora:
    """Three CoNLL files, or folders of them such as OntoNotes' (its `*_gold_conll` files)."""
    parts = [
        [d for file in _files(place) for d in read_conll(file)] for place in (train, dev, test)
    ]
    return Corpora(parts[0], parts[1], parts[2], [], [])


def _files(place: Path) -> list[Path]:
    if not place.is_dir():
        return [place]
    named = [p for p in sorted(place.rglob("*")) if p.is_file() and "conll" in p.name]
    gold = [p for p in named if "gold_conll" in p.name]
    if not named:
        raise DataError(f"{place}: no CoNLL file in this folder. Expected names with 'conll'.")
    return gold or named


def _renumbered(documents: Sequence[Document]) -> list[tuple[int, Document]]:
    """Documents with their place in the file, which their made-up names hold."""
    return [(int(d.name.rpartition("-")[2]) - 1, d) for d in documents]


def read_winobias(folder: Path, split: str = "test") -> dict[tuple[str, str], list[Document]]:
    """WinoBias by (type1|type2, pro|anti); sentence k of pro and anti differ in the pronoun."""
    out = {}
    for kind, side in WINOBIAS:
        name = f"{split}_{kind}_{side}_stereotype.v4_auto_conll"
        places = [folder / f"{name}{end}" for end in (".gz", "")]
        places += [folder / "conll" / p.name for p in places]
        path = next((p for p in places if p.exists()), None)
        if path is None:
            raise DataError(
                f"{folder}: no {name}(.gz) there or in its folder 'conll'. Expected the CoNLL "
                "files of the WinoBias release."
            )
        out[kind, side] = read_conll(path, genre="winobias")
    return out


class HeadMatch:
    """The baseline: equal last words corefer, pronouns chain with the nearest of their kind.

    Mentions are pronouns, runs of capitalised words, and a determiner with what follows up to the
    next closed-class word or punctuation, at most six tokens. Names and noun phrases join the
    nearest earlier one with the same last word; a pronoun joins the nearest earlier pronoun of
    the same kind, otherwise he, she, it and they join the nearest earlier name or noun phrase of
    the same or the previous sentence. Clusters of one mention are dropped.
    """

    def predict(self, documents: Sequence[Document]) -> list[Document]:
        return [d.with_clusters(_link(d)) for d in documents]


def _link(document: Document) -> list[list[Span]]:
    heads: dict[str, int] = {}
    kinds: dict[str, int] = {}
    clusters: list[list[Span]] = []
    recent: list[tuple[int, int]] = []
    for line, bounds in enumerate(sentence_bounds(document)):
        for start, stop in _candidates(document, *bounds):
            head = document.tokens[stop - 1].lower()
            kind = _PRONOUNS.get(head, "") if stop - start == 1 else ""
            near = [c for at, c in recent if at >= line - 1]
            if kind:
                found = kinds.get(kind)
                if found is None and kind in ("he", "she", "it", "they") and near:
                    found = near[-1]
            else:
                found = heads.get(head)
            if found is None:
                found = len(clusters)
                clusters.append([])
            clusters[found].append((start, stop))
            if kind:
                kinds[kind] = found
            else:
                heads[head] = found
                recent.append((line, found))
    return [c for c in clusters if len(c) > 1]


def _candidates(document: Document, low: int, high: int) -> list[Span]:
    """Mentions of a sentence, left to right, none inside another."""
    out: list[Span] = []
    at = low
    while at < high:
        word = document.tokens[at]
        lower = word.lower()
        stop = at + 1
        if lower in _OPEN and lower not in _PRONOUNS:
            while stop < high and stop - at < 6 and _inside(document.tokens[stop]):
                stop += 1
            if stop > at + 1:
                out.append((at, stop))
        elif lower in _PRONOUNS:
            out.append((at, stop))
        elif word[:1].isupper() and (at > low or word.isupper()) and lower not in _CLOSED:
            while stop < high and document.tokens[stop][:1].isupper():
                stop += 1
            out.append((at, stop))
        at = stop
    return out


def _inside(word: str) -> bool:
    return word.lower() not in _CLOSED and any(c.isalnum() for c in word)
