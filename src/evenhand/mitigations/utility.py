"""What a mitigation costs: the model's task, item by item, as an asked behaviour with a margin.

choice       accuracy on a Social IQa file          (share of questions, higher is better)
span         F1 on a SQuAD file                     (0 to 1, higher is better)
masked       loss of masked pieces on plain text    (nats a piece, lower is better)
classifier   accuracy on a file with text, label    (labels as the model names them)
encoder, masked   accuracy of a linear classifier on frozen vectors, same file (GLUE-like tasks)
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.corpora.tables import read_table
from evenhand.errors import DataError
from evenhand.mitigations.erase_features import standardised_logistic
from evenhand.probes.base import Behaviour
from evenhand.requests import Classify, Embed, Option
from evenhand.runner.ask import Ask

Floats = npt.NDArray[np.float64]
POINTS, NATS = 0.05, 0.10
"""Margins: five of 100 questions; a tenth of a nat a piece (perplexity up by a tenth)."""


def _inside(model: Any) -> Any:
    """Context in which the Hugging Face model below gives this model's states."""
    return getattr(model, "changed", contextlib.nullcontext)()


def choice_accuracy(model: Any, path: Path, limit: int | None = None) -> Behaviour:
    """Right (1) or wrong (0) for every question of a Social IQa file."""
    from evenhand.train.choice import read_questions

    questions = read_questions(path, limit)
    rows = [(q.text, a) for q in questions for a in q.answers]
    request = Option([r[0] for r in rows], [r[1] for r in rows])
    logits = np.asarray(Ask(model)(request)["logit"]).reshape(-1, 3)
    hits = logits.argmax(axis=1) == np.asarray([q.right for q in questions])
    return Behaviour("choice accuracy", hits.astype(float), POINTS)


def span_f1(model: Any, path: Path, limit: int | None = None) -> Behaviour:
    """F1 of every question of a SQuAD file, against the best of its answers."""
    from evenhand.train import span
    from evenhand.train.squad import read_squad, token_f1

    examples = read_squad(path, limit)
    windows = span.make_windows(model.tokenizer, examples, length=384, stride=128)
    with _inside(model):
        found = span.predict(model.model, model.tokenizer, examples, windows, batch=16)
    model._unlimit_tokenizer()
    values = [max(token_f1(found.get(e.id, ""), a) for a in e.answers) for e in examples]
    return Behaviour("span F1", np.asarray(values), POINTS)


def masked_loss(model: Any, texts: list[str]) -> Behaviour:
    """Loss per masked piece of every text; the same masks before and after."""
    from evenhand.train.masked import text_losses

    with _inside(model):
        found = text_losses(model.torch, model.model, model.tokenizer, texts, 128, model.device)
    model._unlimit_tokenizer()
    each = found[:, 0] / found[:, 1]
    return Behaviour("masked-LM loss", each, NATS, float("-inf"), weights=found[:, 1])


def labelled_accuracy(model: Any, path: Path, limit: int = 2_000, seed: int = 0) -> Behaviour:
    """Right or wrong for every text of a labelled file (text, label).

    A classifier answers by itself; for other models a logistic one is fitted on frozen vectors
    of 70 % of the texts and judged on the rest.
    """
    texts, labels = _labelled(model, path, limit)
    if Classify.kind in model.answers:
        answered = np.asarray(Ask(model)(Classify(texts))["probabilities"])
        names = [str(n) for n in model.labels]
        hits = np.asarray([names[i] == y for i, y in zip(answered.argmax(axis=1), labels)])
        return Behaviour("accuracy", hits.astype(float), POINTS)
    X = np.asarray(Ask(model)(Embed(texts))["vector"], np.float64)
    return _read_task(X, np.asarray(labels), seed)


def _labelled(model: Any, path: Path, limit: int) -> tuple[list[str], list[str]]:
    """Texts and labels of a file; a classifier must know the labels."""
    table = read_table(path, text=("text", "label"), needed=("text", "label"))
    texts, labels = list(table.labels("text"))[:limit], list(table.labels("label"))[:limit]
    names = [str(n) for n in model.labels] if Classify.kind in model.answers else labels
    strange = sorted(set(labels) - set(names))
    if strange:
        raise DataError(f"{path}: label {strange[0]!r} is none of the model's: {', '.join(names)}.")
    return texts, labels


def require_readable(model: Any, path: Path) -> None:
    """Refuse a file that the model's task cannot be measured on, before anything is fitted."""
    if model.kind == "choice":
        from evenhand.train.choice import read_questions

        read_questions(path)
    elif model.kind == "span":
        from evenhand.train.squad import read_squad

        read_squad(path)
    else:
        _labelled(model, path, 2_000)


def _read_task(X: Floats, labels: npt.NDArray[Any], seed: int) -> Behaviour:
    order = np.random.default_rng(seed).permutation(len(labels))
    cut = int(0.7 * len(order))
    train, test = order[:cut], np.sort(order[cut:])
    if len(np.unique(labels[train])) < 2 or not len(test):
        raise DataError("--task: fewer than two labels, or too few texts. Accepted: 20 or more.")
    hits = standardised_logistic(X[train], labels[train]).predict(X[test]) == labels[test]
    return Behaviour("linear classifier accuracy", hits.astype(float), POINTS)


def measure(
    model: Any, *, task: Path | None, texts: list[str] | None, limit: int | None
) -> list[Behaviour]:
    """The tasks a model of this kind can be measured on with the files given."""
    found = []
    if task is not None:
        if model.kind == "choice":
            found.append(choice_accuracy(model, task, limit))
        elif model.kind == "span":
            found.append(span_f1(model, task, limit))
        else:
            found.append(labelled_accuracy(model, task, limit or 2_000))
    if model.kind == "masked" and texts:
        found.append(masked_loss(model, texts))
    return found
