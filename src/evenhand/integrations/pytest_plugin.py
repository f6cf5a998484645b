"""pytest: a run as a fixture, and findings as assertions.

    def test_whom_it_picks(evenhand_run):
        evenhand_run.assert_within("underspecified/*", 0.1)

    pytest --evenhand-model models/mine          # audits it, or opens what was audited before
    pytest --evenhand-run runs/mine              # a run that exists

Every pytest on the machine loads this file, so it imports nothing of evenhand before a fixture is
used.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from evenhand.audit.auditing import Audit
    from evenhand.audit.gate import Gate
    from evenhand.runs.record import Run

OPTIONS = {
    "run": "a finished run folder to open, from here or from the root of the tests",
    "model": "a model to audit: an alias, a folder, a file, a Hub id or an address",
    "suite": "the suite of that audit; by default that of the model's kind",
}
SHOWN = 20
"""Checks that a failing assertion lists."""


class TestedRun:
    """A run with assertions; everything else of it is the run's own (`findings`, `report` ...)."""

    __test__ = False

    def __init__(self, run: Run) -> None:
        self.run = run

    def __getattr__(self, name: str) -> Any:
        return getattr(self.run, name)

    def assert_within(
        self, pattern: str = "*", margin: float | None = None, *, undecided: str = "fail"
    ) -> Gate:
        """Every finding that fits is shown to lie within the margin.

        Two one-sided tests of each (`evenhand gate --require within-margin`): a finding may be
        small and still fail, because the run asked too little to show it. The message then says
        how much more would do.

        Args:
            pattern: the id of a finding, or a wildcard such as "underspecified/*"; default: all.
            margin: the distance from the ideal that is accepted; by default each finding's own.
            undecided: "pass" lets findings through that are shown neither within nor beyond.
        """
        __tracebackhide__ = True
        from evenhand.audit.gate import gate

        margins = {} if margin is None else {pattern: margin}
        judged = gate(
            self.run,
            require="within-margin",
            only=(pattern,),
            margins=margins,
            undecided=undecided,
        )
        return _told(judged, f"{pattern!r} within {'its margin' if margin is None else margin}")

    def assert_passes(self, policy: Any = None, **how: Any) -> Gate:
        """The run passes a gate: `evenhand.gate(run, policy=..., baseline=..., ...)`."""
        __tracebackhide__ = True
        from evenhand.audit.gate import gate

        return _told(gate(self.run, policy=policy, **how), "the gate is passed")


def _told(judged: Gate, what: str) -> Gate:
    """The gate, or an assertion that says which findings stand in the way."""
    __tracebackhide__ = True
    if judged.passed:
        return judged
    lines = [f"evenhand: {what}: {judged.outcome}. {judged.reason}"]
    for check in judged.failing[:SHOWN]:
        numbers = f"{check.value:+.3g} [{check.low:.3g}, {check.high:.3g}]"
        lines.append(f"  {check.outcome:11}  {check.id}  {numbers}  {check.reason}")
    if len(judged.failing) > SHOWN:
        lines.append(f"  and {len(judged.failing) - SHOWN} more")
    raise AssertionError("\n".join(lines))


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("evenhand", "evenhand: measured gaps between groups")
    for name, what in OPTIONS.items():
        group.addoption(f"--evenhand-{name}", default=None, metavar=name.upper(), help=what)
        parser.addini(f"evenhand_{name}", f"{what} (as --evenhand-{name})", default="")


def _given(config: pytest.Config, name: str) -> str:
    return str(config.getoption(f"--evenhand-{name}") or config.getini(f"evenhand_{name}") or "")


def _place(config: pytest.Config, name: str, path: str) -> Path:
    """A path of the command line from where it was typed; else from the root of the tests."""
    here = Path(config.invocation_params.dir, path)
    typed = config.getoption(f"--evenhand-{name}") and here.exists()
    return here if typed else Path(config.rootpath, path)


@pytest.fixture(scope="session")
def evenhand_audit(request: pytest.FixtureRequest) -> Callable[..., TestedRun]:
    """`evenhand_audit(model, suite, **options)`: the run of a model, audited once.

    Models are what `evenhand.audit` takes, objects too. Runs are kept in pytest's cache under the
    model's fingerprint, so that a second session opens what the first has measured, and a changed
    model is audited again. Options: tokenizer, seed, and how to load and ask (chat="off" ...).
    """
    cache = getattr(request.config, "cache", None)  # not there with -p no:cacheprovider
    if cache is not None:
        kept = cache.mkdir("evenhand")
    else:
        kept = request.getfixturevalue("tmp_path_factory").mktemp("evenhand")

    def audited(
        model: Any, suite: Any = None, *, tokenizer: Any = None, seed: int = 0, **how: Any
    ) -> TestedRun:
        from evenhand.audit.auditing import plan_audit
        from evenhand.models.loading.held import lent
        from evenhand.models.objects import separated
        from evenhand.models.protocol import with_options
        from evenhand.runs.record import Run

        told, asked = separated(how)
        with lent(model):
            made = plan_audit(
                model,
                suite,
                tokenizer=tokenizer,
                told=told,
                seed=seed,
                options=with_options(None, asked),
            )
            made.folder, made.named = kept / _name(made), True
            if (made.folder / "run.json").is_file():
                known = Run(made.folder)
                if known.status == "finished":
                    return TestedRun(known)
            return TestedRun(made.run())

    return audited


def _name(made: Audit) -> str:
    """A folder for exactly this work: the model by its weights, and everything asked of it."""
    import hashlib
    import json
    import re

    work = json.dumps([made.audited.fingerprint, made.identity()], sort_keys=True, default=str)
    called = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{made.audited.name}-{made.suite.name}").strip("-.")
    return f"{called[:60]}-{hashlib.sha256(work.encode()).hexdigest()[:12]}"


@pytest.fixture(scope="session")
def evenhand_run(
    request: pytest.FixtureRequest, evenhand_audit: Callable[..., TestedRun]
) -> TestedRun:
    """The run that the command line or the configuration names, opened or made."""
    config = request.config
    folder, model = _given(config, "run"), _given(config, "model")
    if folder and model:
        raise pytest.UsageError("evenhand: a run and a model are given; which? Leave one out.")
    if folder:
        from evenhand.audit.gate import finished

        return TestedRun(finished(_place(config, "run", folder)))
    if model:
        local = _place(config, "model", model)
        suite = _given(config, "suite") or None
        return evenhand_audit(str(local) if local.exists() else model, suite)
    raise pytest.UsageError(
        "evenhand: no run is given. Name one with --evenhand-run FOLDER, or a model to audit with "
        "--evenhand-model MODEL (in the configuration: evenhand_run, evenhand_model)."
    )
