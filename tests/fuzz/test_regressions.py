"""What the fuzzer found, each once: accepted in silence, or a traceback, before it was mended."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evenhand.corpora import labels_of
from evenhand.corpora.balancing import read_labels
from evenhand.corpora.tables import read_table
from evenhand.corpora.text import numbered_lines, open_corpus
from evenhand.errors import DataError, EvenhandError, ModelError, SpecError
from evenhand.models.endpoints.journal import Journal
from evenhand.models.endpoints.spending import Usage
from evenhand.models.loading.resolver import resolve
from evenhand.models.vectors.files import open_vectors
from evenhand.opening import parse_json, read_rows
from evenhand.probes.generation.ratings import Text, read_sheets, write_sheets
from evenhand.probes.registry import make_probe
from evenhand.probes.stereoset import read_gold, read_predictions
from evenhand.probes.winobias import read_winobias
from evenhand.train.common import read_saved
from evenhand.words.names import read_names
from evenhand.words.sets import read_dialect_model
from evenhand.words.social_iqa import survey_contexts
from evenhand.writing import write_text
from in_process import evenhand
from probe_cases import CASES
from reader_cases import CASES as READERS


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"a,b\n\xe5x,1\n", "(?i)utf-?8"),
        (b"a,b\nx\0y,1\n", "column 'a': holds a NUL byte"),
        (b'a,b\n"x"y,1\n', "line 2: is not a readable CSV file .*expected after"),
        (b'a,b\n""y,1\n', "line 2: is not a readable CSV file .*expected after"),
        (b'a,b\nx,"1\n', "line 2: is not a readable CSV file .*unexpected end"),
        (b'a,b\n"x,1\ny,1\n" z,1\n', "line 4: is not a readable CSV file .*expected after"),
    ],
)
def test_tables_that_readers_understand_differently(tmp_path: Path, raw: bytes, told: str) -> None:
    (tmp_path / "t.csv").write_bytes(raw)
    with pytest.raises(DataError, match=told):
        read_table(tmp_path / "t.csv")
    with pytest.raises(DataError, match=told):
        read_table(tmp_path / "t.csv", text=["a"])


def test_quotes_that_are_no_fault_stay(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('a,b\n5" nail,1\n"say ""hi"" now",2\n"two\nlines",3\n')
    found = read_table(tmp_path / "t.csv")
    assert found.columns["a"].to_pylist() == ['5" nail', 'say "hi" now', "two\nlines"]


def test_a_number_of_four_hundred_digits_in_json(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps([{"x": 10**400}, {"x": 1}]))
    assert read_table(tmp_path / "t.json").numbers("x").tolist() == [np.inf, 1.0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"score": 1, "score": 2}', "'score' occurs twice in one object"),
        ('{"text": "\\ud800"}', "holds half a character"),
        ("1" * 5000, "is not JSON"),
    ],
)
def test_json_that_readers_understand_differently(text: str, told: str) -> None:
    with pytest.raises(DataError, match=f"t.json: .*{told}"):
        parse_json(text, "t.json")


def test_whole_characters_of_two_halves_are_text() -> None:
    assert parse_json('"\\ud83d\\ude00"', "t.json") == "😀"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,b\n1\n", "line 2: 1 cells for 2 columns"),
        ("a,a\n1,2\n", "occurs twice"),
        ("", "the file is empty"),
        ('a\n"x"y\n', "is not a readable CSV file"),
        ("a\nx\0\n", "NUL"),
        ("a\n" + "x" * 200_000 + "\n", "field larger than field limit"),
    ],
)
def test_rows_of_small_tables(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=told):
        read_rows(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name,sex,n_total\nTia,F,9x\n", "'9x' where a count or share is expected"),
        ("name,white,black\nTIA,nan,0.9\n", "'nan' where a count or share is expected"),
        ("name,sex,n_total\nTia,F\n", "2 cells for 3 columns"),
        ("given,gender,ethnicity,count\nA,F,HISPANIC,1\n", "no column of names"),
    ],
)
def test_tables_of_names_are_not_guessed_at(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "n.csv").write_text(text)
    with pytest.raises(DataError, match=told):
        read_names([tmp_path / "n.csv"])


def sheets(folder: Path) -> Path:
    write_sheets([Text("m", "1", side, "t") for side in "ab"], folder, raters=1)
    sheet = folder / "rater1.csv"
    sheet.write_text(sheet.read_text().replace(",,,", ",3,3,3"))
    assert len(read_sheets(folder)) == 2
    return sheet


def test_a_key_of_sheets_that_was_changed(tmp_path: Path) -> None:
    sheets(tmp_path)
    key = json.loads((tmp_path / "key.json").read_text())
    for wrong in ({k: {} for k in key}, {k: [1] for k in key}):
        (tmp_path / "key.json").write_text(json.dumps(wrong))
        with pytest.raises(DataError, match=r"key\.json.*Accepted: an object with the texts model"):
            read_sheets(tmp_path)


def test_a_sheet_that_is_no_text_or_has_a_row_twice(tmp_path: Path) -> None:
    sheet = sheets(tmp_path)
    kept = sheet.read_bytes()
    sheet.write_bytes(kept + kept.splitlines()[-1] + b"\n")
    with pytest.raises(DataError, match="line 4: the code .* occurs twice"):
        read_sheets(tmp_path)
    sheet.write_bytes(kept.replace(b"t", b"\xff", 1))
    with pytest.raises(DataError, match="not UTF-8"):
        read_sheets(tmp_path)


ROW = {"context": "Ann sang.", "question": "How would you describe Ann?", "answerA": "good",
       "answerB": "bad", "answerC": "odd"}  # fmt: skip


@pytest.mark.parametrize(
    ("row", "labels", "told"),
    [
        (ROW, "[", r"the label '\['. Accepted: 1, 2 or 3"),
        (ROW, "9", "the label '9'"),
        ({k: v for k, v in ROW.items() if k != "answerB"}, "1", "a sample has no text 'answerB'"),
        ([1], "1", "a sample has no text 'context'"),
        ({**ROW, "correct": "D"}, "1", "'correct': 'D'. Accepted: A, B or C"),
    ],
)
def test_social_iqa(tmp_path: Path, row: Any, labels: str, told: str) -> None:
    (tmp_path / "dev.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "dev-labels.lst").write_text(labels)
    with pytest.raises(DataError, match=told):
        survey_contexts(str(tmp_path / "dev.jsonl"))


def test_a_file_that_is_called_json_lines_is_never_taken_for_plain_text(tmp_path: Path) -> None:
    (tmp_path / "w.jsonl").write_text('null\n{"text": "A man."}\n')
    (_, _, as_json), *_ = numbered_lines(open_corpus(tmp_path / "w.jsonl"))
    assert as_json


def test_bytes_that_are_no_text_are_not_labelled(tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_bytes(b"she is a cook\n\xa0\n")
    (tmp_path / "s.toml").write_text('[t]\nx=["cook"]\ny=["guard"]\na=["she"]\nb=["he"]\n')
    with pytest.raises(DataError, match="not UTF-8"):
        labels_of([tmp_path / "c.txt"], str(tmp_path / "s.toml"))


def test_labels_that_were_changed(tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_text("she is a cook\n")
    (tmp_path / "s.toml").write_text('[t]\nx=["cook"]\ny=["guard"]\na=["she"]\nb=["he"]\n')
    place = tmp_path / "labels"
    labels_of([tmp_path / "c.txt"], str(tmp_path / "s.toml")).save(place)
    card = json.loads((place / "labels.json").read_text())
    for wrong in ({**card, "sets": 3}, {**card, "corpus": "c"}, {**card, "fold": None}):
        (place / "labels.json").write_text(json.dumps(wrong))
        with pytest.raises(DataError, match="not as it was written"):
            read_labels(place)
    (place / "labels.json").write_text(json.dumps(card))
    raw = (place / "flags.npy").read_bytes()
    (place / "flags.npy").write_bytes(raw.replace(b"}", b"("))
    with pytest.raises(DataError, match="no labels here"):
        read_labels(place)


@pytest.mark.parametrize(
    "line",
    [b"math 1.0 0.1\r5", b"math 1\x0c2", b"math 1", b"math 1 2 3", b"math 1_0 2", b"ma\tth 1 2"],
)
def test_vectors_whose_lines_are_torn(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "v.txt").write_bytes(b"art 1 2\n" + line + b"\n")
    with pytest.raises(DataError, match="line"):
        open_vectors(tmp_path / "v.txt")


def test_an_encoding_that_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("art 1 2\n")
    with pytest.raises(SpecError, match="--encoding 'klingon': unknown"):
        open_vectors(tmp_path / "v.txt", encoding="klingon")


def test_an_array_whose_head_is_broken(tmp_path: Path) -> None:
    np.save(tmp_path / "vectors.npy", np.ones((2, 2), np.float32))
    pa.parquet.write_table(pa.table({"w": ["a", "b"]}), tmp_path / "words.parquet")
    raw = (tmp_path / "vectors.npy").read_bytes()
    (tmp_path / "vectors.npy").write_bytes(raw.replace(b"}", b"("))
    with pytest.raises(DataError, match=r"vectors\.npy: is not an \.npy file"):
        open_vectors(tmp_path)


def test_a_small_network_that_was_damaged(tmp_path: Path) -> None:
    (tmp_path / "n.json").write_text('{"format": 1}')
    (tmp_path / "n.safetensors").write_bytes(b"\x10" + b"\0" * 30)
    with pytest.raises(ModelError, match="not a saved made model"):
        read_saved(tmp_path, "n.json", "n.safetensors", 1, "made", "evenhand train")


def test_settings_of_a_checkpoint_that_are_no_json(tiny: Any, tmp_path: Path) -> None:
    """transformers leaves out a generation_config.json that it cannot read."""
    import shutil

    folder = shutil.copytree(tiny("causal"), tmp_path / "m")
    (folder / "generation_config.json").write_text('{"eos_token_id": 0,')
    with pytest.raises(EvenhandError, match=r"generation_config\.json: is not JSON"):
        resolve(str(folder))


def test_a_call_that_was_changed_on_disk_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    notes = Journal(path)
    notes.add("k", [0.25], Usage(1, 9, 1))
    notes.add("l", [0.5], Usage(1, 9, 1))
    path.write_bytes(
        path.read_bytes().replace(b"0.25", b"0.75")
        + b'[1, 2]\n3\n["m", 1, [1, 2, 3, 4, 5]]\n'
        + b"[" * 5000
    )
    held = Journal(path)
    assert "k" not in held
    assert held["l"] == [0.5]


def implicit(tmp_path: Path, change: Callable[[str], str]) -> Any:
    case = CASES["implicit"]
    settings = case.settings(tmp_path, case.rows)
    path = Path(settings["lexicon"])
    path.write_text(change(path.read_text()))
    return make_probe("implicit", settings, "here").preview(frozenset({"choose"}), 0)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("{two}", "{uwo}", "slots that are unknown. Accepted: {word}, {one}, {two}"),
        ("{two}", "{two.__class__}", "slots that are unknown"),
        ("bad_words = [", 'bad_words = "abc" # ', "bad_words"),
    ],
)
def test_wordings_and_lists_of_a_lexicon(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert implicit(tmp_path, str)
    with pytest.raises(SpecError, match=told):
        implicit(tmp_path, lambda text: text.replace(old, new))


def test_stereoset_with_lists_where_texts_belong(tmp_path: Path) -> None:
    said = [{"id": k, "sentence": "s", "gold_label": k}
            for k in ("stereotype", "anti-stereotype", "unrelated")]  # fmt: skip
    row = {"id": "x", "target": [], "bias_type": "race", "context": "c", "sentences": said}
    data = {"data": {"intrasentence": [row], "intersentence": []}}
    (tmp_path / "g.json").write_text(json.dumps(data))
    with pytest.raises(DataError, match="a text where it has"):
        read_gold(tmp_path / "g.json")


@pytest.mark.parametrize("wrong", [2.5, True, None, "two", 1e999, [1]])
@pytest.mark.parametrize("field", ["label", "example_id"])
def test_numbers_of_bbq_are_not_cut(tmp_path: Path, field: str, wrong: Any) -> None:
    case = CASES["bbq"]
    settings = case.settings(tmp_path, [{**row, field: wrong} for row in case.rows[:4]])
    with pytest.raises(DataError, match="line 1: lacks or misspells a whole number"):
        make_probe("bbq", settings, "here").preview(frozenset({"choose"}), 0)


def test_stereoset_without_an_example(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text('{"data": {"intersentence": []}}')
    settings = {"file": str(tmp_path / "g.json"), "splits": ("intrasentence",)}
    with pytest.raises(DataError, match="no example of intrasentence"):
        make_probe("stereoset", settings, "here").preview(frozenset({"continuation"}), 0)


def test_counts_of_dialects_are_refused_at_the_first_wrong_row(tmp_path: Path) -> None:
    (tmp_path / "model_vocab.txt").write_text("9\tthe\n")
    (tmp_path / "model_count_table.txt").write_text("1,2\n" * 3)
    with pytest.raises(DataError, match="line 1: 1 columns"):
        read_dialect_model(tmp_path)


def test_a_folder_is_no_file_to_write(tmp_path: Path) -> None:
    for path in (Path("."), tmp_path):
        with pytest.raises(DataError, match="is a folder. Give the name of a file"):
            write_text(path, "x")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--html="], "is a folder"),
        (["--html", "taken/x.html"], "taken"),
        (["--json", "x" * 3000], "cannot be used (File name too long)"),
        (["--resamples", "9" * 30], "--resamples"),
        (["--seed", "9" * 30], "--seed"),
    ],
)
def test_words_of_a_command(tmp_path: Path, words: list[str], told: str) -> None:
    name = "gaps" if words[0] in ("--resamples", "--seed") else "counterfactual"
    (tmp_path / "taken").write_text("a file where a folder would be needed")
    done = evenhand("measure", name, *READERS[name](tmp_path), *words, cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert told in done.stderr.replace("\n", " ")


def test_a_page_makes_its_folder_as_json_does(tmp_path: Path) -> None:
    given = READERS["counterfactual"](tmp_path)
    done = evenhand("measure", "counterfactual", *given, "--html", "new/x.html", cwd=tmp_path)
    assert (done.returncode, (tmp_path / "new" / "x.html").is_file()) == (0, True), done.stderr


def test_scores_beyond_any_ratio(tmp_path: Path) -> None:
    words = READERS["gest"](tmp_path)
    table = Path(words[0])
    table.write_text(table.read_text().replace("\n1,", "\n1,1e300", 1))
    done = evenhand("measure", "gest", *words, "--json", "-", cwd=tmp_path)
    assert "Traceback" not in done.stderr
    assert "cannot be understood" not in done.stderr


def test_a_row_inside_a_row_is_no_word(tmp_path: Path) -> None:
    path = tmp_path / "v.vec"
    path.write_text("2 2\nart 1.0 0.1art 1.0 0.5\nhe 0.0 1.0\n")
    with pytest.raises(DataError, match="line 2: 4 numbers where 2"):
        open_vectors(path)
    path.write_text("2 2\ntop 10 list 1.0 0.5\nhe 0.0 1.0\n")
    assert open_vectors(path).words.to_pylist() == ["top 10 list", "he"]


def test_a_score_beyond_all_numbers(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(f'{{"intrasentence": [{{"id": "a", "score": 1{"0" * 400}}}]}}')
    with pytest.raises(DataError, match="expected an id and a number"):
        read_predictions(path)


def test_labels_that_do_not_say_of_which_text(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("the nurse said she would go .\nthe man said he would .\n")
    words = ("t.txt", "--sets", "kato_winobias", "--out", "labels")
    assert evenhand("corpus", "label", *words, cwd=tmp_path).returncode == 0
    path = tmp_path / "labels" / "labels.json"
    card = json.loads(path.read_text())
    del card["corpus_fingerprint"]
    path.write_text(json.dumps(card))
    with pytest.raises(DataError, match="not as it was written"):
        read_labels(tmp_path / "labels")


@pytest.mark.parametrize("seed", ["9" * 30, str(2**53 + 1), "-1", "1e3", "nan", ""])
def test_a_seed_of_a_balanced_corpus_is_a_number_that_json_can_hold(
    tmp_path: Path, seed: str
) -> None:
    (tmp_path / "c.txt").write_text("she is a cook\nhe is a guard\n")
    (tmp_path / "s.toml").write_text('[t]\nx=["cook"]\ny=["guard"]\na=["she"]\nb=["he"]\n')
    labels_of([tmp_path / "c.txt"], str(tmp_path / "s.toml")).save(tmp_path / "labels")
    done = evenhand("corpus", "balance", "labels", f"--seed={seed}", cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "--seed" in done.stderr


def test_a_packed_file_of_winobias_says_what_the_plain_one_says(tmp_path: Path) -> None:
    line = "1 [The developer] argued with the designer because [{}] did not like the design.\n"
    for side, pronoun in (("pro", "he"), ("anti", "she")):
        path = tmp_path / f"{side}_stereotyped_type1.txt.dev"
        path.write_text(line.format(pronoun))
    plain = read_winobias(tmp_path, (1,), ("dev",))
    assert len(plain[0]) == 1
    raw = path.read_bytes()
    path.write_bytes(gzip.compress(raw))
    assert read_winobias(tmp_path, (1,), ("dev",)) == plain
    for wrong in (gzip.compress(raw)[:-3], gzip.compress(raw) + b"x", raw + b"\xff"):
        path.write_bytes(wrong)
        with pytest.raises(DataError, match=path.name):
            read_winobias(tmp_path, (1,), ("dev",))
