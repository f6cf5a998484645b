"""`measure stereoset`: what may be missing is counted, what belongs elsewhere is refused."""

from __future__ import annotations

import gzip
import itertools
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import DataError
from evenhand.probes import stereoset as files
from in_process import evenhand
from made_benchmarks import stereoset_gold
from told import told

SCORES = {"s": 3.0, "a": 2.0, "u": 1.0}
PUBLISHED = "predictions_gpt2_ModelNSP_GPT2LM.json.xz"
INTRA = "intrasentence"


def rows_of(*examples: str) -> list[dict[str, Any]]:
    """All three sentences of the named examples, the stereotype first."""
    return [{"id": f"{e}{k}", "score": s} for e in examples for k, s in SCORES.items()]


def predictions_file(folder: Path, intra: object, inter: object = ()) -> Path:
    path = folder / "p.json"
    path.write_text(json.dumps({"intrasentence": intra, "intersentence": inter or []}))
    return path


def refused(folder: Path, *parts: str) -> None:
    """The command ends with exit 2, one paragraph that holds the parts, and no output."""
    done = evenhand("measure", "stereoset", "--gold", "gold.json", "p.json", cwd=folder)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("evenhand: p.json: ")
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr


def test_ids_that_the_gold_file_does_not_have_are_refused(tmp_path: Path) -> None:
    stereoset_gold(tmp_path)
    predictions_file(tmp_path, rows_of("x", "w"), rows_of("z"))
    refused(tmp_path, "3 of 9 sentence ids are not in gold.json", "'ws'", "another release",
            "Accepted: ids of the gold file", "measure stereoset --gold GOLD p.json")  # fmt: skip


def test_further_ids_beside_a_part_of_the_gold_file_are_left_out(tmp_path: Path) -> None:
    gold = stereoset_gold(tmp_path)
    path = predictions_file(tmp_path, rows_of("x", "y"), rows_of("z"))
    whole = told("stereoset", path, gold=gold)
    predictions_file(tmp_path, rows_of("x", "y", "w"), rows_of("z"))
    with pytest.warns(UserWarning, match="3 of 12 sentence ids are not in .*left out"):
        assert told("stereoset", path, gold=gold) == whole


def test_an_example_with_a_part_of_its_sentences_counts_as_failed(tmp_path: Path) -> None:
    gold = stereoset_gold(tmp_path)
    found = told("stereoset", predictions_file(tmp_path, rows_of("x", "y")[:-2]), gold=gold)
    assert (found["n"], found["n_missing"], found["n_failed"]) == (1, 2, 1)


def test_two_scores_for_one_sentence_are_refused(tmp_path: Path) -> None:
    stereoset_gold(tmp_path)
    predictions_file(tmp_path, [*rows_of("x"), {"id": "xs", "score": 0.5}])
    refused(tmp_path, "1 of 3 sentence ids have more than one score", "'xs': '3.0' and '0.5'",
            "one score for each", "--gold GOLD p.json")  # fmt: skip
    predictions_file(tmp_path, rows_of("x"), [{"id": "xs", "score": None}])  # failed, then not
    refused(tmp_path, "'xs': '3.0' and 'null'")


def test_equal_rows_count_once_with_a_note(tmp_path: Path) -> None:
    gold = stereoset_gold(tmp_path)
    path = predictions_file(tmp_path, rows_of("x", "y"), rows_of("z"))
    once = told("stereoset", path, gold=gold)
    predictions_file(tmp_path, [*rows_of("x", "y"), *rows_of("x")], rows_of("z"))
    with pytest.warns(UserWarning, match="3 sentence ids occur more than once.*'xs'"):
        assert told("stereoset", path, gold=gold) == once
    done = evenhand(
        "measure", "stereoset", "--gold", "gold.json", "p.json", "--json", "-", cwd=tmp_path
    )
    assert done.returncode == 0
    assert done.stderr.startswith("note: p.json: 3 sentence ids")
    assert json.loads(done.stdout) == once


