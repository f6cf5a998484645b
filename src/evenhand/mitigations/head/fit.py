"""Mitigate a causal language model at its output head.

    pairs       the directions that move most when only the group changes, removed obliquely (see
                `erasing.erase_pairs`)
    inlp        E P h, P the orthogonal projection on the nullspaces of classifiers that are trained
                round by round (Ravfogel et al. 2020; Liang et al. 2021, Eq. 6)
    leace       E r(h) with LEACE's map r
    a-pairs     a mixture of the model's distribution and that of pairs (Eq. 7), with alpha fixed or
                learned per step (Eq. 8)
    a-inlp      a mixture with inlp
    a-subspace  a mixture with the bias subspace of the output embeddings taken out of E

Each is one low-rank edit of the head, so decoding costs one product more. INLP is fitted on states
minus their mean, which stays in place (`offset`); without the offset, and with the released
settings (LinearSVC on raw states), the edit is P h.

Openings come in sets that differ only in the group named, so a classifier can learn nothing but
the group. Ordinary text says which directions of the hidden state the model needs; if none is
given, the model writes some itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import SpecError, unknown
from evenhand.mitigations.base import Note, quiet
from evenhand.mitigations.erasing import Removal, erase_pairs, inlp, leace
from evenhand.mitigations.head import LEXICON, axes
from evenhand.mitigations.head.subspace import model_subspace, tokens_of
from evenhand.mitigations.head.tradeoff import (
    ALPHAS,
    REDUCTION,
    Bench,
    Candidate,
    Held,
    Point,
    area,
    fall,
    pareto,
    pick,
)
from evenhand.mitigations.proof import NATS, JudgedByAudits, Task
from evenhand.models.adapters.causal import CausalModel
from evenhand.models.edits.head import HeadEdit
from evenhand.models.protocol import Model
from evenhand.models.vectors.files import open_vectors, resolve_vectors
from evenhand.probes.base import Behaviour
from evenhand.requests import Generate
from evenhand.runner.ask import Ask
from evenhand.words.lexicons.files import load
from evenhand.words.lexicons.people import prompts
from evenhand.words.swaps import pairs_from_texts

if TYPE_CHECKING:
    from evenhand.mitigations.head import HeadMitigation

Floats = npt.NDArray[np.float64]
CHOOSING, JUDGING = "choosing", "judging"
ROUNDS = {"pairs": (1, 2, 4, 8, 16, 32), "lsq": (5, 10, 20, 40), "svc": (5, 10, 20)}
Ints = npt.NDArray[np.int64]
STARTS = ("The", "In", "It was", "When", "Many people", "There is", "Last year", "To", "A", "How")


@dataclass(frozen=True)
class Material:
    """States of a model, collected once.

    Attributes:
        openings, sets, ordinary: what is fitted on: matched openings and ordinary text.
        choosing, judging: what a setting is chosen by, and what it is judged on; no term, prompt
            or text is in both.
        source: of the text.
    """

    openings: Openings
    sets: npt.NDArray[np.float32]
    ordinary: npt.NDArray[np.float32]
    choosing: Held
    judging: Held
    source: str


@dataclass(frozen=True)
class OnOthers:
    """The chosen setting on pairs and text that it was not chosen by, before and after."""

    gap: tuple[Any, Any]
    losses: tuple[Any, Any]
    held: Held
    rows: npt.NDArray[np.int64]


@dataclass(frozen=True)
class FittedHead(JudgedByAudits):
    """An edit of the head, how it was chosen, and what it measures on other material.

    Attributes:
        edit: what is done to the head.
        chosen, before: the chosen setting and the unchanged model, on the judging half.
        points: every setting that was tried, on the choosing half.
        material: what it was fitted, chosen and judged on.
        requested: the settings as they were asked for, with every method.
        judged_on: the judging half, item by item.
        unchanged: the unchanged model on the choosing half, with which the points compare.
    """

    settings: HeadMitigation
    edit: HeadEdit
    chosen: Point
    before: Point
    points: tuple[Point, ...]
    material: Material | None = None
    requested: HeadMitigation | None = None
    judged_on: OnOthers | None = None
    unchanged: Point | None = None

    @property
    def asked(self) -> HeadMitigation:
        return self.requested or self.settings

    @property
    def sweep(self) -> dict[str, Any]:
        """Before and after on the choosing half; empty if nothing was tried there."""
        setting = self.chosen.setting
        after = next((p for p in self.points if p.setting == setting), None)
        if self.unchanged is None or after is None:
            return {}
        return {"before": self.unchanged.as_dict(), "after": after.as_dict()}

    def applied(self, model: Model) -> Model:
        assert isinstance(model, CausalModel)
        return model.with_head(self.edit, self.title)

    def save(self, folder: str | Path) -> None:
        from evenhand.mitigations.head.save import save

        save(self, Path(folder))

    def export(self, path: Path) -> Mapping[str, Any]:
        from evenhand.mitigations.head.save import export

        apart = export(self.edit, self.base, path)
        return {"export": str(path), "export_logit_difference": apart}

    def as_dict(self) -> dict[str, Any]:
        return {
            "before": self.before.as_dict(),
            "after": self.chosen.as_dict(),
            "sweep": self.sweep,
            **self.facts,
            "points": [p.as_dict() for p in self.points],
        }

    def told(self) -> dict[str, Any]:
        from evenhand.mitigations.head.tradeoff import stereoset

        names = ("text_tokens", "text", "chosen_on", "held_out_pairs", "reduction")
        return {
            **{name: self.facts[name] for name in names},
            "before": self.before.as_dict(),
            "chosen": self.chosen.as_dict(),
            "sweep": self.sweep,
            "points": [p.as_dict() for p in self.points],
            "stereoset": stereoset(self),
        }

    def items(self) -> dict[str, Any]:
        on = self.judged_on
        if on is None:
            return {}
        found = {
            "gap.before": on.gap[0],
            "gap.after": on.gap[1],
            "gap.terms": on.held.terms,
            "gap.prompts": on.held.prompts,
        }
        return {name: values for name, values in found.items() if values is not None}

    def tasks(self, before: Model, after: Model) -> list[Task]:
        """Return the loss on text used neither to fit nor to choose; texts are the sample."""
        on = self.judged_on
        if on is None:
            return []
        margin = max(NATS, float(np.log1p(self.settings.max_perplexity_increase)))
        what = "loss on held-out text, in nats a token"
        one, two = (Behaviour(what, v, margin, float("-inf")) for v in on.losses)
        return [Task(one, two, on.held.owners[on.rows])]


def collect(
    model: Any, settings: HeadMitigation, texts: list[str] | None = None, note: Note = quiet
) -> Material:
    """Ask the model for every state that fitting and judging need."""
    note("writing ordinary text" if texts is None else "reading ordinary text")
    source = "file" if texts is not None else "written by the model"
    passages = texts if texts is not None else own_texts(model, seed=settings.seed)
    found = openings(settings.axis, sets=settings.openings, seed=settings.seed)
    note(f"states of {len(found.contexts)} matched openings")
    states = model.last_states(found.contexts).reshape(len(found.sets), len(found.groups), -1)
    if texts is not None and settings.axis == "gender":
        extra = mined(texts, limit=settings.openings, seed=settings.seed)
        if extra.sets:
            note(f"states of {len(extra.contexts)} openings cut from the text")
            pairs = model.last_states(extra.contexts).reshape(len(extra.sets), 2, -1)
            middle = pairs.mean(axis=1, keepdims=True)
            states = np.concatenate([states, np.concatenate([pairs, middle], axis=1)])
    note("states of ordinary text and held-out pairs")
    h, targets, owners = model.text_states(passages)
    if len(set(owners.tolist())) < 4:
        raise SpecError(
            f"--texts: {len(passages)} passages. Accepted: four or more, of which two are fitted "
            "on, one is for choosing and one for judging."
        )
    choosing, judging = (
        Held(
            model.last_states(pairs.first),
            model.last_states(pairs.second),
            h[owners % 4 == part],
            targets[owners % 4 == part],
            owners[owners % 4 == part],
            pairs.terms,
            pairs.prompts,
            half,
        )
        for half, part, pairs in zip(
            (CHOOSING, JUDGING), (1, 3), held_out(settings.axis, settings.seed)
        )
    )
    return Material(found, states, h[owners % 2 == 0], choosing, judging, source)


def candidates(model: Any, material: Material, settings: HeadMitigation) -> list[Candidate]:
    """Return the projections that the settings allow, smallest first."""
    found = _with_offsets(model, material, settings)
    if settings.offset:
        return found
    return [replace(c, edit=replace(c.edit, offset=None)) for c in found]


def _with_offsets(model: Any, material: Material, settings: HeadMitigation) -> list[Candidate]:
    base = _alpha_rule(model, settings)
    method = settings.method
    if method == "a-subspace":
        space = model_subspace(model, settings.axis, settings.components)
        return [Candidate(method, 0, _edit(base, Removal.of_basis(space.basis)))]
    flat = material.sets.reshape(-1, material.sets.shape[-1]).astype(np.float64)
    labels = np.tile(np.arange(material.sets.shape[1]), len(material.sets))
    if method == "leace":
        return [Candidate(method, 1, _edit(base, leace(flat, labels)))]
    if method in ("pairs", "a-pairs"):
        wanted = (settings.rounds,) if settings.rounds else ROUNDS["pairs"]
        everything = np.concatenate([material.ordinary, flat]).astype(np.float64)
        pairs = erase_pairs(_differences(material), everything, max(wanted))
        mean = everything.mean(axis=0)
        return [Candidate(method, r, _edit(base, pairs.after(r).around(mean))) for r in wanted]
    classifier = settings.trained_classifier
    wanted = (settings.rounds,) if settings.rounds else ROUNDS[classifier]
    centre = np.zeros(flat.shape[1]) if settings.as_published else flat.mean(axis=0)
    null = inlp(flat - centre, labels, rounds=max(wanted), classifier=classifier)
    return [Candidate(method, r, _edit(base, null.after(r).around(centre))) for r in wanted]


def _differences(material: Material) -> Floats:
    """Return differences of matched states, without those of a neutral third group."""
    states = material.sets.astype(np.float64)
    sides = [i for i, g in enumerate(material.openings.groups) if g != "neutral"]
    pairs = [(a, b) for k, a in enumerate(sides) for b in sides[k + 1 :]]
    return np.concatenate([states[:, a] - states[:, b] for a, b in pairs])


def _edit(base: HeadEdit, removal: Removal) -> HeadEdit:
    left, right, offset = (
        np.asarray(a, np.float32) for a in (removal.left, removal.right, removal.offset)
    )
    return replace(base, left=left, right=right, offset=offset if removal.offset.any() else None)


def _alpha_rule(model: Any, settings: HeadMitigation) -> HeadEdit:
    """Return an edit without projection: rule, mixture and token sensitivities."""
    empty = np.zeros((1, 0), np.float32)
    mixture = "hidden" if settings.as_published else settings.mixture
    common: dict[str, Any] = {"mixture": mixture, "first_token_only": settings.first_token_only}
    if not settings.method.startswith("a-"):
        return HeadEdit(empty, empty, alpha=1.0, **common)
    if isinstance(settings.alpha, (int, float)):
        return HeadEdit(empty, empty, alpha=float(settings.alpha), **common)
    table = open_vectors(resolve_vectors(settings.vectors)) if settings.vectors else None
    found = tokens_of(
        model,
        settings.axis,
        vectors=table,
        components=settings.components,
        count=settings.tokens,
        released=settings.as_published,
    )
    rule = "released" if settings.as_published else "eq8"
    return HeadEdit(
        empty,
        empty,
        rule=rule,
        top=settings.top,
        sensitive=found.chosen,
        sensitivity=(found.cosine if rule == "released" else found.q).astype(np.float32),
        **common,
    )


def fit(
    model: Any, material: Material, settings: HeadMitigation, methods: Sequence[str] = ()
) -> FittedHead:
    """Fit the methods on the same states, choose the best setting within the limit, and judge it.

    Every setting is tried on the choosing half; the chosen one alone is measured on the other. A
    method without a setting within the limit is left out and named in `facts["left_out"]`.
    """
    bench = Bench(model, material.choosing, settings.seed)
    requested = settings.changed(method=",".join(methods)) if methods else settings
    asked = [requested.for_method(method) for method in requested.chosen_methods]
    points: list[Point] = []
    best: list[tuple[Point, Candidate, HeadMitigation]] = []
    left = {}
    for one in asked:
        tried = candidates(model, material, one)
        found = [p for candidate in tried for p in bench.judge(candidate, _alphas(one))]
        try:
            picked = _choose(found, one)
        except SpecError as error:
            left[one.method] = str(error)
            continue
        points += found
        best.append((picked, next(c for c in tried if c.rounds == picked.rounds), one))
    if not best:
        raise SpecError(" ".join(left.values()))
    within = [b for b in best if b[0].increase <= settings.max_perplexity_increase]
    picked, candidate, chosen = min(within or best, key=lambda b: (b[0].hellinger2, b[0].increase))
    (unchanged,) = bench.judge(candidate, (0.0,))
    every = [unchanged, *points]
    judge = Bench(model, material.judging, settings.seed)
    before, after = judge.judge(candidate, (0.0, picked.alpha), full=True)
    edit = candidate.edit
    if picked.alpha != "learned":
        fixed = float(picked.alpha)
        edit = replace(edit, rule="fixed", alpha=fixed, sensitivity=None, sensitive=None)
    gap, losses = judge.items(candidate, picked.alpha)
    reduced = fall(*gap, material.judging.terms, material.judging.prompts)
    facts = {
        "reduction": {k: getattr(reduced, k) for k in REDUCTION},
        "front": [p.as_dict() for p in pareto(every)],
        "area": area(every),
        "left_out": left,
        "text": material.source,
        "openings": len(material.openings.contexts),
        "chosen_on": len(material.choosing.first),
        "held_out_pairs": len(material.judging.first),
        "text_tokens": len(judge.rows),
        "settings": chosen.model_dump(mode="json"),
    }
    judged = OnOthers(gap, losses, material.judging, judge.rows)
    return FittedHead(
        chosen,
        model,
        facts,
        edit,
        after,
        before,
        tuple(points),
        material,
        requested,
        judged,
        unchanged,
    )


def _alphas(settings: HeadMitigation) -> tuple[float | str, ...]:
    if not settings.method.startswith("a-"):
        return (1.0,)
    if settings.alpha is not None:
        return (settings.alpha,)
    return (*ALPHAS[1:], "learned")


def _choose(points: list[Point], settings: HeadMitigation) -> Point:
    return points[0] if len(points) == 1 else pick(points, settings.max_perplexity_increase)


@dataclass(frozen=True)
class Openings:
    """Matched openings: `sets` [n][groups] of contexts that differ only in the group."""

    axis: str
    groups: tuple[str, ...]
    sets: tuple[tuple[str, ...], ...]

    @property
    def contexts(self) -> list[str]:
        return [context for row in self.sets for context in row]


def openings(axis: str, *, sets: int | None = None, seed: int = 0) -> Openings:
    """Return packaged openings of an axis: every frame with every matched set, or a draw.

    >>> found = openings("religion", sets=10)
    >>> found.groups, len(found.contexts)
    (('christian', 'jewish', 'muslim'), 30)
    """
    lexicon = load(LEXICON)
    if axis not in axes():
        raise SpecError(unknown("axis", axis, axes(), where="--axis"))
    table = lexicon.table("axes", axis)
    rows = [
        tuple(frame.replace("{person}", term) for term in terms)
        for frame in lexicon.words("frames")
        for terms in table["terms"]
    ]
    if sets is not None and sets < len(rows):
        keep = np.sort(np.random.default_rng(seed).choice(len(rows), sets, replace=False))
        rows = [rows[i] for i in keep]
    return Openings(axis, tuple(table["groups"]), tuple(rows))


def mined(texts: list[str], limit: int, seed: int = 0) -> Openings:
    """Cut openings from text, each with a version in which genders are swapped."""
    found = pairs_from_texts(texts, limit=limit, seed=seed)
    return Openings(
        "gender", ("original", "swapped"), tuple((p.text, p.swapped) for p in found.pairs)
    )


@dataclass(frozen=True)
class Pairs:
    """Contexts that differ in the group alone, and which terms and prompt each was made of."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    terms: npt.NDArray[np.int64]
    prompts: npt.NDArray[np.int64]


