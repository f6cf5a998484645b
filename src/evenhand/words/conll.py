"""Documents with coreference, in the CoNLL-2012 column format and its common variants.

Read: CoNLL-2011/2012 (12 or more columns, OntoNotes and WinoBias), the 13 tab columns of LitBank
and the 3 tab columns of OntoGUM; plain, .gz or .xz. The last column holds brackets: `(7` opens a
mention of entity 7, `7)` closes it, `(7)` is one token, several are written with `|` or without.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evenhand.errors import DataError
from evenhand.opening import lines
from evenhand.writing import write_bytes

Span = tuple[int, int]
Clusters = tuple[tuple[Span, ...], ...]

_BEGIN = re.compile(r"#\s*begin document\s*(?:\((?P<name>.*)\)\s*;?\s*(?:part\s+(?P<part>\S+))?)?")
_END = re.compile(r"#\s*end document")
_MARK = re.compile(r"\((?P<one>[^()|\s]+)\)|\((?P<open>[^()|\s]+)|(?P<close>[^()|\s]+)\)|\|")
_NOTHING = frozenset(("", "-", "_", "*"))
_PAUSES = frozenset((",", ";", ":", "--", "—"))
_STOPS = frozenset((".", "!", "?", "...", "…"))


@dataclass(frozen=True)
class Document:
    """Tokens, where sentences end, and clusters of mentions.

    A span (start, stop) counts tokens of the document and is half open. `sentences` are the stops
    of the sentences; `speakers` has one entry per token, or none where the file gives none.
    """

    name: str
    tokens: tuple[str, ...]
    sentences: tuple[int, ...] = ()
    clusters: Clusters = ()
    part: str = "0"
    speakers: tuple[str, ...] = ()
    genre: str = ""

    def with_clusters(self, clusters: Iterable[Iterable[Span]]) -> Document:
        """Return a copy with other clusters."""
        return replace(self, clusters=tuple(tuple(sorted(set(c))) for c in clusters))

    @property
    def masked(self) -> bool:
        """True if most words are blanked out with underscores, as in OntoGUM's Reddit part."""
        return sum(not token.strip("_") for token in self.tokens) * 2 > len(self.tokens)


def read_conll(
    path: str | Path, *, genre: str = "", skipped: list[str] | None = None
) -> list[Document]:
    """Read all documents of a file.

    Args:
        path: a CoNLL file, plain, .gz or .xz.
        genre: what to call the kind of text; by default the first part of a document's name.
        skipped: when given, a document whose brackets do not match is left out and the message
            put here (one OntoGUM document is so); otherwise it is an error.

    Raises:
        DataError: brackets that do not match, too few columns, or a token outside a document,
            each with its line number.
    """
    text = lines(path, "a CoNLL file (.gz, .xz too)")
    found = list(parse_conll(text, str(path), genre=genre, skipped=skipped))
    if not found:
        raise DataError(f"{path}: no '#begin document' line. Accepted: a CoNLL-2012 file.")
    return found


def parse_conll(
    lines: Iterable[str], where: str = "text", *, genre: str = "", skipped: list[str] | None = None
) -> Iterator[Document]:
    """Parse the documents in the lines of a CoNLL file; see `read_conll`.

    >>> text = "#begin document (a); part 0\\n0\\tShe\\t(1)\\n1\\tsleeps\\t_\\n#end document"
    >>> [(d.name, d.tokens, d.clusters) for d in parse_conll(text.split("\\n"))]
    [('a', ('She', 'sleeps'), (((0, 1),),))]
    """
    for name, part, body in _blocks(lines, where):
        builder = _Builder(where, name, part, genre or name.partition("/")[0])
        try:
            for number, line in body:
                builder.add(line, number)
            yield builder.finish()
        except DataError as error:
            if skipped is None:
                raise
            skipped.append(str(error))


def _blocks(lines: Iterable[str], where: str) -> Iterator[tuple[str, str, list[tuple[int, str]]]]:
    """Yield name, part and numbered lines of each document that is not empty."""
    head: tuple[str, str] | None = None
    body: list[tuple[int, str]] = []
    count = 0
    for number, raw in enumerate(lines, 1):
        line = raw.rstrip("\r\n")
        begin = _BEGIN.match(line)
        if begin or _END.match(line):
            if head and body:
                yield (*head, body)
            head, body = None, []
        if begin:
            count += 1
            head = begin["name"] or f"document-{count}", begin["part"] or "0"
        elif head:
            if not line.startswith("#"):
                body.append((number, line))
        elif line.strip() and not line.startswith("#"):
            raise DataError(
                f"{where}, line {number}: a token outside a document: {line[:60]!r}. Expected "
                "'#begin document (NAME); part 000' before it."
            )
    if head and body:
        yield (*head, body)


