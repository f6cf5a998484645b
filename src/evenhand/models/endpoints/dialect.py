"""How a server wants to be spoken to, as far as servers differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

LLAMA_CPP = "llama.cpp"
VLLM = "vllm"
CONTINUE = "Continue this text. Reply with the continuation only.\n\n{text}"
PLAIN_SAMPLING: dict[str, Any] = {"top_k": 0, "min_p": 0.0}
"""Some servers cut unlikely tokens off unless they are told not to; OpenAI refuses these fields."""
NO_CACHE: dict[str, Any] = {"cache_prompt": False}
"""llama.cpp: a reused prefix changes the last digits, and so would the order of calls."""
NO_THINKING: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}}


@dataclass(frozen=True)
class Dialect:
    """What is sent besides the question.

    Attributes:
        model: the name that the server knows.
        system: the system prompt ("" for none of ours).
        server: llama.cpp, vllm or "" where that cannot be seen.
        limit: what the field for the number of new tokens is called.
        extras: fields that this server takes.
        top: how many top log-probabilities it gives.
        chat: whether it is asked as chat where a rung could do without.
    """

    model: str
    system: str = ""
    server: str = ""
    limit: str = "max_tokens"
    extras: Mapping[str, Any] = field(default_factory=dict)
    top: int = 0
    chat: bool = True

    def messages(self, text: str, opening: str | None = None) -> list[dict[str, str]]:
        first = [{"role": "system", "content": self.system}] if self.system else []
        begun = [{"role": "assistant", "content": opening}] if opening is not None else []
        return [*first, {"role": "user", "content": text}, *begun]

    def ask(
        self,
        text: str,
        *,
        tokens: int,
        temperature: float = 0.0,
        opening: str | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """The body of a call of /chat/completions."""
        return {
            "model": self.model,
            "messages": self.messages(text, opening),
            self.limit: tokens,
            "temperature": temperature,
            **self.extras,
            **more,
        }

    @property
    def begins(self) -> Mapping[str, Any] | None:
        """What to send so that the answer begins with given words; None where that cannot be."""
        if self.server == VLLM:
            return {"continue_final_message": True, "add_generation_prompt": False}
        return {} if self.server == LLAMA_CPP else None


def with_options(prompt: str, options: Sequence[str]) -> str:
    """A question as a person would put it, with the options listed unless it names them all.

    >>> with_options("Ann met Bo.\\nWho sang?", ["Ann", "Bo"])
    'Ann met Bo.\\nWho sang?'
    >>> with_options("Who sang?", ["Ann", "Bo"])
    'Who sang?\\nAnswer with one of these: Ann; Bo.'
    """
    told = prompt.casefold()
    if all(option.casefold() in told for option in options):
        return prompt
    return f"{prompt}\nAnswer with one of these: {'; '.join(options)}."
