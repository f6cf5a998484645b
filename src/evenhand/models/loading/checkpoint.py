"""The one door to transformers: what a checkpoint holds, whole, or a refusal.

    folder_of(source)            the folder of a checkpoint, a Hub id's included
    load_config(source)          its configuration
    load_tokenizer(source)       its tokenizer, which knows words
    load_model(auto, source)     its model, every weight of it read from the files

No code that a checkpoint names is run and no pickle is opened, whatever is asked for: a model that
needs either is refused. transformers fills weights that a file lacks with random numbers and drops
those it has no place for; here both are an error, as is a configuration that the files cannot
belong to, before memory is spent on it. So is a matrix of one number, which an interrupted download
leaves: files are often made in full length first, and hold zeros where nothing arrived.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from evenhand.errors import EvenhandError, ModelError, need
from evenhand.models.loading.links import without_links_out
from evenhand.opening import read_object

Shapes = Mapping[str, tuple[int, ...]]
HUB_FILES = (
    "*.json",
    "*.txt",
    "*.model",
    "*.jinja",
    "model.safetensors",
    "model-*.safetensors",
    "adapter_model.safetensors",
)
INDEX = "model.safetensors.index.json"
SETTINGS = (
    "config.json",
    "generation_config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
)
"""Files of which transformers leaves out what it cannot read."""
WORDS = ("The doctor met a teacher.", "医生见到了老师。", "Врач и учитель", "الطبيب المعلم")
"""A tokenizer to which all of these are unknown knows no words."""
FLOATS = ("F32", "BF16", "F16", "F64")
"""Kinds of numbers, as safetensors calls them, that are weights as they are."""
AGAIN = "Copy or save it again: save_pretrained of model and tokenizer writes all of it."
FEW = 4
"""Rows of an embedding that may be zero: RoBERTa's kinds of tokens, which it does not use."""
SAMPLED = 64
"""Rows of a matrix that are looked at one by one."""
UNIFORM = (("q_proj", "k_proj"), ("query", "key"), ("q_lin", "k_lin"), ("wq", "wk"))
"""Queries and keys: where both are zero, a layer attends to every word alike, and training leaves
them so."""


def folder_of(source: str, revision: str | None = None, files: tuple[str, ...] = HUB_FILES) -> Path:
    """The folder that holds a checkpoint; for a Hub id its snapshot, fetched if need be."""
    path = Path(source)
    if path.is_dir():
        return without_links_out(path)
    hub: Any = need("huggingface_hub", extra="hf", what="loading a model of the Hub")
    with loading(source):
        get = functools.partial(hub.snapshot_download, source, revision=revision)
        found = Path(get(allow_patterns=files, ignore_patterns="*/*"))
        if files is HUB_FILES and (found / "modules.json").is_file():  # with modules of its own
            get(allow_patterns=["[0-9]*_*/*.json", "[0-9]*_*/model.safetensors"])
        return without_links_out(found)


def load_config(source: str | Path, **options: Any) -> Any:
    """The configuration of a checkpoint."""
    return _read("AutoConfig", source, **options)


def load_tokenizer(source: str | Path, **options: Any) -> Any:
    """The tokenizer of a checkpoint, refused when it knows no words."""
    tokenizer = _read("AutoTokenizer", source, **options)
    with loading(source):
        rows = tokenizer(list(WORDS), add_special_tokens=False)["input_ids"]
    # One number for everything is the unknown token, whether or not it is declared as special.
    if len({i for row in rows for i in row} - {*tokenizer.all_special_ids}) < 2:
        raise ModelError(
            f"model '{source}': its tokenizer knows no words, every one is unknown to it. Files "
            f"such as tokenizer.json are missing or damaged. {AGAIN}"
        )
    _check_tokens(source, tokenizer)
    return tokenizer


