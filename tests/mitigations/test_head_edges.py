"""Changed heads at the edges: no cache, logits far from zero, banned tokens, biases and caps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import ModelError, SpecError
from evenhand.mitigations.head import HeadMitigation
from evenhand.mitigations.head import fit as job
from evenhand.mitigations.head.tradeoff import Bench, Candidate, Held, _against
from evenhand.models.edits.head import AppliedEdit, HeadEdit
from in_process import evenhand

CONTEXTS = ["the man worked as", "the woman worked as a"]


@pytest.fixture(scope="module", params=["causal", "gpt2"])
def model(request: Any, tiny: Any) -> Any:
    from evenhand.models.adapters.causal import CausalModel

    return CausalModel(tiny(request.param), request.param)


def edit_of(model: Any, rank: int = 3, **options: Any) -> HeadEdit:
    width = model.model.get_output_embeddings().weight.shape[1]
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((width, rank)))[0].astype(np.float32)
    return HeadEdit(basis, basis, **options)


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("alpha", [0.6, 1.0])
def test_first_token_only_needs_no_cache(model: Any, alpha: float, cache: bool) -> None:
    import torch

    ids = torch.tensor([model.tokenizer(CONTEXTS[0]).input_ids])
    applied = AppliedEdit(torch, model.model, edit_of(model, first_token_only=True, alpha=alpha))
    settings = {"do_sample": False, "pad_token_id": 0, "use_cache": cache}
    with applied.active():
        made = model.model.generate(input_ids=ids, max_new_tokens=6, **settings)
        first = model.model.generate(input_ids=ids, max_new_tokens=1, **settings)
    rest = model.model.generate(input_ids=first, max_new_tokens=5, **settings)
    assert made.tolist() == rest.tolist()


@pytest.mark.parametrize("numba", [True, False])
@pytest.mark.parametrize("scale", [1.0, 60.0])
def test_logits_far_below_zero_are_mixed_right(
    model: Any, numba: bool, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Removing the mean state moves every logit by 150; a wide edit moves them apart by as much."""
    import torch

    from evenhand.models.edits import head

    if not numba:
        monkeypatch.setattr(head, "sweep", lambda: None)
    rng = np.random.default_rng(0)
    states = rng.standard_normal((5, 32)) - 12.0 * np.eye(32)[0]
    weight = rng.standard_normal((401, 32)) + 12.0 * np.eye(32)[0]
    basis = np.linalg.qr(np.c_[np.eye(32)[0], rng.standard_normal((32, 2))])[0]
    edit = HeadEdit(
        (basis * [1, scale, scale]).astype(np.float32), basis.astype(np.float32), alpha=0.4
    )
    net = torch.nn.Linear(32, 401, bias=False)
    net.weight.data = torch.tensor(weight, dtype=torch.float32)
    net.config, net.get_output_embeddings = model.model.config, lambda: net
    applied = AppliedEdit(torch, net, edit)
    h = torch.tensor(states, dtype=torch.float32)
    found = applied.on_rows(h, None, net(h).detach()).double().softmax(-1).numpy()
    exact, left = h.double().numpy(), edit.left.astype(np.float64)
    edited = (exact - exact @ edit.right.astype(np.float64) @ left.T) @ weight.T
    wanted = 0.6 * softmax(exact @ weight.T) + 0.4 * softmax(edited)
    assert np.abs(found - wanted).max() < 1e-4


@pytest.mark.parametrize(
    ("alpha", "mixture"), [(1.0, "probability"), (0.5, "hidden"), (0.5, "probability")]
)
def test_banned_tokens_and_large_half_precision_logits_are_no_fault(
    tiny: Any, alpha: float, mixture: str
) -> None:
    import torch

    from evenhand.models.adapters.causal import CausalModel

    model = CausalModel(tiny("causal"), "banned")
    head = model.model.get_output_embeddings()
    head.bias = torch.nn.Parameter(torch.full((head.weight.shape[0],), -300.0))
    head.bias.data[3:6] = float("-inf")
    edit = edit_of(model, alpha=alpha, mixture=mixture)
    for kind in (torch.float32, torch.float16):
        model.model.to(kind)
        applied = AppliedEdit(torch, model.model, edit)
        with torch.inference_mode(), applied.active():
            logits = model.model(input_ids=torch.arange(5, 25)[None]).logits
        applied.check("banned", str(kind))
        assert not logits.isnan().any()
        assert (logits[..., 3:6] == -torch.inf).all()


def test_a_softcapped_model_needs_no_sensitive_token(tiny: Any) -> None:
    """Learned alpha, and no likely token is sensitive in any row."""
    import torch

    from evenhand.models.adapters.causal import CausalModel

    model = CausalModel(tiny("causal"), "capped")
    model.model.config.final_logit_softcapping = 5.0
    size = model.vocabulary
    edit = edit_of(
        model, rule="eq8", sensitivity=np.ones(size, np.float32), sensitive=np.zeros(size, bool)
    )
    own = torch.randn(3, size)
    states = torch.randn(3, model.model.config.hidden_size)
    found = AppliedEdit(torch, model.model, edit).on_rows(states, own.clone(), own.clone())
    assert torch.equal(found, own)