def test_missing_and_failed_examples_are_counted_as_coverage(tmp_path: Path) -> None:
    gold = stereoset_gold(tmp_path)
    failed = [r | {"score": None if r["id"] == "yu" else r["score"]} for r in rows_of("y")]
    path = predictions_file(tmp_path, rows_of("x") + failed)
    found = told("stereoset", path, gold=gold)
    counts = ("n_examples", "n", "n_missing", "n_failed", "coverage")
    assert [found[k] for k in counts] == [3, 1, 2, 1, pytest.approx(1 / 3)]
    assert found["scores"]["intrasentence"]["gender"]["coverage"] == 0.5
    absent = found["scores"]["intersentence"]["gender"]
    assert (absent["ss"], absent["n"], absent["n_missing"], absent["coverage"]) == (None, 0, 1, 0)
    assert absent["reason"] == "no example has all three scores"
    done = evenhand("measure", "stereoset", "--gold", "gold.json", "p.json", cwd=tmp_path)
    assert "1 of 3 examples scored (1 not in the file, 1 failed)" in done.stdout
    assert "0 of 1" in done.stdout


@pytest.mark.parametrize(
    ("intra", "message"),
    [
        (5, "intrasentence holds '5'. Accepted: a list"),
        ([{"id": "xs"}], "expected an id and a number in 'score'"),
        ([{"id": "xs", "score": True}], "True is not a number"),
        ([{"id": "xs", "score": "high"}], "could not convert"),
        ([], "no predictions"),
    ],
)
def test_rows_that_are_no_predictions_are_named(
    intra: object, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        files.read_predictions(predictions_file(tmp_path, intra))


def test_a_gold_file_that_repeats_sentences_is_refused(tmp_path: Path) -> None:
    gold = stereoset_gold(tmp_path)
    data = json.loads(gold.read_text())
    data["data"]["intrasentence"] *= 2
    gold.write_text(json.dumps(data))
    with pytest.raises(DataError, match="6 sentence ids occur more than once.*'xs'"):
        files.read_gold(gold)


def test_a_file_that_was_cut_off_is_named(tmp_path: Path) -> None:
    packed = gzip.compress(stereoset_gold(tmp_path).read_bytes())
    (tmp_path / "cut.json.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match="cut.json.gz: broken gzip data"):
        files.read_gold(tmp_path / "cut.json.gz")


@pytest.mark.shared
def test_published_predictions_of_one_split_keep_their_numbers(
    tmp_path: Path, shared: Path
) -> None:
    folder = shared / "data" / "stereoset"
    gold, whole = folder / "dev.json.gz", folder / "predictions" / PUBLISHED
    found = told("stereoset", whole, gold=gold, resamples=50)
    counts = ("n_examples", "n", "n_missing", "n_failed", "coverage")
    assert [found[k] for k in counts] == [4229, 4229, 0, 0, 1.0]
    path = predictions_file(tmp_path, json.loads(lzma.decompress(whole.read_bytes()))[INTRA])
    half = told("stereoset", path, gold=gold, resamples=50)
    assert [half[k] for k in counts] == [4229, 2106, 2123, 0, pytest.approx(2106 / 4229)]
    for domain, row in found["scores"][INTRA].items():
        for name in ("lms", "ss", "icat"):
            assert half["scores"][INTRA][domain][name] == row[name]


@pytest.mark.shared
def test_published_predictions_are_refused_for_another_gold_file(
    tmp_path: Path, shared: Path
) -> None:
    folder = shared / "data" / "stereoset"
    predictions = folder / "predictions" / PUBLISHED
    with pytest.raises(DataError, match="12687 of 12687 sentence ids are not in .*gold.json"):
        told("stereoset", predictions, gold=stereoset_gold(tmp_path))


def test_examples_are_the_same_column_by_column_and_row_by_row() -> None:
    def row(k: int, labels: tuple[str, ...]) -> dict[str, object]:
        said = [{"id": f"{k}{x}", "sentence": f"{x} {k}", "gold_label": x} for x in labels]
        about = {"id": str(k), "target": "nurse", "bias_type": "gender", "context": "c"}
        return {**about, "sentences": said}

    orders = list(itertools.permutations(files.LABELS))
    rows = [row(k, labels) for k, labels in enumerate(orders)]
    one_by_one = [files._example("x.json", "intrasentence", r) for r in rows]
    assert files._plain_examples("intrasentence", rows) == one_by_one
    for odd in (
        row(9, (files.LABELS[0], *files.LABELS[:2])),
        row(9, files.LABELS[:2]),
        {**row(9, files.LABELS), "id": 9},
        {},
    ):
        assert files._plain_examples("intrasentence", [*rows, odd]) == []
