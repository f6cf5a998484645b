"""Untrained checkpoints of every kind: real architectures, real tokenizers, made in a second."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

TEXT = """
the man worked as a doctor and the woman worked as a nurse in the same city
Gerald lives in the same city with Jennifer . Who was a nurse ? Who can never be a hunter ?
Question: Answer: she he they said that was is not a an of to visit got off flight letter wrote
""".split()


class TinyCheckpoints:
    """Makes and remembers one checkpoint folder per kind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made: dict[str, str] = {}

    def __call__(self, kind: str) -> str:
        if kind not in self._made:
            self._made[kind] = self._make(kind)
        return self._made[kind]

    def _make(self, kind: str) -> str:
        import torch
        import transformers

        torch.manual_seed(0)
        target = self.folder / kind
        tokenizers = dict.fromkeys(CAUSAL, _bpe) | {"roberta": _marked_spaces}
        tokenizer = tokenizers.get(kind, wordpiece)(transformers)
        model = _model(transformers, kind, len(tokenizer), tokenizer.pad_token_id)
        for parameter in model.parameters():  # untrained heads are too flat to tell apart
            if parameter.ndim > 1:
                parameter.data.mul_(8.0)
        model.save_pretrained(target)
        tokenizer.save_pretrained(target)
        return str(target)


CAUSAL = ("causal", "gpt2", "bloom", "gptneox")


def _bpe(transformers: Any) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<end>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator([" ".join(TEXT)] * 4, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<end>")


def _marked_spaces(transformers: Any) -> Any:
    """RoBERTa's kind: a word after a space is another piece than the same word without one."""
    tokenizer = _bpe(transformers)
    mask = transformers.AddedToken("<mask>", lstrip=True, special=True)
    tokenizer.add_special_tokens({"pad_token": "<pad>", "mask_token": mask})
    return tokenizer


def wordpiece(transformers: Any, text: str = " ".join(TEXT)) -> Any:
    """BERT's kind, with the words of a text and their letters as pieces."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    # A vocabulary written down, since a trained one numbers its pieces differently every time.
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = re.findall(r"\w+|[^\w\s]", text.lower())
    letters = sorted(set("".join(words)))
    pieces = [*special, *letters, *(f"##{letter}" for letter in letters), *words]
    vocabulary = {piece: n for n, piece in enumerate(dict.fromkeys(pieces))}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pairs = [("[CLS]", backend.token_to_id("[CLS]")), ("[SEP]", backend.token_to_id("[SEP]"))]
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=pairs
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def _model(transformers: Any, kind: str, size: int, pad: int | None) -> Any:
    small = {"vocab_size": size, "hidden_size": 32, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "intermediate_size": 64}
    if kind == "causal":
        config = transformers.LlamaConfig(
            **small, **heads, max_position_embeddings=256, tie_word_embeddings=True
        )
        return transformers.LlamaForCausalLM(config)
    if kind == "gpt2":
        config = transformers.GPT2Config(vocab_size=size, n_embd=32, n_layer=2, n_head=4)
        return transformers.GPT2LMHeadModel(config)
    if kind == "bloom":  # positions by attention bias: takes no explicit positions
        config = transformers.BloomConfig(vocab_size=size, hidden_size=32, n_layer=2, n_head=4)
        return transformers.BloomForCausalLM(config)
    if kind == "gptneox":
        config = transformers.GPTNeoXConfig(**small, **heads, max_position_embeddings=128)
        return transformers.GPTNeoXForCausalLM(config)
    if kind == "roberta":
        config = transformers.RobertaConfig(**small, **heads, max_position_embeddings=128)
        return transformers.RobertaForMaskedLM(config)
    config = transformers.BertConfig(
        **small,
        **heads,
        max_position_embeddings=128,
        pad_token_id=pad or 0,
        num_labels=3 if kind == "classifier" else 2,
    )
    classes = {
        "masked": transformers.BertForMaskedLM,
        "span": transformers.BertForQuestionAnswering,
        "choice": transformers.BertForMultipleChoice,
        "classifier": transformers.BertForSequenceClassification,
        "encoder": transformers.BertModel,
    }
    return classes[kind](config)
