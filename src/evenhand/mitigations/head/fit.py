"""Mitigating a causal language model at its output head: INLP, LEACE, A-INLP, A-SUBSPACE.

    inlp        E P h: what is left after erasing the group, alpha = 1 (Liang et al. 2021, Eq. 6)
    leace       the same with LEACE
    a-inlp      a mixture of the model's own and the erased distribution (Eq. 7), with alpha fixed
                or learned per step (Eq. 8)
    a-subspace  the mixture with the bias subspace of the output embeddings taken out of E

All four are one low-rank edit of the head, so decoding costs one product more. `classifier`
chooses what an INLP round removes: "pairs" (default; see `pairs`), "lsq" or "svc" (the released
setting: LinearSVC on raw states, removed orthogonally).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import SpecError, unknown
from evenhand.mitigations.erasing.leace import leace
from evenhand.mitigations.erasing.nullspace import inlp
from evenhand.mitigations.erasing.pairs import erase_pairs
from evenhand.mitigations.head.openings import Openings, axes, held_out, mined, openings, own_texts
from evenhand.mitigations.head.subspace import SENSITIVE, model_subspace, tokens_of
from evenhand.mitigations.head.tradeoff import (
    ALPHAS,
    Bench,
    Candidate,
    Held,
    Point,
    area,
    pareto,
    pick,
    reduction,
)
from evenhand.models.edits.head import MIXTURES, HeadEdit
from evenhand.models.vectors.files import open_vectors, resolve_vectors

Floats = npt.NDArray[np.float64]
METHODS = ("inlp", "leace", "a-inlp", "a-subspace")
CLASSIFIERS = ("pairs", "lsq", "svc")
ROUNDS = {"pairs": (1, 2, 4, 8, 16, 32), "lsq": (5, 10, 20, 40), "svc": (5, 10, 20)}


@dataclass(frozen=True)
class Settings:
    """What to fit.

    Attributes:
        method, axis: which mitigation, for which groups.
        classifier: what a round of INLP removes.
        rounds: a number, or None to choose among several.
        alpha: a number in [0, 1], "learned", or None to choose among all.
        max_increase: how much perplexity may rise when something is chosen.
        mixture: "probability" (Eq. 7) or "hidden" (released code).
        as_published: released choices: svc, hidden mixture, released alpha rule, no centring.
        first_token_only: edit the first generated token only.
        sets: how many matched sets of openings to fit on.
        offset: keep the mean state in place; without it plain weights can be exported.
        components, top, tokens: of the bias subspace, of top-k, of the set S (Eq. 8).
        vectors: word vectors that the subspace is taken from; "" for the model's own embeddings.
    """

    method: str = "a-inlp"
    axis: str = "gender"
    classifier: str = "pairs"
    rounds: int | None = None
    alpha: float | str | None = None
    max_increase: float = 0.02
    mixture: str = "probability"
    as_published: bool = False
    first_token_only: bool = False
    sets: int = 240
    components: int | None = None
    top: int = 50
    tokens: int = SENSITIVE
    vectors: str = ""
    offset: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        names = (("method", METHODS), ("classifier", CLASSIFIERS), ("mixture", MIXTURES))
        for name, known in (*names, ("axis", axes())):
            if getattr(self, name) not in known:
                raise SpecError(unknown(name, getattr(self, name), known, where="mitigate"))
        alpha = self.alpha
        if isinstance(alpha, str) and alpha != "learned":
            raise SpecError(f"--alpha {alpha!r}: expected a number from 0 to 1, or 'learned'.")
        if isinstance(alpha, (int, float)) and not 0.0 <= float(alpha) <= 1.0:
            raise SpecError(f"--alpha '{alpha}': expected a number from 0 to 1, or 'learned'.")
        if not 0.0 <= self.max_increase < float("inf"):
            raise SpecError(
                f"--max-perplexity-increase '{self.max_increase}': expected a share of 0 or more, "
                "such as 2% or 0.02."
            )
        if self.rounds is not None and self.rounds < 1:
            raise SpecError(f"--rounds '{self.rounds}': expected 1 or more.")


@dataclass(frozen=True)
class Material:
    """States of a model, collected once: openings, ordinary text, held-out pairs."""

    openings: Openings
    sets: npt.NDArray[np.float32]
    ordinary: npt.NDArray[np.float32]
    held: Held
    prompts: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Fitted:
    """A mitigation, how it was chosen, and what it measured on held-out material."""

    edit: HeadEdit
    settings: Settings
    chosen: Point
    before: Point
    points: tuple[Point, ...]
    facts: dict[str, Any]


def collect(
    model: Any,
    settings: Settings,
    texts: list[str] | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> Material:
    """Ask the model for every state that fitting and judging need."""
    note("writing ordinary text" if texts is None else "reading ordinary text")
    source = "file" if texts is not None else "written by the model"
    passages = texts if texts is not None else own_texts(model, seed=settings.seed)
    found = openings(settings.axis, sets=settings.sets, seed=settings.seed)
    note(f"states of {len(found.contexts)} matched openings")
    states = model.last_states(found.contexts).reshape(len(found.sets), len(found.groups), -1)
    if texts is not None and settings.axis == "gender":
        extra = mined(texts, limit=settings.sets, seed=settings.seed)
        if extra.sets:
            note(f"states of {len(extra.contexts)} openings cut from the text")
            pairs = model.last_states(extra.contexts).reshape(len(extra.sets), 2, -1)
            middle = pairs.mean(axis=1, keepdims=True)
            states = np.concatenate([states, np.concatenate([pairs, middle], axis=1)])
    note("states of ordinary text and held-out pairs")
    h, targets, owners = model.text_states(passages)
    pairs = held_out(settings.axis)
    held = owners % 2 == 1  # every second text is kept back to judge on
    return Material(
        found,
        states,
        h[~held],
        Held(
            model.last_states([a for a, _ in pairs]),
            model.last_states([b for _, b in pairs]),
            h[held],
            targets[held],
            owners[held],
        ),
        tuple(a.split(" ", 2)[-1] if settings.axis == "gender" else a for a, _ in pairs),
        source,
    )


def candidates(model: Any, material: Material, settings: Settings) -> list[Candidate]:
    """The projections that the settings allow, smallest first."""
    found = _with_offsets(model, material, settings)
    if settings.offset:
        return found
    return [replace(c, edit=replace(c.edit, offset=None)) for c in found]


def _with_offsets(model: Any, material: Material, settings: Settings) -> list[Candidate]:
    base = _alpha_rule(model, settings)
    method = settings.method
    if method == "a-subspace":
        space = model_subspace(model, settings.axis, settings.components)
        return [Candidate(method, 0, _edit(base, space.basis, space.basis, None))]
    flat = material.sets.reshape(-1, material.sets.shape[-1]).astype(np.float64)
    labels = np.tile(np.arange(material.sets.shape[1]), len(material.sets))
    if method == "leace":
        found = leace(flat, labels)
        return [Candidate(method, 1, _edit(base, found.left, found.right, found.offset))]
    kind = "svc" if settings.as_published else settings.classifier
    wanted = (settings.rounds,) if settings.rounds else ROUNDS[kind]
    if kind == "pairs":
        everything = np.concatenate([material.ordinary, flat]).astype(np.float64)
        pairs = erase_pairs(_differences(material), everything, max(wanted))
        return [Candidate(method, r, _edit(base, *pairs.after(r))) for r in wanted]
    centre = np.zeros(flat.shape[1]) if settings.as_published else flat.mean(axis=0)
    null = inlp(flat - centre, labels, rounds=max(wanted), classifier=kind)
    return [
        Candidate(method, r, _edit(base, B, B, B @ (B.T @ centre) if centre.any() else None))
        for r in wanted
        for B in [null.after(r)]
    ]


def _differences(material: Material) -> Floats:
    """Differences of matched states; a neutral third group does not count as a side."""
    states = material.sets.astype(np.float64)
    sides = [i for i, g in enumerate(material.openings.groups) if g != "neutral"]
    pairs = [(a, b) for k, a in enumerate(sides) for b in sides[k + 1 :]]
    return np.concatenate([states[:, a] - states[:, b] for a, b in pairs])


def _edit(base: HeadEdit, left: Floats, right: Floats, offset: Floats | None) -> HeadEdit:
    return replace(
        base,
        left=np.asarray(left, np.float32),
        right=np.asarray(right, np.float32),
        offset=None if offset is None else np.asarray(offset, np.float32),
    )


def _alpha_rule(model: Any, settings: Settings) -> HeadEdit:
    """The edit without its projection: rule, mixture and token sensitivities."""
    empty = np.zeros((1, 0), np.float32)
    mixture = "hidden" if settings.as_published else settings.mixture
    common: dict[str, Any] = {"mixture": mixture, "first_token_only": settings.first_token_only}
    if not settings.method.startswith("a-"):
        return HeadEdit(empty, empty, alpha=1.0, **common)
    if isinstance(settings.alpha, (int, float)):
        return HeadEdit(empty, empty, alpha=float(settings.alpha), **common)
    table = open_vectors(resolve_vectors(settings.vectors)) if settings.vectors else None
    found = tokens_of(
        model, settings.axis, vectors=table, components=settings.components, count=settings.tokens,
        released=settings.as_published,
    )  # fmt: skip
    rule = "released" if settings.as_published else "eq8"
    return HeadEdit(
        empty, empty, rule=rule, top=settings.top, sensitive=found.chosen,
        sensitivity=(found.cosine if rule == "released" else found.q).astype(np.float32), **common,
    )  # fmt: skip


def fit_among(
    model: Any, material: Material, settings: Settings, methods: Sequence[str]
) -> Fitted:  # fmt: skip
    """Fit several methods on the same cached states and choose the best within the limit.

    A method without a setting within the limit is left out and named in `facts["left_out"]`.
    """
    bench = Bench(model, material.held, settings.seed)
    done, left = [], {}
    for method in methods:
        try:
            done.append(fit(model, material, replace(settings, method=method), bench))
        except SpecError as error:
            if method not in METHODS:
                raise
            left[method] = str(error)
    if not done:
        raise SpecError(" ".join(left.values()))
    within = [f for f in done if f.chosen.increase <= settings.max_increase]
    best = min(within or done, key=lambda f: (f.chosen.hellinger2, f.chosen.increase))
    points = tuple(p for f in done for p in f.points)
    every = [best.before, *points]
    front = [p.as_dict() for p in pareto(every)]
    facts = {**best.facts, "front": front, "area": area(every), "left_out": left}
    return replace(best, points=points, facts=facts)


def fit(
    model: Any, material: Material, settings: Settings, bench: Bench | None = None
) -> Fitted:  # fmt: skip
    """Fit the candidates, judge each at every alpha in one pass, and choose by constraint."""
    bench = bench or Bench(model, material.held, settings.seed)
    tried = candidates(model, material, settings)
    alphas = _alphas(settings)
    points = [p for candidate in tried for p in bench.judge(candidate, alphas)]
    before = bench.judge(tried[0], (0.0,), full=True)[0]
    free = settings.alpha is None or settings.rounds is None
    given = settings.alpha is not None and len(tried) == 1
    chosen = points[0] if given or not free else _choose(points, settings)
    candidate = next(c for c in tried if c.rounds == chosen.rounds)
    chosen = bench.judge(candidate, (chosen.alpha,), full=True)[0]
    edit = candidate.edit
    if chosen.alpha != "learned":
        edit = replace(
            edit, rule="fixed", alpha=float(chosen.alpha), sensitivity=None, sensitive=None
        )
    gap = bench.pair_values(None), bench.pair_values(candidate, chosen.alpha)
    facts = {
        "reduction": reduction(*gap, material.prompts, settings.seed),
        "front": [p.as_dict() for p in pareto([before, *points])],
        "area": area([before, *points]),
        "text": material.source,
        "openings": len(material.openings.contexts),
        "held_out_pairs": len(material.held.first),
        "text_tokens": len(bench.rows),
        "settings": asdict(settings),
    }
    return Fitted(edit, settings, chosen, before, tuple(points), facts)


def _alphas(settings: Settings) -> tuple[float | str, ...]:
    if not settings.method.startswith("a-"):
        return (1.0,)
    if settings.alpha is not None:
        return (settings.alpha,)
    return (*ALPHAS[1:], "learned")


def _choose(points: list[Point], settings: Settings) -> Point:
    return points[0] if len(points) == 1 else pick(points, settings.max_increase)
