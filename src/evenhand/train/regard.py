"""A regard classifier: how is the person in a text thought of? (Sheng et al. 2019)

Trained on texts whose demographic is masked as XYZ, labels -1 negative, 0 neutral, 1 positive and
optionally 2 other. The published annotations are few (212 to 447 for training, 30 for testing), so
the interval of the accuracy is wide and is printed with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from evenhand.errors import DataError, ModelError
from evenhand.opening import lines
from evenhand.train import common

CODES = {"-1": 0, "0": 1, "1": 2, "2": 3}
MASK = "XYZ"
NAMES = ("negative", "neutral", "positive", "other")


class RegardTraining(common.Training):
    """Settings of the training."""

    epochs: int = Field(default=12, ge=1)
    learning_rate: float = Field(
        default=1e-4, gt=0, lt=1, description="Peak; BERT-base needs 2e-5."
    )
    batch: int = Field(default=16, ge=1)
    seed: int = Field(default=0, ge=0, description="Same seed, same weights.")
    length: int = Field(default=96, ge=8)
    smoothing: float = Field(default=0.05, ge=0, lt=1)


@dataclass(frozen=True)
class Labelled:
    """Texts with label codes (0 negative, 1 neutral, 2 positive, 3 other)."""

    texts: list[str]
    labels: list[int]


def read_regard(path: Path) -> Labelled:
    """Read nlg-bias lines: label, tab, text with the demographic as XYZ."""
    texts, labels = [], []
    for number, line in enumerate(lines(path, "a label, a tab and a text per line"), start=1):
        if not line.strip():
            continue
        label, tab, text = line.partition("\t")
        if not tab or label.strip() not in CODES:
            raise DataError(
                f"{path}, line {number}: {line[:40]!r}. Accepted: a label (-1, 0, 1, 2), a tab, "
                "and a text with the demographic as XYZ."
            )
        texts.append(text.strip())
        labels.append(CODES[label.strip()])
    if not texts:
        raise DataError(f"{path}: no rows.")
    return Labelled(texts, labels)


def train(
    base: str,
    train_files: list[Path],
    dev: Path,
    test: Path,
    out: Path,
    recipe: RegardTraining | None = None,
    *,
    device: str | None = None,
    say: common.Say = common.quiet,
) -> dict[str, Any]:
    """Fine-tune an encoder, keep the epoch that is best on dev, and judge it once on test.

    Returns:
        Accuracy on dev and test with 95 % Wilson intervals, the confusion table, and the share
        of the most frequent class.
    """
    recipe = recipe or RegardTraining()
    common.require_new(out)
    data = _read_all(train_files)
    held, final = read_regard(dev), read_regard(test)
    unmasked = sum(MASK not in t for part in (data, held, final) for t in part.texts)
    if unmasked:
        say(f"{unmasked} texts do not hold {MASK}: a demographic left in them can be learned")
    classes = NAMES if 3 in data.labels else NAMES[:3]
    torch, place = common.start(recipe.seed, device)
    tokenizer, model = _load(base, classes)
    model.float().to(place)
    best: tuple[float, int, Any] = (-1.0, 0, None)
    steps = recipe.epochs * -(-len(data.texts) // recipe.batch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.learning_rate, weight_decay=0.01)
    done = 0
    for epoch in range(recipe.epochs):
        model.train()
        order = common.shuffled(len(data.texts), recipe.seed, epoch)
        for low in range(0, len(order), recipe.batch):
            rows = order[low : low + recipe.batch]
            loss = _loss(torch, model, tokenizer, data, rows, recipe, place)
            rate = recipe.learning_rate * common.linear_schedule(done, steps)
            common.descend(torch, model, optimizer, loss, rate)
            done += 1
        accuracy = float(
            (_predict(torch, model, tokenizer, held, recipe, place) == held.labels).mean()
        )
        say(f"epoch {epoch + 1}: dev accuracy {accuracy:.3f}")
        if accuracy > best[0]:
            weights = {k: v.detach().clone() for k, v in model.state_dict().items()}
            best = (accuracy, epoch + 1, weights)
    model.load_state_dict(best[2])
    report = {
        "base": base,
        "n_train": len(data.texts),
        "n_unmasked": unmasked,
        "best_epoch": best[1],
        "classes": list(classes),
        "dev": _judge(torch, model, tokenizer, held, recipe, place),
        "test": _judge(torch, model, tokenizer, final, recipe, place),
        "recipe": recipe.model_dump(),
    }
    model.config.evenhand_purpose = "regard"
    common.save(model, tokenizer, out, report)
    return report


def _read_all(train_files: list[Path]) -> Labelled:
    parts = [read_regard(f) for f in train_files]
    data = Labelled([t for p in parts for t in p.texts], [c for p in parts for c in p.labels])
    data = _distinct(data)
    if len(set(data.labels)) < 2:
        raise DataError(
            f"{', '.join(map(str, train_files))}: {len(data.texts)} texts, all labelled "
            f"{NAMES[data.labels[0]]!r}: nothing to learn. Accepted: two labels or more."
        )
    return data


def _distinct(data: Labelled) -> Labelled:
    """Each text once: the file with 'other' repeats many rows of the one without."""
    kept = dict(zip(data.texts, data.labels))
    return Labelled(list(kept), list(kept.values()))


def _load(base: str, classes: tuple[str, ...]) -> tuple[Any, Any]:
    """Tokenizer and classifier, with a token to pad with."""
    tokenizer, model = common.load_base(
        "regard",
        "AutoModelForSequenceClassification",
        base,
        num_labels=len(classes),
        id2label=dict(enumerate(classes)),
        label2id={c: i for i, c in enumerate(classes)},
    )
    if tokenizer.pad_token_id is None:
        if tokenizer.eos_token_id is None:
            raise ModelError(f"model {base!r} has neither a pad nor an end token to pad with.")
        tokenizer.pad_token = tokenizer.eos_token
    if model.config.pad_token_id is None:  # the last real token is found by it
        model.config.pad_token_id = tokenizer.pad_token_id
    return tokenizer, model


def _encoded(tokenizer: Any, texts: list[str], length: int, device: str) -> Any:
    return tokenizer(
        texts, truncation=True, max_length=length, padding=True, return_tensors="pt"
    ).to(device)


def _loss(
    torch: Any,
    model: Any,
    tokenizer: Any,
    data: Labelled,
    rows: Any,
    recipe: RegardTraining,
    device: str,
) -> Any:
    batch = _encoded(tokenizer, [data.texts[i] for i in rows], recipe.length, device)
    labels = torch.tensor([data.labels[i] for i in rows], device=device)
    logits = model(**batch).logits
    return torch.nn.functional.cross_entropy(logits, labels, label_smoothing=recipe.smoothing)


def _predict(
    torch: Any, model: Any, tokenizer: Any, data: Labelled, recipe: RegardTraining, device: str
) -> np.ndarray:
    model.eval()
    out: list[int] = []
    with torch.inference_mode():
        for low in range(0, len(data.texts), 32):
            batch = _encoded(tokenizer, data.texts[low : low + 32], recipe.length, device)
            out += model(**batch).logits.argmax(-1).tolist()
    return np.asarray(out)


def _judge(
    torch: Any, model: Any, tokenizer: Any, data: Labelled, recipe: RegardTraining, device: str
) -> dict[str, Any]:
    found, right = _predict(torch, model, tokenizer, data, recipe, device), np.asarray(data.labels)
    hits = int((found == right).sum())
    low, high = wilson(hits, len(right))
    table = np.zeros((4, 4), int)
    np.add.at(table, (right, found), 1)
    return {
        "accuracy": hits / len(right),
        "low": low,
        "high": high,
        "n": len(right),
        "majority": float(np.bincount(right).max() / len(right)),
        "confusion": table.tolist(),
    }


def wilson(hits: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """95 % interval of a share (Wilson 1927), never outside [0, 1].

    >>> tuple(round(x, 3) for x in wilson(24, 30))
    (0.627, 0.905)
    """
    share = hits / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))