def held_out(axis: str, seed: int = 0) -> tuple[Pairs, Pairs]:
    """Return pairs to choose a setting on, and pairs to judge it on; they share no term or prompt.

    The prompts are the local ones of Liang et al., which no opening repeats; terms and prompts are
    drawn into halves with the seed.

    >>> choosing, judging = held_out("gender")
    >>> len(choosing.first), len(judging.first), set(choosing.prompts) & set(judging.prompts)
    (30, 30, set())
    """
    if axis not in axes():
        raise SpecError(unknown("axis", axis, axes(), where="--axis"))
    rows, texts = load(LEXICON).table("judged", axis)["terms"], prompts("local")
    rng = np.random.default_rng([seed, 17])
    halves = zip(*(np.array_split(rng.permutation(len(part)), 2) for part in (rows, texts)))
    one, two = (_crossed(rows, texts, np.sort(t), np.sort(p)) for t, p in halves)
    return one, two


def _crossed(
    rows: Sequence[Sequence[str]], texts: Sequence[str], terms: Ints, asked: Ints
) -> Pairs:
    found = [
        (texts[p].replace("{person}", a), texts[p].replace("{person}", b), int(t), int(p))
        for t in terms
        for p in asked
        for a, b in combinations(rows[t], 2)
    ]
    first, second, codes, numbers = zip(*found)
    return Pairs(first, second, np.asarray(codes), np.asarray(numbers))


def own_texts(model: Any, *, count: int = 80, tokens: int = 40, seed: int = 0) -> list[str]:
    """Let the model write texts from openings that name nobody."""
    starts = [STARTS[i % len(STARTS)] for i in range(count)]
    draws = [str(i) for i in range(count)]
    request = Generate(starts, draws, max_new_tokens=tokens, top_p=0.95, seed=seed)
    return [f"{start}{text}" for start, text in zip(starts, Ask(model)(request)["text"])]
