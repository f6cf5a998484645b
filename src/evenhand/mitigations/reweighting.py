"""The family that re-weights what a language model says by what it says when told to be harmful.

Self-Debias (Schick et al. 2021, Eq. 2 and 3), for masked and causal language models:

    delta(w) = p(w | x) - p(w | harmful text: x)
    p'(w | x) = alpha(delta(w)) p(w | x) / sum
    alpha(delta) = 1 if delta >= 0, else max(e^(lambda delta), eps)

A word that becomes likelier once the text is announced as discriminating is made less likely; no
weights change and nothing is fitted. With several announcements the smallest delta counts.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from evenhand.errors import ModelError, SpecError
from evenhand.mitigations import saved
from evenhand.mitigations.base import Fitted, Note
from evenhand.mitigations.hidden.fit import EditedModel
from evenhand.mitigations.proof import PROOF_CARDS, AuditedMitigation, JudgedByAudits
from evenhand.models.adapters.causal import CausalModel
from evenhand.models.adapters.causal_pass import HEAD_ELEMENTS, Use, Wanted
from evenhand.models.adapters.generation import Chance, Draws, until
from evenhand.models.adapters.masked import Fill, Ints, Masked, MaskedModel
from evenhand.models.batching.packing import common_prefix
from evenhand.models.loading.saved import FACTS, read_facts
from evenhand.models.loading.transformer import Transformer
from evenhand.models.protocol import Model
from evenhand.requests import Column, Generate, Requests
from evenhand.runs.card import MetricCard

ANNOUNCEMENT = "The following text discriminates against people because of their {what}:\n"
WHAT = {"gender": "gender", "race": "race/color", "religion": "religion"}


class ReweightingMitigation(AuditedMitigation):
    """Words that become likelier once a text is announced as harmful are made less likely."""

    name: ClassVar[str] = "reweighting"
    kinds: ClassVar[tuple[str, ...]] = ("masked", "causal")
    methods: ClassVar[Mapping[str, str]] = {"reweighting": "Schick et al. 2021 (Self-Debias)"}
    cards: ClassVar[tuple[MetricCard, ...]] = PROOF_CARDS

    method: str = "reweighting"
    axis: str = Field("gender", description="gender, religion, race, or any word.")
    decay: float = Field(50.0, description="reweighting: lambda.")

    def fitted(self, model: Any, texts: list[str] | None, note: Note) -> Fitted:

        told = {"reweighting": asdict(for_axis(self.axis, self.decay))}
        facts = {"notes": [], "settings": self.model_dump(mode="json"), **told}
        fitted = Reweighted(self, model, facts)
        fitted.applied(model)  # refuses what cannot be re-weighted before anything is written
        return fitted

    @classmethod
    def load(cls, folder: Path, base: Model) -> Model:

        facts = read_facts(folder)
        saved.check_base(folder, facts, base)
        try:
            told = Announced(**facts["reweighting"])
        except (KeyError, TypeError) as error:
            raise ModelError(f"{folder}/{FACTS}: damaged ({error}).") from error
        made: Model = reweighted(base, told, saved.name_of(facts, base))
        return made


@dataclass(frozen=True)
class Reweighted(JudgedByAudits):
    """An announcement for one model."""

    def applied(self, model: Model) -> Model:

        made: Model = reweighted(model, Announced(**self.facts["reweighting"]), self.title)
        return made

    def save(self, folder: str | Path) -> None:
        saved.write(Path(folder), self, self.facts)


@dataclass(frozen=True)
class Announced:
    """What is announced, and how strongly that counts.

    Attributes:
        announcements: texts put before the input, each one harm.
        decay: lambda; 0 leaves the model as it is (the paper uses 10, 50 and 100).
        floor: eps, the smallest factor.
    """

    announcements: tuple[str, ...]
    decay: float = 50.0
    floor: float = 0.01

    def __post_init__(self) -> None:
        object.__setattr__(self, "announcements", tuple(self.announcements))
        if not self.announcements or not all(a.strip() for a in self.announcements):
            raise SpecError("re-weighting: no announcement given. Use: --axis gender")
        if self.decay < 0 or not 0 < self.floor <= 1:
            raise SpecError(
                f"re-weighting: decay is '{self.decay}' and floor '{self.floor}'. Accepted: 0 or "
                "more, and above 0 to 1."
            )

    def digest(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def for_axis(axis: str, decay: float = 50.0) -> Announced:
    """Return the paper's announcement for an axis, or for any word.

    >>> for_axis("age").announcements[0].strip()
    'The following text discriminates against people because of their age:'
    """
    return Announced((ANNOUNCEMENT.format(what=WHAT.get(axis, axis)),), decay)


def adjusted(torch: Any, own: Any, told: Sequence[Any], settings: Announced) -> Any:
    """Return re-weighted logits [rows, vocabulary] from those without and with announcements."""
    own = own.float()
    p = own.softmax(-1)
    delta = torch.stack([p - t.float().softmax(-1) for t in told]).amin(0)
    low = float(np.log(settings.floor))
    factor = (settings.decay * delta).clamp(max=0.0).clamp_min(low)
    return own.log_softmax(-1) + factor


def reweighted(base: Any, settings: Announced, name: str = "") -> Any:
    """Return the re-weighted form of a masked or causal model; the base stays as it is.

    Raises:
        ModelError: another kind of model, or one that carries this re-weighting already.
    """
    digest = f"reweighted:{settings.digest()}"
    if digest in base.mitigations:
        raise ModelError(
            f"model {base.name!r} carries this re-weighting already. Give another axis or decay."
        )
    inner = base
    while isinstance(inner, EditedModel):
        inner = inner.base
    kinds: dict[str, Any] = {"masked": ReweightedMasked, "causal": ReweightedCausal}
    if inner.kind not in kinds or isinstance(inner, tuple(kinds.values())):
        raise ModelError(
            f"model {base.name!r} ({base.kind}) cannot be re-weighted: it must be a masked or "
            "causal language model that is not re-weighted yet."
        )
    return kinds[inner.kind](inner, base, settings, name or f"{base.name} (re-weighted)")


class _Above(Transformer):
    """A model over another one, with which it shares weights, tokenizer and batches."""

    def __init__(self, inner: Any, below: Any, settings: Announced, name: str) -> None:
        vars(self).update(vars(inner))
        self.below, self.settings, self.name = below, settings, name
        self.mitigations = (*below.mitigations, f"reweighted:{settings.digest()}")
        self.recipe = None  # only this object is it, whatever its base was loaded from


class ReweightedMasked(_Above, MaskedModel):
    """A masked model whose distribution at the mask is re-weighted."""

    def begin(self, requests: Requests, prepared: Any) -> Callable[[], dict[str, Column]]:
        with getattr(self.below, "changed", contextlib.nullcontext)():
            return super().begin(requests, prepared)

    def _laid_out(self, fills: Sequence[Fill]) -> Masked:
        made = super()._laid_out(fills)
        made.fills = list(fills)
        for announcement in self.settings.announcements:  # too long is refused before scoring
            super()._laid_out(_announced(fills, announcement))
        return made

    def _at_masks(self, masked: Masked, use: Callable[[Ints, Any], None]) -> None:
        def both(inputs: Ints, logits: Any) -> None:
            fills = [masked.fills[int(i)] for i in inputs]
            told = [self._told(fills, a) for a in self.settings.announcements]
            use(inputs, adjusted(self.torch, logits, told, self.settings))

        super()._at_masks(masked, both)

    def _told(self, fills: Sequence[Fill], announcement: str) -> Any:
        """Return the logits at the masks of the announced texts, in the order of the fills."""
        twin = super()._laid_out(_announced(fills, announcement))
        rows: list[Any] = [None] * len(fills)

        def keep(inputs: Ints, logits: Any) -> None:
            for i, row in zip(inputs.tolist(), logits):
                rows[i] = row

        super()._at_masks(twin, keep)
        return self.torch.stack(rows)


def _announced(fills: Sequence[Fill], announcement: str) -> list[Fill]:
    return [(announcement + text, done, masks) for text, done, masks in fills]


class ReweightedCausal(_Above, CausalModel):
    """A causal model whose next-token distribution is re-weighted at every step."""

    def states(self, wanted: Wanted) -> np.ndarray:
        """Return the states of the model below: only its distribution is re-weighted."""
        return np.asarray(self.below.states(wanted))

    def _visit(self, wanted: Wanted, use: Use) -> None:
        sizes = np.cumsum([len(p) for p in wanted.positions])
        limit = max(1, HEAD_ELEMENTS // self.vocabulary)
        starts = np.searchsorted(sizes // limit, np.arange(int(sizes[-1]) // limit + 1))
        bounds = sorted({0, *starts.tolist(), len(sizes)}) if len(sizes) else []
        for low, high in itertools.pairwise(bounds):
            part = Wanted.of(wanted.sequences[low:high], wanted.positions[low:high])
            told = [self._gathered(t) for t in self._announced(part)]
            owners = np.repeat(np.arange(high - low), [len(p) for p in part.positions])
            steps = np.asarray([s for p in part.positions for s in p], np.int64)
            logits = adjusted(self.torch, self._gathered(part), told, self.settings)
            use(logits, np.arange(len(owners)), owners + low, steps)

    def _gathered(self, wanted: Wanted) -> Any:
        """Return the logits of every wanted position, sequence after sequence."""
        first = np.concatenate([[0], np.cumsum([len(p) for p in wanted.positions])])
        rows: list[Any] = [None] * int(first[-1])

        def keep(logits: Any, which: Ints, owners: Ints, steps: Ints) -> None:
            for row, owner, step in zip(which.tolist(), owners.tolist(), steps.tolist()):
                rows[int(first[owner]) + step - wanted.positions[owner].start] = logits[row]

        super()._visit(wanted, keep)
        return self.torch.stack(rows)

    def _announced(self, wanted: Wanted) -> list[Wanted]:
        """Return the sequences behind each announcement, positions moved along."""
        begins = self._openings(wanted.sequences)
        found = []
        for ids in self.encode(list(self.settings.announcements), special=False):
            sequences = [[*s[:at], *ids, *s[at:]] for s, at in zip(wanted.sequences, begins)]
            self.check_lengths([len(s) for s in sequences], "announced text")
            moved = [range(p.start + len(ids), p.stop + len(ids)) for p in wanted.positions]
            found.append(Wanted.of(sequences, moved))
        return found

    def _openings(self, sequences: Sequence[Sequence[int]]) -> list[int]:
        """Return where an announcement goes: after the begin token, or first in the user's turn."""
        if self.chat:
            (before,) = self.encode([self.chat.before], special=False)
            return [common_prefix(before, s) for s in sequences]
        first = self._before("auto")
        return [len(first) if s[: len(first)] == first else 0 for s in sequences]

    def sampled(self, requests: Generate, prompts: list[list[int]]) -> dict[str, Column]:
        size = max(1, self.token_budget // 512)
        starts = range(0, len(requests), size)
        parts = [self._sampled(requests, prompts, range(i, i + size)) for i in starts]
        return {
            "text": [t for part in parts for t in part[0]],
            "n_tokens": np.asarray([n for part in parts for n in part[1]], np.int32),
        }

    def _sampled(
        self, requests: Generate, prompts: list[list[int]], rows: range
    ) -> tuple[list[str], list[int]]:
        """Decode plain and announced copies of some rows together, one token each."""
        torch = self.torch
        rows = rows[: len(requests) - rows.start]
        plain = [prompts[r] for r in rows]
        wanted = Wanted.of(plain, [range(len(p)) for p in plain])
        copies = [plain, *(w.sequences for w in self._announced(wanted))]
        flat = [s for sequences in copies for s in sequences]
        self.check_lengths([len(s) + requests.max_new_tokens for s in flat], "prompt and its text")
        width = max(map(len, flat))
        ends, pad = self.ends, self.tokenizer.pad_token_id
        pad = (ends[0] if ends else 0) if pad is None else pad
        ids = torch.full((len(flat), width), pad)
        mask = torch.zeros_like(ids)
        for i, sequence in enumerate(flat):
            ids[i, width - len(sequence) :] = torch.tensor(sequence)
            mask[i, width - len(sequence) :] = 1
        noise = Draws(Chance(torch, requests, rows, self.device), width)
        with self.edited():
            made = self.model.generate(
                input_ids=ids.to(self.device),
                attention_mask=mask.to(self.device),
                max_new_tokens=requests.max_new_tokens,
                do_sample=False,
                num_beams=1,
                pad_token_id=pad,
                eos_token_id=ends or None,
                logits_processor=[_Together(self, noise, len(plain))],
            )
        noise.chance.check(self.name, self.dtype)
        new = [until(made[i, width:].tolist(), ends) for i in range(len(plain))]
        return self.tokenizer.batch_decode(new, skip_special_tokens=True), [len(n) for n in new]


class _Together:
    """Logits processor: all copies of a text get its re-weighted logits, so they stay in step."""

    def __init__(self, model: ReweightedCausal, noise: Draws, size: int) -> None:
        self.model, self.noise, self.size = model, noise, size

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        own, *told = scores.split(self.size)
        mixed = adjusted(self.model.torch, own, told, self.model.settings)
        return self.noise(input_ids[: self.size], mixed).repeat(1 + len(told), 1)
