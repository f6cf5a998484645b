"""What a mitigation costs: the model's task before and after, item by item.

choice       accuracy on a Social IQa file          (share of questions, higher is better)
span         F1 on a SQuAD file                     (0 to 1, higher is better)
masked       loss of masked pieces on plain text    (nats a piece, lower is better)
classifier   accuracy on a file with text, label    (labels as the model names them)
encoder, masked   accuracy of a linear classifier on frozen vectors, same file (GLUE-like tasks)
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.corpora.tables import read_table
from evenhand.errors import DataError
from evenhand.mitigations.erasing.erasure import reader
from evenhand.requests import Classify, Embed, Option
from evenhand.stats import bootstrap, permutation

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """One measured task: a value per item, the same items before and after."""

    name: str
    values: Floats
    weights: Floats
    higher_is_better: bool = True
    reason: str = ""

    @property
    def mean(self) -> float:
        return float((self.values * self.weights).sum() / self.weights.sum())


def _inside(model: Any) -> Any:
    """Context in which the Hugging Face model below gives this model's states."""
    return getattr(model, "changed", contextlib.nullcontext)()


def choice_accuracy(model: Any, path: Path, limit: int | None = None) -> Task:
    """Right (1) or wrong (0) for every question of a Social IQa file."""
    from evenhand.train.choice import read_questions

    questions = read_questions(path, limit)
    rows = [(q.text, a) for q in questions for a in q.answers]
    request = Option([r[0] for r in rows], [r[1] for r in rows])
    logits = np.asarray(model.answer(request, model.prepare(request))["logit"]).reshape(-1, 3)
    hits = logits.argmax(axis=1) == np.asarray([q.right for q in questions])
    return Task("choice accuracy", hits.astype(float), np.ones(len(hits)))


def span_f1(model: Any, path: Path, limit: int | None = None) -> Task:
    """F1 of every question of a SQuAD file, against the best of its answers."""
    from evenhand.train import span
    from evenhand.train.squad import read_squad, token_f1

    examples = read_squad(path, limit)
    windows = span.make_windows(model.tokenizer, examples, length=384, stride=128)
    with _inside(model):
        found = span.predict(model.model, model.tokenizer, examples, windows, batch=16)
    model._unlimit_tokenizer()
    values = [max(token_f1(found.get(e.id, ""), a) for a in e.answers) for e in examples]
    return Task("span F1", np.asarray(values), np.ones(len(values)))


def masked_loss(model: Any, texts: list[str]) -> Task:
    """Loss per masked piece of every text; the same masks before and after."""
    from evenhand.train.masked import text_losses

    with _inside(model):
        found = text_losses(model.torch, model.model, model.tokenizer, texts, 128, model.device)
    model._unlimit_tokenizer()
    return Task("masked-LM loss", found[:, 0] / found[:, 1], found[:, 1], higher_is_better=False)


def labelled_accuracy(model: Any, path: Path, limit: int = 2_000, seed: int = 0) -> Task:
    """Right or wrong for every text of a labelled file (text, label).

    A classifier answers by itself; for other models a logistic one is fitted on frozen vectors
    of 70 % of the texts and judged on the rest.
    """
    table = read_table(path, text=("text", "label"))
    table.require(("text", "label"))
    texts, labels = list(table.labels("text"))[:limit], list(table.labels("label"))[:limit]
    if Classify.kind in model.answers:
        request: Any = Classify(texts)
        answered = np.asarray(model.answer(request, model.prepare(request))["probabilities"])
        names = [str(n) for n in model.labels]
        strange = sorted(set(labels) - set(names))
        if strange:
            raise DataError(
                f"{path}: label {strange[0]!r} is none of the model's: {', '.join(names)}."
            )
        hits = np.asarray([names[i] == y for i, y in zip(answered.argmax(axis=1), labels)])
        return Task("accuracy", hits.astype(float), np.ones(len(hits)))
    request = Embed(texts)
    X = np.asarray(model.answer(request, model.prepare(request))["vector"], np.float64)
    return _read_task(X, np.asarray(labels), seed)


def _read_task(X: Floats, labels: npt.NDArray[Any], seed: int) -> Task:
    order = np.random.default_rng(seed).permutation(len(labels))
    cut = int(0.7 * len(order))
    train, test = order[:cut], np.sort(order[cut:])
    if len(np.unique(labels[train])) < 2 or not len(test):
        raise DataError("--task: fewer than two labels, or too few texts. Accepted: 20 or more.")
    hits = reader(X[train], labels[train]).predict(X[test]) == labels[test]
    return Task("linear classifier accuracy", hits.astype(float), np.ones(len(hits)))


def task_change(before: Task, after: Task, seed: int = 0) -> dict[str, Any]:
    """Both means, the paired change with interval and p, and whether the task got worse.

    >>> one = Task("accuracy", np.ones(40), np.ones(40))
    >>> two = Task("accuracy", np.r_[np.zeros(10), np.ones(30)], np.ones(40))
    >>> found = task_change(one, two)
    >>> found["change"], found["verdict"]
    (-0.25, 'worse')
    """
    if len(before.values) != len(after.values):
        raise DataError(f"{before.name}: other items after than before.")
    share = before.weights / before.weights.mean()
    gap = (after.values - before.values) * share
    test = permutation.paired_sign_flip(gap, seed=seed, max_exact=20_000)
    ends = bootstrap.interval(gap, seed=seed, resamples=2_000)
    p = float(test.p_two_sided[0])
    better = (float(test.mean[0]) > 0) == before.higher_is_better
    verdict = "no difference detected" if not p <= 0.05 else "better" if better else "worse"
    return {
        "task": before.name, "n": len(gap), "before": before.mean, "after": after.mean,
        "change": float(test.mean[0]), "low": float(np.asarray(ends.low)),
        "high": float(np.asarray(ends.high)), "p": p,
        "higher_is_better": before.higher_is_better, "verdict": verdict,
    }  # fmt: skip


def measure(
    model: Any, *, task: Path | None, texts: list[str] | None, limit: int | None
) -> list[Task]:
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
