"""Small transformers that get worse, or only noisier, and what `gate --baseline` makes of them.

A model of one layer, in which every name is one word, learns to answer with names that lean a
little to women for some jobs (`base`). From it come one that is fine-tuned on answers that lean
more (`worse`), and one in which every name is shaken on its own, whatever its group (`noisier`).
All are audited with the same questions.
"""

from __future__ import annotations

import copy
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import evenhand as eh
from evenhand.audit.suites import Suite, parse_suite
from evenhand.probes.underspecified.asking import Manner
from evenhand.runs.record import Run
from evenhand.words.lexicons import questions

SEEDS = Path(__file__).parent / "results" / "gated_models.jsonl"
JOBS = ("nurse", "secretary", "doctor", "mechanic")
SUITE = {
    "name": "short",
    "probe": [{
        "name": "underspecified", "pairs": 24, "templates": ["same_city"], "resamples": 50,
        "attributes": list(JOBS),
    }],
}  # fmt: skip
PEOPLE = questions.subjects("gender")
SIDES = [[s for s in PEOPLE if s.group == group] for group in ("female", "male")]
LEAN, WORSE = 0.1, 0.3
"""How much likelier a name of the favoured side is than the other, before and after."""
ROUNDS = 10
SHAKEN = 1.0
"""Standard deviation of the shaking, in that of the names' embeddings."""


def suite() -> Suite:
    return parse_suite(SUITE, "made", "short")


class Trained:
    """The base model of a seed and what becomes of it."""

    def __init__(self, seed: int) -> None:
        import torch
        import transformers

        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self.rng, self.seed = np.random.default_rng(seed), seed
        known = questions.templates("gender", "qa")
        self.template = next(t for t in known if t.id == "same_city")
        self.jobs = [a for a in questions.attributes("gender") if a.name in JOBS]
        self.tokenizer = self._words(transformers)
        config = transformers.GPT2Config(
            vocab_size=len(self.tokenizer), n_embd=32, n_layer=1, n_head=4, n_positions=64,
            bos_token_id=0, eos_token_id=0, initializer_range=0.2, resid_pdrop=0, embd_pdrop=0,
            attn_pdrop=0,
        )  # fmt: skip
        self.base = transformers.GPT2LMHeadModel(config)
        self._learn(self.base, 100, LEAN)

    def asked(self) -> tuple[str, int]:
        """A question up to its answer, and which way its job leans: +1 to women."""
        job = self.jobs[self.rng.integers(len(self.jobs))]
        pair = [side[self.rng.integers(len(side))] for side in SIDES]
        text = self.template.context_for(*(pair[i] for i in self.rng.permutation(2)))
        put = Manner.prompt.format(context=text, question=self.template.question_for(job))
        return put, 1 if job.name in JOBS[:2] else -1

    def _words(self, transformers: Any) -> Any:
        from tokenizers import Tokenizer, models, pre_tokenizers

        texts = [self.asked()[0] for _ in range(400)]
        cut = pre_tokenizers.Whitespace()
        words = {w for text in texts for w, _ in cut.pre_tokenize_str(text)}
        known = [
            "<end>",
            "<unk>",
            *sorted({*words, *(s.term for s in PEOPLE), "never", "can", "be"}),
        ]
        backend = Tokenizer(models.WordLevel({w: k for k, w in enumerate(known)}, "<unk>"))
        backend.pre_tokenizer = cut
        return transformers.PreTrainedTokenizerFast(
            tokenizer_object=backend, eos_token="<end>", unk_token="<unk>", pad_token="<end>"
        )

    def _learn(self, model: Any, steps: int, lean: float, rate: float = 1e-2) -> Any:
        import torch

        best = torch.optim.AdamW(model.parameters(), lr=rate)
        rows = [self.tokenizer.convert_tokens_to_ids([s.term for s in side]) for side in SIDES]
        model.train()
        for _ in range(steps):
            texts, ways = zip(*(self.asked() for _ in range(64)))
            held = self.tokenizer(list(texts), return_tensors="pt", padding=True)
            last = held["attention_mask"].sum(dim=1) - 1
            said = model(**held).logits[torch.arange(len(last)), last].log_softmax(dim=-1)
            share = 0.5 + lean / 2 * torch.tensor(ways)
            sides = [said[:, row].mean(dim=1) for row in rows]
            (-(share * sides[0] + (1 - share) * sides[1]).mean()).backward()
            best.step()
            best.zero_grad()
        return model.eval()

    def worse(self, lean: float = WORSE, steps: int = 60) -> Any:
        """Fine-tuned until it does lean so: from some beginnings that takes a while."""
        model = copy.deepcopy(self.base)
        for _ in range(ROUNDS):
            self._learn(model, steps, lean)
            if self.lean(model) > 0.9 * lean:
                break
        return model

    def lean(self, model: Any) -> float:
        """How much likelier names of the favoured side are, over all names."""
        import torch

        texts, ways = zip(*(self.asked() for _ in range(100)))
        held = self.tokenizer(list(texts), return_tensors="pt", padding=True)
        last = held["attention_mask"].sum(dim=1) - 1
        rows = [self.tokenizer.convert_tokens_to_ids([s.term for s in side]) for side in SIDES]
        with torch.no_grad():
            said = model(**held).logits[torch.arange(len(last)), last].softmax(dim=-1)
        women, men = (said[:, row].sum(dim=1) for row in rows)
        return float(((women - men) / (women + men) * torch.tensor(ways)).mean())

    def noisier(self) -> Any:
        import torch

        shaken = copy.deepcopy(self.base).eval()
        torch.manual_seed(self.seed + 1)
        rows = self.tokenizer.convert_tokens_to_ids([s.term for s in PEOPLE])
        with torch.no_grad():
            words = shaken.get_input_embeddings().weight
            words[rows] += torch.randn_like(words[rows]) * words[rows].std() * SHAKEN
        return shaken

    def audited(self, model: Any, folder: Path, name: str) -> Run:
        model.eval().save_pretrained(folder / f"{name}-model")
        self.tokenizer.save_pretrained(folder / f"{name}-model")
        return eh.audit(str(folder / f"{name}-model"), suite(), out=folder / name, chat="off")


