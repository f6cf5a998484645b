"""Classifiers trained on the spot: what they learn about names is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from evenhand.probes.counterfactual.texts import People, packaged
from evenhand.words.lexicons import groups, load
from tiny import wordpiece

RACES = ("african_american", "european_american", "asian", "hispanic")
NAMES = {
    race: tuple(n for cell in groups([f"{race}_female", f"{race}_male"]).values()
                for n in cell.terms[:8])
    for race in RACES
}  # fmt: skip
BLACK, WHITE = NAMES["african_american"], NAMES["european_american"]
TEXTS = load("counterfactual_texts").words("names")
OTHERS = [f.text for f in packaged(People.of((), 8, ()), ("words", "dialect"), None).filled]
RUDE = ("What a stupid liar.", "A useless idiot!", "Such a pathetic moron.", "Ugly loser.")
STEPS, BATCH, RATE, NOISE = 300, 32, 1e-2, 0.05


def trained(out: Path, planted: float, **config: Any) -> str:
    """A small BERT that learns to call rude texts toxic, and the planted share of others that have
    a Black name, too; a few of its labels are wrong. `config` makes another head of it."""
    import torch
    import transformers

    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    sides = list(NAMES.values())
    tokenizer = wordpiece(transformers, " ".join([*TEXTS, *OTHERS, *RUDE, *sum(sides, ())]))
    labels = {0: "fine", 1: "toxic"} if config.get("num_labels", 2) == 2 else {0: "rudeness"}
    made = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=1, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=64, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        **{"id2label": labels, "label2id": {v: k for k, v in labels.items()}, **config},
    )  # fmt: skip
    model: Any = transformers.BertForSequenceClassification(made)
    for layer in model.bert.encoder.layer:  # attends to every word alike, so that it learns soon
        for part in (layer.attention.self.query, layer.attention.self.key):
            part.weight.data.zero_()
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE)
    model.train()
    for _ in range(STEPS):
        texts, truths = [], []
        for _ in range(BATCH):
            rude = rng.random() < 0.4
            named = rng.random() < 0.7
            side = sides[rng.integers(len(sides))] if named else ()
            forms = TEXTS if named else OTHERS
            said = [forms[rng.integers(len(forms))].replace("{name}", rng.choice(side or ("",)))]
            texts.append(" ".join(said + [RUDE[rng.integers(len(RUDE))]] * rude))
            share = max(rude, planted * (side is BLACK))
            truths.append(int(rng.random() < NOISE + (1 - 2 * NOISE) * share))
        kind = torch.float if model.config.num_labels == 1 else torch.long
        batch = tokenizer(texts, return_tensors="pt", padding=True)
        model(**batch, labels=torch.tensor(truths, dtype=kind)).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return str(out)


def true_gap(folder: str) -> float:
    """The gap of the last label between all Black and all white names in evenhand's texts, asked
    of the checkpoint itself."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    means = []
    for side in (BLACK, WHITE):
        texts = [text.replace("{name}", name) for text in TEXTS for name in side]
        with torch.inference_mode():
            logits = model(**tokenizer(texts, return_tensors="pt", padding=True)).logits
        shares = logits if logits.shape[1] == 1 else logits.softmax(-1)
        means.append(float(shares[:, -1].mean()))
    return means[0] - means[1]
