"""Edit the hidden states of an encoder: INLP, LEACE and SentenceDebias on chosen layers.

    inlp       h' = h - B B'(h - mean), B the directions of rounds of classifiers (Ravfogel et al.
               2020), until a fresh classifier on other frames reads nothing
    leace      h' = h - W^+ Q W (h - mean) (Belrose et al. 2023), one step, least change
    sentence   h' = h - V V'(h - mean), V the first principal components of the differences between
               contexts that differ in the group alone (SentenceDebias, Liang et al. 2020)

Each is a map h' = h - L (R'h) + o of low rank, computed in float32 and returned in the model's own
precision. The maps run as forward hooks only while an answer is computed, so the unchanged model
keeps its scores although both share weights.

`as_published` follows Bias Bench (Meade et al. 2022): mean of the last layer's tokens, LinearSVC,
80 rounds, no mean kept in place. Layers are fitted in running order, each on states that the layers
before it have changed already. Only the training frames are used; fresh classifiers read the rest.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError, ModelError, SpecError
from evenhand.mitigations import saved
from evenhand.mitigations.base import Judgement, Measurements, Note, quiet
from evenhand.mitigations.erase_features import (
    Features,
    StopAtMajority,
    fresh_accuracy,
    majority,
    standardised_logistic,
)
from evenhand.mitigations.erasing import Floats, Removal, inlp, leace, pair_components
from evenhand.mitigations.hidden import KINDS
from evenhand.mitigations.hidden.axes import DEV, NEW, TEST, TRAIN, AxisData
from evenhand.mitigations.proof import JudgedByAudits
from evenhand.models.loading.saved import read_facts
from evenhand.models.protocol import Model
from evenhand.requests import Column, Requests
from evenhand.runs.finding import Finding

if TYPE_CHECKING:
    from evenhand.mitigations.hidden import HiddenMitigation

Array = npt.NDArray[Any]
ARRAYS = ("left", "right", "offset")
ROUNDS = 80
PATIENCE = 5
RIDGE = 0.05  # of the mean variance, for fewer examples than dimensions
STRONG = 1.0  # of the mean variance, for INLP: see `erasing.inlp`


@dataclass(frozen=True)
class LayerMap(Removal):
    """The map of the module at the path `layer` in the Hugging Face model, in float32."""

    layer: str = ""

    def __post_init__(self) -> None:
        d = len(self.offset)
        if self.left.ndim != 2 or self.left.shape != self.right.shape or len(self.left) != d:
            raise DataError(
                f"mitigation: layer {self.layer!r} has left {self.left.shape}, right "
                f"{self.right.shape} and offset {self.offset.shape}. Accepted: [d, rank] twice "
                "and [d]."
            )
        if not all(np.isfinite(a).all() for a in (self.left, self.right, self.offset)):
            raise DataError(f"mitigation: layer {self.layer!r} holds NaN or infinity.")


@dataclass(frozen=True)
class HiddenEdit:
    """Maps of one or more layers, in the order in which the model runs them."""

    maps: tuple[LayerMap, ...]

    @property
    def rank(self) -> int:
        return max((m.rank for m in self.maps), default=0)

    def digest(self) -> str:
        """SHA-256 of everything that can change a score."""
        state = hashlib.sha256()
        for part in self.maps:
            state.update(part.layer.encode())
            for array in (part.left, part.right, part.offset):
                state.update(repr(array.shape).encode())
                state.update(np.ascontiguousarray(array, np.float32).tobytes())
        return state.hexdigest()


def layer_names(model: Any) -> dict[str, str]:
    """Return the names of layers and the module path of each, in running order.

    `embeddings`, `layer.0` to `layer.N`, `last` (the same as the highest), and `pooler` where the
    checkpoint has one (what multiple-choice and classification heads read).
    """
    base = model.base_model
    paths = {id(module): path for path, module in model.named_modules()}
    depth = getattr(model.config, "num_hidden_layers", None)
    stacks = [
        m for m in base.modules() if type(m).__name__ == "ModuleList" and len(m) == depth and depth
    ]
    found: dict[str, str] = {}
    if getattr(base, "embeddings", None) is not None:
        found["embeddings"] = paths[id(base.embeddings)]
    if stacks:
        found |= {f"layer.{i}": paths[id(m)] for i, m in enumerate(stacks[0])}
        found["last"] = paths[id(stacks[0][-1])]
    pooler = getattr(base, "pooler", None)
    if pooler is not None:
        found["pooler"] = paths[id(pooler)]
    return found


def find_layers(model: Any, names: Sequence[str]) -> list[str]:
    """Return the module paths of the layers, each once, in running order.

    Raises:
        SpecError: no such layer; the message lists those there are.
    """
    known = layer_names(model)
    modules = [path for path, _ in model.named_modules() if path]
    chosen = []
    for name in names:
        if name == "all":
            chosen += [path for key, path in known.items() if key.startswith("layer.")]
        elif name in known:
            chosen.append(known[name])
        elif name in modules:
            chosen.append(name)
        else:
            raise SpecError(
                f"--layers: unknown layer {name!r}. Layers of this model: {', '.join(known)}; "
                "'all' for every numbered one, or the path of a module."
            )
    if not chosen:
        raise SpecError(f"--layers: none given. Layers of this model: {', '.join(known)}.")
    return sorted(set(chosen), key=modules.index)


def _passed_on(name: str) -> Any:
    """Return a property that reads and sets the attribute of the model below."""
    return property(lambda me: getattr(me.base, name), lambda me, v: setattr(me.base, name, v))


class EditedModel(Model):
    """A model whose hidden states pass through maps; everything else is the base's.

    It answers the same requests, has a fingerprint of its own, and can carry further edits. What
    the runner needs (`Model`) is passed on here by name; whatever else an adapter has, as it is.
    """

    recipe = None

    def __init__(self, base: Any, edit: HiddenEdit, name: str = "") -> None:
        digest = f"hidden:{edit.digest()}"
        if digest in base.mitigations:
            raise ModelError(
                f"model {base.name!r} carries this mitigation already; a second time it changes "
                "nothing. Fit one on the mitigated model instead with: evenhand mitigate FOLDER"
            )
        if base.kind not in KINDS:
            raise ModelError(
                f"model {base.name!r} is of kind {base.kind!r}. Accepted: {', '.join(KINDS)}."
            )
        self.base, self.edit = base, edit
        self.name = name or f"{base.name} (mitigated)"
        self.mitigations = (*base.mitigations, digest)
        self.kind, self.answers = base.kind, base.answers
        self.device, self.dtype = base.device, base.dtype
        self._ready = [(m, self._tensors(m)) for m in edit.maps]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "base":
            raise AttributeError(name)
        return getattr(self.base, name)

    token_budget, overlaps, alternates, threads, release, count_tokens, prepare = map(
        _passed_on,
        ("token_budget", "overlaps", "alternates", "threads", "release", "count_tokens", "prepare"),
    )

    @property
    def fingerprint(self) -> str:
        parts = "|".join((self.base.fingerprint, self.mitigations[-1]))
        return hashlib.sha256(parts.encode()).hexdigest()

    def describe(self) -> dict[str, Any]:
        return {**self.base.describe(), "name": self.name, "mitigations": list(self.mitigations)}

    def begin(self, requests: Requests, prepared: Any) -> Callable[[], dict[str, Column]]:
        """Start answering; every forward pass is queued before the maps are taken off again."""
        with self.changed():
            begun: Callable[[], dict[str, Column]] = self.base.begin(requests, prepared)
        return begun

    def answer(self, requests: Requests, prepared: Any) -> dict[str, Column]:
        return self.begin(requests, prepared)()

    @contextlib.contextmanager
    def changed(self) -> Iterator[None]:
        """Let the Hugging Face model below give this model's states inside the context."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.base.changed())
            for part, tensors in self._ready:
                module = self.model.get_submodule(part.layer)
                handle = module.register_forward_hook(_hook(*tensors))
                stack.callback(handle.remove)
            yield

    def _tensors(self, part: LayerMap) -> tuple[Any, Any, Any]:
        torch = self.base.torch
        try:
            self.base.model.get_submodule(part.layer)
        except AttributeError:
            names = ", ".join(layer_names(self.base.model))
            raise ModelError(
                f"model {self.base.name!r} has no module {part.layer!r}. Layers of this model: "
                f"{names}."
            ) from None
        width = width_of(self.base)
        if len(part.left) != width:
            raise ModelError(
                f"mitigation: fitted for states of width {len(part.left)}, model "
                f"{self.base.name!r} has {width}. Fit one for it with: evenhand mitigate MODEL"
            )
        arrays = (part.left.T.copy(), part.right, part.offset)
        left, right, offset = (
            torch.as_tensor(np.array(a), device=self.base.device) for a in arrays
        )
        return left, right, offset


