"""Hate-speech detection on frozen word vectors: the CNN-static of Kim 2014.

    c_h(t) = relu(sum_j W_hj x_(t+j) + b_h),  h = 3, 4, 5, 100 filters each
    z      = [max_t c_3, max_t c_4, max_t c_5], dropout 0.5;  P = softmax(V z + v)
    rows of V are rescaled to length 3 after a step; Adadelta (rho 0.95), batches of 50; training
    stops at the first epoch whose validation loss does not fall and keeps the one before.

Sound by default: windows that reach into padding never win the maximum, so a prediction does not
depend on the texts beside it (a text shorter than a filter is extended with zeros to one window).
`as_published` lets padding take part, to the longest text of the batch, and keeps raw vectors.

Speed: vectors are frozen, so W x is computed once per distinct word of a batch, then added up by
position: about a third of the products of a convolution, and no gradient of the input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from evenhand.errors import DataError, ModelError, need
from evenhand.metrics.gaps import GroupGaps, group_gaps
from evenhand.models.vectors.files import VectorTable
from evenhand.train import common
from evenhand.train.hate_speech_data import Tweets
from evenhand.writing import write_csv

HEIGHTS = (3, 4, 5)
FORMAT = 1
FACTS = "evenhand-hate-speech.json"
WEIGHTS = "hate-speech.safetensors"
SPREAD = 0.25
UNKNOWN = "<UNK>"


class HateSpeechTraining(common.Training):
    """Settings; the defaults are Kim's, with sound padding and vectors brought to one scale."""

    filters: int = Field(default=100, ge=1)
    batch: int = Field(default=50, ge=1)
    epochs: int = Field(default=25, ge=1)
    dropout: float = Field(default=0.5, ge=0, lt=1)
    longest_row: float = Field(default=3.0, gt=0)
    min_count: int = Field(default=10, ge=1)
    as_published: bool = Field(default=False, description="Padding takes part, raw vectors.")


@dataclass
class HateSpeechModel:
    """A trained detector. `probabilities(tokens)` gives P(hateful) of each text."""

    weights: dict[str, Any]
    vectors: VectorTable
    scale: float
    extra: dict[str, int]
    recipe: HateSpeechTraining
    card: dict[str, Any] = field(default_factory=dict)

    def probabilities(self, tokens: Sequence[Sequence[str]]) -> npt.NDArray[np.float64]:
        """P(hateful) per text; equal for a text alone and among others."""
        torch: Any = need("torch", extra="hf", what="hate-speech detection")
        numbers, table = _encode(tokens, self.vectors, self.extra, self._rows(), self.scale)
        rows = torch.from_numpy(table)
        out = np.zeros(len(numbers))
        with torch.inference_mode():
            for at in _batches(numbers, self.recipe.batch * 4):
                chosen = [numbers[i] for i in at]
                logits = _forward(torch, self.weights, rows, chosen, self.recipe, 0.0)
                out[at] = logits.softmax(-1)[:, 1].double().numpy()
        return out

    def predict(self, tokens: Sequence[Sequence[str]]) -> npt.NDArray[np.int64]:
        """1 where P(hateful) is above one half."""
        return (self.probabilities(tokens) > 0.5).astype(np.int64)

    def _rows(self) -> npt.NDArray[np.float32]:
        return np.asarray(self.weights["extra"].numpy(), np.float32)

    def save(self, out: Path) -> None:
        """Write weights and provenance into a new folder; vectors are only named."""
        facts = {
            "format": FORMAT,
            "scale": self.scale,
            "dimensions": self.vectors.dimensions,
            "extra": list(self.extra),
            "recipe": self.recipe.model_dump(),
            **self.card,
        }
        common.save_network(out, FACTS, WEIGHTS, facts, self.weights)


def load_hate_speech(folder: str | Path, vectors: VectorTable) -> HateSpeechModel:
    """A saved detector with the vectors it was trained on; nothing is unpickled."""
    folder = Path(folder)
    facts, weights = common.read_saved(
        folder, FACTS, WEIGHTS, FORMAT, "hate-speech", "evenhand train hate-speech"
    )
    if (wanted := facts.pop("dimensions")) != vectors.dimensions:
        raise ModelError(
            f"{folder}: trained on {wanted}-dimensional vectors, but {vectors.source} has "
            f"{vectors.dimensions}. Pass the vectors used in training ({facts.get('vectors')})."
        )
    extra = {word: k for k, word in enumerate(facts.pop("extra"))}
    recipe, scale = HateSpeechTraining(**facts.pop("recipe")), facts.pop("scale")
    return HateSpeechModel(weights, vectors, scale, extra, recipe, facts)


