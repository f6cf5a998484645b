"""The example of docs/lexicons.md: one file with a class of one's own, taken by every probe."""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.audit.suites import parse_suite
from evenhand.errors import SpecError
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.registry import make_probe
from in_process import evenhand

DOCS = Path(__file__).parents[2] / "docs" / "lexicons.md"
SETTINGS: dict[str, dict[str, Any]] = {
    "underspecified": {"social_class": "age"},
    "discovery": {"groups": ("old", "young")},
    "decision": {},
    "counterfactual": {"groups": ("old", "young"), "reference": ("young",)},
    "divergence": {"axes": "age"},
    "ranking": {"groups": ("old", "young")},
    "name-study": {"groups": ("old", "young")},
}


@pytest.fixture
def age(tmp_path: Path) -> Path:
    (text,) = re.findall(r'```toml[^\n]*\n([^`]*kind = "people"[^`]*)```', DOCS.read_text())
    path = tmp_path / "age.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", SETTINGS)
def test_every_probe_takes_the_file_and_lists_it(name: str, age: Path) -> None:
    probe = make_probe(name, {"lexicon": str(age), **SETTINGS[name]})
    found = probe.preview(frozenset(probe.needs), 0)
    assert found.items > 0
    assert str(age) in probe.lexicons()


def picks_old(prompt: str, options: str) -> list[float]:
    """Old people more for what is asked, whatever the order; even where nothing is negated."""
    first, second = (any(w in o for w in ("old", "elder", "aged", "grey")) and "adolescent" not in o
                     for o in options.split("\t")[:2])  # fmt: skip
    asked = 0.3 if "wallet" in prompt.rpartition("\n")[2] else 0.0
    asked += 0.01 * (zlib.crc32(prompt.encode()) % 7)  # no two terms are quite alike
    return [0.5 + asked * (first - second) / 2, 0.5 - asked * (first - second) / 2]


def test_groups_of_an_own_class_are_found_and_called_by_their_names(age: Path) -> None:
    row = {"name": "underspecified", "lexicon": str(age), "social_class": "age", "templates": 2}
    suite = parse_suite({"name": "age", "probe": [row]}, "test", "age")
    run = eh.audit(ScriptedModel({"choose": picks_old}), suite, out=age.parent / "run")
    found = [f for f in run.findings if f.metric == "lean" and f.detected]
    assert found
    assert {f.groups for f in found} == {("old", "young")}
    assert any("picks the old term more" in f.sentence for f in found)
    assert not any("religion" in f.sentence or "religion" in f.id for f in run.findings)


def test_decisions_about_an_own_class(age: Path) -> None:
    def choose(prompt: str, options: str) -> list[float]:
        yes = 0.4 if "70-year-old" in prompt else 0.6
        return [yes / 2, (1 - yes) / 2] * (len(options.split("\t")) // 2)

    row = {"name": "decision", "lexicon": str(age)}
    suite = parse_suite({"name": "age", "probe": [row]}, "test", "age")
    run = eh.audit(ScriptedModel({"choose": choose}), suite, out=age.parent / "run")
    assert {f.groups for f in run.findings if f.metric == "decision_gap"} == {
        ("old people", "young people")
    }


def test_a_class_without_a_file_is_refused_with_what_to_type(age: Path) -> None:
    with pytest.raises(SpecError, match=r"social_class 'age'.*--set lexicon=FILE.toml"):
        make_probe("underspecified", {"social_class": "age"})
    age.write_text(age.read_text().replace("[[people]]", "[[persons]]"))
    with pytest.raises(SpecError, match="no \\[\\[people\\]\\]"):
        make_probe("decision", {"lexicon": str(age)}).preview(frozenset({"choose"}), 0)
    done = evenhand("probe", "underspecified", "x", "--set", "social_class=age", cwd=age.parent)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