def width_of(model: Any) -> int:
    """Return the width of a model's hidden states."""
    config = model.model.config
    return int(getattr(config, "hidden_size", None) or config.dim)


def _hook(left: Any, right: Any, offset: Any) -> Any:
    """Return a hook for x - (x R) L' + o, in float32, rounded to the incoming precision."""

    def change(module: Any, inputs: Any, output: Any) -> Any:
        hidden = states_of(output)
        exact = hidden.float()
        moved = (exact - (exact @ right) @ left + offset).to(hidden.dtype)
        if isinstance(output, tuple):
            return (moved, *output[1:])
        if type(moved) is type(output):
            return moved
        output["last_hidden_state"] = moved
        return output

    return change


def states_of(output: Any) -> Any:
    """Return the hidden states in the output of a module."""
    if isinstance(output, tuple):
        return output[0]
    return output["last_hidden_state"] if hasattr(output, "keys") else output


def layer_states(
    model: Any, layer: str, first: Sequence[str], second: Sequence[str] | None, pool: str
) -> npt.NDArray[np.float32]:
    """Return a layer's states after texts (or pairs of texts): float32 [texts, d].

    The adapter's own edits are in force; `pool` takes the "first" token, or the "mean" of all.
    """
    torch = model.torch
    encoded = model.encode_texts(first, second)
    out: list[Any] = [None] * len(first)
    seen: list[Any] = []
    with torch.inference_mode(), model.changed():
        module = model.model.get_submodule(layer)
        handle = module.register_forward_hook(lambda m, i, o: seen.append(states_of(o)))
        try:
            for rows, tensors in model.batches(encoded):
                seen.clear()
                model.model.base_model(**tensors)
                for row, value in zip(rows, _pooled(seen[-1].float(), tensors, pool)):
                    out[row] = value
        finally:
            handle.remove()
    states = np.stack(out) if out else np.zeros((0, width_of(model)), np.float32)
    if not np.isfinite(states).all():
        raise ModelError(
            f"model {model.name!r}: hidden states hold NaN or infinity in {model.dtype}. Load it "
            "in another precision with: --dtype float32"
        )
    return states