def _check_tokens(source: str | Path, tokenizer: Any) -> None:
    """Refuse a tokenizer to which two words are one, or that cuts words at random."""
    special, first = {*tokenizer.all_special_tokens}, dict[int, str]()
    for word, number in tokenizer.get_vocab().items():
        if first.setdefault(number, word) != word and not special & {word, first[number]}:
            raise ModelError(
                f"model '{source}': its tokenizer gives {first[number]!r} and {word!r} the same "
                f"number, {number}, so the model cannot tell them apart. {AGAIN}"
            )
    backend = getattr(tokenizer, "backend_tokenizer", None)
    for name in ("dropout", "alpha"):
        if share := getattr(getattr(backend, "model", None), name, None):
            raise ModelError(
                f"model '{source}': its tokenizer cuts words at random ({name} = {share:g}), which "
                f"is for training only. Take {name!r} out of tokenizer.json."
            )


def load_model(auto: str, source: str | Path, *, new: bool = False, **options: Any) -> Any:
    """A model with every weight read from its files.

    Args:
        auto: the class of transformers that loads it.
        source: its folder; with `gguf_file` the folder of that file.
        new: the head is meant to be new and will be trained; weights of the trunk are not.
        options: further ones of the class.
    """
    folder = Path(source)
    for name in SETTINGS:
        if (folder / name).is_file():
            read_object(folder / name, "the settings of a checkpoint")
    gguf = options.get("gguf_file")
    held = gguf_shapes(folder / gguf) if gguf else shapes(folder)
    _check_config(folder, load_config(folder, **({"gguf_file": gguf} if gguf else {})), held)
    model, info = _read(
        auto,
        folder,
        use_safetensors=True,
        output_loading_info=True,
        **options,
    )
    _check_weights(folder, model, info, new)
    return model


def check_ids(source: str | Path, tokenizer: Any, model: Any) -> None:
    """Refuse a tokenizer that gives numbers for which the model has no embedding."""
    rows = model.get_input_embeddings().weight.shape[0]
    used = {
        i
        for i in (
            tokenizer.bos_token_id,
            tokenizer.eos_token_id,
            tokenizer.pad_token_id,
            tokenizer.mask_token_id,
            tokenizer.cls_token_id,
            tokenizer.sep_token_id,
        )
        if i is not None
    }
    special = {
        i
        for i, token in tokenizer.added_tokens_decoder.items()
        if token.special and not token.content.replace(" ", "").isalnum()
    } - used  # which stand in no text, unless they are spelt like words
    beyond = sorted({*tokenizer.get_vocab().values(), *used} - special)[-1:]
    if beyond and beyond[0] >= rows:
        token = tokenizer.convert_ids_to_tokens(beyond[0])
        raise ModelError(
            f"model '{source}': its tokenizer gives {token!r} the number {beyond[0]}, but the "
            f"model embeds {rows} tokens only. They do not belong together. {AGAIN}"
        )


def _read(auto: str, source: str | Path, **options: Any) -> Any:
    """The only call of `from_pretrained`."""
    transformers: Any = need("transformers", extra="hf", what="loading a language model")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with loading(source):
        return getattr(transformers, auto).from_pretrained(
            str(source), trust_remote_code=False, local_files_only=True, **options
        )


@contextlib.contextmanager
def loading(source: str | Path) -> Iterator[None]:
    """One paragraph instead of a traceback, whatever a foreign checkpoint makes a library raise."""
    try:
        yield
    except EvenhandError:
        raise
    except Exception as error:
        said = [line.strip() for line in str(error).splitlines() if line.strip()]
        first = said[0] if said else type(error).__name__
        if "trust_remote_code" in str(error):
            first = "it brings its own code, which is never run."
        raise ModelError(
            f"model '{source}' cannot be loaded: {first} Only safetensors and GGUF weights of "
            f"architectures that transformers knows are read. See: evenhand ls models"
        ) from error


def shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor in the files that would be opened; no number is read."""
    safetensors: Any = need("safetensors", extra="hf", what="loading a language model")
    files = ["model.safetensors"]
    if not (folder / files[0]).exists():
        if not (folder / INDEX).exists():
            raise ModelError(
                f"{folder}: no model.safetensors. Only safetensors and GGUF weights are read; "
                "pickled ones (.bin, .pt) can run code and are never opened. Convert them with: "
                "model.save_pretrained(DIR)"
            )
        with loading(folder / INDEX):
            named = json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"].values()
            files = sorted({str(name) for name in named})
        if wrong := [f for f in files if not re.fullmatch(r"[\w.-]+\.safetensors", f)]:
            raise ModelError(
                f"{folder / INDEX}: names {wrong[0]!r} as a weight file. Accepted: names of "
                ".safetensors files in the same folder."
            )
    shapes: dict[str, tuple[int, ...]] = {}
    kinds: dict[str, str] = {}
    for name in files:
        place = folder / name
        with loading(place), safetensors.safe_open(place, framework="numpy") as file:
            slices = {key: file.get_slice(key) for key in file.keys()}  # noqa: SIM118
            if twice := sorted(shapes.keys() & slices):
                raise ModelError(
                    f"{place}: holds {twice[0]!r}, which another file of the folder holds, too, so "
                    f"it is unclear which counts. {AGAIN}"
                )
            shapes |= {key: tuple(part.get_shape()) for key, part in slices.items()}
            kinds |= {key: str(part.get_dtype()) for key, part in slices.items()}
    odd = [key for key, kind in kinds.items() if key.endswith(".weight") and kind not in FLOATS]
    if odd and not _quantised(folder):
        raise ModelError(
            f"model '{folder}': its {odd[0]!r} is of kind {kinds[odd[0]]}, and nothing says how "
            f"such numbers become weights. Accepted: {', '.join(FLOATS)}. {AGAIN}"
        )
    return shapes


def _quantised(folder: Path) -> bool:
    """Whether the configuration says how weights were packed."""
    path = folder / "config.json"
    return path.is_file() and b'"quantization_config"' in path.read_bytes()


def gguf_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor in a GGUF file."""
    gguf: Any = need("gguf", extra="hf", what="reading GGUF files")
    with loading(path):
        reader = gguf.GGUFReader(str(path))
    _check_places(path, int(reader.data_offset), reader.tensors)
    return {t.name: tuple(map(int, t.shape)) for t in reader.tensors}


def _check_places(path: Path, begin: int, tensors: Iterable[Any]) -> None:
    """Refuse a GGUF file that reads some of its bytes twice, or as numbers what are none."""
    before, end = "the description of the file", begin
    for place, size, name in sorted((int(t.data_offset), int(t.n_bytes), t.name) for t in tensors):
        if place < end:
            raise ModelError(
                f"{path}: the tensor {name!r} begins at byte {place}, inside {before}, which ends "
                f"at byte {end}. Tensors do not share bytes. Convert or download the file again."
            )
        before, end = f"the tensor {name!r}", place + size


def _check_config(folder: Path, config: Any, shapes: Shapes) -> None:
    """Refuse sizes that the tensors cannot have, before a model of these sizes is built."""
    widest = max((max(shape, default=1) for shape in shapes.values()), default=0)
    limits = {
        "num_hidden_layers": len(shapes),
        "hidden_size": widest,
        "vocab_size": widest,
        "num_attention_heads": widest,
    }
    with loading(folder):
        text = config.get_text_config()
        found = {name: getattr(text, name, None) for name in limits}
    for name, value in found.items():
        if isinstance(value, int) and not 1 <= value <= limits[name]:
            raise ModelError(
                f"model '{folder}': its configuration says {name} = {value}, but its weights are "
                f"{len(shapes)} tensors of at most {widest} rows. Accepted: 1 to {limits[name]}. "
                f"{AGAIN}"
            )
    blocks = {int(m[1]) for name in shapes if (m := re.match(r"blk\.(\d+)\.", name))}
    if blocks and len(blocks) != found["num_hidden_layers"]:
        raise ModelError(
            f"model '{folder}': says num_hidden_layers = {found['num_hidden_layers']}, but holds "
            f"weights of {len(blocks)} layers. Convert or download the file again."
        )
    longest = getattr(text, "max_position_embeddings", None)
    if isinstance(longest, int) and longest < 1:
        raise ModelError(
            f"model '{folder}': its configuration says max_position_embeddings = {longest}. "
            f"Accepted: 1 or more. {AGAIN}"
        )
    for name, value in text.to_dict().items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ModelError(
                f"model '{folder}': its configuration says {name} = {value}, which is not a "
                f"number. {AGAIN}"
            )
    _check_packing(folder, getattr(config, "quantization_config", None))
    if "/" in str(getattr(config, "_attn_implementation", "")):
        raise ModelError(f"model '{folder}': asks for foreign attention code, which is never run.")


