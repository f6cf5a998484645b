"""Causal language models: next-token facts, continuations, options, sampled text.

Every question about a text comes down to hidden states at some of its tokens, so all of them
go through one packed pass (`packing`): a shared beginning is computed once, and only the
positions asked for reach the vocabulary head.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from evenhand.errors import ModelError, SpecError
from evenhand.models.adapters import causal_choose, causal_fill, decoding, spans_marked
from evenhand.models.adapters.causal_pass import HEAD_ELEMENTS, PackedPass, Wanted
from evenhand.models.adapters.divergences import divergences
from evenhand.models.adapters.generation import prompt_tokens, sample
from evenhand.models.batching.packing import (
    Ragged,
    common_prefix,
)
from evenhand.models.batching.words import Joined
from evenhand.models.chat import chat_of
from evenhand.models.edits.head import AppliedEdit, HeadEdit
from evenhand.models.loading.held import Held
from evenhand.models.protocol import LoadOptions
from evenhand.requests import (
    Choose,
    Column,
    Continuation,
    Divergence,
    Embed,
    FillMask,
    Generate,
    NextToken,
    Option,
    Requests,
    Start,
)

SMALL = 500_000_000
"""Parameters below which a pass takes longer to launch than to run, so that more goes into one."""


class CausalModel(PackedPass):
    """A causal language model from the Hub, a folder, or a converted GGUF file."""

    kind = "causal"
    auto = "AutoModelForCausalLM"
    architectures = ("ForCausalLM", "LMHeadModel")
    task = "text-generation"
    talks = True
    answers = frozenset(
        {r.kind for r in (Divergence, NextToken, Continuation, FillMask, Option, Choose)}
        | {Generate.kind, Embed.kind}
    )
    rungs: ClassVar = {
        **dict.fromkeys(("continuation", "chat continuation"), answers - {Embed.kind}),
        "letters": frozenset({Choose.kind}),
        "free text": frozenset({Choose.kind, Generate.kind}),
    }

    def __init__(self, source: str | Held, name: str, options: LoadOptions | None = None) -> None:
        super().__init__(source, name, options)
        options = options or LoadOptions()
        if options.token_budget is None and self.on_gpu and self.n_parameters < SMALL:
            self.token_budget *= 2
        self.vocabulary = int(self.model.get_output_embeddings().weight.shape[0])
        self.start = self._start_tokens()
        self.chat = chat_of(self.tokenizer, name, options.chat, options.system)
        self.way = options.way
        self.rung = causal_choose.RUNGS[options.way, self.chat is not None]
        self.packs, self.begins_once = self._packing()

    def check_config(self, config: Any, *architectures: str) -> None:
        """A masked model has a head of the same shape, but reads both sides of a word."""
        masked = [a for a in architectures if a.endswith("ForMaskedLM")]
        if masked and not getattr(config, "is_decoder", False):
            raise ModelError(
                f"model {self.name!r} is a {masked[0]}, which fills masks and sees the words after "
                "them, so it cannot say what comes next. Leave --as causal (kind='causal') out (it "
                "is asked as the masked model that it is), or give a causal model."
            )

    def with_head(self, edit: HeadEdit, name: str = "") -> CausalModel:
        """The same model with a changed head; it shares its weights with this one.

        Every answer of the new model comes from the edited next-token distribution, and its
        fingerprint says so. This model stays as it is.
        """
        if self.edit is not None:
            raise ModelError(f"model {self.name!r} has a changed head already.")
        other = copy.copy(self)
        with self.torch.no_grad():
            other.edit = AppliedEdit(self.torch, self.model, edit)
        other.name, other.recipe = name or f"{self.name} (mitigated)", None
        other.mitigations = (*self.mitigations, f"head:{edit.digest()}")
        if edit.first_token_only:  # later tokens are not edited, so these have no meaning
            whole = {Continuation.kind, FillMask.kind, Option.kind, Choose.kind}
            other.answers = self.answers - whole
        return other

    def _start_tokens(self) -> list[int]:
        """What the tokenizer puts before every text (a begin token, or nothing)."""
        bare, full = self.encode(["a"], special=False)[0], self.encode(["a"], special=True)[0]
        return full[: len(full) - len(bare)] if full[-len(bare) :] == bare else []

    def conversation(self, requests: Requests) -> str:
        if not self.chat or not len(requests):
            return ""
        first = requests.take([0])
        if isinstance(first, Choose):
            return causal_choose.conversations(self, first)[0]
        question = isinstance(first, Option) or getattr(first, "turn", "") == "question"
        text = getattr(first, first.columns[0])[0]
        return self.chat.rendered(text) if question else self.chat.opened(text)

    def as_text(self) -> CausalModel:
        """The same model asked as plain text, whatever its template."""
        other = copy.copy(self)
        other.chat = None
        return other

    # Tokens: [start][prefix ........][continuation ...]
    # Asked:                        ^  ^   each position predicts the token after it
    def prepare(self, requests: Requests) -> Any:
        if isinstance(requests, Continuation):
            return self._continuations(requests.prefix, requests.continuation, requests.start)
        if isinstance(requests, Option):
            asked = [self.chat.rendered(p) if self.chat else p for p in requests.prompt]
            space = "" if self.chat else " "
            return self._spans(asked, [f"{space}{o}" for o in requests.option])
        if isinstance(requests, Choose):
            return causal_choose.prepare(self, requests)
        if isinstance(requests, Divergence):
            return self._pair_chunks(requests)
        if isinstance(requests, NextToken):
            return self._last_tokens(requests.context)
        if isinstance(requests, FillMask):
            return causal_fill.prepare(requests)
        return None

    @property
    def overlaps(self) -> bool:
        return self.on_gpu

    @property
    def alternates(self) -> bool:
        return self.on_gpu

    def begin(self, requests: Requests, prepared: Any) -> Callable[[], dict[str, Column]]:
        """Likelihoods are put in the device's queue; all else is answered at once."""
        if not isinstance(prepared, Wanted) or isinstance(requests, NextToken):
            columns = self.answer(requests, prepared)
            return lambda: columns
        with self.torch.inference_mode():
            wait = self._scoring(prepared)
        return lambda: self._told(requests, *wait())

    def _told(self, requests: Any, logprob: np.ndarray, count: np.ndarray) -> dict[str, Column]:
        """Summed log-probabilities of this many tokens each as answers."""
        if isinstance(requests, Continuation):
            return {"logprob": logprob, "n_tokens": count}
        if isinstance(requests, Option):
            return {"logit": logprob / np.maximum(count, 1), "n_tokens": count}
        return causal_choose.answer(requests, logprob, count)

    def answer(self, requests: Requests, prepared: Any) -> dict[str, Column]:
        with self.torch.inference_mode():
            if isinstance(requests, (Continuation, Option)):
                return self._told(requests, *self._score(prepared))
            if isinstance(requests, Choose):
                if prepared is None:
                    return causal_choose.sampled(self, requests)
                return self._told(requests, *self._score(prepared))
            if isinstance(requests, Divergence):
                return self._divergences(requests, prepared)
            if isinstance(requests, NextToken):
                return self._next_tokens(requests, prepared)
            if isinstance(requests, FillMask):
                return causal_fill.fill(self, requests, prepared)
            if isinstance(requests, Generate):
                return self.sampled(requests, prompt_tokens(self, requests))
            if isinstance(requests, Embed):
                return {"vector": spans_marked.causal_vectors(self, requests)}
        raise ModelError(f"model {self.name!r} cannot answer {requests.kind!r}.")

    def _text_tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokens of texts that the model has begun: with a chat template, in its own turn."""
        return self._tokens([self.chat.opened(t) for t in texts] if self.chat else texts)

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Start tokens and text; an empty text becomes a begin (or end-of-text) token alone.

        A rendered conversation has its start tokens in it.
        """
        distinct = list(dict.fromkeys(texts))
        encoded = dict(zip(distinct, self.words(distinct)))
        start = [] if self.chat else self.start
        tokens = [[*start, *encoded[t]] for t in texts]
        if all(tokens):
            return tokens
        first = self._before("auto")
        if not first:
            raise ModelError(f"model {self.name!r} has no begin token, so a text cannot be empty.")
        return [t or first for t in tokens]

    def sampled(self, requests: Generate, prompts: list[list[int]]) -> dict[str, Column]:
        """One text per row, after the tokens of its prompt."""
        return sample(self, requests, prompts)

    @property
    def ends(self) -> list[int]:
        """Tokens that end a text: end of text, and end of turn."""
        known = getattr(self.model.generation_config, "eos_token_id", None)
        found = [self.tokenizer.eos_token_id, *(known if isinstance(known, list) else [known])]
        if self.chat and self.chat.after:
            closes = self.encode([self.chat.after], special=False)[0][:1]
            found += [t for t in closes if t in self.tokenizer.added_tokens_decoder]
        return list(dict.fromkeys(t for t in found if t is not None))

    @property
    def begins(self) -> str:
        """What stands before a text without a prefix: bos, eos, none, or the chat template."""
        if self.chat:
            return "chat template"
        named = {"bos": self.tokenizer.bos_token_id, "eos": self.tokenizer.eos_token_id}
        first = self._before("auto")[-1:]
        return next((name for name, token in named.items() if [token] == first), "none")

    def _before(self, start: Start) -> list[int]:
        """The tokens before a text without a prefix.

        Without one the first token could not be scored, which is all that differs in every fourth
        pair of CrowS-Pairs.
        """
        if start == "none":
            return []
        known = {"bos": self.tokenizer.bos_token_id, "eos": self.tokenizer.eos_token_id}
        if start == "auto":
            found = [t for t in known.values() if t is not None]
            return self.start or found[:1]
        if known[start] is None:
            has = [name for name, token in known.items() if token is not None]
            raise SpecError(
                f"start = {start!r}: model {self.name!r} has no such token. Accepted: auto, none"
                f"{''.join(f', {name}' for name in has)}."
            )
        return [int(known[start])]

    def describe(self) -> dict[str, Any]:
        told = {"chat": self.chat.describe(), "system": self.chat.system} if self.chat else {}
        return {**super().describe(), "begins": self.begins, **told}

    @property
    def asking(self) -> tuple[str, ...]:
        talk = (self.chat.digest(),) if self.chat else ()
        return (*talk, *((self.way,) if self.way != "continuation" else ()))

    def _last_tokens(self, texts: Sequence[str]) -> Wanted:
        tokens = self._text_tokens(texts)
        self.check_lengths([len(t) for t in tokens], "context")
        return Wanted.of(tokens, [range(len(t) - 1, len(t)) for t in tokens])

    def _continuations(
        self, prefixes: Sequence[str], continuations: Sequence[str], start: Start = "auto"
    ) -> Wanted:
        """Texts that the model has begun, and how they go on."""
        if self.chat:
            return self._spans([self.chat.opened(p) for p in prefixes], continuations)
        return self._spans(prefixes, continuations, start)

    def _spans(
        self, prefixes: Sequence[str], continuations: Sequence[str], start: Start = "auto"
    ) -> Wanted:
        """Tokenise prefix and continuation as one text, as the model would read it.

        The prefix ends where its own tokens stop agreeing with those of the whole text, so a
        token that spans the border counts as continuation.
        """
        joined = self.words.joined(prefixes, continuations) if all(prefixes) else None
        if joined is not None:
            return self._joined(joined)
        whole = self._tokens([p + c for p, c in zip(prefixes, continuations)])
        given = iter(self._tokens([p for p in prefixes if p]))
        first = [] if all(prefixes) else self._before(start)
        before = [next(given) if p else first for p in prefixes]
        for i, (prefix, text) in enumerate(zip(prefixes, continuations)):
            if text and not prefix:
                whole[i] = [*first, *whole[i][len(self.start) :]]
        self.check_lengths([len(t) for t in whole], "text")
        positions = []
        for known, tokens in zip(before, whole):
            at = min(max(1, common_prefix(known, tokens)), len(tokens))
            positions.append(range(at - 1, len(tokens) - 1))
        wanted = Wanted.of(whole, positions)
        self._lay_out(wanted)
        return wanted

    def _joined(self, parts: Joined) -> Wanted:
        """The same from texts that were tokenised in two pieces."""
        start = Ragged.of([[] if self.chat else self.start])
        first = np.zeros(len(parts.head), np.int64)
        tokens = Ragged.joined(
            [(start, first), (parts.heads, parts.head), (parts.tails, parts.tail)]
        )
        self.check_lengths([int(tokens.sizes.max())], "text")
        known = tokens.sizes - parts.tails.sizes[parts.tail] + parts.known[parts.tail]
        wanted = Wanted(tokens, known - 1, tokens.sizes - 1)
        self._lay_out(wanted)
        return wanted

    def last_states(self, texts: Sequence[str]) -> np.ndarray:
        """What the head sees after each text: float32 [texts, hidden size]."""
        return self.states(self._last_tokens(texts))

    def text_states(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """States before each token of a text but the first, the tokens, and whose they are.

        In a conversation the first counts too.
        """
        if self.chat:
            wanted = self._continuations([""] * len(texts), texts)
        else:
            tokens = self._text_tokens(texts)
            self.check_lengths([len(t) for t in tokens], "text")
            wanted = Wanted.of(tokens, [range(len(t) - 1) for t in tokens])
        targets = [s[i + 1] for s, p in zip(wanted.sequences, wanted.positions) for i in p]
        owners = np.repeat(np.arange(len(texts)), [len(p) for p in wanted.positions])
        return self.states(wanted), np.asarray(targets), owners

    @cached_property
    def shares_prompts(self) -> bool:
        """Whether the texts of a prompt can be decoded together (`decoding`)."""
        with self.torch.inference_mode():
            return not self.compiled and decoding.fits(self)

    def _pair_chunks(self, requests: Divergence) -> list[tuple[range, list[str], Wanted]]:
        """Pairs in pieces whose distributions fit in memory together, contexts tokenised."""
        size = max(1, HEAD_ELEMENTS // self.vocabulary)
        chunks = []
        for low in range(0, len(requests), size):
            pairs = range(low, min(low + size, len(requests)))
            both = [(requests.context_a[i], requests.context_b[i]) for i in pairs]
            contexts = list(dict.fromkeys(c for pair in both for c in pair))
            chunks.append((pairs, contexts, self._last_tokens(contexts)))
        return chunks

    def _divergences(
        self, requests: Divergence, chunks: list[tuple[range, list[str], Wanted]]
    ) -> dict[str, Column]:
        facts = np.empty((len(requests), len(Divergence.outputs)))
        for pairs, contexts, wanted in chunks:
            logp = dict(zip(contexts, self._log_probabilities(wanted)))
            for i in pairs:
                a, b = requests.context_a[i], requests.context_b[i]
                facts[i] = divergences(self.torch, logp[a], logp[b])
        return dict(zip(Divergence.outputs, facts.T.copy()))

    def _next_tokens(self, requests: NextToken, wanted: Wanted) -> dict[str, Column]:
        entropy, tokens, logprobs = [], [], []
        for row in self._log_probabilities(wanted):
            exact = row.double()
            entropy.append(float(-(exact.exp() * exact).sum()))
            best = row.topk(min(requests.top, len(row)))
            tokens.append([self.tokenizer.decode([int(i)]) for i in best.indices])
            logprobs.append(best.values.double().tolist())
        return {"entropy": np.asarray(entropy), "tokens": tokens, "logprobs": logprobs}