def _pooled(states: Any, tensors: dict[str, Any], pool: str) -> Any:
    """Pool the states into one vector per row of the batch."""
    if states.ndim == 2:  # a pooler's output: one vector a text already
        return states.cpu().numpy()
    if pool == "first":
        return states[:, 0].cpu().numpy()
    weight = tensors["attention_mask"][..., None].float()
    return ((states * weight).sum(1) / weight.sum(1).clamp_min(1)).cpu().numpy()


@dataclass(frozen=True)
class FittedHidden(JudgedByAudits):
    """Maps of hidden states; `facts` hold what fresh classifiers read before and after."""

    edit: HiddenEdit

    def applied(self, model: Model) -> Model:
        return EditedModel(model, self.edit, self.title)

    def save(self, folder: str | Path) -> None:
        """Write the maps, layer by layer, with their digests."""
        maps = self.edit.maps
        arrays = {
            f"{i}.{name}": np.asarray(getattr(m, name), np.float32)
            for i, m in enumerate(maps)
            for name in ARRAYS
        }
        edit = {
            "layers": [m.layer for m in maps],
            "ranks": [m.rank for m in maps],
            "sha256": self.edit.digest(),
        }
        about = {"width": width_of(self.base)}
        saved.write(Path(folder), self, {**self.facts, "edit": edit}, arrays, about=about)

    def told(self) -> dict[str, Any]:
        return {"readers": self.facts["readers"]}


def report(found: Judgement, measurements: Measurements, label: str) -> Judgement:
    """Add what classifiers read of the groups to the judgement of audited families."""
    rows = measurements.facts["readers"]
    read_off = [_readable(row, measurements, label) for row in rows]
    return replace(
        found,
        findings=[*read_off, *found.findings],
        tables={"readers": rows, **found.tables},
        sure=(*(f.sentence for f in read_off), *found.sure),
    )