def _check_packing(folder: Path, told: Any) -> None:
    """Refuse weights that were packed in a way that cannot be undone here."""
    if told is None:
        return
    auto: Any = need("transformers.quantizers.auto", extra="hf", what="loading a language model")
    given = told.get("quant_method") if isinstance(told, Mapping) else told.quant_method
    method = str(getattr(given, "value", given))
    if method not in auto.AUTO_QUANTIZATION_CONFIG_MAPPING:
        raise ModelError(
            f"model '{folder}': its weights are packed by {method!r}, which transformers does not "
            f"know. Give a checkpoint in {', '.join(FLOATS)}."
        )


def _range(numbers: Any) -> tuple[float, float] | None:
    """Return the smallest and the largest number, in one reading; None for packed weights.

    A fifth of the time of asking each number whether it is finite, and NaN is both where there is
    one.
    """
    if not numbers.numel() or not numbers.is_floating_point():
        return None
    low, high = numbers.detach().aminmax()
    return float(low), float(high)


def _all_finite(numbers: Any) -> bool:
    """Whether none is NaN or infinite."""
    return all(math.isfinite(end) for end in _range(numbers) or ())


def check_finite(folder: Path, named: Iterable[tuple[str, Any]]) -> None:
    """Refuse weights that are not numbers."""
    for name, tensor in named:
        _refuse_infinite(folder, name, _range(tensor))


def _refuse_infinite(folder: Path, name: str, ends: tuple[float, float] | None) -> None:
    if ends is not None and not all(map(math.isfinite, ends)):
        raise ModelError(
            f"model '{folder}': its weights {name!r} are not all numbers (NaN or infinite), so "
            f"its answers would not be. {AGAIN}"
        )


def check_numbers(
    folder: Path, named: Iterable[tuple[str, Any]], free: Collection[str] = ()
) -> None:
    """Refuse weights that are not numbers, and matrices without content.

    A matrix has no content if all of it is one number, or if more than half of its rows are. The
    first comes from the smallest and largest number, which are read anyway; for the second, and
    for packed weights, up to 64 rows are sampled. Vectors (scales, biases) may be constant.

    Args:
        free: names of weights that may be constant.
    """
    empty: dict[str, str] = {}
    matrices = 0
    for name, tensor in named:
        ends = _range(tensor)
        _refuse_infinite(folder, name, ends)
        if tensor.ndim < 2 or tensor.numel() < 2 or name in free or name.endswith("bias"):
            continue
        matrices += 1
        if content := _emptiness(tensor, ends):
            empty[name] = content
    for name in [n for n in empty if _is_uniform(n, empty)]:
        del empty[name]
    if empty:
        name, content = next(iter(empty.items()))
        more = f"; so are {len(empty) - 1} more of {matrices} matrices" if len(empty) > 1 else ""
        raise ModelError(
            f"model '{folder}': its weights {name!r} are {content}{more}. An interrupted download "
            f"leaves such files. Download it again, or copy it from where it is whole."
        )


def _check_scales(folder: Path, model: Any) -> None:
    """Refuse scales of zeros that let nothing through; Gemma's, to which 1 is added, may be zero.

    The last norm of a model is often the end of its file. With zeros in it every token is as
    probable as any other, whatever is asked, and no group would differ from another.
    """
    for name, module in model.named_modules():
        scale: Any = getattr(module, "weight", None)
        if getattr(scale, "ndim", 0) != 1 or len(scale) < 2 or bool(scale.any()):
            continue
        rising = scale.detach().new_ones(1, len(scale)).cumsum(-1)
        try:
            answers = [module(rising), module(rising.flip(-1))]
        except Exception:  # it takes another shape, so it is no scale of states
            continue
        if bool((answers[0] == answers[1]).all()):
            raise ModelError(
                f"model '{folder}': its weights '{name}.weight' are {ZERO}, which lets nothing "
                "through. An interrupted download leaves such files. Download it again, or copy it "
                "from where it is whole."
            )


