"""PEFT adapters: a folder with small changes to another model, put on that model.

    adapter_config.json          which model is below, and which task the adapter is for
    adapter_model.safetensors    the changes

The base is loaded as any checkpoint is, the adapter is merged into it, and from there on it is an
ordinary model. Only safetensors are opened. peft does not see the configuration in the folder, but
one made of settings that are on a list (`adapter_settings`), so nothing that it names is run.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenhand.errors import ModelError, need
from evenhand.models.loading.adapter_settings import checked_settings, patterns_of
from evenhand.models.loading.checkpoint import check_finite, check_numbers
from evenhand.opening import read_object
from evenhand.systems import Unbounded, alarmed

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
HEADS = {
    "SEQ_CLS": "ForSequenceClassification",
    "QUESTION_ANS": "ForQuestionAnswering",
    "CAUSAL_LM": "ForCausalLM",
    "FEATURE_EXTRACTION": "",
}
"""Tasks of adapters, and how architectures with the head for them end."""
LABELS = ("classifier.weight", "score.weight", "out_proj.weight")
"""Ends of the names of head weights, whose rows are the labels."""


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter and not a model."""
    return (folder / CONFIG).is_file()


def base_of(folder: Path) -> str:
    """The model that an adapter was made for: a folder, an alias or a Hub id.

    A relative path is looked for here, as peft does, and beside the adapter.
    """
    named = _config(folder).get("base_model_name_or_path")
    if not isinstance(named, str) or not named:
        raise ModelError(
            f"{folder / CONFIG}: does not say which model it was made for. Give that model's "
            f"folder there as base_model_name_or_path."
        )
    beside, here = (folder / named).resolve(), Path(named)
    return str(beside) if beside.is_dir() and not (here / "config.json").is_file() else named


def architecture_of(folder: Path) -> str | None:
    """How the architecture ends that an adapter's task asks for; None: that of the base."""
    task = _config(folder).get("task_type")
    return HEADS.get(str(task))


def head_options(folder: Path) -> dict[str, Any]:
    """How the base must be loaded: with a new head where the adapter brings its weights.

    Raises:
        ModelError: weights are missing or pickled, or a setting of the adapter is not accepted.
    """
    checked_settings(_config(folder), folder / CONFIG)
    safetensors: Any = need("safetensors", extra="hf", what="reading an adapter")
    if not (folder / WEIGHTS).is_file():
        raise ModelError(
            f"{folder}: no {WEIGHTS}. Pickled weights (.bin) can run code and are never opened. "
            f"Save it again with: model.save_pretrained(DIR, safe_serialization=True)"
        )
    with safetensors.safe_open(folder / WEIGHTS, framework="numpy") as file:
        heads = [key for key in file.keys() if key.endswith(LABELS)]  # noqa: SIM118
        rows = [file.get_slice(key).get_shape()[0] for key in heads]
    if architecture_of(folder) != HEADS["SEQ_CLS"]:
        return {}
    if not heads:
        raise ModelError(
            f"{folder}: an adapter for classification without the head's weights, which would be "
            f"random. Name the head in modules_to_save when you train it."
        )
    return {"new": True, "num_labels": int(rows[-1])}


def merged(model: Any, folder: Path) -> Any:
    """The model with the adapter in its weights.

    Raises:
        ModelError: the adapter does not fit, or is of a kind that has no place in weights.
    """
    peft: Any = need("peft", extra="peft", what="putting an adapter on its base")
    settings = _settings(peft, model, folder)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        made = peft.PeftModel.from_pretrained(model, str(folder), config=settings)
    lost = [str(w.message) for w in said if "missing" in str(w.message).lower()]
    if lost:
        raise ModelError(
            f"{folder}: the adapter does not fit its base, {base_of(folder)!r}: {lost[0][:200]}"
        )
    known = peft.get_peft_model_state_dict(made, save_embedding_layers=False)
    if spare := sorted(k for k in _names(folder) if ".lora_" in k and k not in known):
        raise ModelError(
            f"{folder}: the adapter does not fit its base, {base_of(folder)!r}: it holds changes "
            f"of {spare[0]!r}, which is not there ({len(spare)} in all)."
        )
    _check_changes(folder, made)
    whole = made.merge_and_unload()
    check_finite(folder, whole.named_parameters())
    return whole


def _check_changes(folder: Path, made: Any) -> None:
    """Refuse an adapter with matrices of zeros where training starts from random numbers.

    The B of LoRA starts at zero, so an adapter with no other B is whole but has learned nothing.
    """
    named = list(made.named_parameters())
    started = [(n, p) for n, p in named if ".lora_A." in n or ".modules_to_save." in n]
    check_numbers(folder, started)
    learned = [p for name, p in named if ".lora_B." in name or ".lora_embedding_B" in name]
    if learned and not any(bool(p.detach().any()) for p in learned):
        warnings.warn(
            f"{folder}: the adapter changes nothing, all its lora_B weights are 0 as before "
            f"training. What is measured is its base, {base_of(folder)!r}.",
            stacklevel=2,
        )


def _config(folder: Path) -> dict[str, Any]:
    return read_object(folder / CONFIG, "the configuration of an adapter")


def _settings(peft: Any, model: Any, folder: Path) -> Any:
    """Make peft's configuration from accepted settings alone.

    Raises:
        ModelError: a setting is not accepted, or the installed peft does not know it.
    """
    config = _config(folder)
    settings = checked_settings(config, folder / CONFIG)
    _check_patterns(model, folder, settings)
    kind = peft.PEFT_TYPE_TO_CONFIG_MAPPING[config["peft_type"]]
    missing = sorted(n for n in settings if n not in kind.__dataclass_fields__ and settings[n])
    if missing:
        raise ModelError(
            f"{folder / CONFIG}: the installed peft {peft.__version__} does not know "
            f"{missing[0]!r}. Upgrade it with: pip install -U peft"
        )
    usable = {n: value for n, value in settings.items() if n in kind.__dataclass_fields__}
    return kind(task_type=config.get("task_type"), **usable)


def _names(folder: Path) -> list[str]:
    safetensors: Any = need("safetensors", extra="hf", what="reading an adapter")
    with safetensors.safe_open(folder / WEIGHTS, framework="numpy") as file:
        return list(file.keys())


def _check_patterns(model: Any, folder: Path, settings: Mapping[str, Any]) -> None:
    """Refuse patterns of layers that a regular expression's engine does not get done with."""
    layers, current = [layer for layer, _ in model.named_modules()], ("", "")
    try:
        with alarmed():
            for current in patterns_of(settings):
                matches = re.compile(current[1]).fullmatch
                for layer in layers:
                    matches(layer)
    except (Unbounded, re.error) as error:
        name, pattern = current
        raise ModelError(
            f"{folder / CONFIG}: the pattern {name[:80]} = {pattern[:80]!r} cannot be used "
            f"({error}). Give a list of names, or a simpler pattern."
        ) from error