def _readable(row: Mapping[str, Any], measurements: Measurements, label: str) -> Finding:
    where, axis = str(row["layer"]), Path(measurements.facts["settings"]["axis"]).name
    low, high = chance_interval(row["test_after"], row["test_n"])
    return Finding(
        id=f"{label}/readable/{where}",
        probe=label,
        metric="readable",
        value=row["test_after"],
        ideal=row["test_chance"],
        floor=row["test_chance_high"],
        low=low,
        high=high,
        n=row["test_n"],
        attribute=axis,
        model=measurements.model,
        sentence=(
            f"A fresh classifier reads {axis} off {where} in {100 * row['test_before']:.0f} % of "
            f"held-out texts before, {100 * row['test_after']:.0f} % after (chance "
            f"{100 * row['test_chance']:.0f} %); fitted on such texts itself, in "
            f"{100 * row['relearned_after']:.0f} %."
        ),
        method="logistic classifier on held-out frames; binomial range; floor: chance's end",
    )


def load(folder: Path, base: Any) -> EditedModel:
    """Return the mitigated form of the model that a folder was fitted for; refuse any other."""
    facts = read_facts(folder)
    saved.check_base(folder, facts, base, width_of(base))
    edit, _ = saved.rebuild(folder, facts, _edit)
    return EditedModel(base, edit, saved.name_of(facts, base))


def _edit(settings: Mapping[str, Any], arrays: saved.Arrays) -> HiddenEdit:
    maps = (
        _layer_map(layer, *(arrays[f"{i}.{name}"] for name in ARRAYS))
        for i, layer in enumerate(settings["layers"])
    )
    return HiddenEdit(tuple(maps))


def fit(model: Any, data: AxisData, settings: HiddenMitigation, note: Note = quiet) -> FittedHidden:
    """Fit the maps layer by layer; fresh classifiers read held-out frames and terms."""
    pool = settings.pool or _default_pool(model, settings.as_published)
    pairs = model.kind == "choice"
    first = data.firsts() if pairs else list(data.texts)
    second = data.seconds() if pairs else None
    maps: list[LayerMap] = []
    readers: list[dict[str, Any]] = []
    notes: list[str] = []
    for layer in find_layers(model.model, settings.layers):
        note(f"states of {layer} after {len(data)} texts")
        current = EditedModel(model, HiddenEdit(tuple(maps))) if maps else model
        states = layer_states(current, layer, first, second, pool).astype(np.float64)
        made, said = fit_layer(states, data, settings, layer)
        maps.append(made)
        notes += [text for text in said if text not in notes]
        readers.append(read(states, made, data, settings.seed))
    if any(m.startswith("hidden:") for m in model.mitigations):
        notes.append(
            f"{model.name!r} carries a mitigation of hidden states already; this one was fitted "
            "on what that one left and is applied after it."
        )
    facts = {
        "readers": readers,
        "notes": notes,
        "settings": settings.model_dump(mode="json"),
        "pool": pool,
        "parts": data.counts(),
        "source": data.source,
        "groups": list(data.groups),
        "fitted_on": sorted({t for t, part in zip(data.terms, data.part) if part < TEST and t}),
    }
    return FittedHidden(settings, model, facts, HiddenEdit(tuple(maps)))


def _default_pool(model: Any, as_published: bool) -> str:
    """Return what the head reads: the first token for choices and classes, else all tokens."""
    if as_published:
        return "mean"
    own = getattr(model, "head", None)
    if own is not None:
        return str(own.pool)
    return "first" if model.kind in ("choice", "classifier") else "mean"


def fit_layer(
    states: Floats, data: AxisData, settings: HiddenMitigation, layer: str
) -> tuple[LayerMap, list[str]]:
    """Fit the map of one layer on the training rows of the states."""
    at = data.part == TRAIN
    X, y = states[at], data.labels[at]
    notes = []
    few = len(X) <= X.shape[1]
    if few:
        notes.append(
            f"{len(X)} training texts for {X.shape[1]} dimensions: the covariance is regularised "
            f"(ridge of {RIDGE:g} of the mean variance), so the change is not the least possible "
            "and held-out texts may still be read. Give more texts, or more frames."
        )
    mean = np.zeros(X.shape[1]) if settings.as_published else X.mean(axis=0)
    if settings.method == "leace":
        removal = leace(X, y, ridge=RIDGE if few else 0.0)
    else:
        if settings.method == "inlp":
            removal, said = _nullspace(states - mean, data, settings)
        else:
            removal, said = _subspace(X, data, settings)
        removal = removal.around(mean)
        notes += said
    arrays = [np.ascontiguousarray(getattr(removal, name), np.float32) for name in ARRAYS]
    return _layer_map(layer, *arrays), notes


def _layer_map(layer: str, left: Array, right: Array, offset: Array) -> LayerMap:
    return LayerMap(left, right, offset, layer=layer)


