"""Tokenising word by word gives what tokenising whole texts gives, or is not done."""

from __future__ import annotations

import random
from typing import Any

import pytest

from evenhand.models.batching.words import CHECKED, Words, splits_at_spaces

TEXTS = [
    "Jennifer lives in the same city with Gerald.\nQuestion: Who was a nurse?\nAnswer: Ann",
    "", " ", "a ", " a", "x  y", "don't stop O'Neil's 1990's co-worker, please!", "Zoë é ß\tq",
    "日本 語 [MASK] end", "the man's", "A\u00a0B c",
]  # fmt: skip


def many() -> list[str]:
    rng = random.Random(0)
    words = " ".join(TEXTS).split(" ")
    return TEXTS + [" ".join(rng.choices(words, k=rng.randint(1, 12))) for _ in range(300)]


def whole(tokenizer: Any) -> Any:
    def encode(texts: list[str]) -> list[list[int]]:
        if not texts:
            return []
        found = tokenizer(list(texts), add_special_tokens=False, truncation=False)["input_ids"]
        return [list(ids) for ids in found]

    return encode


@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_words_give_the_tokens_of_whole_texts(tiny: Any, kind: str) -> None:
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny(kind))
    encode = whole(tokenizer)
    words = Words(tokenizer, encode)
    assert words.usable
    assert words(many()) == encode(many())
    assert words.usable


def test_a_tokenizer_that_crosses_spaces_is_left_alone(tiny: Any) -> None:
    import transformers
    from tokenizers import pre_tokenizers

    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny("causal"))
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(use_regex=False)
    assert splits_at_spaces(tokenizer)[0] is False
    encode = whole(tokenizer)
    assert Words(tokenizer, encode)(many()) == encode(many())


def test_one_difference_ends_the_short_way() -> None:
    def letters(texts: list[str]) -> list[list[int]]:
        return [[len(text)] for text in texts]  # a text is one token: words never add up

    words = Words(None, letters)
    words.usable = True
    texts = [f"w{i} and more" for i in range(3 * CHECKED)]
    assert words(texts) == letters(texts)
    assert not words.usable
