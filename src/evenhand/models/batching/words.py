"""Tokenising word by word, where that gives what tokenising whole texts gives.

Millions of texts are made of few words. BERT-like and byte-level tokenizers never form a token
across a space, so a text's tokens are those of its words one after the other, and each distinct
word needs the tokenizer once (about 2 instead of 50 microseconds per short text).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

CHECKED = 8
"""Texts of each call that are tokenised whole as well; one that differs ends the short way."""

Encode = Callable[[list[str]], list[list[int]]]


class Words:
    """Token ids of texts without special tokens, from remembered words.

    Args:
        tokenizer: the checkpoint's tokenizer.
        encode: tokenises whole texts, without special tokens.
    """

    def __init__(self, tokenizer: Any, encode: Encode) -> None:
        self._encode = encode
        self.usable, self._spaced = splits_at_spaces(tokenizer)
        self._known: dict[str, list[int]] = {}

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text."""
        if not self.usable or len(texts) <= CHECKED:
            return self._encode(list(texts))
        made = self._made(texts)
        step = max(1, len(texts) // CHECKED)
        if self._encode(list(texts[::step])) != made[::step]:
            self.usable = False
            return self._encode(list(texts))
        return made

    def _made(self, texts: Sequence[str]) -> list[list[int]]:
        parts = [self._chunks(text) for text in texts]
        new = list({chunk for chunks in parts for chunk in chunks}.difference(self._known))
        self._known.update(zip(new, self._encode(new)))
        known = self._known
        return [[i for chunk in chunks for i in known[chunk]] for chunks in parts]

    def _chunks(self, text: str) -> list[str]:
        """The text in pieces that no token crosses; runs of spaces stay in one piece."""
        words = text.split(" ")
        if not self._spaced:
            return words
        if "" in words:
            return [text]
        return [words[0], *[f" {word}" for word in words[1:]]]


def splits_at_spaces(tokenizer: Any) -> tuple[bool, bool]:
    """Whether no token crosses a space, and whether a space belongs to the word after it."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return False, False
    facts = json.loads(backend.to_str())
    if any(token.get("rstrip") for token in facts.get("added_tokens") or ()):
        return False, False
    before = facts.get("pre_tokenizer") or {}
    kinds = [before, *before.get("pretokenizers", ())]
    names = {kind.get("type") for kind in kinds}
    normalizer = (facts.get("normalizer") or {}).get("type")
    if names == {"BertPreTokenizer"} and normalizer in (None, "BertNormalizer", "Lowercase"):
        return True, False
    byte_level = [kind for kind in kinds if kind.get("type") == "ByteLevel"]
    plain = names <= {"ByteLevel", "Sequence", "Digits"} and normalizer is None
    regex = len(byte_level) == 1 and byte_level[0].get("use_regex", True)
    prefixed = any(kind.get("add_prefix_space") for kind in byte_level)
    return bool(plain and regex and not prefixed), True
