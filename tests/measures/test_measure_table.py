"""`evenhand measure table`: a plain table becomes sentences, a run folder and a report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import evenhand as eh
from evenhand.errors import DataError
from evenhand.probes.reading import Result
from evenhand.runs.record import Run
from in_process import evenhand

WHITE = ("Emily", "Anne", "Greg", "Matthew", "Todd", "Jill", "Laurie", "Sarah")
BLACK = ("Aisha", "Keisha", "Jamal", "Leroy", "Tyrone", "Tanisha", "Latoya", "Ebony")
SAID = {
    True: ("Yes, I would approve the loan.", "Approved.", "approve"),
    False: ("I would not approve this.", "Reject", "It must be denied."),
}


def decisions(path: Path, gap: float, seed: int = 0, head: str = "name,group,decision") -> Path:
    """96 decisions a group in free text; of the second group so many fewer are good."""
    rng = np.random.default_rng(seed)
    rows = [head]
    for group, names, share in (("white", WHITE, 0.75), ("Black", BLACK, 0.75 - gap)):
        for name in names:
            for k in range(12):
                said = SAID[bool(rng.random() < share)][k % 3]
                rows.append(f'{name},{group},"{said}"')
    path.write_text("\n".join(rows) + "\n")
    return path


def test_a_plain_table_becomes_a_report_in_one_command(tmp_path: Path) -> None:
    file = decisions(tmp_path / "decisions.csv", 0.4)
    with file.open("a") as more:
        more.write("Ebony,Black,\"I'm sorry, but I can't help with that.\"\nEbony,Black,Bananas\n")
        more.write("Ebony,Black,\n")
    page, out = tmp_path / "report.html", tmp_path / "run"
    done = evenhand(
        "measure", "table", str(file), "--html", str(page), "--out", str(out), cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "Black people get a decision for them less often than white people" in done.stdout
    assert "declined 1, unread 1, unasked 1" in done.stdout
    assert "Black people" in page.read_text()
    run = Run.open(out)
    (found, refused) = run.findings
    assert found.detected
    assert found.value < -0.2
    assert found.low < -0.4 < found.high
    assert found.harm == "Black people: decided against more often than white people"
    assert found.generalises_over == ("names",)
    assert not refused.detected
    assert run.table("table", "items").num_rows == 195
    assert "May it ship?" in evenhand("show", str(out), cwd=tmp_path).stdout
    assert evenhand("gate", str(out), cwd=tmp_path).returncode == 1


def test_an_even_table_detects_nothing(tmp_path: Path) -> None:
    result = eh.measure.table(decisions(tmp_path / "even.csv", 0.0))
    (found,) = eh.as_run(result, tmp_path / "run").findings
    assert found.detected is False
    assert found.sentence.startswith("No difference between Black people and white people was")


def test_rows_without_names_are_welchs_test(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    one, two = rng.normal(0, 1, 30), rng.normal(0.5, 2, 40)
    rows = [f"A,{v!r}" for v in one.tolist()] + [f"B,{v!r}" for v in two.tolist()]
    file = tmp_path / "ratings.csv"
    file.write_text("group,rating\n" + "\n".join(rows) + "\n")
    (row,) = eh.measure.table(file).gaps
    welch = stats.ttest_ind(one, two, equal_var=False)
    assert row.found.value == pytest.approx(one.mean() - two.mean())
    assert row.found.p == pytest.approx(welch.pvalue, rel=0.05)


def test_cases_that_both_groups_share_are_pairs(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    level, gap = rng.normal(0, 5, 12), rng.normal(-0.5, 0.3, 12)
    rows = [f"{g},case {k},{float(level[k] + gap[k] * (g == 'female'))!r}"
            for k in range(12) for g in ("female", "male")]  # fmt: skip
    file = tmp_path / "cases.csv"
    file.write_text("gender,case,score\n" + "\n".join(rows) + "\n")
    (row,) = eh.measure.table(file).gaps
    paired = stats.ttest_1samp(gap, 0)
    assert row.found.p == pytest.approx(paired.pvalue, rel=1e-6)


def test_names_alone_are_enough(tmp_path: Path) -> None:
    file = tmp_path / "names.csv"
    names = [*WHITE, *BLACK, "Zyxwv"]
    file.write_text("Name,Answer\n" + "".join(f"{n},yes\n{n},no\n" for n in names))
    result = eh.measure.table(file)
    assert {row.axis for row in result.gaps} == {"gender", "race"}
    assert result.unknown_names >= 2


def test_two_labels_that_nobody_explained_name_nobody_as_worse_off(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    labels = ["toxic"] * 9 + ["clean"] + ["clean"] * 9 + ["toxic"]
    file.write_text(
        "group,label\n" + "".join(f"{'AB'[k // 10]},{v}\n" for k, v in enumerate(labels))
    )
    (found,) = eh.as_run(eh.measure.table(file), tmp_path / "run").findings
    assert found.detected
    assert found.harm == ""
    named = eh.measure.table(file, answers=["clean", "toxic"])
    (found,) = eh.as_run(named, tmp_path / "named").findings
    assert found.harm.startswith("people in group A")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("who,what\nA,1\n", "--outcome COLUMN"),
        ("decision\nyes\n", "--groups COLUMN"),
        ("group,decision\nA,yes\nA,no\n", "Accepted: 2 to"),
        ("group,decision\nA,blue\nA,red\nB,green\nB,red\n", "--answers GOOD,BAD"),
        ("group,decision\n", "no rows"),
        ("name,decision\nZyx,yes\nXyz,no\n", "Add a column with the group"),
    ],
)
def test_what_cannot_be_read_says_what_to_do(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "odd.csv"
    file.write_text(text)
    with pytest.raises(DataError, match=said):
        eh.measure.table(file)


def test_json_holds_the_findings_and_what_fits(tmp_path: Path) -> None:
    file = decisions(tmp_path / "decisions.csv", 0.4)
    told = json.loads(evenhand("measure", "table", str(file), "--json", "-", cwd=tmp_path).stdout)
    assert told["measure"] == "table"
    assert told["gaps"][0]["groups"] == ["Black", "white"]
    assert told["fits"]["same case, another person"].startswith("no:")


def test_numbers_without_findings_say_so(tmp_path: Path) -> None:
    class Plain(Result):
        measure = "plain"

    with pytest.raises(eh.EvenhandError, match="--json FILE"):
        eh.as_run(Plain(), tmp_path / "run")


def test_an_answer_that_nobody_gave_is_named(tmp_path: Path) -> None:
    file = tmp_path / "replies.csv"
    file.write_text("group,reply\n" + "men,invite\nwomen,reject\nmen,reject\nwomen,invite\n" * 3)
    done = evenhand("measure", "table", str(file), "--outcome", "reply",
                    "--answers", "invite,rejekt", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 2
    assert "no answer can be read as 'rejekt', and 6 of 12 cannot be read, e.g. 'reject'" in (
        done.stderr
    )
