"""Objects that people hold already, as models: recognised by what they are, never copied.

    transformers     a model with `tokenizer=`, a pipeline, a PEFT model
    sentences        a SentenceTransformer with its own pooling, a model2vec StaticModel
    words            gensim KeyedVectors (or Word2Vec), spaCy vectors or pipeline, word -> vector
    functions        texts -> scores or labels; a fitted scikit-learn classifier of texts

No library is imported for this: an object is of a library when a class it derives from is. What
comes out answers requests as any model does; it is known by its content (weights, code, answers),
so a run is resumed by the same call and refused where the object has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenhand.errors import SpecError
from evenhand.models.protocol import LoadOptions, Model, with_options

EXTRAS = ("name", "labels", "version")
"""What is told of an object beside `LoadOptions`."""
TAKEN = (
    "a transformers model with its tokenizer, a transformers pipeline, a SentenceTransformer, a "
    "model2vec StaticModel, gensim or spaCy vectors, a mapping of words to vectors, a scikit-learn "
    "classifier, a function from texts to scores or labels, or what `evenhand.load_model` gives"
)


def as_model(
    thing: Any,
    *,
    tokenizer: Any = None,
    kind: str | None = None,
    options: LoadOptions | None = None,
    name: str = "",
    labels: Any = (),
    version: str = "",
    **how: Any,
) -> Model:
    """The model that an object is.

    Args:
        thing: the object.
        tokenizer: of a transformers model.
        kind: instead of the one that its class says; "encoder" for a function to vectors.
        options, how: how it is asked; where and how it computes is the object's.
        name: how it is called in reports; by default as it calls itself.
        labels: of a function or classifier: the names of its labels, in the order of its numbers.
        version: of a function: known by this instead of by its code and answers.

    Raises:
        SpecError: it is nothing of the kind, or something that belongs to it is missing.
    """
    from evenhand.models.objects import functions, sentences, transformers, words

    chosen = with_options(options, how)
    if isinstance(thing, Model):
        no_extras(thing.name, tokenizer, {"name": name, "labels": labels, "version": version})
        return thing
    if transformers.taken(thing):
        return transformers.model(thing, tokenizer, kind, chosen, name)
    if transformers.is_tokenizer(thing):
        raise SpecError(
            f"model {type(thing).__name__!r}: a tokenizer without its model. Give both: "
            f"evenhand.audit(model, tokenizer=tokenizer)"
        )
    if tokenizer is not None:
        raise SpecError(
            f"tokenizer: given with {type(thing).__name__!r}, which is not a transformers model. "
            "Leave it out."
        )
    if sentences.taken(thing):
        return sentences.model(thing, name, chosen)
    if words.taken(thing):
        return words.model(thing, name)
    if functions.taken(thing):
        return functions.model(thing, name, labels, version, kind)
    shown = " ".join(repr(thing).split())
    several = " Audit several models one by one." if isinstance(thing, list | tuple | set) else ""
    raise SpecError(f"model {shown:.60} ({type(thing).__name__}): expected {TAKEN}.{several}")


def as_typed(spec: str | Path) -> str:
    """A path as a user would type it; a path of which nothing is there is no Hub id, nor is "".

    >>> as_typed("smollm2-135m"), as_typed(Path("."))
    ('smollm2-135m', '.')
    """
    if isinstance(spec, Path) and not spec.expanduser().exists():
        raise SpecError(
            f"{str(spec)!r}: no such file or folder. A Hub id or alias is given as text."
        )
    if not str(spec).strip():
        raise SpecError(f"model {spec!r}: is empty. See what can be given: evenhand ls models")
    return str(spec)


def no_extras(called: str | Path, tokenizer: Any, told: Mapping[str, Any]) -> None:
    """Refuse what belongs to objects only, for a model that is read from files."""
    given = ["tokenizer"] if tokenizer is not None else []
    given += [key for key in EXTRAS if told.get(key)]
    if given:
        raise SpecError(
            f"{given[0]}: model {str(called)!r} brings its own. It is given with objects in "
            f"memory only. Leave it out."
        )


def separated(how: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is told of an object, and what of loading and asking.

    >>> separated({"labels": ["a", "b"], "chat": "off"})
    ({'labels': ['a', 'b']}, {'chat': 'off'})
    """
    own = {key: value for key, value in how.items() if key in EXTRAS}
    return own, {key: value for key, value in how.items() if key not in EXTRAS}
