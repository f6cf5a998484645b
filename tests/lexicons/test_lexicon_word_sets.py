"""Word sets: sizes, canonical spellings, a user's file, and known effect sizes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from evenhand.errors import DataError, SpecError
from evenhand.words.lexicons import WordSets, load, read_word_sets, weat, weat_tests
from evenhand.words.lexicons.files import SOCIAL_SIDES

SIZES = {
    "weat1": (25, 25, 25, 25),
    "weat2": (25, 25, 25, 25),
    "weat3": (32, 32, 25, 25),
    "weat4": (18, 18, 25, 25),
    "weat5": (18, 18, 8, 8),
    "weat6": (8, 8, 8, 8),
    "weat7": (8, 8, 8, 8),
    "weat8": (8, 8, 8, 8),
    "weat9": (6, 6, 7, 7),
    "weat10": (8, 8, 8, 8),
    "weat4_16": (16, 16, 25, 25),
    "weat9_wefe": (6, 6, 7, 7),
    "weat10_wefe": (8, 8, 8, 8),
    "kato_weat3": (20, 20, 25, 25),
    "kato_weat4": (12, 12, 25, 25),
    "kato_weat5": (12, 12, 8, 8),
    "kato_weat6": (8, 8, 8, 8),
    "kato_weat7": (8, 8, 8, 8),
    "kato_weat7_twitter": (7, 7, 8, 8),
    "kato_weat8": (8, 8, 8, 8),
    "kato_winobias": (20, 20, 2, 2),
    "kato_hsd_gender": (8, 8, 8, 8),
    "kato_hsd_race": (15, 15, 19, 19),
}
# GloVe 6B 50d, lower-cased, missing words skipped, population standard deviation. The two
# variants carry the slips of the list that the reference run used; its tests 4 and 5 have 18 names.
GLOVE = {
    "weat1": 1.0916,
    "weat2": 1.5596,
    "weat3": 0.9606,
    "weat4": 0.9730,
    "weat5": 1.0872,
    "weat6": 1.7638,
    "weat7": 1.5442,
    "weat8": 1.5336,
    "weat9_wefe": 1.1678,
    "weat10_wefe": 0.7022,
}
# Google News subset, case kept, sample standard deviation: the published effect sizes.
NEWS = {
    "weat1": 1.54,
    "weat2": 1.63,
    "weat3": 0.58,
    "weat4_16": 1.24,
    "weat5": 0.72,
    "weat6": 1.89,
    "weat7": 0.97,
    "weat8": 1.24,
}
Vectors = dict[str, npt.NDArray[np.float64]]


def sets(test: WordSets) -> tuple[tuple[str, ...], ...]:
    return test.x, test.y, test.a, test.b


def effect_size(test: WordSets, vectors: Vectors, *, ddof: int) -> float:
    rows = [np.array([vectors[w] for w in words if w in vectors]) for words in sets(test)]
    x, y, a, b = (row / np.linalg.norm(row, axis=1, keepdims=True) for row in rows)
    s_x, s_y = ((t @ a.T).mean(axis=1) - (t @ b.T).mean(axis=1) for t in (x, y))
    return float((s_x.mean() - s_y.mean()) / np.concatenate([s_x, s_y]).std(ddof=ddof))


@pytest.fixture(scope="session")
def glove(shared: Path) -> Vectors:
    with gzip.open(shared / "data/embeddings/glove_6B_50d_subset.txt.gz", "rt") as file:
        rows = (line.rstrip().split(" ") for line in file)
        return {row[0]: np.array(row[1:], dtype=float) for row in rows}


@pytest.fixture(scope="session")
def news(shared: Path) -> Vectors:
    path = shared / "data/embeddings/googlenews_w2v_300d_subset.bin.gz"
    with gzip.open(path) as file:
        data = file.read()
    start = data.index(b"\n") + 1
    count, size = map(int, data[:start].split())
    found: Vectors = {}
    for _ in range(count):
        end = data.index(b" ", start)
        word = data[start:end].lstrip(b"\n").decode()
        start = end + 1 + 4 * size
        found[word] = np.frombuffer(data[end + 1 : start], dtype="<f4").astype(float)
    return found


def test_names_and_sizes() -> None:
    assert {test: tuple(map(len, sets(weat(test)))) for test in weat_tests()} == SIZES


@pytest.mark.parametrize("test", SIZES)
def test_no_word_twice_or_on_both_sides(test: str) -> None:
    found = weat(test)
    for words in sets(found):
        assert len(set(words)) == len(words)
    assert not set(found.x) & set(found.y)
    assert not set(found.a) & set(found.b)
    assert found.social in SOCIAL_SIDES[:3]
    assert min(map(len, (found.x_label, found.y_label, found.a_label, found.b_label))) > 1


def test_canonical_words() -> None:
    assert {"short-term"} == set(weat("weat9").a) - set(weat("weat9_wefe").a)
    assert {"Billy"} == set(weat("weat10").x) - set(weat("weat10_wefe").x)
    assert weat("weat10").b[-1] == "failure"
    assert weat("weat1").b == weat("weat2").b
    assert weat("weat3").b == weat("weat4").b
    assert set(weat("weat1").b) - set(weat("weat3").b) == {"agony", "prison"}
    assert set(weat("weat3").b) - set(weat("weat1").b) == {"bomb", "evil"}


def test_which_side_is_social() -> None:
    sides = {test: weat(test).social for test in weat_tests("weat")}
    assert [test for test, side in sides.items() if side == "attributes"] == ["weat7", "weat8"]
    assert [test for test, side in sides.items() if side == "none"] == ["weat1", "weat2"]
    assert weat("kato_weat6").social == "attributes"


def test_unknown_test_suggests() -> None:
    with pytest.raises(SpecError, match=r"unknown test 'weat7b'. Did you mean 'weat7'"):
        weat("weat7b")


GOOD = {"x": ["a"], "y": ["b"], "a": ["c"], "b": ["d"]}


def test_a_users_file_in_json_and_toml(tmp_path: Path) -> None:
    as_json, as_toml = tmp_path / "t.json", tmp_path / "t.toml"
    as_json.write_text(json.dumps({"one": GOOD, "two": {**GOOD, "x_label": "letters"}}))
    as_toml.write_text('[one]\nx = ["a"]\ny = ["b"]\na = ["c"]\nb = ["d"]\n')
    assert sets(read_word_sets(as_toml)["one"]) == sets(read_word_sets(str(as_json))["one"])
    assert read_word_sets(as_json)["two"].x_label == "letters"
    assert read_word_sets(as_json)["one"].social == "unknown"


def test_a_packaged_lexicon_is_read_as_a_users_file() -> None:
    found = read_word_sets(load("weat").path)
    assert found["weat6"] == weat("weat6")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({k: v for k, v in GOOD.items() if k != "b"}, "test 'one' has no list 'b'"),
        ({**GOOD, "x": []}, "'x' is an empty list"),
        ({**GOOD, "x": "art"}, "'x' is str 'art'"),
        ({**GOOD, "x": ["art", 3]}, r"x\[1\] is 3"),
        ({**GOOD, "x": ["art "]}, r"x\[0\] is 'art '"),
        ({**GOOD, "x": ["art", "art"]}, "has 'art' twice"),
        ({**GOOD, "social": "both"}, "'social' is 'both'"),
        (["a"], "test 'one' is a list"),
    ],
)
def test_wrong_shape_is_named(tmp_path: Path, table: object, message: str) -> None:
    file = tmp_path / "t.json"
    file.write_text(json.dumps({"one": table}))
    with pytest.raises(DataError, match=rf"t\.json: test 'one'.*{message.split(' ')[-1]}") as error:
        read_word_sets(file)
    assert error.match(message)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.json", "{}", "found no tests"),
        ("t.json", "[1]", "found no tests"),
        ("t.json", '{"a":\n 1,}', "line 2"),
        ("t.toml", "[a]\nx = [\n1 1]", "line 3"),
        ("t.csv", "x", "unknown kind of file '.csv'"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message):
        read_word_sets(tmp_path / name)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_word_sets(tmp_path / "t.json")


@pytest.mark.shared
def test_same_words_as_two_other_copies(shared: Path) -> None:
    folder = shared / "data/word_sets"
    findings = json.loads((folder / "weat_with_original_findings.json").read_text())
    for number in range(1, 11):
        copy = json.loads((folder / f"seat/weat{number}.jsonl").read_text())
        seat = [set(copy[k]["examples"]) for k in ("targ1", "targ2", "attr1", "attr2")]
        keys = ("first_target", "second_target", "first_attribute", "second_attribute")
        found = [set(findings[number - 1][key]["words"]) for key in keys]
        ours = [set(words) for words in sets(weat(f"weat{number}"))]
        assert seat == ([set(w) for w in sets(weat("weat4_16"))] if number == 4 else ours) or (
            number == 5 and seat[2:] == ours[2:]
        )
        if number == 3:  # that copy keeps the names which the authors left out
            assert all(a <= b for a, b in zip(ours, found))
        else:
            assert [{"failure" if w == "failur" else w for w in words} for words in found] == ours


@pytest.mark.shared
@pytest.mark.parametrize("test", GLOVE)
def test_glove_effect_sizes(glove: Vectors, test: str) -> None:
    x, y, a, b = (tuple(w.lower() for w in words) for words in sets(weat(test)))
    lower = WordSets(test, x, y, a, b)
    assert effect_size(lower, glove, ddof=0) == pytest.approx(GLOVE[test], abs=6e-5)


@pytest.mark.shared
@pytest.mark.parametrize("test", NEWS)
def test_published_effect_sizes(news: Vectors, test: str) -> None:
    assert effect_size(weat(test), news, ddof=1) == pytest.approx(NEWS[test], abs=5e-3)


@pytest.mark.shared
def test_winobias_occupations(shared: Path) -> None:
    share = json.loads((shared / "data/word_sets/occupational_female_percentage.json").read_text())
    same = {
        "tailor": "sewer",
        "mechanic": "mechanician",
        "construction worker": "construction_worker",
    }
    test = weat("kato_winobias")
    for word, women in [(w, False) for w in test.x] + [(w, True) for w in test.y]:
        key = same.get(word, word.lower())
        assert (share.get(key, share.get(key + "s")) > 50) is women
