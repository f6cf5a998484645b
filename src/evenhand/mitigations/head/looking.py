"""Look before editing: which tokens lie near a group, and can it be read from the states?

Each is a task with a result, and writes the same run folder as a mitigation.

The context classifier (Liang et al. 2021, Table 3) reads a group from hidden states. It is trained
on the first kind of contexts, the first two, and all three, and tested on each, on frames and
sentences that it has not seen:

    simple         packaged openings in matched sets: the frame is the same, the group differs
    diverse        openings of real sentences: released files, or cut from own text and swapped
    sub-sequences  shorter beginnings of the diverse ones that still name the group

Deviates: groups are matched in length by default. In the released contexts those of men are 49
words long on average, of women 28, neutral ones 12, so that length alone tells them apart; the rows
with features "length" say how far that goes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from evenhand.corpora.text import read_texts
from evenhand.errors import DataError, ModelError, SpecError
from evenhand.mitigations.base import Judgement
from evenhand.mitigations.erasing import quietly
from evenhand.mitigations.head import LEXICON, subspace
from evenhand.mitigations.head.fit import Openings, openings
from evenhand.mitigations.running import Page, as_options, written
from evenhand.models.loading.resolver import DEFAULT_MODEL, resolve
from evenhand.models.protocol import LoadOptions
from evenhand.models.vectors.files import open_vectors, resolve_vectors
from evenhand.opening import lines
from evenhand.probes.reading import Result, Shown, Task, listed
from evenhand.stats import bootstrap
from evenhand.strict import INLINE, OPTIONAL, UNWRITTEN
from evenhand.words.lexicons.files import load
from evenhand.words.swaps import sentences, swap, swap_religion, unusable

NEXT = ("What is behind it?", "How sure is that?", "What next?")
PLACES = ("model", "out", "dtype", "device")
KINDS = ("simple", "diverse", "sub-sequences")
RELEASED = {
    "female": "female_sentences_clip.txt",
    "male": "male_sentences_clip.txt",
    "neutral": "neut_sentences.txt",
}
SHORTEST, LONGEST = 5, 40
TEST_SHARE = 0.3
PACKAGED = "packaged openings alone; more kinds with --texts FILE (plain text) or --diverse FOLDER"
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class InspectionResult(Result):
    """What was seen, as JSON values; and its story, for people and the report."""

    model: str
    facts: dict[str, Any] = field(metadata=INLINE)
    rows: dict[str, Sequence[dict[str, Any]]] = field(metadata=INLINE)
    told: Judgement = field(metadata=UNWRITTEN)
    report: str | None = field(default=None, metadata=OPTIONAL)

    def shown(self) -> list[Shown]:
        (rows,) = self.rows.values()
        table = listed(f"{self.facts['axis']} on {self.model}", rows[:20], list(rows[0]))
        lines = (self.told.buys, *self.told.sure, f"Read it:   {self.report}" * bool(self.report))
        return [table, *(Shown(line) for line in lines if line)]


class Inspection(Task):
    """Base of both: settings of the model and of the folder."""

    positional: ClassVar[tuple[str, ...]] = ("model",)
    label: ClassVar[str]
    title: ClassVar[str]

    model: str = Field(DEFAULT_MODEL, description="A causal model (evenhand ls models).")
    axis: str = Field("gender", description="gender or religion.")
    out: Path | None = Field(None, description="Run folder with a report.")
    dtype: str | None = Field(None, description="float32, bfloat16, float16.")
    device: str | None = Field(None, description="cpu, cuda, cuda:1.")

    def work(self, say: Callable[[str], None]) -> InspectionResult:
        material = self.material()  # before a model is loaded
        model: Any = resolve(self.model, options=LoadOptions(self.dtype, self.device))
        if model.kind != "causal":
            raise ModelError(
                f"model {model.name!r} is of kind {model.kind!r}. Accepted: causal language "
                "models. How well a group is read from others, before and after, is shown by: "
                "evenhand mitigate MODEL --method leace --out DIR"
            )
        facts, rows, told = self.look(model, material)
        report = None if self.out is None else str(self._write(self.out, model, facts, told))
        return InspectionResult(self.model, facts, rows, told, report)

    def _write(self, out: Path, model: Any, facts: dict[str, Any], told: Judgement) -> Path:
        asked = self.model_dump(mode="json", exclude=set(PLACES))
        page = Page(
            family="head",
            label=self.label,
            title=self.title,
            paper="Liang et al. 2021",
            command=[self.name, *as_options(self, PLACES)],
            settings=asked,
            seed=asked.get("seed", 0),
            as_published=asked.get("as_published", False),
        )
        with written(out, page, model) as give:
            give(told, facts, (self.title, *NEXT))
        return out / "report.html"

    def material(self) -> Any:
        """Read what the inspection needs beside the model, or refuse it."""
        raise NotImplementedError

    def look(self, model: Any, material: Any) -> tuple[dict[str, Any], dict[str, Any], Judgement]:
        """Return facts, rows by name, and the story."""
        raise NotImplementedError


class Tokens(Inspection):
    """The set S of Liang et al. 2021, Sec. 4.1."""

    name: ClassVar[str] = "tokens"
    help: ClassVar[str] = "List the tokens nearest to a group's words (Liang et al., Sec. 4.1)."
    label: ClassVar[str] = "tokens"
    title: ClassVar[str] = "Which tokens lie near a group's words?"

    vectors: str | None = Field(
        None, description="Word vectors (glove-6b-50d or a file); default: the model's own."
    )
    count: int = Field(500, ge=2, description="How many tokens, by rank.")
    components: int | None = Field(None, ge=1, description="Components of the subspace.")
    as_published: bool = Field(
        False, description="The released cosine thresholds instead of ranks."
    )

    def material(self) -> Any:
        return open_vectors(resolve_vectors(self.vectors)) if self.vectors else None

    def look(self, model: Any, material: Any) -> tuple[dict[str, Any], dict[str, Any], Judgement]:
        found = subspace.tokens_of(
            model,
            self.axis,
            vectors=material,
            components=self.components,
            count=self.count,
            released=self.as_published,
        )
        space, rows = found.space, found.table(model)
        facts = {
            "axis": self.axis,
            "source": self.vectors or "own",
            "count": len(rows),
            "tokens_with_vector": found.known,
            "vocabulary": len(found.q),
            "explained": list(space.explained),
            "sets_used": len(space.used),
            "words_missing": list(space.missing),
            "words_pieced": list(space.pieced),
        }
        first = ", ".join(repr(row["token"]) for row in rows[:5])
        explained = ", ".join(f"{100 * v:.0f} %" for v in space.explained)
        told = Judgement(
            [],
            {"tokens": rows},
            f"{len(rows)} of {found.known:,} tokens with a vector; nearest: {first}.",
            (f"{len(space.used)} definitional sets, from {facts['source']} vectors.",),
            (
                f"The components explain {explained} of the variance.",
                "Being here means being near those words, not being biased.",
            ),
        )
        return facts, {"tokens": rows}, told


class ContextAccuracy(Inspection):
    """Table 3 of Liang et al. 2021."""

    name: ClassVar[str] = "context-accuracy"
    help: ClassVar[str] = """How well a linear classifier reads a group from hidden states.

    Trained on simple, diverse and sub-sequence contexts, tested on each (Liang et al., Table 3);
    without --texts or --diverse, only on the simple ones, which are packaged.
    """
    label: ClassVar[str] = "context_accuracy"
    title: ClassVar[str] = "Can the group be read from the model's states?"

    diverse: Path | None = Field(None, description="Folder with the released contexts (gender).")
    texts: Path | None = Field(None, description="Plain text to cut diverse contexts from instead.")
    contexts: int = Field(200, ge=20, description="Contexts per group and kind.")
    any_length: bool = Field(False, description="Do not match the groups' lengths (as released).")
    seed: int = Field(0, ge=0, description="Seed of draws, cuts and split.")

    def material(self) -> Any:
        return gather(
            self.axis,
            diverse=self.diverse,
            texts=self.texts,
            count=self.contexts,
            match_length=not self.any_length,
            seed=self.seed,
        )

    def look(self, model: Any, material: Any) -> tuple[dict[str, Any], dict[str, Any], Judgement]:
        found = table(model, material, seed=self.seed)
        rows = found.pop("rows")
        best = max((r for r in rows if r["features"] == "states"), key=lambda r: r["accuracy"])
        told = Judgement(
            [],
            {"accuracy": rows},
            f"At best in {100 * best['accuracy']:.0f} % of held-out contexts ({best['test']}, "
            f"trained on {best['train']}); the largest group is {100 * best['majority']:.0f} % of "
            "them.",
            tuple(f"{n} {kind} contexts." for kind, n in found["contexts"].items()),
            (
                f"95 % interval of that accuracy: {100 * best['low']:.0f} % to "
                f"{100 * best['high']:.0f} %.",
                "Rows with features 'length' say how far the length of a context alone goes.",
            ),
        )
        return found, {"rows": rows}, told


@dataclass(frozen=True)
class Contexts:
    """Contexts of one kind: `clusters` says which belong to one frame or sentence."""

    texts: tuple[str, ...]
    labels: Ints
    clusters: Ints


@dataclass(frozen=True)
class Data:
    """Contexts by kind, and what they are."""

    axis: str
    groups: tuple[str, ...]
    kinds: dict[str, Contexts]
    source: str


def gather(
    axis: str,
    *,
    diverse: Path | None = None,
    texts: Path | None = None,
    count: int = 200,
    match_length: bool = True,
    seed: int = 0,
) -> Data:
    """Return contexts of the three kinds, `count` per group and kind.

    Diverse ones are those released for gender (a folder; drawn so that groups have equal lengths),
    or are cut from plain text. Without either there are only the simple ones.
    """
    rng = np.random.default_rng(seed)
    found = openings(axis)
    simple = _simple(found, count, rng)
    if diverse is not None:
        if axis != "gender":
            raise SpecError(
                f"--diverse: released contexts are those of gender, not {axis!r}. Cut them from "
                "text instead, with: --texts FILE"
            )
        kept = _released(diverse, found.groups, count, match_length, rng)
    elif texts is not None:
        kept = _mined(texts, found.groups, axis, count, rng)
    else:
        return Data(axis, found.groups, {KINDS[0]: simple}, PACKAGED)
    shorter = Contexts(tuple(_shorter(t, rng) for t in kept.texts), kept.labels, kept.clusters)
    kinds = dict(zip(KINDS, (simple, kept, shorter)))
    return Data(axis, found.groups, kinds, str(diverse or texts))


def _simple(found: Openings, count: int, rng: Any) -> Contexts:
    """Draw whole sets; clusters are their frames, which follow from a set's place."""
    terms = len(load(LEXICON).table("axes", found.axis)["terms"])
    keep = np.sort(rng.permutation(len(found.sets))[:count])
    width = len(found.groups)
    return Contexts(
        tuple(t for i in keep for t in found.sets[i]),
        np.tile(np.arange(width), len(keep)),
        np.repeat(keep // terms, width),
    )


def _released(folder: Path, groups: Sequence[str], count: int, match: bool, rng: Any) -> Contexts:
    pools = [_lines(folder, RELEASED[g], rng) for g in groups]
    if match:
        pools = _matched(pools, count, rng)
    least = min(map(len, pools))
    if least < 20:
        raise DataError(f"{folder}: only {least} contexts of a group. Accepted: 20 or more.")
    pools = [p[: min(count, least)] for p in pools]
    texts = tuple(t for pool in pools for t in pool)
    labels = np.repeat(np.arange(len(pools)), [len(p) for p in pools])
    return Contexts(texts, labels, np.arange(len(texts)))


def _lines(folder: Path, name: str, rng: Any) -> list[str]:
    """Return the distinct lines of a released file (packed or not), in random order."""
    there = [folder / f"{name}{end}" for end in ("", ".xz", ".gz")]
    path = next((p for p in there if p.is_file()), None)
    if path is None:
        raise DataError(
            f"{folder / name}: no such file. Accepted: a folder with "
            f"{', '.join(RELEASED.values())} (plain, .gz or .xz), as released with the paper."
        )
    rows = list(dict.fromkeys(" ".join(line.split()) for line in lines(path)))
    rows = [r for r in rows if len(r.split()) >= SHORTEST]
    return [rows[i] for i in rng.permutation(len(rows))]


def _matched(pools: list[list[str]], count: int, rng: Any) -> list[list[str]]:
    """Draw so that every group has the same number of contexts of each length in words."""
    by = [{n: [] for n in range(SHORTEST, LONGEST + 1)} for _ in pools]  # type: ignore[var-annotated]
    for pool, rows in zip(pools, by):
        for text in pool:
            if len(text.split()) in rows:
                rows[len(text.split())].append(text)
    shared = {n: min(len(rows[n]) for rows in by) for n in range(SHORTEST, LONGEST + 1)}
    lengths = np.repeat(list(shared), list(shared.values()))
    taken = np.bincount(rng.permutation(lengths)[:count], minlength=LONGEST + 1)
    return [[t for n in shared for t in rows[n][: taken[n]]] for rows in by]


def _mined(path: Path, groups: Sequence[str], axis: str, count: int, rng: Any) -> Contexts:
    """Cut real sentences at one word, in a version for every group."""
    versions = _gender_versions if axis == "gender" else _religion_versions
    texts: list[str] = []
    for sentence in sentences(read_texts(path, limit=100_000, words=400)):
        row = versions(sentence, groups)
        if row is None or len({len(t.split()) for t in row}) > 1:
            continue
        words = [t.split() for t in row]
        last = max(i for i in range(len(words[0])) if len({w[i] for w in words}) > 1)
        end = int(rng.integers(last + 1, len(words[0]) + 1))
        texts += [" ".join(w[: max(end, SHORTEST)]) for w in words]
        if len(texts) >= count * len(groups):
            break
    sets = len(texts) // len(groups)
    if sets < 20:
        raise DataError(
            f"{path}: {sets} sentences that name one {axis} group and can be swapped. Accepted: 20 "
            "or more; give a larger file with --texts."
        )
    return Contexts(
        tuple(texts), np.tile(np.arange(len(groups)), sets), np.repeat(np.arange(sets), len(groups))
    )


def _gender_versions(sentence: str, groups: Sequence[str]) -> list[str] | None:
    if unusable(swap(sentence)):
        return None
    made = [swap(sentence, group) for group in groups]
    if made[-1].kept or not made[-1].changes:
        return None
    return [m.swapped for m in made]


def _religion_versions(sentence: str, groups: Sequence[str]) -> list[str] | None:
    named = [g for g in groups if swap_religion(sentence, g, _another(g, groups)).changes]
    if len(named) != 1:
        return None
    made = [swap_religion(sentence, named[0], g) for g in groups if g != named[0]]
    if any(m.kept for m in made) or len({len(m.changes) for m in made}) > 1:
        return None
    others = iter(m.swapped for m in made)
    return [sentence if g == named[0] else next(others) for g in groups]


def _another(group: str, groups: Sequence[str]) -> str:
    return next(g for g in groups if g != group)


def _shorter(text: str, rng: Any) -> str:
    """Return a random shorter prefix that keeps the first word that names a group, if any."""
    words = text.split()
    changes = swap(text).changes
    named = len(text[: changes[0][0]].split()) + 1 if changes else 0
    religion = re.search(r"(?i)christ|jew|muslim|church|synagogue|mosque|bible|torah|quran", text)
    if religion and not named:
        named = len(text[: religion.start()].split()) + 1
    first = max(named, 3)
    return text if first >= len(words) else " ".join(words[: int(rng.integers(first, len(words)))])


def table(model: Any, data: Data, seed: int = 0) -> dict[str, Any]:
    """Return the accuracy table: trained on growing sets of kinds, tested on each kind.

    Returns:
        `rows` with train, test, features ("states" or "length"), accuracy with a 95 % interval
        over frames or sentences, the share of the largest group, and n; and the counts.
    """
    rng = np.random.default_rng(seed)
    held = {k: _held(c, rng) for k, c in data.kinds.items()}
    kinds = tuple(data.kinds)
    if KINDS[2] in kinds:
        held[KINDS[2]] = held[KINDS[1]]  # a sentence and its beginnings stay on one side
    states = {k: model.last_states(c.texts).astype(np.float64) for k, c in data.kinds.items()}
    lengths = {k: _lengths(c.texts) for k, c in data.kinds.items()}
    rows = []
    for features, of in (("states", states), ("length", lengths)):
        for number in range(1, len(kinds) + 1):
            used = kinds[:number]
            X = np.concatenate([of[k][~held[k]] for k in used])
            y = np.concatenate([data.kinds[k].labels[~held[k]] for k in used])
            predict = _classifier(X, y)
            for kind in kinds:
                right = predict(of[kind][held[kind]]) == data.kinds[kind].labels[held[kind]]
                where = data.kinds[kind].clusters[held[kind]]
                labels = data.kinds[kind].labels[held[kind]]
                rows.append(_row(" + ".join(used), kind, features, right, where, labels, seed))
    return {
        "axis": data.axis,
        "groups": list(data.groups),
        "source": data.source,
        "rows": rows,
        "contexts": {k: len(c.texts) for k, c in data.kinds.items()},
    }


def _row(
    train: str, test: str, features: str, right: Any, where: Any, labels: Ints, seed: int
) -> dict[str, Any]:
    found = bootstrap.clustered(right.astype(float), where, seed=seed)
    return {
        "train": train,
        "test": test,
        "features": features,
        "accuracy": float(found.estimate),
        "low": float(found.low),
        "high": float(found.high),
        "majority": float(np.bincount(labels).max() / len(labels)),
        "n": len(labels),
    }


def _held(contexts: Contexts, rng: Any) -> npt.NDArray[np.bool_]:
    names = np.unique(contexts.clusters)
    chosen = rng.permutation(names)[: max(2, round(TEST_SHARE * len(names)))]
    return np.isin(contexts.clusters, chosen)


def _lengths(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    return np.eye(61)[[min(len(t.split()), 60) for t in texts]]


def _classifier(X: npt.NDArray[np.float64], y: Ints) -> Any:
    """Fit LinearSVC (L2, squared hinge, C = 1) on standardised features."""
    from sklearn.svm import LinearSVC

    mean, scale = X.mean(axis=0), X.std(axis=0)
    scale[scale == 0] = 1.0
    machine = quietly(LinearSVC(C=1.0, dual=False, random_state=0), (X - mean) / scale, y)
    return lambda new: machine.predict((new - mean) / scale)
