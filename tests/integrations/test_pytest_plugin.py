"""The pytest plugin, inside pytest and as pytest's own command."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import made_runs
from evenhand import __version__

pytest_plugins = ["pytester"]
ROOT = Path(__file__).resolve().parents[2]
PLUGIN = "evenhand.integrations.pytest_plugin"

SCRIPTED = """
import evenhand as eh
from evenhand.audit.suites import parse_suite

def even(prompt, options):
    return [0.5] * len(options.split("\\t"))

SUITE = parse_suite({"name": "mine", "title": "t", "probe": [
    {"name": "underspecified", "terms": 6, "templates": 1, "resamples": 50,
     "attributes": ["nurse", "doctor"]}
]}, "here", "mine")
"""


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Everything an audit imports: pytester forgets modules, and numpy cannot be loaded twice."""
    known: dict[str, Any] = {}
    exec(SCRIPTED, known)
    model = known["eh"].ScriptedModel({"choose": known["even"]})
    run = known["eh"].audit(model, known["SUITE"], out=tmp_path_factory.mktemp("warm") / "run")
    assert known["eh"].gate(run, require="within-margin").checks


@pytest.fixture
def plain(warm: None, pytester: pytest.Pytester) -> pytest.Pytester:
    """A project of somebody else."""
    pytester.makepyfile(scripted=SCRIPTED)
    return pytester


