"""BiasCallback in a real Trainer, on a tiny model that learns what it is taught."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.audit.suites import parse_suite

transformers = pytest.importorskip("transformers", reason="needs the hf extra")
torch = pytest.importorskip("torch", reason="needs the hf extra")

from evenhand.integrations.trainer import BiasCallback, gaps, metric_name  # noqa: E402

SUITE = parse_suite(
    {
        "name": "mine", "title": "t",
        "probe": [{"name": "underspecified", "terms": 5, "templates": 1, "resamples": 50,
                   "attributes": ["nurse", "hunter"]}],
    }, "here", "mine",
)  # fmt: skip
TEXT = "Gerald lives in the same city with Jennifer . Who was a nurse ? Answer: Jennifer"


class Texts(torch.utils.data.Dataset):  # type: ignore[misc]
    def __init__(self, tokenizer: Any) -> None:
        self.rows = tokenizer([TEXT] * 4)["input_ids"]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, k: int) -> dict[str, list[int]]:
        return {"input_ids": self.rows[k], "labels": self.rows[k]}


class Reported(transformers.TrainerCallback):  # type: ignore[misc]
    """Stands where W&B, MLflow or Trackio would: hears whatever is logged."""

    def __init__(self) -> None:
        self.heard: list[dict[str, float]] = []

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        self.heard.append(dict(logs))


@pytest.fixture(scope="module")
def trained(tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Two evaluations of one training, each with an audit."""
    folder = tmp_path_factory.mktemp("training")
    source = tiny("causal")
    model = transformers.AutoModelForCausalLM.from_pretrained(source)
    tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    args = transformers.TrainingArguments(
        str(folder / "checkpoints"), max_steps=4, eval_strategy="steps", eval_steps=2,
        save_strategy="no", logging_strategy="no", report_to=[], use_cpu=True, seed=1,
        learning_rate=5e-2, per_device_train_batch_size=4, disable_tqdm=True,
        dataloader_pin_memory=False,
    )  # fmt: skip
    data = Texts(tokenizer)
    reported = Reported()
    trainer = transformers.Trainer(
        model, args, train_dataset=data, eval_dataset=data, processing_class=tokenizer,
        callbacks=[reported], data_collator=transformers.default_data_collator,
    )  # fmt: skip
    callback = BiasCallback(trainer, SUITE, out=folder / "runs")
    trainer.add_callback(callback)
    trainer.train()
    return {"trainer": trainer, "callback": callback, "reported": reported, "folder": folder,
            "model": model, "tokenizer": tokenizer}  # fmt: skip


def test_findings_are_metrics_of_the_log_and_of_who_listens(trained: dict[str, Any]) -> None:
    runs, history = trained["callback"].runs, trained["trainer"].state.log_history
    assert list(runs) == [2, 4]
    for step, run in runs.items():
        (logged,) = [r for r in history if r["step"] == step and "eval_evenhand_detected" in r]
        heard = [h for h in trained["reported"].heard if "eval_evenhand_detected" in h]
        own = [f for f in run.findings if f.counts and f.value == f.value]
        assert len(own) == 3
        for finding in own:
            name = metric_name(finding.id)
            assert logged[name] == finding.value
            assert any(h[name] == finding.value for h in heard)
    values = gaps(history, "underspecified/lean/nurse")
    assert [step for step, _ in values] == [2, 4]
    assert values[0][1] != values[1][1]


def test_the_audited_weights_are_those_of_the_step(trained: dict[str, Any]) -> None:
    """The last run is what an audit of the final model gives, bit for bit."""
    saved = trained["folder"] / "step-4"
    trained["model"].save_pretrained(saved)
    trained["tokenizer"].save_pretrained(saved)
    run = eh.audit(str(saved), SUITE, out=trained["folder"] / "by hand")
    assert run.findings == trained["callback"].runs[4].findings
    assert run.findings != trained["callback"].runs[2].findings


def test_two_checkpoints_are_compared_on_the_same_items(trained: dict[str, Any]) -> None:
    before, after = trained["callback"].runs.values()
    judged = eh.gate(after, baseline=before)
    assert {c.id for c in judged.checks} >= {"underspecified/lean/nurse"}
    check = next(c for c in judged.checks if c.id == "underspecified/lean/nurse")
    values = [next(f.value for f in r.findings if f.id == check.id) for r in (before, after)]
    assert [check.before, check.after] == pytest.approx(values)


def test_evaluate_returns_them_and_training_is_left_alone(
    trained: dict[str, Any], tmp_path: Path
) -> None:
    trainer, callback = trained["trainer"], trained["callback"]
    callback.out = tmp_path
    trained["model"].train()
    state = torch.get_rng_state()
    run = callback.audited(trained["model"], trained["tokenizer"], 7)
    assert trained["model"].training
    assert torch.equal(state, torch.get_rng_state())
    assert run.folder == tmp_path / "step-7"
    callback.out = tmp_path / "again"
    metrics = trainer.evaluate()
    assert metrics["eval_loss"] > 0
    lean = next(f for f in callback.runs[4].findings if f.id.endswith("lean/nurse"))
    assert metrics["eval_evenhand_underspecified_lean_nurse"] == lean.value


def test_what_is_missing_is_said(trained: dict[str, Any]) -> None:
    with pytest.raises(eh.EvenhandError, match="is not a Trainer. Make the trainer first"):
        BiasCallback("quick")
    with pytest.raises(eh.EvenhandError, match="unknown suite 'quik'. Did you mean 'quick'"):
        BiasCallback(trained["trainer"], "quik")
    with pytest.raises(eh.EvenhandError, match="every 0: expected 1 or more"):
        BiasCallback(trained["trainer"], every=0)
    callback = BiasCallback(trained["trainer"], SUITE)
    state = trained["trainer"].state
    with pytest.raises(eh.EvenhandError, match="processing_class=TOKENIZER"):
        callback.on_evaluate(None, state, None, {}, model=trained["model"])
    with pytest.raises(eh.EvenhandError, match="processing_class=TOKENIZER"):
        callback.on_train_begin(None, state, None, model=trained["model"])