def train_hate_speech(
    vectors: VectorTable,
    train: Tweets,
    dev: Tweets,
    seed: int = 0,
    *,
    recipe: HateSpeechTraining | None = None,
    say: common.Say = common.quiet,
) -> HateSpeechModel:
    """Train a detector on frozen vectors, on the CPU.

    Words without a vector that occur `min_count` times in training get a random one of the
    vectors' own variance, U(-a, a) with a = sqrt(3 var); all others share one, <UNK>.

    Args:
        train: texts with both classes.
        dev: texts whose loss decides when to stop.
        seed: of initial weights, order, dropout and random vectors.
    """
    recipe = recipe or HateSpeechTraining()
    for name, part in (("training", train), ("development", dev)):
        if len(set(part.labels.tolist())) < 2:
            raise DataError(
                f"{name} texts: {len(part)} of one class only. Both classes are needed."
            )
    torch, _ = common.start(seed, "cpu")
    model = _start(torch, vectors, train, seed, recipe)
    history = _fit(torch, model, train, dev, seed, say)
    known = _coverage(model, dev)
    model.card = {
        "task": "hate-speech",
        "vectors": vectors.source,
        "seed": seed,
        "history": history,
        "train_texts": len(train),
        "dev_texts": len(dev),
        "dev_tokens_with_vector": known,
    }
    return model


def _start(
    torch: Any, vectors: VectorTable, train: Tweets, seed: int, recipe: HateSpeechTraining
) -> HateSpeechModel:
    """Random weights, and random vectors for frequent words that have none."""
    counts = Counter(token for tokens in train.tokens for token in tokens)
    known = [w for w in counts if w in vectors.index]
    if not known:
        raise DataError(
            f"{vectors.source}: none of the {len(counts)} words of the training texts has a "
            "vector. Check the language and the case of the vocabulary."
        )
    rows = np.asarray(vectors.matrix[[vectors.index[w] for w in known]], np.float32)
    spread = float(np.sqrt(np.mean(rows**2)))
    scale = 1.0 if recipe.as_published else spread / SPREAD
    often = sorted(w for w, n in counts.items() if n >= recipe.min_count and w not in vectors.index)
    extra = {word: k for k, word in enumerate([UNKNOWN, *(w for w in often if w != UNKNOWN)])}
    edge = np.sqrt(3 * float(np.var(rows / scale)))
    rng = np.random.default_rng([seed, 11])
    made = rng.uniform(-edge, edge, (len(extra), vectors.dimensions)).astype(np.float32)
    if UNKNOWN in vectors.index:
        made[0] = np.asarray(vectors.matrix[vectors.index[UNKNOWN]], np.float32) / scale
    f, d = recipe.filters, vectors.dimensions

    def uniform(size: tuple[int, ...], reach: float) -> Any:
        return torch.empty(*size).uniform_(-reach, reach)

    blocks = [uniform((d, f), (1 / (d * h)) ** 0.5) for h in HEIGHTS for _ in range(h)]
    weights = {
        "filters": torch.cat(blocks, 1),
        "bias": torch.zeros(len(HEIGHTS) * f),
        "out": uniform((2, len(HEIGHTS) * f), (1 / (len(HEIGHTS) * f)) ** 0.5),
        "out_bias": torch.zeros(2),
        "extra": torch.from_numpy(made),
    }
    return HateSpeechModel(weights, vectors, scale, extra, recipe)


def _encode(
    tokens: Sequence[Sequence[str]],
    vectors: VectorTable,
    extra: dict[str, int],
    made: npt.NDArray[np.float32],
    scale: float,
) -> tuple[list[npt.NDArray[np.int64]], npt.NDArray[np.float32]]:
    """Word numbers of each text and the table of their vectors; row 0 is zeros (padding)."""
    numbers: dict[str, int] = {}
    coded = [
        np.asarray([numbers.setdefault(t, len(numbers) + 1) for t in text], np.int64)
        for text in tokens
    ]
    table = np.zeros((len(numbers) + 1, vectors.dimensions), np.float32)
    at = np.asarray([vectors.index.get(w, -1) for w in numbers], np.int64)
    known = np.flatnonzero(at >= 0)
    table[known + 1] = np.nan_to_num(np.asarray(vectors.matrix[at[known]], np.float32)) / scale
    unknown = np.flatnonzero(at < 0)
    words = list(numbers)
    table[unknown + 1] = made[[extra.get(words[k], 0) for k in unknown]]
    return coded, table


def _batches(
    numbers: Sequence[npt.NDArray[np.int64]], size: int, rng: Any = None
) -> list[npt.NDArray[np.int64]]:
    """Rows of texts of like length; with `rng` ties and the order of batches are shuffled."""
    lengths = np.asarray([len(n) for n in numbers], np.float64)
    noise = np.zeros(len(lengths)) if rng is None else rng.uniform(-1.5, 1.5, len(lengths))
    order = np.argsort(lengths + noise, kind="stable")
    made = [order[low : low + size] for low in range(0, len(order), size)]
    return made if rng is None else [made[k] for k in rng.permutation(len(made))]


