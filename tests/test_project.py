"""The project's own files agree with each other and with what they describe."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand.runs.record import code, environment

ROOT = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LISTS = sorted((ROOT / "src" / "evenhand" / "words").rglob("*.toml"))


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_all_means_every_extra_that_a_user_can_use() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    (every,) = extras["all"]
    named = set(re.findall(r"[a-z]+", every.partition("[")[2]))
    assert named == set(extras) - {"all", "dev", "docs"}


def test_terms_are_spdx_and_cover_what_is_bundled() -> None:
    spdx = pytest.importorskip("license_expression").get_spdx_licensing()
    terms = PROJECT["project"]["license"]
    assert not spdx.validate(terms).errors
    assert {"Apache-2.0", "BSD-3-Clause"} <= set(spdx.license_keys(terms))
    vendor = ROOT / "src" / "evenhand" / "report" / "vendor"
    for script in vendor.glob("*.js"):
        assert (vendor / f"{script.name.partition('.')[0]}.LICENSE.txt").is_file()


@pytest.mark.parametrize("path", LISTS, ids=lambda p: p.stem)
def test_terms_of_word_lists_are_spdx(path: Path) -> None:
    spdx = pytest.importorskip("license_expression").get_spdx_licensing()
    terms = tomllib.loads(path.read_text(encoding="utf-8")).get("licence")
    if terms is None:  # a file of rules without words of its own
        return
    wrong = [s for s in spdx.validate(terms).invalid_symbols if not s.startswith("LicenseRef-")]
    assert not wrong, terms


def test_the_version_is_one() -> None:
    assert f"version: {evenhand.__version__}\n" in text("CITATION.cff")
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/evenhand/__init__.py"
    release = evenhand.__version__.partition(".dev")[0]
    assert f"\n## {release} (" in text("CHANGELOG.md")
    assert f"| {release} " in text("docs/releases.md")


def test_a_run_records_the_very_state_that_computed_it(tmp_path: Path) -> None:
    assert environment()["code"] == code()
    copy = tmp_path / "evenhand"
    for name in ("__init__.py", "errors.py"):
        copy.mkdir(exist_ok=True)
        (copy / name).write_bytes((ROOT / "src" / "evenhand" / name).read_bytes())
    (copy / "runs").mkdir()
    source = (ROOT / "src" / "evenhand" / "runs" / "record.py").read_text(encoding="utf-8")
    body = source[source.index("@lru_cache(1)\ndef code") : source.index("\n\ndef now")]
    (copy / "runs" / "record.py").write_text(
        "import hashlib\nfrom functools import lru_cache\nfrom pathlib import Path\n\n" + body,
        encoding="utf-8",
    )
    ask = "import sys; sys.path.insert(0, sys.argv[1]); import record; print(record.code())"
    seen = set()
    for change in ("", "\n# another state\n"):
        with open(copy / "errors.py", "a", encoding="utf-8") as file:
            file.write(change)
        done = subprocess.run(
            [sys.executable, "-c", ask, str(copy / "runs")], capture_output=True, encoding="utf-8"
        )
        seen.add(done.stdout.strip())
    assert len(seen) == 2, done.stderr


def test_papers_are_cited_by_their_titles() -> None:
    yaml = pytest.importorskip("yaml")
    cited = [row["title"] for row in yaml.safe_load(text("CITATION.cff"))["references"]]
    assert "UNQOVERing Stereotyping Biases via Underspecified Questions" in cited
    wrong = re.compile(r"UnQovering|UnQoVering|Unqovering|UNQOVERING")
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "CITATION.cff"]:
        assert not wrong.search(path.read_text(encoding="utf-8")), path


def test_every_target_of_make_is_in_its_help() -> None:
    made = text("Makefile")
    targets = set(re.findall(r"^([a-z][a-z-]*):", made, re.MULTILINE)) - {"help"}
    told = set(re.findall(r'@echo "make ([a-z-]+)', made))
    assert targets == told
    phony = re.search(r"^\.PHONY: (.*)$", made, re.MULTILINE)
    assert phony is not None
    assert set(phony[1].split()) == targets | {"help"}


def test_workflows_and_templates_are_sound_and_name_what_exists() -> None:
    yaml = pytest.importorskip("yaml")
    for path in [*(ROOT / ".github").rglob("*.yml"), ROOT / ".pre-commit-config.yaml"]:
        assert yaml.safe_load(path.read_text(encoding="utf-8")), path
    flow = yaml.safe_load(text(".github/workflows/tests.yml"))["jobs"]
    matrix = flow["tests"]["strategy"]["matrix"]
    assert matrix["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]
    assert matrix["python"] == ["3.11", "3.12", "3.13"]
    steps = [s.get("run", "") for job in flow.values() for s in job["steps"]]
    for target in re.findall(r"make ([a-z-]+)", "\n".join(steps)):
        assert f"\n{target}:" in text("Makefile")
    for script in re.findall(r"python (tests/\S+\.py)", "\n".join(steps)):
        assert (ROOT / script).is_file()
    extras = PROJECT["project"]["optional-dependencies"]
    named = re.search(r"/src\[([a-z,]+)\]", text("Dockerfile"))
    assert named is not None
    assert set(named[1].split(",")) <= set(extras)
