"""`transformers.Trainer`: what every evaluation says about groups, beside its loss.

    trainer = Trainer(model, args, train_dataset=..., eval_dataset=..., processing_class=tokenizer)
    trainer.add_callback(BiasCallback(trainer, "quick", out="runs/training"))
    trainer.train()

Each evaluation audits the model as it is then into `out/step-N`. Its findings are metrics named
`eval_evenhand_...`: in the log history, in what `evaluate()` returns (so that
`metric_for_best_model` can be one of them), and wherever `report_to` sends metrics.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.audit.suites import Asked, as_suite
from evenhand.errors import SpecError, need
from evenhand.runs.kinds import cannot_judge

if TYPE_CHECKING:
    from evenhand.runs.record import Run

PREFIX = "eval_evenhand_"
_callbacks: Any = need("transformers", extra="hf", what="a callback for its Trainer")


def metric_name(finding: str) -> str:
    """The metric of a finding.

    >>> metric_name("underspecified/lean/nurse")
    'eval_evenhand_underspecified_lean_nurse'
    """
    return PREFIX + re.sub(r"[^A-Za-z0-9]+", "_", finding).strip("_")


def metrics_of(run: Run, pattern: str = "*") -> dict[str, float]:
    """The findings of a run that count and are defined, as metrics, and how many are detected.

    Where probes cannot judge the model any more, also how many of them there are: a gap that has
    gone with the answers is no progress.
    """
    own = [f for f in run.findings if f.counts and f.value == f.value]
    found = {metric_name(f.id): float(f.value) for f in own if fnmatchcase(f.id, pattern)}
    silent = cannot_judge(run.facts)
    mute = {f"{PREFIX}cannot_judge": float(len(silent))} if silent else {}
    return {**found, f"{PREFIX}detected": float(sum(bool(f.detected) for f in own)), **mute}


class BiasCallback(_callbacks.TrainerCallback):  # type: ignore[misc]
    """Audits the model after every evaluation.

    Args:
        trainer: whose evaluations; its `log` takes the metrics.
        suite: as `evenhand.audit` takes it; by default that of the model's kind.
        out: a folder for the runs, `step-N` below it; by default `runs/trainer`.
        findings: ids or a wildcard: which findings become metrics.
        every: audit after this many evaluations each time.
        seed: of every draw; the same in all runs, so that they ask the same.
        how: further options of `evenhand.audit`, e.g. chat="off".

    Attributes:
        runs: the finished runs by global step; `evenhand.compare` and `evenhand.gate` take them.
    """

    def __init__(
        self,
        trainer: Any,
        suite: Asked | None = None,
        *,
        out: str | Path = "runs/trainer",
        findings: str = "*",
        every: int = 1,
        seed: int = 0,
        **how: Any,
    ) -> None:
        if not callable(getattr(trainer, "log", None)):
            raise SpecError(
                f"BiasCallback: {type(trainer).__name__} is not a Trainer. Make the trainer "
                f"first, then: trainer.add_callback(BiasCallback(trainer, SUITE))"
            )
        if every < 1:
            raise SpecError(f"BiasCallback: every {every!r}: expected 1 or more.")
        self.suite = suite if suite is None else as_suite(suite)  # now, not after hours
        self.trainer, self.out = trainer, Path(out)
        self.findings, self.every, self.how = findings, every, {"seed": seed, **how}
        self.runs: dict[int, Run] = {}
        self._evaluations = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Refuse a training without a tokenizer before anything is trained."""
        _tokenizer(given)

    def on_evaluate(
        self,
        args: Any,
        state: Any,
        control: Any,
        metrics: dict[str, float] | None = None,
        **given: Any,
    ) -> None:
        """See `TrainerCallback.on_evaluate`."""
        self._evaluations += 1
        if not state.is_world_process_zero or (self._evaluations - 1) % self.every:
            return
        run = self.audited(given["model"], _tokenizer(given), int(state.global_step))
        found = metrics_of(run, self.findings)
        if metrics is not None:
            metrics.update(found)
        self.trainer.log(dict(found))

    def audited(self, model: Any, tokenizer: Any, step: int) -> Run:
        """The run of the model at a step; the model is left as it was."""
        from evenhand.audit.auditing import audit

        whole = getattr(model, "module", model)  # out of what distributes it
        name = f"step-{step}"
        with _as_it_was(whole):
            self.runs[step] = audit(
                whole, self.suite, tokenizer=tokenizer, name=name, out=self.out / name, **self.how
            )
        return self.runs[step]


def _tokenizer(given: Mapping[str, Any]) -> Any:
    found = given.get("processing_class") or given.get("tokenizer")
    if found is None:
        raise SpecError(
            "BiasCallback: the trainer has no tokenizer, so the model cannot be asked. Give it "
            "one with: Trainer(..., processing_class=TOKENIZER)"
        )
    return found


class _as_it_was:
    """Inside: anything may be done with a model; it then trains on with the same random numbers."""

    def __init__(self, model: Any) -> None:
        self._model, self._training = model, bool(model.training)
        torch: Any = need("torch", extra="hf", what="training")
        self._states: list[tuple[Callable[[Any], None], Any]] = [
            (torch.set_rng_state, torch.get_rng_state())
        ]
        if torch.cuda.is_available():
            self._states.append((torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all()))

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: Any) -> None:
        self._model.train(self._training)
        for restore, state in self._states:
            restore(state)


def gaps(history: list[Mapping[str, Any]], finding: str) -> list[tuple[int, float]]:
    """A finding over training, from `trainer.state.log_history`: (step, value).

    >>> gaps([{"step": 5, "eval_evenhand_a_b": 0.1}, {"loss": 1.0, "step": 6}], "a/b")
    [(5, 0.1)]
    """
    name = metric_name(finding)
    return [(int(row["step"]), float(row[name])) for row in history if name in row]