def _forward(
    torch: Any,
    weights: dict[str, Any],
    rows: Any,
    chosen: Sequence[npt.NDArray[np.int64]],
    recipe: HateSpeechTraining,
    drop: float,
) -> Any:
    """Logits [texts, 2]."""
    lengths = torch.tensor([len(c) for c in chosen])
    wide = max(HEIGHTS[-1], int(lengths.max()))
    grid = np.zeros((len(chosen), wide), np.int64)
    for row, coded in enumerate(chosen):
        grid[row, : len(coded)] = coded
    types, places = np.unique(grid, return_inverse=True)
    parts = rows[torch.from_numpy(types)] @ weights["filters"]
    laid = parts.index_select(0, torch.from_numpy(places.ravel())).view(*grid.shape, -1)
    f, best = recipe.filters, []
    blocks = iter(laid.split(f, -1))
    for number, height in enumerate(HEIGHTS):
        steps = wide - height + 1
        total = weights["bias"][number * f : (number + 1) * f]
        for shift in range(height):
            total = total + next(blocks)[:, shift : shift + steps]
        if not recipe.as_published:
            inside = torch.arange(steps) <= (lengths[:, None] - height).clamp_min(0)
            total = total.masked_fill(~inside[..., None], -1e9)
        best.append(total.amax(1).relu())
    hidden = torch.nn.functional.dropout(torch.cat(best, 1), drop, drop > 0)
    return hidden @ weights["out"].T + weights["out_bias"]


def _fit(
    torch: Any,
    model: HateSpeechModel,
    train: Tweets,
    dev: Tweets,
    seed: int,
    say: common.Say,
) -> list[dict[str, float]]:
    recipe, weights = model.recipe, model.weights
    learned = [weights[k].requires_grad_() for k in ("filters", "bias", "out", "out_bias")]
    optimizer = torch.optim.Adadelta(learned, lr=1.0, rho=0.95, eps=1e-6)
    numbers, table = _encode(train.tokens, model.vectors, model.extra, model._rows(), model.scale)
    rows, labels = torch.from_numpy(table), torch.from_numpy(train.labels)
    history: list[dict[str, float]] = []
    kept = {k: v.detach().clone() for k, v in weights.items()}
    for epoch in range(recipe.epochs):
        total = 0.0
        for at in _batches(numbers, recipe.batch, np.random.default_rng([seed, epoch])):
            chosen = [numbers[i] for i in at]
            logits = _forward(torch, weights, rows, chosen, recipe, recipe.dropout)
            loss = torch.nn.functional.cross_entropy(logits, labels[at])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                length = weights["out"].norm(dim=1, keepdim=True)
                weights["out"] *= (recipe.longest_row / length).clamp_max(1)
            total += float(loss.detach()) * len(at)
        found = {"loss": total / len(train), "dev_loss": _loss(model, dev)}
        say(f"epoch {epoch + 1}: loss {found['loss']:.4f}, dev loss {found['dev_loss']:.4f}")
        if history and found["dev_loss"] >= history[-1]["dev_loss"]:
            break
        history.append(found)
        kept = {k: v.detach().clone() for k, v in weights.items()}
    model.weights = kept
    return history


def _loss(model: HateSpeechModel, tweets: Tweets) -> float:
    found = np.clip(model.probabilities(tweets.tokens), 1e-7, 1 - 1e-7)
    return float(-np.mean(np.where(tweets.labels > 0, np.log(found), np.log(1 - found))))


def _coverage(model: HateSpeechModel, tweets: Tweets) -> float:
    tokens = [t for text in tweets.tokens for t in text]
    return sum(t in model.vectors.index for t in tokens) / max(1, len(tokens))


def hate_speech_gaps(
    model: HateSpeechModel,
    test: Tweets,
    groups: Sequence[str] | None = None,
    first: str = "male",
    second: str = "female",
    *,
    resamples: int = 2_000,
    seed: int = 0,
) -> GroupGaps:
    """Rates on all texts and gaps between two groups, with intervals and p (`metrics.gaps`).

    Args:
        model: a detector with `predict(tokens)`.
        groups: the group of each text (default: those of `test`).
        first: the gap is rate(first) - rate(second), e.g. male - female, white - African American.
    """
    names = tuple(groups) if groups is not None else test.groups
    said = model.predict(test.tokens)
    return group_gaps(test.labels, said, names, first, second, resamples=resamples, seed=seed)


def write_predictions(
    model: HateSpeechModel, test: Tweets, gender: Sequence[str], path: Path
) -> None:
    """A table for `evenhand measure gaps`: label, predicted, probability, group, gender_terms."""
    found = model.probabilities(test.tokens)
    names = test.groups or gender
    rows = (
        (int(label), int(chance > 0.5), f"{chance:.6f}", group, terms)
        for label, chance, group, terms in zip(test.labels, found, names, gender)
    )
    write_csv(path, ("label", "predicted", "probability", "group", "gender_terms"), rows)
