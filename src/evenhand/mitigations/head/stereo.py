"""StereoSet under every setting of a mitigation, from one pass over its sentences.

The hidden states before each token are computed once. A projection needs the normaliser of its
edited logits, an alpha a mixture of two numbers per token, so a whole sweep costs little more than
one scoring. This is the global side of the trade-off (Liang et al. 2021, Tables 6 and 16).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError, SpecError
from evenhand.metrics.stereoset import Outcomes, intervals, scores
from evenhand.models.edits.head import AppliedEdit
from evenhand.models.edits.head_handles import raw_logits
from evenhand.probes.stereoset import LABELS, Example, read_gold

if TYPE_CHECKING:
    from evenhand.mitigations.head.tradeoff import Candidate

Floats = npt.NDArray[np.float64]
ROWS = 256  # rows of logits alive at once
ALPHAS = tuple(round(0.1 * i, 1) for i in range(1, 11))


def examples_of(path: str | Path, axis: str, count: int | None, seed: int = 0) -> list[Example]:
    """Draw an axis' examples from StereoSet's gold file, as many from each split."""
    known = [e for e in read_gold(path) if e.domain == axis]
    if not known:
        raise DataError(f"{path}: no examples of the domain {axis!r}.")
    rng = np.random.default_rng(seed)
    picked: list[Example] = []
    for split in dict.fromkeys(e.split for e in known):
        rows = [e for e in known if e.split == split]
        keep = np.sort(rng.permutation(len(rows))[: count or len(rows)])
        picked += [rows[i] for i in keep]
    return picked


@dataclass(frozen=True)
class Sentences:
    """States before every scored token of the examples' sentences, in order."""

    states: npt.NDArray[np.float32]
    targets: npt.NDArray[np.int64]
    owners: npt.NDArray[np.int64]


class StereoBench:
    """Cached states and own log-probabilities, on which any setting can be scored."""

    def __init__(self, model: Any, examples: Sequence[Example]) -> None:
        self.model, self.torch, self.examples = model, model.torch, list(examples)
        prefixes, texts = [], []
        for example in self.examples:
            inter = example.split == "intersentence"
            for sentence in example.sentences:
                prefixes.append(example.context if inter else "")
                texts.append(f" {sentence}" if inter else sentence)
        wanted = model._continuations(prefixes, texts)
        counts = [len(p) for p in wanted.positions]
        pairs = zip(wanted.sequences, wanted.positions)
        targets = [s[at + 1] for s, p in pairs for at in p]
        self.sentences = Sentences(
            model.states(wanted), np.asarray(targets), np.repeat(np.arange(len(texts)), counts)
        )
        self.counts = np.maximum(counts, 1)
        self.device = model.model.get_output_embeddings().weight.device

    def token_scores(
        self, candidates: Sequence[Candidate]
    ) -> tuple[Floats, list[Floats], list[Floats]]:
        """Return every token's log-probability, unchanged and edited, and learned alphas."""
        torch, found = self.torch, self.sentences
        own = np.empty(len(found.targets))
        hats = [np.empty(len(own)) for _ in candidates]
        alphas = [np.zeros(len(own)) for _ in candidates]
        head = raw_logits(torch, self.model.model)
        with torch.inference_mode():
            applied = [AppliedEdit(torch, self.model.model, c.edit) for c in candidates]
            for low in range(0, len(own), ROWS):
                part = slice(low, low + ROWS)
                h = torch.as_tensor(found.states[part], device=self.device)
                at = torch.as_tensor(found.targets[part], device=self.device)[:, None]
                raw = head(h)
                post = applied[0].post if applied else None
                logits = raw if post is None else post(raw)
                own[part] = _picked(logits, at)
                for i, one in enumerate(applied):
                    hats[i][part] = _picked(one._edited_logits(h @ one.right, raw, logits), at)
                    alpha = one.alphas(logits)
                    alphas[i][part] = alpha if isinstance(alpha, float) else alpha.cpu().numpy()
        return own, hats, alphas

    def row(self, logprob: Floats, seed: int = 0) -> dict[str, float]:
        """LMS, SS, ICAT and |SS - 50| with intervals over target terms."""
        total = np.bincount(self.sentences.owners, logprob, len(self.counts)) / self.counts
        outcomes = Outcomes.of(*total.reshape(-1, len(LABELS)).T)
        targets = [e.target for e in self.examples]
        found = scores(outcomes, targets)
        return {**found, "gap": abs(found["ss"] - 50.0), **intervals(outcomes, targets, seed=seed)}


