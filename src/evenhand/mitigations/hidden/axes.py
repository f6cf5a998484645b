"""What a mitigation of an encoder is fitted on: texts that differ in a group, labelled and split.

    gender, religion, race            packaged matched terms in packaged frames
    names:GROUP,GROUP,...             first names of any groups of the lexicons, in the same frames
    FILE.csv/.jsonl/.parquet          own texts: columns text, label; or own pairs: first, second
    FILE.toml/.json                   own word sets: groups = [...], terms = [[...], ...]
    any of these with --texts FILE    gender and religion: counterfactual pairs cut from own text

Frames and terms are split before anything is fitted: a quarter of the frames is held out to judge
on, and a quarter of the terms appears in held-out frames only.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.corpora.tables import read_table
from evenhand.errors import DataError, SpecError, unknown
from evenhand.words.lexicons import groups as find_groups
from evenhand.words.lexicons.files import load
from evenhand.words.swaps import pairs_from_texts, swap_religion

Ints = npt.NDArray[np.int64]
Row = tuple[str, str, str, int, int]
"""Text, term, frame, label, set."""
TRAIN, DEV, TEST, NEW = 0, 1, 2, 3
PARTS = ("train", "dev", "test", "new")
PACKAGED = {"gender": "erasure_contexts", "religion": "erasure_contexts", "race": "axis_terms"}
FRAMES = "erasure_contexts"
NEUTRAL = "neutral"
ANSWERS = (
    "a kind person",
    "very tired",
    "good at the work",
    "not sure what to do",
    "ready to go home",
    "someone who likes music",
    "quite busy",
    "happy with the day",
)
"""Second halves of text pairs for multiple-choice models: plain, and the same for every group."""


@dataclass(frozen=True)
class AxisData:
    """Labelled texts. Row i has text, label, term, frame and part.

    Attributes:
        axis: what a user typed.
        groups: names of the labels.
        texts, terms, frames: one per row; term and frame are what the text was made of.
        labels: code of the group.
        sets: rows with one number differ only in the group; -1 for rows on their own.
        part: 0 train, 1 dev (to stop on), 2 held-out frames, 3 held-out frames and terms.
        source: where the texts come from, in words.
    """

    axis: str
    groups: tuple[str, ...]
    texts: tuple[str, ...]
    terms: tuple[str, ...]
    frames: tuple[str, ...]
    labels: npt.NDArray[np.int64]
    sets: npt.NDArray[np.int64]
    part: npt.NDArray[np.int64]
    source: str

    def __len__(self) -> int:
        return len(self.texts)

    def counts(self) -> dict[str, int]:
        """Return the number of rows of each part."""
        return {name: int((self.part == k).sum()) for k, name in enumerate(PARTS)}

    def seconds(self) -> list[str]:
        """Return second texts for models that read pairs; all groups of a frame share one."""
        codes = {f: i for i, f in enumerate(dict.fromkeys(self.frames))}
        return [ANSWERS[codes[f] % len(ANSWERS)] for f in self.frames]

    def firsts(self) -> list[str]:
        """Return the texts as situations with a question, as multiple-choice models read them."""
        return [
            f"{text.rstrip('.')}. How would you describe {term or 'this person'}?"
            for text, term in zip(self.texts, self.terms)
        ]


def axis_data(
    axis: str, *, texts: list[str] | None = None, limit: int = 1_500, seed: int = 0
) -> AxisData:
    """Return axis data by name or file (see the module), or pairs cut from passages.

    At most `limit` matched sets are drawn (rows, for labelled texts).

    >>> found = axis_data("gender")
    >>> found.groups, found.counts()["train"] > found.counts()["test"] > 0
    (('female', 'male'), True)
    """
    path = Path(axis).expanduser()
    if texts is not None:
        found = _mined(axis, texts, limit, seed)
    elif path.suffix in (".toml", ".json") and path.is_file():
        found = _word_sets(axis, *_read_sets(path), f"word sets of {path.name}")
    elif path.is_file():
        found = _from_table(path)
    elif axis.startswith("names:"):
        found = _names(axis)
    elif axis in PACKAGED:
        table = load(PACKAGED[axis]).table("axes", axis)
        found = _word_sets(axis, tuple(table["groups"]), table["terms"], "packaged terms")
    else:
        hint = "Or names:GROUP,GROUP, or a file (.csv, .jsonl, .parquet, .toml, .json)."
        raise SpecError(unknown("axis", axis, PACKAGED, where="--axis", hint=hint))
    return _check(_limited(found, limit, seed))


def _word_sets(
    axis: str, groups: tuple[str, ...], terms: Sequence[Sequence[str]], source: str
) -> AxisData:
    """Put matched terms into every frame, without those of a neutral group."""
    sides = [i for i, group in enumerate(groups) if group != NEUTRAL]
    frames = load(FRAMES).words("frames")
    rows = [
        (f.replace("{person}", members[i]), f"the {members[i]}", f, code, k * len(terms) + unit)
        for k, f in enumerate(frames)
        for unit, members in enumerate(terms)
        for code, i in enumerate(sides)
    ]
    units = [row[4] % len(terms) for row in rows]
    return _split(axis, tuple(groups[i] for i in sides), rows, units, source)


def _names(axis: str) -> AxisData:
    """Put first names of the lexicons' groups into frames; names are not matched (set -1)."""
    wanted = [g.strip() for g in axis.removeprefix("names:").split(",") if g.strip()]
    if len(wanted) < 2:
        raise SpecError(
            f"--axis {axis!r}: one group is not an axis. Accepted: names:GROUP,GROUP. List groups "
            "with: evenhand ls groups"
        )
    found = find_groups(wanted)
    rows: list[Row] = []
    units: list[int] = []
    for frame in load(FRAMES).words("frames"):
        bare = frame.replace("The {person}", "{person}").replace("the {person}", "{person}")
        for code, group in enumerate(found.values()):
            rows += [(bare.replace("{person}", n), n, frame, code, -1) for n in group.terms]
            units += range(len(group.terms))
    return _split(axis, tuple(found), rows, units, "first names of the lexicons")


