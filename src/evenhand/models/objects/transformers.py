"""Models of transformers in memory: the object, a pipeline around it, an adapter of PEFT on it."""

from __future__ import annotations

from typing import Any

from evenhand.errors import ModelError, SpecError
from evenhand.models.loading.held import Held
from evenhand.models.objects.recognised import is_a
from evenhand.models.protocol import LoadOptions, Model

ZERO_SHOT = "ZeroShotClassificationPipeline"
TASKS = (
    "text-classification",
    "text-generation",
    "fill-mask",
    "question-answering",
    "feature-extraction",
)


def taken(thing: Any) -> bool:
    return _is_model(thing) or is_a(thing, "transformers", "Pipeline")


def is_tokenizer(thing: Any) -> bool:
    """Whether it is a tokenizer, which is callable like a function of texts, but no model."""
    return is_a(thing, "transformers", "PreTrainedTokenizerBase")


def _is_model(thing: Any) -> bool:
    return is_a(thing, "transformers", "PreTrainedModel") or is_a(thing, "peft", "PeftModel")


def model(
    thing: Any, tokenizer: Any, kind: str | None, options: LoadOptions, name: str = ""
) -> Model:
    """The adapter of the object's kind around the object.

    Raises:
        SpecError: there is no tokenizer with it.
        ModelError: no kind asks such a model anything.
    """
    pipe = thing if not _is_model(thing) else None
    activation, whole = "", thing
    if pipe is not None:
        _check_pipeline(pipe)
        thing = whole = pipe.model
        tokenizer = tokenizer or pipe.tokenizer
        activation = _function(pipe)
    if is_a(thing, "peft", "PeftModel"):
        thing = _inside(thing)
    if tokenizer is None:
        raise SpecError(
            f"model {type(thing).__name__!r}: an object without its tokenizer. Give both: "
            f"evenhand.audit(model, tokenizer=AutoTokenizer.from_pretrained(...))"
        )
    if not callable(tokenizer) or not hasattr(tokenizer, "get_vocab"):
        raise SpecError(
            f"tokenizer {tokenizer!r:.60}: expected a tokenizer of transformers, such as "
            f"AutoTokenizer.from_pretrained(...)"
        )
    from evenhand.models.loading.resolver import adapter, kind_of_architecture
    from evenhand.models.loading.transformer import Transformer

    chosen = adapter(kind or kind_of_architecture(type(thing).__name__))
    called = name or _name(thing)
    if not issubclass(chosen, Transformer):
        raise SpecError(f"kind {kind!r}: a {type(thing).__name__} is not a model of that kind.")
    return chosen.of(Held(thing, tokenizer, whole, activation=activation), called, options)


def _name(thing: Any) -> str:
    """What it was loaded as, without the folders above; else its class."""
    place = str(getattr(thing.config, "_name_or_path", "") or "").rstrip("/")
    return place.rpartition("/")[2] or type(thing).__name__


def _check_pipeline(pipe: Any) -> None:
    """Refuse pipelines that ask their model something other than we would."""
    if type(pipe).__name__ == ZERO_SHOT:
        raise ModelError(
            "a zero-shot pipeline judges pairs of a text and a label. Give a function instead: "
            "evenhand.audit(lambda texts: [... for r in pipe(texts, LABELS)], labels=LABELS)"
        )
    if not _is_model(pipe.model) or pipe.tokenizer is None:
        raise ModelError(
            f"a pipeline for {pipe.task!r}: expected one of text, with a model and a tokenizer: "
            f"{', '.join(TASKS)}."
        )


def _function(pipe: Any) -> str:
    """How a classifying pipeline makes numbers of logits, where it was told to."""
    given = getattr(pipe, "_postprocess_params", {}).get("function_to_apply")
    return str(getattr(given, "value", given)).lower() if given is not None else ""


def _inside(thing: Any) -> Any:
    """The model with the layers of the adapter in it; the object stays as it is."""
    if thing.active_peft_config.is_prompt_learning:
        raise ModelError(
            f"an adapter of kind {thing.active_peft_config.peft_type!s} stands before the text and "
            f"not in the model's layers, so the model cannot be asked with it. Give a function."
        )
    return thing.get_base_model()