ZERO = "0 in every place"


def _emptiness(tensor: Any, ends: tuple[float, float] | None) -> str:
    """Say what a matrix without content holds; "" if it has content."""
    if ends is not None and ends[0] == ends[1]:
        return ZERO if ends[0] == 0 else f"{ends[0]:.4g} in every place"
    if not tensor.is_contiguous():
        return ""
    rows = tensor.detach().view(-1, tensor.shape[-1])
    if ends is None:  # packed: the codes of numbers
        codes = tensor.detach().view(-1)[:: max(1, tensor.numel() // SAMPLED**2)]
        return "one number in every place" if bool((codes == codes[0]).all()) else ""
    if len(rows) < 2 or rows.shape[1] < 2:
        return ""
    sampled = rows[:: max(1, len(rows) // SAMPLED)]
    if float((sampled[:, 0] == sampled[:, -1]).float().mean()) <= 0.5:
        return ""
    constant = float((sampled == sampled[:, :1]).all(dim=1).float().mean())
    return f"one number in about {100 * constant:.0f} % of their rows" if constant > 0.5 else ""


def _is_uniform(name: str, empty: Mapping[str, str]) -> bool:
    """Return whether this is a query or key of zeros whose counterpart is zero, too."""
    parts = name.split(".")
    for pair in UNIFORM:
        for one, other in (pair, pair[::-1]):
            if one in parts:
                twin = ".".join(other if part == one else part for part in parts)
                return empty[name] == empty.get(twin) == ZERO
    return False


def _check_tied(folder: Path, model: Any) -> None:
    """Refuse a head of its own where the configuration says that there is none."""
    if not getattr(model.config.get_text_config(), "tie_word_embeddings", False):
        return
    head, words = model.get_output_embeddings(), model.get_input_embeddings()
    one, two = (getattr(part, "weight", None) for part in (head, words))
    if one is None or two is None or one is two or one.shape != two.shape:
        return
    if one.data_ptr() != two.data_ptr() and not one.equal(two):
        raise ModelError(
            f"model '{folder}': its configuration says that the head is the embedding "
            "(tie_word_embeddings), but the files hold another head, so it is unclear which "
            f"counts. {AGAIN}"
        )


def _check_weights(folder: Path, model: Any, info: Mapping[str, Any], new: bool) -> None:
    """Refuse a model with weights made up or left out.

    Not made up are heads that are to be trained, and poolers of models that are asked for their
    states only. A file may hold another head beside (a language model's, say, of which the trunk
    alone is loaded), but nothing that belongs into the layers or modules that are there.
    """
    kinds_of_tokens = {
        f"{name}.weight"
        for name, module in model.named_modules()
        if getattr(module, "num_embeddings", FEW + 1) <= FEW
    }
    # What is missing and may be is new; it will be trained.
    check_numbers(folder, model.named_parameters(), {*kinds_of_tokens, *info["missing_keys"]})
    _check_scales(folder, model)
    _check_tied(folder, model)
    trunk = model.base_model
    own = {name for name, _ in trunk.named_children()} - {"pooler"}
    modules = {name for name, _ in model.named_modules()} - {""}

    def inner(key: str) -> bool:
        return key.removeprefix(f"{model.base_model_prefix}.").split(".")[0] in own

    free = new or model is trunk
    missing = sorted(key for key in info["missing_keys"] if inner(key) or not free)
    spare = sorted(
        key for key in info["unexpected_keys"] if inner(key) or key.rpartition(".")[0] in modules
    )
    for keys, what in (
        (missing, "lacks {} (random numbers would stand in for them)"),
        (spare, "holds {} that its configuration has no place for"),
    ):
        if keys:
            shown = ", ".join(keys[:3]) + (", ..." if len(keys) > 3 else "")
            count = f"{len(keys)} weight tensor{'s' * (len(keys) > 1)}: {shown}"
            raise ModelError(
                f"model '{folder}' is not whole: as {type(model).__name__} it "
                f"{what.format(count)}. {AGAIN} Another kind of model is chosen with --as (kind)."
            )