def _split(
    axis: str, groups: tuple[str, ...], rows: Sequence[Row], units: Sequence[int], source: str
) -> AxisData:
    """Split frames: 60 % to fit, 15 % to stop, 25 % held out; every fourth term only there."""
    frames = list(dict.fromkeys(r[2] for r in rows))
    by_frame = dict(zip(frames, _own_part(len(frames))))
    part = np.asarray([by_frame[r[2]] for r in rows], np.int64)
    fresh = np.asarray([u % 4 == 3 for u in units])
    part[fresh & (part == TEST)] = NEW
    kept: list[int] = np.flatnonzero(~(fresh & (part < TEST))).tolist()
    return _data(axis, groups, [rows[i] for i in kept], part[kept], source)


def _data(
    axis: str, groups: tuple[str, ...], rows: Sequence[Row], part: Ints, source: str
) -> AxisData:
    texts, terms, frames, labels, sets = zip(*rows) if rows else ((),) * 5
    codes = np.asarray(labels, np.int64), np.asarray(sets, np.int64)
    return AxisData(axis, groups, texts, terms, frames, *codes, part, source)


def _from_table(path: Path) -> AxisData:
    """Read labelled texts (text, label) or pairs (first, second) from a file."""
    table = read_table(path, text=("text", "label", "first", "second"))
    if table.has("first") and table.has("second"):
        table.require(("first", "second"))
        first, second = list(table.labels("first")), list(table.labels("second"))
        return _pairs(str(path), list(zip(first, second)), ("first", "second"), path.name)
    table.require(("text", "label"))
    labels = table.labels("label")
    rows = [(t, "", t, int(code), -1) for t, code in zip(table.labels("text"), labels.codes)]
    source = f"labelled texts of {path.name}"
    return _data(str(path), labels.values, rows, _own_part(len(rows)), source)


