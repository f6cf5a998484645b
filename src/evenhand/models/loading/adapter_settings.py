"""Settings of PEFT adapters: a list of what may be set, and to which values.

peft acts on what adapter_config.json says: some settings import a module by its name, read other
files or change the base. So that file never reaches peft. Its settings are compared with the lists
below, and peft gets a configuration made of those that change weights and are understood here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evenhand.errors import ModelError

Accepts = Callable[[Any], bool]
MOST = 1_000_000
"""Largest rank, block size or number of a layer or token."""


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(accepts: Accepts) -> Accepts:
    return lambda value: isinstance(value, list) and all(map(accepts, value))


def _is_table(accepts: Accepts) -> Accepts:
    return lambda value: isinstance(value, dict) and all(map(accepts, value.values()))


def _is_any(*accepts: Accepts) -> Accepts:
    return lambda value: any(accept(value) for accept in accepts)


def _is_one_of(*values: Any) -> Accepts:
    return lambda value: any(type(value) is type(v) and value == v for v in values)


def _is_off(value: Any) -> bool:
    """Whether a setting is as good as not there."""
    return value is None or value is False or value in ({}, [], "")


def _is_off_or(accepts: Accepts) -> Accepts:
    return _is_any(_is_off, accepts)


_NAMES = _is_off_or(_is_any(_is_text, _is_list(_is_text)))
_NUMBERS = _is_off_or(_is_any(_is_count, _is_list(_is_count)))
_BIAS = _is_one_of("none", "all", "lora_only", "vera_only", "oft_only")
_COMMON: Mapping[str, Accepts] = {
    "target_modules": _NAMES,
    "modules_to_save": _is_off_or(_is_list(_is_text)),
}
_LAYERS: Mapping[str, Accepts] = {
    "exclude_modules": _NAMES,
    "layers_to_transform": _NUMBERS,
    "layers_pattern": _NAMES,
}
_RANKS: Mapping[str, Accepts] = {
    "r": _is_count,
    "rank_pattern": _is_off_or(_is_table(_is_count)),
    "alpha_pattern": _is_off_or(_is_table(_is_number)),
}
_LORA: Mapping[str, Accepts] = {
    **_COMMON,
    **_LAYERS,
    **_RANKS,
    "lora_alpha": _is_number,
    "lora_dropout": _is_number,
    "fan_in_fan_out": _is_bool,
    "bias": _BIAS,
    "use_rslora": _is_bool,
    "use_dora": _is_bool,
    "lora_bias": _is_bool,
    # The others start from random numbers, which the stored ones replace.
    "init_lora_weights": _is_any(_is_bool, _is_one_of("gaussian", "orthogonal", "olora", "pissa")),
    "trainable_token_indices": _is_off_or(
        _is_any(_is_list(_is_count), _is_table(_is_list(_is_count)))
    ),
    "target_parameters": _is_off_or(_is_list(_is_text)),
    "ensure_weight_tying": _is_bool,
}
ACCEPTED: Mapping[str, Mapping[str, Accepts]] = {
    "LORA": _LORA,
    "ADALORA": {
        **_LORA,
        "rank_pattern": _is_off_or(_is_table(_is_list(_is_bool))),
        "init_r": _is_count,
        "target_r": _is_count,
        "tinit": _is_count,
        "tfinal": _is_count,
        "deltaT": _is_count,
        "total_step": _is_count,
        "beta1": _is_number,
        "beta2": _is_number,
        "orth_reg_weight": _is_number,
    },
    "IA3": {
        **_COMMON,
        "exclude_modules": _NAMES,
        "feedforward_modules": _NAMES,
        "fan_in_fan_out": _is_bool,
        "init_ia3_weights": _is_bool,
    },
    "LOHA": {
        **_COMMON,
        **_LAYERS,
        **_RANKS,
        "alpha": _is_number,
        "rank_dropout": _is_number,
        "module_dropout": _is_number,
        "use_effective_conv2d": _is_bool,
        "init_weights": _is_bool,
    },
    "VERA": {
        **_COMMON,
        **_LAYERS,
        "r": _is_count,
        "projection_prng_key": _is_count,
        "save_projection": _is_bool,
        "vera_dropout": _is_number,
        "d_initial": _is_number,
        "fan_in_fan_out": _is_bool,
        "bias": _BIAS,
        "init_weights": _is_bool,
    },
    "OFT": {
        **_COMMON,
        **_LAYERS,
        "r": _is_count,
        "oft_block_size": _is_count,
        "module_dropout": _is_number,
        "fan_in_fan_out": _is_bool,
        "bias": _BIAS,
        "init_weights": _is_bool,
        "coft": _is_bool,
        "eps": _is_number,
        "block_share": _is_bool,
        "use_cayley_neumann": _is_bool,
        "num_cayley_neumann_terms": _is_count,
    },
}
"""By kind of adapter: the settings that are passed on to peft, and the values each may have."""
ACCEPTED = {
    **ACCEPTED,
    "LOKR": {
        **ACCEPTED["LOHA"],
        "decompose_both": _is_bool,
        "decompose_factor": lambda value: value == -1 or _is_count(value),
        "rank_dropout_scale": _is_bool,
    },
}
TASKS = (
    "SEQ_CLS",
    "SEQ_2_SEQ_LM",
    "CAUSAL_LM",
    "TOKEN_CLS",
    "QUESTION_ANS",
    "FEATURE_EXTRACTION",
)
_READ_HERE: Mapping[str, Accepts] = {
    "peft_type": _is_text,
    "task_type": _is_off_or(_is_one_of(*TASKS)),
    "base_model_name_or_path": _is_off_or(_is_text),
}
_DROPPED: Mapping[str, Accepts] = {
    "auto_mapping": _is_off_or(
        lambda value: (
            isinstance(value, dict)
            and set(value) <= {"base_model_class", "parent_library"}
            and str(value.get("parent_library")).startswith("transformers.")
        )
    ),
    "peft_version": _is_off_or(_is_text),
    "revision": _is_off_or(_is_text),
    "inference_mode": _is_bool,
    "megatron_core": _is_off_or(_is_one_of("megatron.core")),
    "qalora_group_size": _is_count,
}
"""What peft writes into every file and nothing here depends on; it is not passed on."""
PATTERNS = ("target_modules", "exclude_modules", "feedforward_modules")
TABLES = ("rank_pattern", "alpha_pattern")
"""Settings whose names are patterns of layers."""


def checked_settings(config: Mapping[str, Any], where: Path) -> dict[str, Any]:
    """Return the settings of an adapter that may be passed on to peft.

    Args:
        config: what adapter_config.json holds.
        where: that file.

    Raises:
        ModelError: the kind of adapter, a setting or its value is not on the list.
    """
    kind = config.get("peft_type")
    accepted = ACCEPTED.get(kind) if isinstance(kind, str) else None
    if accepted is None:
        raise ModelError(
            f"{where}: an adapter of kind {str(kind)[:80]!r} cannot be merged into weights here. "
            f"Accepted: {', '.join(sorted(ACCEPTED))}. Load it with peft, and serve it or give "
            "the model as an object, or as a function of texts."
        )
    known = {**_READ_HERE, **_DROPPED, **accepted}
    for name, value in config.items():
        accepts = known.get(name)
        if not (accepts(value) if accepts else _is_off(value)):
            which = "" if accepts else f" ({', '.join(accepted)})"
            raise ModelError(
                f"{where}: {str(name)[:80]} = {str(value)[:80]!r} is not accepted for an adapter "
                f"of kind {kind!r}: settings of adapters can run code, so only known ones are "
                f"followed{which}. If you trust it, merge it with peft "
                "(merge_and_unload), save the whole model and give its folder."
            )
    return {name: config[name] for name in accepted if name in config}


def patterns_of(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the regular expressions over names of layers, as peft uses them, with their setting.

    >>> patterns_of({"target_modules": ".*q", "rank_pattern": {"k": 2}})
    [('target_modules', '.*q'), ('rank_pattern', '(.*\\\\.)?(k)')]
    """
    layers = config.get("layers_pattern") or []
    return [
        *((name, config[name]) for name in PATTERNS if isinstance(config.get(name), str)),
        *(
            ("layers_pattern", rf".*\.{part}\.(\d+)\..*")
            for part in ([layers] if isinstance(layers, str) else layers)
        ),
        *((name, rf"(.*\.)?({part})") for name in TABLES for part in config.get(name) or {}),
    ]