def test_the_trade_off_knows_the_bias_of_a_head(tiny: Any) -> None:
    import torch

    from evenhand.models.adapters.causal import CausalModel

    model = CausalModel(tiny("causal"), "biased")
    head = model.model.get_output_embeddings()
    head.bias = torch.nn.Parameter(torch.linspace(-3, 3, head.weight.shape[0]))
    first, second = (model.last_states([text]) for text in CONTEXTS)
    held = Held(first, second, first, np.array([7]), np.array([0]))
    found = Bench(model, held).judge(Candidate("inlp", 1, edit_of(model)), (0.0,))[0]
    with torch.inference_mode():
        ids = torch.tensor([model.tokenizer(CONTEXTS[0], add_special_tokens=False).input_ids])
        own = model.model(input_ids=ids).logits[0, -1].double().log_softmax(-1)
    assert found.perplexity == pytest.approx(float((-own[7]).exp()), rel=1e-4)


def test_the_change_of_a_model_counts_banned_tokens_nothing_and_keeps_nan() -> None:
    import torch

    own, new = (torch.tensor([p]).log() for p in ([0.5, 0.5, 0.0], [0.25, 0.75, 0.0]))
    change, kept = _against([own], [new])
    assert change == pytest.approx(0.5 * np.log(2) + 0.5 * np.log(2 / 3))
    assert kept == pytest.approx(0.25)
    assert np.isnan(_against([own * np.nan], [new])[0])


def test_a_plain_model_with_other_weights_is_refused_without_a_tokenizer(
    model: Any, tmp_path: Path
) -> None:
    import torch
    import transformers

    from evenhand.mitigations.head.save import attach
    from evenhand.mitigations.saved import ARRAYS, FACTS

    edit = edit_of(model, alpha=0.4)
    states = model.last_states(CONTEXTS)
    held = Held(states[:1], states[1:], states, np.array([7, 8]), np.array([0, 1]))
    points = Bench(model, held).judge(Candidate("inlp", 1, edit), (0.0, 1.0), full=True)
    asked = HeadMitigation()
    job.FittedHead(asked, model, {}, edit, points[1], points[0], tuple(points)).save(tmp_path / "m")
    for handle in attach(tmp_path / "m", model.model):
        handle.remove()
    torch.manual_seed(5)
    other = transformers.AutoModelForCausalLM.from_config(model.model.config)
    with pytest.raises(ModelError, match="hidden states differ.*evenhand mitigate"):
        attach(tmp_path / "m", other)
    other.resize_token_embeddings(50)
    with pytest.raises(ModelError, match=r"against \(50, 32\) here"):
        attach(tmp_path / "m", other)
    facts = json.loads((tmp_path / "m" / FACTS).read_text())
    (tmp_path / "m" / FACTS).write_text(json.dumps({**facts, "method": "other"}))
    with pytest.raises(ModelError, match="not what was written.*evenhand mitigate"):
        attach(tmp_path / "m", model.model)
    del facts["sha256"]  # as older versions wrote it
    for changed in ({"alpha": 0.9}, {"top": 3}, {"first_token_only": True}):
        other = {**facts, "edit": {**facts["edit"], **changed}}
        (tmp_path / "m" / FACTS).write_text(json.dumps(other))
        with pytest.raises(ModelError, match="not those that were written"):
            attach(tmp_path / "m", model.model)
    del facts["edit"]["rule"]
    (tmp_path / "m" / FACTS).write_text(json.dumps(facts))
    with pytest.raises(ModelError, match="lacks 'rule'"):
        attach(tmp_path / "m", model.model)
    assert (tmp_path / "m" / ARRAYS).is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--axis", "age"], "unknown axis 'age'. Known: gender, religion"),
        (["--mixture", "both"], "unknown mixture 'both'"),
        (["--max-perplexity-increase", "-5%"], "--max-perplexity-increase '-5%'"),
        (["--max-perplexity-increase", "nan"], "--max-perplexity-increase 'nan'"),
        (["--vectors", "nope"], "'nope' is neither a file nor a known name"),
        (["--stereoset", "nope.json"], "nope.json: no such file"),
        (["--out", "full"], "full: the folder is not empty. Choose another with: --out DIR"),
        (["--export", "full"], "the folder is not empty. Choose another with: --export DIR"),
        (["--export", "e"], "--export: the edit has an offset"),
        (["--export", "e", "--no-offset", "--alpha", "0.5"], "(alpha 0.5) is not linear"),
        (["--seed", "-1"], "greater than or equal to 0"),
    ],
)
def test_a_mistake_is_named_before_any_work(
    tiny: Any, tmp_path: Path, words: list[str], message: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("a")
    out = [] if "--out" in words else ["--out", "m"]
    done = evenhand("mitigate", tiny("causal"), *out, *words, cwd=tmp_path)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert "writing" not in done.stderr
    assert done.stdout == ""


def test_a_limit_that_no_setting_meets_is_not_passed_over(model: Any) -> None:
    point = job.Point("inlp", 1, 1, 1.0, "probability", 0.1, 0.1, 0.1, 20.0, 0.5, 0.1, 0.1, 1.0)
    with pytest.raises(SpecError, match=r"the mildest needs 50.0 %.*--max-perplexity-increase"):
        job._choose([point, point], HeadMitigation(method="inlp"))
    assert job._choose([point], HeadMitigation(method="leace")) is point