def _pairs(
    axis: str, pairs: Sequence[tuple[str, str]], groups: tuple[str, str], source: str
) -> AxisData:
    rows = [(t, "", f"pair {i}", k, i) for i, pair in enumerate(pairs) for k, t in enumerate(pair)]
    return _data(axis, groups, rows, np.repeat(_own_part(len(pairs)), 2), f"pairs of {source}")


def _own_part(n: int) -> Ints:
    """Split units 60/15/25 in a fixed shuffled order."""
    share = np.empty(n)
    share[np.random.default_rng(20).permutation(n)] = (np.arange(n) + 0.5) / max(n, 1)
    return np.where(share < 0.6, TRAIN, np.where(share < 0.75, DEV, TEST)).astype(np.int64)


def _mined(axis: str, texts: list[str], limit: int, seed: int) -> AxisData:
    """Cut counterfactual pairs from text; the first side is always the first group."""
    if axis == "gender":
        sides: tuple[str, str] = ("female", "male")
        found = pairs_from_texts(texts, limit=limit, seed=seed).pairs
        pairs = [(p.text, p.swapped) if _is_female(p) else (p.swapped, p.text) for p in found]
    elif axis == "religion":
        sides = ("christian", "muslim")
        how = lambda sentence: swap_religion(sentence, *sides)  # noqa: E731
        found = pairs_from_texts(texts, limit=limit, seed=seed, exchange=how).pairs
        pairs = [(p.text, p.swapped) for p in found]
    else:
        raise SpecError(
            f"--axis-texts: pairs can be cut for gender and religion, not for {axis!r}. Leave "
            "--axis-texts out, or give labelled texts as a file."
        )
    return _pairs(axis, pairs, sides, "own text, one side exchanged")


def _is_female(pair: Any) -> bool:
    from evenhand.words.swaps.gender import swap

    return bool(swap(pair.text, "male").changes)


def _read_sets(path: Path) -> tuple[tuple[str, ...], list[list[str]]]:
    try:
        raw = path.read_text(encoding="utf-8")
        data: Any = tomllib.loads(raw) if path.suffix == ".toml" else json.loads(raw)
        groups, terms = tuple(map(str, data["groups"])), [list(map(str, t)) for t in data["terms"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f'{path}: cannot be read as word sets ({error}). Accepted: groups = ["a", "b"] and '
            'terms = [["woman", "man"], ...].'
        ) from error
    odd = [t for t in terms if len(t) != len(groups)]
    if odd:
        raise DataError(
            f"{path}: the set {odd[0]} has {len(odd[0])} terms for {len(groups)} groups. Every "
            "set needs one term per group, in the order of the groups."
        )
    return groups, terms


def _limited(data: AxisData, limit: int, seed: int) -> AxisData:
    """Draw at most `limit` matched sets (or texts), every part in proportion."""
    units = np.where(data.sets >= 0, data.sets, np.arange(len(data)) + data.sets.max(initial=0) + 1)
    distinct = np.unique(units)
    if len(distinct) <= limit:
        return data
    keep = np.random.default_rng(seed).choice(distinct, limit, replace=False)
    return take(data, np.flatnonzero(np.isin(units, keep)))


def take(data: AxisData, rows: npt.NDArray[np.int64]) -> AxisData:
    """Return the data of some rows."""

    def pick(values: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(values[i] for i in rows)

    return replace(
        data,
        texts=pick(data.texts),
        terms=pick(data.terms),
        frames=pick(data.frames),
        labels=data.labels[rows],
        sets=data.sets[rows],
        part=data.part[rows],
    )


def _check(data: AxisData) -> AxisData:
    """Refuse an axis without two classes to tell apart, or with too few texts."""
    for number, name in ((TRAIN, "training"), (TEST, "held-out")):
        here = np.unique(data.labels[data.part == number])
        if len(here) < 2:
            names = [data.groups[int(i)] for i in here]
            raise DataError(
                f"--axis {data.axis!r}: the {name} part has {len(names)} group(s) {names} in "
                f"{int((data.part == number).sum())} texts. An axis needs two or more groups, "
                "each with several texts."
            )
    return data