def one(seed: int) -> dict[str, str]:
    """The gate's outcomes for one seed: worse and noisier against the base, and its own verdict."""
    trained = Trained(seed)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        base, worse, noisier = (
            trained.audited(model, folder, name)
            for name, model in (
                ("base", trained.base), ("worse", trained.worse()), ("noisier", trained.noisier())
            )
        )  # fmt: skip
        return {
            "worse": eh.gate(worse, baseline=base).outcome,
            "noisier": eh.gate(noisier, baseline=base).outcome,
            "worse, compared": eh.compare(base, worse).verdict,
            "noisier, compared": eh.compare(base, noisier).verdict,
        }


def outcomes(models: int, seed: int = 0, spread: Any = map) -> list[dict[str, Any]]:
    """One row per sort of model; seeds that were done before are read, not trained again."""
    done = [json.loads(line) for line in SEEDS.read_text().splitlines()] if SEEDS.exists() else []
    known = {row["seed"]: row for row in done}
    wanted = range(seed, seed + models)
    with SEEDS.open("a") as file:
        left = [k for k in wanted if k not in known]
        for k, row in zip(left, spread(one, left)):
            known[k] = {"seed": k, **row}
            file.write(json.dumps(known[k]) + "\n")
            file.flush()
    found = [known[k] for k in wanted]
    names = [name for name in found[0] if name != "seed"]
    return [
        {"model": name, "n": models, "outcomes": dict(Counter(row[name] for row in found))}
        for name in names
    ]


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| model against its base | seeds | outcomes |", "|---|---|---|"]
    for row in rows:
        told = ", ".join(f"{name} {n}" for name, n in sorted(row["outcomes"].items()))
        lines.append(f"| {row['model']} | {row['n']} | {told} |")
    return "\n".join(lines)
