"""What a changed head does to a Hugging Face model, and how it is taken back."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.models.edits.head import AppliedEdit


class StepWatch:
    """A handle: `generate` says of each step whether it is the first, with a cache or without."""

    def __init__(self, applied: AppliedEdit) -> None:
        self.model, own = applied.model, applied.model.prepare_inputs_for_generation

        @functools.wraps(own)
        def prepare(*arguments: Any, **keywords: Any) -> Any:
            applied._later = not keywords.get("is_first_iteration", False)
            return own(*arguments, **keywords)

        self.model.prepare_inputs_for_generation = prepare

    def remove(self) -> None:
        del self.model.prepare_inputs_for_generation


class OtherHead:
    """A handle: the head has other weights until `remove`. Tied input embeddings keep theirs."""

    def __init__(self, head: Any, weight: Any, bias: Any) -> None:
        self.head, self.own = head, (head.weight, head.bias)
        head.weight, head.bias = weight, bias

    def remove(self) -> None:
        self.head.weight, self.head.bias = self.own


def goes_on(keywords: Any) -> bool:
    """Whether this call continues a text from its cache (any token but the first)."""
    cache, ids = keywords.get("past_key_values"), keywords.get("input_ids")
    if cache is None or ids is None:
        return False
    return int(cache.get_seq_length()) > int(ids.shape[1])


def after_head(torch: Any, config: Any) -> Any:
    """What the model does to its logits after the head, or None for nothing."""
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    cap = getattr(text, "final_logit_softcapping", None)
    times = float(getattr(text, "logit_scale", None) or 1.0)
    divided = float(getattr(text, "logits_scaling", None) or 1.0)
    if not cap and times == 1.0 and divided == 1.0:
        return None

    def post(raw: Any) -> Any:
        scaled = raw * (times / divided)
        return torch.tanh(scaled / cap) * cap if cap else scaled

    return post


def raw_logits(torch: Any, model: Any) -> Any:
    """A function from states [n, d] to what the model's own head gives, in float32, bias and all.

    It comes before anything `after_head` does.
    """
    head = model.get_output_embeddings()
    weight, bias = head.weight.detach().float(), getattr(head, "bias", None)
    bias = None if bias is None else bias.detach().float()
    return lambda states: torch.nn.functional.linear(states, weight, bias)
