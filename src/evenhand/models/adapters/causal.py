"""Causal language models: next-token facts, continuations, options, sampled text.

Every question about a text comes down to hidden states at some of its tokens, so all of them
go through one packed pass (`packing`): a shared beginning is computed once, and only the
positions asked for reach the vocabulary head.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from evenhand.errors import ModelError, SpecError
from evenhand.models.adapters import causal_choose, causal_fill, decoding, spans_marked
from evenhand.models.adapters.generation import prompt_tokens, sample
from evenhand.models.batching.beginnings import common_beginning, run_once
from evenhand.models.batching.lanes import LANE_TOKENS, in_lanes
from evenhand.models.batching.packing import (
    Ints,
    PackedBatch,
    Ragged,
    common_prefix,
    pack,
    packed_batches,
)
from evenhand.models.batching.words import Joined
from evenhand.models.chat import chat_of
from evenhand.models.edits.head import AppliedEdit, HeadEdit
from evenhand.models.loading.device import fetched, moved
from evenhand.models.loading.held import Held
from evenhand.models.loading.transformer import Transformer
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

ROW_NODES = 256
SMALL = 500_000_000
"""Parameters below which a pass takes longer to launch than to run, so that more goes into one."""
GRAIN = 8
"""On a GPU: cuDNN's attention takes 50 ms to plan for a shape that it has not met."""
HEAD_ELEMENTS = 1 << 26
"""Vocabulary-sized floats alive at once: 256 MB in float32."""
DEVICE_HEAD_ELEMENTS = 1 << 30
"""The same on a GPU, where a pass over few tokens does not pay."""


@dataclass
class Wanted:
    """Token sequences, and the positions whose next-token distribution is asked for.

    Positions starts[i] to stops[i] (not included) of sequence i.
    """

    tokens: Ragged
    starts: Ints
    stops: Ints
    batches: list[PackedBatch] | None = None
    """How they are laid out, when that was done ahead."""
    beginning: int = 0
    """How many first tokens of all sequences are run once, before the batches."""

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]], positions: Sequence[range]) -> Wanted:
        size = len(positions)
        return cls(
            Ragged.of(sequences),
            np.fromiter((p.start for p in positions), np.int64, size),
            np.fromiter((p.stop for p in positions), np.int64, size),
        )

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def sequences(self) -> list[list[int]]:
        return self.tokens.lists()

    @cached_property
    def positions(self) -> list[range]:
        return list(map(range, self.starts.tolist(), self.stops.tolist()))


Use = Callable[[Any, Ints, Ints, Ints], None]


class _Seen(Exception):
    """Carries the head's input out of a forward pass that needs no head."""

    def __init__(self, states: Any) -> None:
        super().__init__()
        self.states = states


