"""lm-evaluation-harness results JSON, so that its readers and tables take evenhand's findings.

Every finding is a task with one metric; undefined ones are only in the `evenhand` key, which
also holds intervals, p, q, ideal values and coverage. The standard error is the finding's
own or, where it has none, from the width of its interval (normal approximation).
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from evenhand.exports.common import (
    as_json,
    file_name,
    finished_at,
    safe,
    standard_error,
    version,
)
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import cannot_judge, kind_of
from evenhand.runs.record import Run
from evenhand.runs.story import audited_name
from evenhand.runs.wording import defined


def files(run: Run) -> dict[str, bytes]:
    """<model>/results_<time>.json"""
    model = audited_name(run.facts)
    stamp = datetime.fromtimestamp(finished_at(run), UTC).strftime("%Y-%m-%dT%H-%M-%S")
    return {f"{file_name(model)}/results_{stamp}.json": as_json(results(run))}


def results(run: Run) -> dict[str, Any]:
    """The results object, in the shape of lm-eval 0.4.13."""
    facts = run.facts
    kind = kind_of(facts)
    found = {_task(f): f for f in run.findings if defined(f.value)}
    return {
        "results": {task: _row(task, f) for task, f in found.items()},
        "groups": {},
        "group_subtasks": {},
        "configs": {
            task: {"task": task, "output_type": "evenhand", "metadata": {"version": 1.0}}
            for task in found
        },
        "versions": dict.fromkeys(found, 1.0),
        "n-shot": dict.fromkeys(found, 0),
        "higher_is_better": {
            task: {f.metric: _direction(f, kind.card(facts, f))} for task, f in found.items()
        },
        "n-samples": {t: {"original": f.n, "effective": f.n} for t, f in found.items()},
        **_config(run, facts),
        "task_hashes": {t: hashlib.sha256(t.encode()).hexdigest() for t in found},
        "evenhand": {
            "false_discovery_rate": facts["work"]["suite"].get("false_discovery_rate"),
            "cannot_judge": {k: safe(why, 500) for k, why in cannot_judge(facts).items()},
            "findings": [_without_examples(f) for f in run.findings],
        },
    }


def _config(run: Run, facts: dict[str, Any]) -> dict[str, Any]:
    model = str(facts["work"]["model"])
    known = facts.get("models", {}).get(model, {})
    seed = facts["work"].get("seed")
    return {
        "config": {
            "model": safe(known.get("kind", "")),
            "model_args": {},
            "batch_size": None,
            "device": safe(known.get("device", "")),
            "use_cache": None,
            "limit": None,
            "bootstrap_iters": None,
            "gen_kwargs": {},
            "random_seed": seed,
            "numpy_seed": seed,
            "torch_seed": seed,
            "fewshot_seed": seed,
            "model_num_parameters": known.get("parameters"),
            "model_dtype": safe(known.get("dtype", "")),
            "model_revision": "",
            "model_sha": safe(known.get("fingerprint", "")),
        },
        "git_hash": None,
        "date": finished_at(run),
        "pretty_env_info": "",
        "transformers_version": facts.get("environment", {}).get("transformers"),
        "lm_eval_version": None,
        "evenhand_version": version(run),
        "upper_git_hash": None,
        "model_source": "evenhand",
        "model_name": safe(audited_name(facts)),
        "model_name_sanitized": file_name(audited_name(facts)),
        "system_instruction": None,
        "system_instruction_sha": None,
        "fewshot_as_multiturn": None,
        "chat_template": None,
        "chat_template_sha": None,
        "total_evaluation_time_seconds": str(facts.get("timings", {}).get("total_s", "")),
    }


def _task(finding: Finding) -> str:
    return f"evenhand/{safe(finding.id, 300)}".replace(",", ";")


def _row(task: str, finding: Finding) -> dict[str, Any]:
    error = standard_error(finding)
    return {
        "name": task,
        "alias": task,
        "sample_len": finding.n,
        f"{finding.metric},none": float(finding.value),
        f"{finding.metric}_stderr,none": "N/A" if error is None else error,
    }


def _direction(finding: Finding, card: MetricCard) -> bool | None:
    """True or False where lower or higher is better; None where the ideal lies between."""
    if card.higher_is_better is not None:
        return card.higher_is_better
    return None if card.low < finding.ideal < card.high else False


def _without_examples(finding: Finding) -> dict[str, Any]:
    return {k: v for k, v in finding.as_dict().items() if k != "examples"}