def _nullspace(
    centred: Floats, data: AxisData, settings: HiddenMitigation
) -> tuple[Removal, list[str]]:
    at = data.part == TRAIN
    fixed = settings.as_published or settings.rounds is not None
    rounds = settings.rounds or ROUNDS
    rows = Features(centred, data.labels, data.part)
    stop = None if fixed else StopAtMajority(rows, DEV, standardised_logistic, PATIENCE)
    kind = "svc" if settings.as_published else settings.classifier
    found = inlp(
        centred[at], data.labels[at], rounds=rounds, classifier=kind, ridge=STRONG, stop=stop
    )
    unmet = "" if fixed else "classifiers on other frames were not at chance for 5 rounds on end"
    return found, [f"INLP: {len(found.rounds)} rounds. {found.reason or unmet}".strip()]


def _subspace(X: Floats, data: AxisData, settings: HiddenMitigation) -> tuple[Removal, list[str]]:
    at = data.part == TRAIN
    sets = data.sets[at]
    if (sets < 0).all():
        raise DataError(
            f"--axis {data.axis!r}: method 'sentence' needs texts in matched sets (word sets or "
            "pairs); these texts stand alone. Use the method leace or inlp"
        )
    wanted = settings.components or len(data.groups) - 1
    basis, share = pair_components(X, sets, wanted)
    return Removal.of_basis(basis), [
        f"sentence: {wanted} component(s) explain {100 * share.sum():.0f} % of the differences "
        f"within {len(np.unique(sets[sets >= 0]))} matched sets."
    ]


def read(states: Floats, made: LayerMap, data: AxisData, seed: int) -> dict[str, Any]:
    """Return how well classifiers read the axis before and after a map.

    `test` rows stand in held-out frames, `new` rows hold terms never fitted on as well.
    `relearned` is one fitted on held-out rows themselves (five folds over frames): what
    somebody could still find who fits on other texts than the mitigation did.
    """
    after = made(states)
    change = np.square(after - states).sum(axis=1).mean()
    spread = np.square(states - states.mean(axis=0)).sum(axis=1).mean()
    row: dict[str, Any] = {"layer": made.layer, "rank": made.rank, "dimensions": states.shape[1]}
    stages = [
        (k, Features(X, data.labels, data.part)) for k, X in (("before", states), ("after", after))
    ]
    for name, part in (("test", TEST), ("new", NEW)):
        rows = row[f"{name}_n"] = int((data.part == part).sum())
        row |= {f"{name}_{k}": fresh_accuracy(of, part, standardised_logistic) for k, of in stages}
        chance = row[f"{name}_chance"] = majority(stages[0][1], part) if rows else float("nan")
        row[f"{name}_chance_low"], row[f"{name}_chance_high"] = chance_interval(chance, rows)
    row |= {f"relearned_{k}": relearned(of.X, data, seed) for k, of in stages}
    row["change"] = float(change / spread) if spread > 0 else float("nan")
    return row


def chance_interval(chance: float, n: int) -> tuple[float, float]:
    """Return the range of 95 % of accuracies over n independent rows if nothing is read (binomial).

    Rows of one frame resemble each other, so the true range is wider, never narrower.

    >>> low, high = chance_interval(0.5, 280)
    >>> round(low, 3), round(high, 3)
    (0.443, 0.557)
    """
    from scipy.stats import binom

    if not n:
        return float("nan"), float("nan")
    low, high = binom.ppf([0.025, 0.975], n, chance) / n
    return float(low), float(high)


def relearned(states: Floats, data: AxisData, seed: int) -> float:
    """Return the cross-validated accuracy on held-out rows themselves, frames kept apart."""
    from sklearn.linear_model import RidgeClassifier
    from sklearn.model_selection import GroupKFold
    from sklearn.preprocessing import StandardScaler

    at = np.flatnonzero(data.part >= TEST)
    frames = np.unique(np.asarray(data.frames)[at], return_inverse=True)[1]
    folds = min(5, int(frames.max(initial=0)) + 1)
    if folds < 2 or len(np.unique(data.labels[at])) < 2:
        return float("nan")
    X, y = StandardScaler().fit_transform(states[at]), data.labels[at]
    hits = np.zeros(len(at), bool)
    for train, test in GroupKFold(folds, shuffle=True, random_state=seed).split(X, y, frames):
        made = RidgeClassifier(alpha=float(X.shape[1])).fit(X[train], y[train])
        hits[test] = made.predict(X[test]) == y[test]
    return float(hits.mean())