class CausalModel(Transformer):
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
        self.packs, self.begins_once = self._packing_is_exact()

    def check_config(self, config: Any, *architectures: str) -> None:
        """A masked model has a head of the same shape, but reads both sides of a word."""
        masked = [a for a in architectures if a.endswith("ForMaskedLM")]
        if masked and not getattr(config, "is_decoder", False):
            raise ModelError(
                f"model {self.name!r} is a {masked[0]}, which fills masks and sees the words after "
                f"them, so it cannot say what comes next. Leave --as causal out (it is asked as "
                f"the masked model that it is), or give a causal model."
            )

    edit: AppliedEdit | None = None
    """A changed head, or None: set through `with_head`."""

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

    @contextlib.contextmanager
    def edited(self) -> Iterator[None]:
        """Inside: calls of the Hugging Face model give the edited logits, if there is an edit."""
        if self.edit is None:
            yield
            return
        with self.edit.active():
            yield
        self.edit.check(self.name, self.dtype)

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
        """Summed log-probabilities of so many tokens each as answers."""
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

    def _score(self, wanted: Wanted) -> tuple[np.ndarray, np.ndarray]:
        """Summed log-probability of the tokens after each wanted position, and their number."""
        return self._scoring(wanted)()

    def _scoring(self, wanted: Wanted) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
        """The same, put in the device's queue; the function given back waits for it."""
        parts, seen = [], []
        tokens, starts = wanted.tokens.tokens, wanted.tokens.starts

        def add(logits: Any, which: Ints, owners: Ints, steps: Ints) -> None:
            asked = np.stack([which, tokens[starts[owners] + steps + 1]])
            at, target = moved(self.torch, asked, self.device)
            parts.append(logits[at, target] - logits.logsumexp(-1)[at])
            seen.append(owners)

        self._visit(wanted, add)
        wait = fetched(self.torch, self.torch.cat(parts)) if parts else None

        def finish() -> tuple[np.ndarray, np.ndarray]:
            if wait is None:
                return np.zeros(len(wanted)), np.zeros(len(wanted), np.int32)
            total = np.bincount(np.concatenate(seen), wait(), len(wanted))
            return total, (wanted.stops - wanted.starts).astype(np.int32)

        return finish

    @property
    def _head_limit(self) -> int:
        """How many positions may go through the vocabulary head together."""
        return max(1, (DEVICE_HEAD_ELEMENTS if self.on_gpu else HEAD_ELEMENTS) // self.vocabulary)

    @property
    def _batch_tokens(self) -> int:
        """How many tokens are run together: on a processor few, which lanes share out evenly."""
        return self.token_budget if self.on_gpu else min(self.token_budget, LANE_TOKENS)

    def _lay_out(self, wanted: Wanted) -> list[PackedBatch]:
        """Pack the sequences into batches (may be done ahead of the device).

        What stands after the last asked position is not run: a continuation of one token costs
        nothing beside its prefix. Nor is the beginning that all conversations share.
        """
        once = self.chat is not None and self.begins_once
        starts, stops, given = wanted.starts, wanted.stops, wanted.tokens
        at = common_beginning(given, starts) if once else 0
        read = given.cut(at, np.minimum(given.sizes, np.maximum(1, stops)))
        row_nodes = max(ROW_NODES, int(read.sizes.max(initial=0)))
        trees = pack(read, row_nodes, share=self.packs)
        wanted.beginning = at
        wanted.batches = packed_batches(
            trees, starts - at, stops - at, self._batch_tokens, self._head_limit,
            GRAIN if self.on_gpu else 1,
        )  # fmt: skip
        return wanted.batches

    def _visit(self, wanted: Wanted, use: Use) -> None:
        """Call `use(logits, which, owners, steps)` for batches of wanted positions.

        Position k is step `steps[k]` of sequence `owners[k]`, and its logits are row `which[k]`:
        sequences that begin alike are asked about the same rows.
        """
        batches = self._lay_out(wanted) if wanted.batches is None else wanted.batches
        at = wanted.beginning
        begun = (
            run_once(self.torch, self.model, wanted.tokens.tokens[:at], self.device) if at else None
        )

        def run(lane: CausalModel, batch: PackedBatch, lock: Any) -> None:
            logits = lane._forward(batch, at, begun)
            with lock:
                use(logits, batch.inverse, batch.owners, batch.steps + at)

        if self.on_gpu or self.compiled or self.edit is not None:
            for batch in batches:
                run(self, batch, contextlib.nullcontext())
        else:
            in_lanes(self, batches, run)

    def _forward(self, batch: PackedBatch, at: int = 0, begun: Any = None) -> Any:
        """Logits at the asked nodes of a batch of packed rows, float32 [nodes, vocabulary]."""
        torch = self.torch
        arguments: dict[str, Any] = {"input_ids": moved(torch, batch.tokens, self.device)}
        if self.packs:
            arguments["attention_mask"] = self._tree_mask(moved(torch, batch.ends, self.device), at)
            arguments["position_ids"] = moved(torch, batch.depths + at, self.device)
        if begun is not None:
            arguments["past_key_values"] = begun
        where = (moved(torch, batch.rows, self.device), moved(torch, batch.columns, self.device))
        with self.only_positions(*where), self.edited():
            try:
                return self.model(**arguments, use_cache=begun is not None).logits[0].float()
            except _Seen as seen:
                return seen.states[0].float()

    def _tree_mask(self, ends: Any, at: int = 0) -> Any:
        """What is added to attention scores [rows, 1, width, at + width]: 0 for ancestors and self.

        The first `at` columns are a beginning that every node has.
        """
        torch = self.torch
        node = torch.arange(ends.shape[1], device=self.device)
        seen = (node[None, :] <= node[:, None]) & (node[:, None] < ends[:, None, :])
        out = torch.zeros(seen.shape, dtype=self.model.dtype, device=self.device)
        out = out.masked_fill_(~seen, torch.finfo(self.model.dtype).min)
        return torch.nn.functional.pad(out, (at, 0))[:, None]

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

    def states(self, wanted: Wanted) -> np.ndarray:
        """The head's inputs at the wanted positions, in order; the head itself does not run."""
        starts = np.cumsum(np.append(0, wanted.stops - wanted.starts))
        out = np.empty((int(starts[-1]), self.model.get_output_embeddings().weight.shape[1]), "f4")

        def stop(module: Any, inputs: Any) -> None:
            raise _Seen(inputs[0])

        def use(states: Any, which: Ints, owners: Ints, steps: Ints) -> None:
            out[starts[owners] + steps - wanted.starts[owners]] = states.cpu().numpy()[which]

        handle = self.model.get_output_embeddings().register_forward_pre_hook(stop)
        plain = copy.copy(self)
        plain.edit = None
        try:
            with self.torch.inference_mode():
                plain._visit(wanted, use)
        finally:
            handle.remove()
        return out

    @cached_property
    def shares_prompts(self) -> bool:
        """Whether the texts of a prompt can be decoded together (`decoding`)."""
        with self.torch.inference_mode():
            return not self.compiled and decoding.fits(self)

    def _packing_is_exact(self) -> tuple[bool, bool]:
        """Whether packed rows give this architecture the scores of plain sequences, and whether
        they do so after a beginning that is run once."""
        some = list(range(5, 12))
        wanted = Wanted.of([some, [*some[:4], 20, 21]], [range(6, 7), range(5, 6)])
        plain = self._as_laid_out(wanted, packs=False, at=0)
        tolerance = 1e-3 if self.dtype == "float32" else 0.3

        def exact(at: int) -> bool:
            found = self._as_laid_out(wanted, packs=True, at=at)
            both = plain is not None and found is not None
            return both and all(
                float((found[i] - plain[i]).abs().max()) < tolerance  # type: ignore[index]
                for i in plain or ()
            )

        packs = exact(0)
        return packs, packs and not self.compiled and self.chat is not None and exact(3)

    def _as_laid_out(self, wanted: Wanted, *, packs: bool, at: int) -> dict[int, Any] | None:
        """Log-probabilities under a way to lay sequences out; None where it is not taken."""
        found: dict[int, Any] = {}

        def keep(logits: Any, which: Ints, owners: Ints, steps: Ints) -> None:
            found.update(zip(owners.tolist(), logits[which.tolist()].log_softmax(-1)))

        self.packs, self.begins_once = packs, at > 0
        wanted = Wanted(wanted.tokens, wanted.starts, wanted.stops)
        try:
            with self.torch.inference_mode():
                self._visit(wanted, keep)
        except (TypeError, ValueError, RuntimeError, AttributeError):
            return None  # the architecture takes no explicit mask or positions
        return found

    def _log_probabilities(self, wanted: Wanted) -> list[Any]:
        """Next-token log-probabilities after each sequence, float32 [vocabulary] each."""
        out: list[Any] = [None] * len(wanted)

        def keep(logits: Any, which: Ints, owners: Ints, steps: Ints) -> None:
            exact = logits.log_softmax(-1)
            for owner, row in zip(owners.tolist(), which.tolist()):
                out[owner] = exact[row]

        self._visit(wanted, keep)
        return out

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


def divergences(torch: Any, log_p: Any, log_q: Any) -> tuple[float, float, float, float]:
    """KL(p||q), KL(q||p), squared Hellinger and Jensen-Shannon (nats) of two distributions.

    Summed in float64 from log-probabilities: H^2 = 1/2 sum (sqrt p - sqrt q)^2 lies in [0, 1]
    by construction and nothing is ever 0 * log 0: tokens that neither side allows count nothing.
    NaN stays NaN, so that whoever asked can refuse it.
    """
    log_p, log_q = log_p.double(), log_q.double()
    log_p, log_q = log_p - log_p.logsumexp(-1), log_q - log_q.logsumexp(-1)
    p, q = log_p.exp(), log_q.exp()
    none = torch.zeros_like(p)
    kl_pq = float(torch.where(log_p == -torch.inf, none, p * (log_p - log_q)).sum())
    kl_qp = float(torch.where(log_q == -torch.inf, none, q * (log_q - log_p)).sum())
    root = (log_p / 2).exp() - (log_q / 2).exp()
    hellinger2 = float(0.5 * (root * root).sum())
    # Equal entries keep their value, so that identical contexts cancel to the last bit.
    log_m = torch.logaddexp(log_p, log_q) - float(np.log(2.0))
    log_m = torch.where(log_p == log_q, log_p, log_m)
    from_p = torch.where(log_p == -torch.inf, none, p * (log_p - log_m))
    from_q = torch.where(log_q == -torch.inf, none, q * (log_q - log_m))
    js = float(0.5 * from_p.sum() + 0.5 * from_q.sum())
    # max(nan, 0.0) is nan where max(0.0, nan) would be 0.
    return max(kl_pq, 0.0), max(kl_qp, 0.0), min(hellinger2, 1.0), max(js, 0.0)
