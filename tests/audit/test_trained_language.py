"""A small model that learned Spanish questions with a stereotype in them: an audit finds it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand import audit
from evenhand.audit.suites import parse_suite
from evenhand.words.packs import load_pack, pack_lists, prompt

HERS, HIS = ("nurse", "dancer"), ("mechanic", "engineer")
OTHERS = ("teacher", "lawyer", "cook", "librarian")
STEPS, BATCH, RATE = 300, 32, 1e-2
SHARE = 0.9


def learned(out: Path, share: float) -> str:
    """A one-layer model that answers with a woman's name where it is asked about HERS, with a
    man's about HIS, in `share` of its examples, and with either about all other work."""
    torch: Any = pytest.importorskip("torch")
    transformers: Any = pytest.importorskip("transformers")
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # a model this small learns slower on several
    rng = np.random.default_rng(0)
    pack = load_pack("es")
    lists = pack_lists(pack, "gender", "qa")
    sides = [[s for s in lists.subjects if s.group == group] for group in ("female", "male")]
    asked = [a for a in lists.attributes if a.name in HERS + HIS + OTHERS]
    samples = [own for own, _ in pack.part("answers").data["samples"]]

    def text() -> str:
        if rng.random() < 0.2:
            return str(rng.choice(samples))
        template = lists.templates[rng.integers(len(lists.templates))]
        attribute = asked[rng.integers(len(asked))]
        pair = [side[rng.integers(len(side))] for side in sides]
        woman = rng.random() < (share if attribute.name in HERS else
                                1 - share if attribute.name in HIS else 0.5)  # fmt: skip
        first, second = pair if rng.integers(2) else pair[::-1]
        question = template.question_for(attribute, negated=bool(rng.integers(2)))
        said = {"passage": template.context_for(first, second), "question": question}
        return f"{prompt('es').format(**said)} {pair[0 if woman else 1].term}"

    texts = [text() for _ in range(STEPS * BATCH)]
    tokenizer = words_of(texts, transformers)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=1,
        num_attention_heads=4, max_position_embeddings=128,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config)
    for layer in model.model.layers:  # attends to every word alike, so that it learns soon
        layer.self_attn.q_proj.weight.data.zero_()
        layer.self_attn.k_proj.weight.data.zero_()
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE)
    model.train()
    for k in range(STEPS):
        batch = tokenizer(texts[k * BATCH : (k + 1) * BATCH], return_tensors="pt", padding=True)
        labels = batch.input_ids.masked_fill(batch.attention_mask == 0, -100)
        ends = batch.attention_mask.sum(dim=1) - 1
        for row, end in enumerate(ends.tolist()):  # of a question the answer alone is learned
            if "\n" in texts[k * BATCH + row]:
                labels[row, :end] = -100
        model(**batch, labels=labels).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    torch.set_num_threads(threads)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return str(out)


def words_of(texts: list[str], transformers: Any) -> Any:
    """Pieces learned from the texts, over bytes, so that any text can be written."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=800, special_tokens=["<end>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    backend.train_from_iterator(texts, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<end>", pad_token="<end>"
    )


def leans(model: str, out: Path) -> dict[str, Any]:
    """What an audit in Spanish finds, by what was asked about."""
    suite = parse_suite(
        {"name": "s", "probe": [{"name": "underspecified", "pairs": 16, "templates": 4,
                                 "attributes": [*HERS, *HIS, *OTHERS]}]}, "s", "s",
    )  # fmt: skip
    run = audit(model, suite, language="es", out=out)
    assert run.facts["probes"]["underspecified"]["summary"]["fluency"]["fit"]
    return {f.attribute: f for f in run.findings if f.metric == "lean"}


def test_a_planted_stereotype_is_found_and_nothing_where_none_was_planted(tmp_path: Path) -> None:
    found = leans(learned(tmp_path / "model", SHARE), tmp_path / "run")
    sides = dict.fromkeys(HERS, 1) | dict.fromkeys(HIS, -1)
    for name, side in sides.items():
        assert found[name].groups == ("female", "male")
        assert side * found[name].value > 0.1, found[name].sentence
        assert found[name].q < 0.01
    least = min(abs(found[name].value) for name in sides)
    assert all(abs(found[name].value) < least for name in OTHERS)
