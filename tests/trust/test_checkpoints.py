"""Checkpoints that are not whole, not themselves or not only data are refused in one paragraph."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import EvenhandError, ModelError
from evenhand.models.loading.resolver import resolve
from trust.hostile import BERT, LLAMA, config, own_code, without

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def copied(tiny: Any, tmp_path: Path) -> Any:
    return lambda kind: Path(shutil.copytree(tiny(kind), tmp_path / "model"))


def refusal(folder: Path, **how: Any) -> str:
    with pytest.raises(EvenhandError) as caught:
        resolve(str(folder), **how)
    said = str(caught.value)
    assert len(said) < 1500
    assert "\n" not in said
    return said


@pytest.mark.parametrize("how", LLAMA)
def test_a_spoiled_causal_checkpoint_is_refused(copied: Any, how: str) -> None:
    LLAMA[how](folder := copied("causal"))
    assert "model" in refusal(folder, kind=None if how != "no type" else "causal")


@pytest.mark.parametrize("how", BERT)
def test_a_spoiled_masked_checkpoint_is_refused(copied: Any, how: str) -> None:
    BERT[how](folder := copied("masked"))
    assert "weight tensor" in refusal(folder)


@pytest.mark.parametrize("kind", ["causal", "gpt2", "bloom", "gptneox", "roberta", "masked",
                                  "span", "choice", "classifier", "encoder"])  # fmt: skip
def test_whole_checkpoints_are_loaded(tiny: Any, kind: str) -> None:
    assert resolve(tiny(kind)).n_parameters > 0


def test_the_trunk_of_a_masked_model_may_be_asked_for_its_states(tiny: Any) -> None:
    assert resolve(tiny("masked"), kind="encoder").kind == "encoder"


@pytest.mark.parametrize("kind", ["span", "choice", "classifier"])
def test_a_head_that_was_never_trained_is_not_asked(tiny: Any, kind: str) -> None:
    assert "random numbers" in refusal(tiny("masked"), kind=kind)


def test_a_classifier_without_its_pooler_is_refused(copied: Any) -> None:
    without("pooler")(folder := copied("classifier"))
    assert "pooler" in refusal(folder)


@pytest.mark.parametrize("kind", ["", "evil"])
@pytest.mark.parametrize("place", ["folder", "hub"])
def test_code_beside_the_weights_is_never_run(
    copied: Any, tmp_path: Path, kind: str, place: str
) -> None:
    """With a terminal that says yes to everything: `yes | evenhand check`."""
    mark = tmp_path / "was-run"
    own_code(mark, kind)(folder := copied("causal"))
    spec, env = str(folder), {**os.environ, "HF_HUB_OFFLINE": "1"}
    if place == "hub":
        home = tmp_path / "hub" / "models--someone--tiny"
        (home / "refs").mkdir(parents=True)
        (home / "refs" / "main").write_text("0" * 40)
        (home / "snapshots").mkdir()
        folder.rename(home / "snapshots" / ("0" * 40))
        spec, env["HF_HUB_CACHE"] = "someone/tiny", str(tmp_path / "hub")
    code = "import sys; from evenhand.models.loading.resolver import resolve; resolve(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, spec],
        input="y\n" * 99,
        capture_output=True,
        text=True,
        env=env,
    )
    assert not mark.exists()
    assert "[y/N]" not in done.stdout + done.stderr
    assert (done.returncode == 0) == (kind == ""), done.stderr
    assert not kind or "code" in done.stderr


def test_training_neither_runs_code_nor_opens_pickles(
    copied: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from safetensors.torch import load_file

    from evenhand.train.common import load_base

    mark = tmp_path / "was-run"
    own_code(mark, "evil")(folder := copied("masked"))
    with pytest.raises(ModelError, match="code"):
        load_base("span", "AutoModelForQuestionAnswering", str(folder))
    assert not mark.exists()
    config(folder, model_type="bert")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("a pickle was opened"))
    with pytest.raises(ModelError, match="pickled"):
        load_base("span", "AutoModelForQuestionAnswering", str(folder))


def test_training_makes_new_heads_but_no_new_layers(copied: Any) -> None:
    from evenhand.train.common import load_base

    folder = str(copied("masked"))
    for auto in ("QuestionAnswering", "MultipleChoice", "SequenceClassification"):
        load_base("span", f"AutoModelFor{auto}", folder)
    without("encoder.layer.1")(Path(folder))
    with pytest.raises(ModelError, match="random numbers"):
        load_base("span", "AutoModelForQuestionAnswering", folder)


def test_one_function_calls_from_pretrained() -> None:
    pattern = re.compile(r"\.from_pretrained\(|torch\.load\(|pickle\.load|allow_pickle=True")
    found = [
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in SOURCE.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if pattern.search(line) and "from_pretrained(...)" not in line  # advice in messages
    ]
    home = "evenhand/models/loading/"
    assert sorted(found) == [
        f"{home}checkpoint.py: return getattr(transformers, auto).from_pretrained(",
        f"{home}peft.py: made = peft.PeftModel.from_pretrained(model, str(folder), "
        "config=settings)",  # the weights are known to be safetensors, the settings are ours
    ]


READ = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
        "special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "vocab.txt",
        "1_Pooling/config.json", "modules.json", "model.safetensors")  # fmt: skip


@pytest.mark.parametrize("file", READ)
def test_the_fingerprint_covers_every_file_that_is_read(copied: Any, file: str) -> None:
    from evenhand.models.loading.transformer import folder_digest

    folder = copied("masked")
    place = folder / file
    place.parent.mkdir(exist_ok=True)
    if not place.exists():
        place.write_text("{}")
    before = folder_digest(folder)
    place.write_bytes(place.read_bytes() + b" ")
    assert folder_digest(folder) != before
    place.unlink()
    assert folder_digest(folder) != before


def test_settings_of_the_tokenizer_change_the_fingerprint(copied: Any) -> None:
    folder = copied("masked")
    before = resolve(str(folder)).fingerprint
    config(folder, "tokenizer_config.json", chat_template="{{ messages }}")
    assert resolve(str(folder)).fingerprint != before
    json.loads((folder / "tokenizer_config.json").read_text())