class _Builder:
    """Builder of one document, line by line, that checks its brackets."""

    def __init__(self, where: str, name: str, part: str, genre: str) -> None:
        self.where, self.name, self.part, self.genre = where, name, part, genre
        self.tokens: list[str] = []
        self.speakers: list[str] = []
        self.stops: list[int] = []
        self.clusters: dict[str, set[Span]] = {}
        self.open: dict[str, list[tuple[int, int]]] = {}

    def add(self, line: str, number: int) -> None:
        if not line.strip():
            self.end_sentence()
            return
        columns = line.split("\t") if "\t" in line else line.split()
        if len(columns) < 3:
            raise DataError(
                f"{self.where}, line {number}: {len(columns)} columns in {line[:60]!r}. Expected 3 "
                "(index, word, brackets) or the 12 and more of CoNLL-2012."
            )
        short = len(columns) < 5
        self.tokens.append(columns[1] if short else columns[3])
        speaker = columns[9] if len(columns) > 10 else ""
        self.speakers.append("" if speaker in _NOTHING else speaker)
        self._brackets(columns[-1].strip(), number)

    def _brackets(self, text: str, number: int) -> None:
        if text in _NOTHING:
            return
        at, here = 0, len(self.tokens) - 1
        for mark in _MARK.finditer(text):
            if mark.start() != at:
                break
            at = mark.end()
            if mark["one"]:
                self.clusters.setdefault(mark["one"], set()).add((here, here + 1))
            elif mark["open"]:
                self.open.setdefault(mark["open"], []).append((here, number))
            elif mark["close"]:
                self._close(mark["close"], here, number, text)
        if at != len(text):
            raise DataError(
                f"{self.where}, line {number}: coreference column {text!r} cannot be read. "
                "Expected brackets such as (3, 3), (3) or (3|(4), or - for none."
            )

    def _close(self, entity: str, here: int, number: int, text: str) -> None:
        waiting = self.open.get(entity)
        if not waiting:
            raise DataError(
                f"{self.where}, line {number}: {text!r} closes entity '{entity}', which is not "
                f"open in document '{self.name}'. Every 'N)' needs an earlier '(N'."
            )
        begin, _ = waiting.pop()
        self.clusters.setdefault(entity, set()).add((begin, here + 1))

    def end_sentence(self) -> None:
        if self.tokens and (not self.stops or self.stops[-1] < len(self.tokens)):
            self.stops.append(len(self.tokens))

    def finish(self) -> Document:
        left = [(line, entity) for entity, waiting in self.open.items() for _, line in waiting]
        if left:
            line, entity = min(left)
            raise DataError(
                f"{self.where}, line {line}: the bracket '({entity}' of document '{self.name}' is "
                f"never closed. Every '(N' needs a later 'N)' in the same document."
            )
        self.end_sentence()
        return Document(
            self.name,
            tuple(self.tokens),
            tuple(self.stops),
            tuple(tuple(sorted(c)) for c in self.clusters.values()),
            self.part,
            tuple(self.speakers) if any(self.speakers) else (),
            self.genre,
        )


def write_conll(documents: Sequence[Document], path: str | Path) -> None:
    """Write documents as CoNLL-2012 with 12 columns; unknown fields are dashes."""
    write_bytes(Path(path), "".join(map(format_conll, documents)).encode())


def format_conll(document: Document) -> str:
    """Return a document as CoNLL-2012 text, which `parse_conll` reads back."""
    marks: list[list[str]] = [[] for _ in document.tokens]
    spans = [(a, b, k) for k, cluster in enumerate(document.clusters) for a, b in cluster]
    for start, stop, entity in sorted(spans, key=lambda s: (s[0], -s[1])):
        if stop - start > 1:
            marks[start].append(f"({entity}")
    for start, stop, entity in spans:
        if stop - start == 1:
            marks[start].append(f"({entity})")
    for start, stop, entity in sorted(spans, key=lambda s: (s[1], -s[0])):
        if stop - start > 1:
            marks[stop - 1].append(f"{entity})")
    lines = [f"#begin document ({document.name}); part {document.part.zfill(3)}"]
    ends, place = set(document.sentences), 0
    for at, token in enumerate(document.tokens):
        speaker = document.speakers[at] if document.speakers else ""
        row = [document.name, document.part, str(place), token, *"-----", speaker or "-", "*"]
        lines.append("\t".join([*row, "|".join(marks[at]) or "-"]))
        place += 1
        if at + 1 in ends:
            lines.append("")
            place = 0
    if lines[-1]:
        lines.append("")
    return "\n".join([*lines, "#end document", ""])


def sentence_bounds(document: Document, longest: int = 60) -> list[Span]:
    """Return sentences as spans; if the file marks none, they end after . ! ? and at `longest`.

    >>> sentence_bounds(Document("a", ("Go", "!", "I", "stay", "."), (5,)), longest=4)
    [(0, 2), (2, 5)]
    """
    out: list[Span] = []
    begin = 0
    for stop in document.sentences or (len(document.tokens),):
        if stop - begin <= longest:
            out.append((begin, stop))
        else:
            out += _split_span(document.tokens, begin, stop, longest)
        begin = stop
    return out


def _split_span(tokens: Sequence[str], begin: int, stop: int, longest: int) -> list[Span]:
    """Split a span into at most `longest` tokens, after a stop, else a comma, else anywhere."""
    out: list[Span] = []
    last, comma = begin, begin
    for at in range(begin, stop):
        if tokens[at] in _PAUSES:
            comma = at + 1
        if tokens[at] in _STOPS:
            out.append((last, at + 1))
        elif at + 1 - last >= longest:
            out.append((last, comma if comma > last else at + 1))
        else:
            continue
        last = out[-1][1]
    return [*out, (last, stop)] if last < stop else out