def run(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    """The module itself, not also by its entry point, where evenhand is installed."""
    return pytester.runpytest_inprocess("-p", "no:evenhand", "-p", PLUGIN, *words)


def test_a_model_object_is_audited_once_and_asserted_on(plain: pytest.Pytester) -> None:
    plain.makepyfile(
        test_even="""
        from pathlib import Path
        import evenhand as eh
        from scripted import SUITE, even

        asked = []

        def counted(prompt, options):
            asked.append(prompt)
            return even(prompt, options)

        def test_within(evenhand_audit):
            model = eh.ScriptedModel({"choose": counted}, name="even")
            run = evenhand_audit(model, SUITE)
            first = len(asked)
            assert first > 0
            judged = run.assert_within("underspecified/*", 0.5)
            assert judged.passed and len(judged.checks) == 3
            again = evenhand_audit(model, SUITE)
            assert len(asked) == first and again.folder == run.folder
            assert again.findings == run.findings and "evenhand" in str(run.folder)
        """
    )
    run(plain, "test_even.py").assert_outcomes(passed=1)
    kept = list((plain.path / ".pytest_cache").rglob("run.json"))
    assert len(kept) == 1


def test_without_pytests_cache_runs_go_to_a_temporary_folder(plain: pytest.Pytester) -> None:
    plain.makepyfile(
        test_even="""
        import evenhand as eh
        from scripted import SUITE, even

        def test_within(evenhand_audit, pytestconfig):
            run = evenhand_audit(eh.ScriptedModel({"choose": even}, name="even"), SUITE)
            assert run.findings and pytestconfig.rootpath not in run.folder.parents
        """
    )
    run(plain, "-p", "no:cacheprovider", "test_even.py").assert_outcomes(passed=1)
    assert not (plain.path / ".evenhand").exists()


def test_a_run_is_named_from_where_the_command_is_typed(
    plain: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_runs.ordinary(plain.path / "runs" / "mine")
    (plain.path / "pytest.ini").write_text("[pytest]\n")
    below = plain.mkdir("checks")
    (below / "test_it.py").write_text(
        "def test_nurse(evenhand_run):\n"
        "    evenhand_run.assert_within('underspecified/gamma/nurse', 0.9)\n"
    )
    monkeypatch.chdir(below)
    run(plain, "--evenhand-run", "../runs/mine").assert_outcomes(passed=1)
    run(plain, "--evenhand-run", "runs/mine").assert_outcomes(passed=1)  # from the root


def test_a_finding_beyond_its_margin_fails_with_its_numbers(plain: pytest.Pytester) -> None:
    made_runs.ordinary(plain.path / "runs" / "mine")
    plain.makepyfile(
        test_lean="""
        def test_nurse(evenhand_run):
            evenhand_run.assert_within("underspecified/gamma/nurse", 0.05)
        def test_wide(evenhand_run):
            evenhand_run.assert_within("underspecified/gamma/nurse", 0.9)
        def test_gate(evenhand_run):
            evenhand_run.assert_passes()
        def test_mistyped(evenhand_run):
            evenhand_run.assert_within("underspecifed/*", 0.05)
        """
    )
    done = run(plain, "--evenhand-run", "runs/mine", "-rA", "--tb=short")
    done.assert_outcomes(passed=1, failed=3)
    told = done.stdout.str()
    assert "evenhand: 'underspecified/gamma/nurse' within 0.05: failed." in told
    assert "underspecified/gamma/nurse  +0.312 [" in told
    assert "shown to lie beyond the margin" in told
    assert "evenhand: the gate is passed: failed." in told
    assert "unknown finding 'underspecifed/*'" in told
    done.stdout.fnmatch_lines(["PASSED test_lean.py::test_wide"])


def test_undecided_fails_unless_it_may_pass(plain: pytest.Pytester) -> None:
    made_runs.ordinary(plain.path / "mine")
    plain.makepyfile(
        test_open="""
        def test_strict(evenhand_run):
            evenhand_run.assert_within("underspecified/gamma/hunter", 0.02)
        def test_lenient(evenhand_run):
            evenhand_run.assert_within("underspecified/gamma/hunter", 0.02, undecided="pass")
        """
    )
    plain.makeini("[pytest]\nevenhand_run = mine\n")
    done = run(plain)
    done.assert_outcomes(passed=1, failed=1)
    assert "undecided counts as fail" in done.stdout.str()


def test_without_a_run_it_says_what_to_give(plain: pytest.Pytester) -> None:
    plain.makepyfile("def test_it(evenhand_run): pass")
    done = run(plain)
    assert "--evenhand-model MODEL" in done.stdout.str()
    done = run(plain, "--evenhand-run", "a", "--evenhand-model", "b")
    assert "a run and a model are given" in done.stdout.str()


def test_a_changed_model_is_audited_again(plain: pytest.Pytester) -> None:
    plain.makepyfile(
        test_change="""
        import evenhand as eh
        from scripted import SUITE, even

        def test_it(evenhand_audit):
            runs = [
                evenhand_audit(eh.ScriptedModel({"choose": even}, name="m", version=v), SUITE)
                for v in ("1", "2", "1")
            ]
            assert runs[0].folder == runs[2].folder != runs[1].folder
            other = evenhand_audit(
                eh.ScriptedModel({"choose": even}, name="m", version="1"), SUITE, seed=1
            )
            assert other.folder not in (runs[0].folder, runs[1].folder)
        """
    )
    run(plain).assert_outcomes(passed=1)


def installed(folder: Path) -> dict[str, str]:
    """The environment of a machine on which this package is installed, its entry points too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    place = folder / f"evenhand-{__version__}.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: evenhand\nVersion: {__version__}\n"
    )
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {where}" for name, where in points.items()), ""]
    (place / "entry_points.txt").write_text("\n".join(lines))
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT / 'src'}"}


def test_pytests_own_command_finds_the_plugin(tmp_path: Path) -> None:
    env = installed(tmp_path / "site")
    made_runs.ordinary(tmp_path / "project" / "mine")
    (tmp_path / "project" / "test_it.py").write_text(
        "import sys\n"
        "def test_first():\n"
        "    assert not {'torch', 'numpy', 'pydantic', 'evenhand.audit'} & set(sys.modules)\n"
        "def test_run(evenhand_run):\n"
        "    evenhand_run.assert_within('underspecified/gamma/nurse', 0.9)\n"
        "def test_fails(evenhand_run):\n"
        "    evenhand_run.assert_within('underspecified/gamma/nurse', 0.1)\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:hypothesispytest", "-p", "no:anyio",
               "--evenhand-run", "mine", "-q", "."]  # fmt: skip
    done = subprocess.run(
        command, cwd=tmp_path / "project", env=env, capture_output=True, text=True, check=False
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    assert "1 failed" in done.stdout
    assert "'underspecified/gamma/nurse' within 0.1: failed" in done.stdout


def test_the_plugin_itself_imports_nothing_heavy() -> None:
    code = (
        f"import sys, pytest; before = set(sys.modules); import {PLUGIN}; "
        "print(sorted(n for n in set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    new = eval(done.stdout)
    ours = {n for n in new if n.split(".")[0] == "evenhand"}
    assert ours == {"evenhand", "evenhand.integrations", PLUGIN}
    assert not [n for n in new if n.split(".")[0] in ("numpy", "torch", "pydantic", "pyarrow")]