def _picked(logits: Any, at: Any) -> Floats:
    value = logits.gather(1, at)[:, 0] - logits.logsumexp(-1)
    return np.asarray(value.double().cpu().numpy())


def check_mixture(mixture: str) -> None:
    """Refuse a mixture that the sweep cannot compute."""
    if mixture != "probability":
        raise SpecError(
            f"--stereoset sweeps mixtures of probabilities, not {mixture!r}. Drop --mixture hidden "
            "or --as-published."
        )


def sweep(
    model: Any,
    candidates: Sequence[Candidate],
    increases: Mapping[tuple[int, Any], float],
    examples: Sequence[Example],
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Return StereoSet's numbers for every projection and alpha, the unchanged model first.

    `increases` of perplexity by (rounds, alpha) come from the trade-off. Rows have method, rounds,
    rank, alpha, increase, lms, ss, icat and gap = |SS - 50|.
    """
    for candidate in candidates:
        check_mixture(candidate.edit.mixture)
    bench = StereoBench(model, examples)
    own, hats, learned = bench.token_scores(candidates)
    first = {"method": "none", "rounds": 0, "rank": 0, "alpha": 0.0, "increase": 0.0}
    rows = [{**first, **bench.row(own, seed)}]
    for candidate, hat, alphas in zip(candidates, hats, learned):
        settings: list[Any] = [
            a for a in (*ALPHAS, "learned") if (candidate.rounds, a) in increases
        ]
        for alpha in settings:
            weight = alphas if alpha == "learned" else np.full(len(own), float(alpha))
            with np.errstate(divide="ignore"):
                mixed = np.logaddexp(own + np.log1p(-weight), hat + np.log(weight))
            rows.append(
                {
                    "method": candidate.method,
                    "rounds": candidate.rounds,
                    "rank": candidate.edit.rank,
                    "alpha": alpha,
                    "increase": increases[candidate.rounds, alpha],
                    **bench.row(mixed, seed),
                }
            )
    return rows


def learned_against_fixed(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return whether a learned alpha lies on or beyond the Pareto front of fixed alphas.

    A learned point is beaten when a fixed one (or the unchanged model) has no larger gap and no
    larger perplexity, and is better on one of the two.

    >>> fixed = {"alpha": 0.5, "gap": 4.0, "increase": 0.01, "rounds": 2, "icat": 70.0}
    >>> best = {"alpha": "learned", "gap": 4.0, "increase": 0.005, "rounds": 2, "icat": 70.0}
    >>> learned_against_fixed([fixed, best])["on_front"]
    True
    """
    fixed = [r for r in rows if r["alpha"] != "learned"]
    learned = [r for r in rows if r["alpha"] == "learned"]

    def beaten(point: Mapping[str, Any]) -> bool:
        return any(
            f["gap"] <= point["gap"]
            and f["increase"] <= point["increase"]
            and (f["gap"] < point["gap"] or f["increase"] < point["increase"])
            for f in fixed
        )

    free = [r for r in learned if not beaten(r)]
    return {
        "on_front": bool(free),
        "learned": [
            {k: r[k] for k in ("rounds", "gap", "increase", "icat")} | {"beaten": beaten(r)}
            for r in learned
        ],
    }
