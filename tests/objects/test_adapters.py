"""PEFT adapters: folders on their base, and objects, answer as peft itself does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import ModelError
from evenhand.requests import Classify, Continuation

peft = pytest.importorskip("peft", reason="needs the peft extra")
transformers = pytest.importorskip("transformers", reason="needs the hf extra")
torch = pytest.importorskip("torch", reason="needs the hf extra")

ASKED = Continuation(["the man worked as"] * 2, [" a doctor", " a nurse"])
TEXTS = ["the man worked as a doctor", "she said that was not a letter"]


def adapter(base: str, auto: str, **settings: Any) -> Any:
    """A small adapter whose weights are not zero, so that it changes answers."""
    model = getattr(transformers, auto).from_pretrained(base)
    made = peft.get_peft_model(model, peft.LoraConfig(r=2, **settings)).eval()
    torch.manual_seed(0)
    with torch.no_grad():
        for name, weight in made.named_parameters():
            if "lora_B" in name:
                weight.normal_()
    return made


def causal(tiny: Any) -> Any:
    return adapter(
        tiny("causal"), "AutoModelForCausalLM", task_type="CAUSAL_LM", target_modules=["q_proj"]
    )


def logprobs(given: Any, **more: Any) -> np.ndarray:
    model = eh.load_model(given, **more)
    return np.asarray(model.answer(ASKED, model.prepare(ASKED))["logprob"])


def test_a_folder_and_the_object_answer_alike_and_unlike_their_base(
    tiny: Any, tmp_path: Path
) -> None:
    made = causal(tiny)
    made.save_pretrained(str(tmp_path / "adapter"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny("causal"))
    folder, held = logprobs(tmp_path / "adapter"), logprobs(made, tokenizer=tokenizer)
    assert np.allclose(folder, held, atol=1e-5)
    assert np.abs(folder - logprobs(tiny("causal"))).max() > 1e-3
    texts = [p + c for p, c in zip(ASKED.prefix, ASKED.continuation)]
    for text, found in zip(texts, held):  # peft's own forward pass
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        begin = len(tokenizer(ASKED.prefix[0])["input_ids"])
        with torch.no_grad():
            logits = made(ids).logits[0].log_softmax(-1)
        own = sum(float(logits[k - 1, ids[0, k]]) for k in range(begin, ids.shape[1]))
        assert own == pytest.approx(found, abs=1e-4)
    assert made.training is False
    assert any("lora" in name for name, _ in made.named_modules())  # the object is not merged


def test_a_relative_base_is_a_checkpoint_here_or_beside_the_adapter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenhand.models.loading.peft import CONFIG, base_of

    for folder in ("runs/adapter", "runs/base", "work", "base"):
        (tmp_path / folder).mkdir(parents=True)
    told = {"base_model_name_or_path": "../base"}
    (tmp_path / "runs/adapter" / CONFIG).write_text(json.dumps(told))
    monkeypatch.chdir(tmp_path / "work")
    beside = str((tmp_path / "runs/base").resolve())
    assert base_of(tmp_path / "runs/adapter") == beside  # the folder of that name holds no model
    (tmp_path / "base/config.json").write_text("{}")
    assert base_of(tmp_path / "runs/adapter") == "../base"


def test_it_is_known_by_base_and_adapter(tiny: Any, tmp_path: Path) -> None:
    made = causal(tiny)
    made.save_pretrained(str(tmp_path / "one"))
    with torch.no_grad():
        next(w for n, w in made.named_parameters() if "lora_B" in n).add_(1.0)
    made.save_pretrained(str(tmp_path / "two"))
    prints = {eh.load_model(p).fingerprint for p in (tmp_path / "one", tmp_path / "two")}
    assert len({*prints, eh.load_model(tiny("causal")).fingerprint}) == 3


def test_a_classifier_brings_its_head(tiny: Any, tmp_path: Path) -> None:
    made = adapter(
        tiny("encoder"), "AutoModelForSequenceClassification", task_type="SEQ_CLS",
        target_modules=["query"],
    )  # fmt: skip
    made.save_pretrained(str(tmp_path / "adapter"))
    model = eh.load_model(tmp_path / "adapter")
    assert model.kind == "classifier"
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny("encoder"))
    with torch.no_grad():
        own = made(**tokenizer(TEXTS, return_tensors="pt", padding=True)).logits.softmax(-1)
    asked = Classify(TEXTS)
    found = model.answer(asked, model.prepare(asked))["probabilities"]
    assert np.allclose(found, own.numpy(), atol=1e-5)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"base_model_name_or_path": "nobody/nothing"}, "an adapter for 'nobody/nothing'"),
        ({"base_model_name_or_path": None}, "does not say which model it was made for"),
    ],
)
def test_a_base_that_is_not_there(tiny: Any, tmp_path: Path, change: Any, told: str) -> None:
    causal(tiny).save_pretrained(str(tmp_path / "adapter"))
    config = tmp_path / "adapter" / "adapter_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), **change}))
    with pytest.raises(ModelError, match=told):
        eh.load_model(tmp_path / "adapter")


def test_what_is_not_whole_or_not_safe_is_refused(tiny: Any, tmp_path: Path) -> None:
    causal(tiny).save_pretrained(str(tmp_path / "adapter"))
    weights = tmp_path / "adapter" / "adapter_model.safetensors"
    weights.rename(weights.with_name("adapter_model.bin"))
    with pytest.raises(ModelError, match="can run code and are never opened"):
        eh.load_model(tmp_path / "adapter")
    made = adapter(tiny("encoder"), "AutoModel", target_modules=["query"])
    made.save_pretrained(str(tmp_path / "headless"))
    config = tmp_path / "headless" / "adapter_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "task_type": "SEQ_CLS"}))
    with pytest.raises(ModelError, match="without the head's weights"):
        eh.load_model(tmp_path / "headless")


def test_an_adapter_of_another_model_is_refused(tiny: Any, tmp_path: Path) -> None:
    causal(tiny).save_pretrained(str(tmp_path / "adapter"))
    config = tmp_path / "adapter" / "adapter_config.json"
    told = {**json.loads(config.read_text()), "base_model_name_or_path": tiny("gpt2")}
    config.write_text(json.dumps(told))
    with pytest.raises(ModelError, match="cannot be loaded|does not fit"):
        eh.load_model(tmp_path / "adapter")


def test_a_prompt_before_the_text_is_no_change_of_weights(tiny: Any, tmp_path: Path) -> None:
    model = transformers.AutoModelForCausalLM.from_pretrained(tiny("causal"))
    settings = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)
    made = peft.get_peft_model(model, settings)
    made.save_pretrained(str(tmp_path / "prompt"))
    with pytest.raises(ModelError, match="cannot be merged into weights"):
        eh.load_model(tmp_path / "prompt")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny("causal"))
    with pytest.raises(ModelError, match="stands before the text"):
        eh.load_model(made, tokenizer=tokenizer)


def changed(folder: Path, **settings: Any) -> Path:
    """The adapter in a folder, with other settings in its configuration."""
    config = folder / "adapter_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), **settings}))
    return folder


def test_settings_of_an_adapter_import_nothing(
    tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """megatron_core names a module, which lies beside the adapter or in the working directory."""
    causal(tiny).save_pretrained(str(tmp_path / "adapter"))
    for place in (tmp_path, tmp_path / "adapter"):
        (place / "megatron").mkdir()
        (place / "megatron" / "__init__.py").write_text("")
        mark = f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
        (place / "megatron" / "core.py").write_text(mark)
        monkeypatch.syspath_prepend(place)
    monkeypatch.chdir(tmp_path)
    settings = {"megatron_config": {"tensor_parallel": 1}, "megatron_core": "megatron.core"}
    with pytest.raises(ModelError, match="megatron_config = .* is not accepted"):
        eh.load_model(changed(tmp_path / "adapter", **settings))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"megatron_core": "os"}, "megatron_core = 'os' is not accepted"),
        ({"auto_mapping": {"parent_library": "evil"}}, "auto_mapping = .* is not accepted"),
        ({"loftq_config": {"loftq_bits": 4}}, "loftq_config = .* is not accepted"),
        ({"corda_config": {"cache_file": "/etc/passwd"}}, "corda_config = .* is not accepted"),
        ({"init_lora_weights": "corda"}, "init_lora_weights = 'corda' is not accepted"),
        ({"layer_replication": [[0, 1], [0, 1]]}, "layer_replication = .* is not accepted"),
        ({"alora_invocation_tokens": [1, 2]}, "alora_invocation_tokens = .* is not accepted"),
        ({"an_option_of_tomorrow": 7}, "an_option_of_tomorrow = '7' is not accepted"),
        ({"r": "2"}, "r = '2' is not accepted"),
        ({"r": True}, "r = 'True' is not accepted"),
        ({"r": -2}, "r = '-2' is not accepted"),
        ({"lora_alpha": float("nan")}, "lora_alpha = 'nan' is not accepted"),
        ({"target_modules": ["q_proj", 3]}, "target_modules = .* is not accepted"),
        ({"rank_pattern": {"q_proj": "9"}}, "rank_pattern = .* is not accepted"),
        ({"rank_pattern": {"(": 2}}, "the pattern rank_pattern = .* cannot be used"),
        ({"task_type": "EVIL"}, "task_type = 'EVIL' is not accepted"),
        ({"peft_type": "XLORA", "adapters": {}}, "kind 'XLORA' cannot be merged into weights here"),
        ({"peft_type": ["LORA"]}, "cannot be merged into weights here"),
    ],
)
def test_only_known_settings_of_an_adapter_are_followed(
    tiny: Any, tmp_path: Path, settings: Any, message: str
) -> None:
    causal(tiny).save_pretrained(str(tmp_path / "adapter"))
    with pytest.raises(ModelError, match=message):
        eh.load_model(changed(tmp_path / "adapter", **settings))


KINDS = {
    "LORA": lambda **t: peft.LoraConfig(r=2, rank_pattern={"q_proj": 3}, use_rslora=True, **t),
    "DoRA": lambda **t: peft.LoraConfig(r=2, use_dora=True, **t),
    "PiSSA": lambda **t: peft.LoraConfig(r=2, init_lora_weights="pissa", **t),
    "tokens": lambda **t: peft.LoraConfig(r=2, trainable_token_indices=[1, 2], **t),
    "ADALORA": lambda **t: peft.AdaLoraConfig(total_step=10, **t),
    "IA3": lambda **t: peft.IA3Config(feedforward_modules=[], **t),
    "LOHA": lambda **t: peft.LoHaConfig(r=2, **t),
    "LOKR": lambda **t: peft.LoKrConfig(r=2, **t),
    "VERA": lambda **t: peft.VeraConfig(r=4, **t),
    "OFT": lambda **t: peft.OFTConfig(oft_block_size=8, **t),
}


@pytest.mark.parametrize("kind", KINDS)
def test_adapters_of_every_accepted_kind_answer_as_in_peft(
    tiny: Any, tmp_path: Path, kind: str
) -> None:
    base = transformers.AutoModelForCausalLM.from_pretrained(tiny("causal"))
    settings = KINDS[kind](target_modules=["q_proj"], task_type="CAUSAL_LM")
    made = peft.get_peft_model(base, settings).eval()
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in made.parameters():
            if weight.requires_grad:
                weight.add_(0.3 * torch.randn_like(weight))
    made.save_pretrained(str(tmp_path / "adapter"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny("causal"))
    folder = logprobs(tmp_path / "adapter")
    assert np.allclose(folder, logprobs(made, tokenizer=tokenizer), atol=1e-4)
    assert np.abs(folder - logprobs(tiny("causal"))).max() > 1e-3


def test_an_adapter_on_an_adapter_is_refused(tiny: Any, tmp_path: Path) -> None:
    """Only the outer one was applied, and nothing said so."""
    for name in ("inner", "outer"):
        causal(tiny).save_pretrained(str(tmp_path / name))
    changed(tmp_path / "outer", base_model_name_or_path=str(tmp_path / "inner"))
    with pytest.raises(ModelError, match="which is an adapter itself.*merge_and_unload"):
        eh.load_model(tmp_path / "outer")
    changed(tmp_path / "inner", base_model_name_or_path="../outer")
    with pytest.raises(ModelError, match="which is an adapter itself"):
        eh.load_model(tmp_path / "inner")
