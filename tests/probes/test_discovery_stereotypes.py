"""Discovered words beside what annotators call a stereotype (SeeGULL)."""

from __future__ import annotations

import csv
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from evenhand import ScriptedModel, audit
from evenhand.audit.suites import as_suite
from evenhand.errors import DataError
from evenhand.probes.discovery.probe import Discovery
from evenhand.probes.discovery.stereotypes import match, read_stereotypes
from evenhand.runner.ask import Ask
from told import told

NAMES = {
    "italian": ("Luca", "Gaia", "Enzo", "Rosa", "Ugo", "Pia"),
    "polish": ("Jan", "Ola", "Piotr", "Ewa", "Marek", "Zofia"),
}


def shown(folder: Path) -> Path:
    """`loud` wins for Italian names, `tidy` for Polish ones, `green` for nobody."""
    path = folder / "shown.csv"
    with path.open("w", newline="") as file:
        made = csv.writer(file)
        made.writerow(("group", "name", "context", "distractor", "success"))
        for group, names in NAMES.items():
            for name in names:
                for k in range(30):
                    for word, side in (("loud", "italian"), ("tidy", "polish"), ("green", "")):
                        made.writerow((group, name, f"c{k}", f"{word} x{k}", int(side == group)))
    return path


def seegull(folder: Path) -> Path:
    rows = [
        {"language": "it", "country": "Italy", "identity": "italiano", "attribute": "rumoroso",
         "stereotype": "3", "non_stereotype": "0", "unsure": "0",
         "translated_identity": "Italian,", "translated_attribute_list": "loud"},
        {"language": "de", "country": "Germany", "identity": "Polish", "attribute": "tidy",
         "stereotype": "1", "non_stereotype": "2", "unsure": "0"},
    ]  # fmt: skip
    path = folder / "stereotypes.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_discovered_words_are_matched_with_votes(tmp_path: Path) -> None:
    found = told("discovery", shown(tmp_path), group_a="italian", group_b="polish",
                 stereotypes=seegull(tmp_path), min_count=1)  # fmt: skip
    by = {row["word"]: row for row in found["stereotypes"]}
    assert (by["loud"]["group"], by["loud"]["votes"], by["loud"]["country"]) == (
        "italian", 3, "Italy"
    )  # fmt: skip
    assert (by["tidy"]["votes"], by["tidy"]["annotators"]) == (1, 3)
    assert "green" not in by
    plain = told("discovery", shown(tmp_path), group_a="italian", group_b="polish", min_count=1)
    assert "stereotypes" not in plain


def test_votes_decide_and_languages_are_chosen(tmp_path: Path) -> None:
    place = seegull(tmp_path)
    both = match([("italian", "loud"), ("polish", "tidy")], read_stereotypes(place))
    assert [m.stereotype for m in both] == [True, False]
    assert {s.country for s in read_stereotypes(place, "de")} == {"Germany"}
    with pytest.raises(DataError, match=r"no stereotypes in 'ko' \(languages: de, it\)"):
        read_stereotypes(place, "ko")
    place.write_text('{"identity": "x"}')
    with pytest.raises(DataError, match="a row lacks its votes. Accepted: SeeGULL's CSV"):
        read_stereotypes(place)


def lexicon(folder: Path) -> str:
    path = folder / "names.toml"
    head = 'title = "t"\nkind = "names"\nsource = "made"\nlicence = "CC0-1.0"\ncaveats = ["few"]\n'
    lists = (
        f'[groups.{group}]\naxis = {{ nation = "{group}" }}\nterms = {json.dumps(names)}\n'
        for group, names in NAMES.items()
    )
    path.write_text(head + "".join(lists))
    return str(path)


def leaning(word: str) -> ScriptedModel:
    """Fills masks with a dozen words, and takes one of them for an answer for Italian names."""
    words = ("kind", "loud", "funny", "brave", "smart", "quiet", "calm", "odd", "tired", "rich",
             "green", word)  # fmt: skip

    def noise(*parts: str) -> float:
        return zlib.crc32("|".join(parts).encode()) / 2**32

    def fills(text: str) -> dict[str, Any]:
        best = sorted(set(words), key=lambda w: -noise(text, w))
        return {"fills": best, "logprobs": [0.0] * len(best)}

    def logit(prompt: str, option: str) -> float:
        bonus = word in option.split() and prompt.split(" ")[0] in NAMES["italian"]
        return 2 * noise(prompt, option) + 1.5 * bonus

    return ScriptedModel({"fill-mask": fills, "option": logit}, name=f"leans to {word}")


def discovery(folder: Path, **more: Any) -> Discovery:
    return Discovery(
        groups=("italian", "polish"), lexicon=lexicon(folder), context_count=6, keep=150,
        distance=2, min_count=5, samples=1_999, pool="common", **more,
    )  # fmt: skip


def test_a_run_tells_discovered_words_with_their_votes(tmp_path: Path) -> None:
    probe = discovery(tmp_path, stereotypes=str(seegull(tmp_path)), stereotypes_language="it")
    run = audit(leaning("loud"), as_suite(probe), out=tmp_path / "run")
    found = next(f for f in run.findings if f.attribute == "loud")
    assert found.detected
    assert found.groups == ("italian", "polish")
    assert found.details["stereotype"] == {"votes": 3, "annotators": 3, "country": "Italy"}
    says = "3 of 3 annotators from the region (Italy) call 'loud' a stereotype of this group."
    assert found.sentence.endswith(says)
    assert run.facts["probes"]["discovery"]["summary"]["stereotypes"]["stereotypes"] == 1
    assert "annotators from the region (Italy)" in (tmp_path / "run/report.html").read_text()


def test_words_that_are_not_listed_and_files_that_are_wrong(tmp_path: Path) -> None:
    place = str(seegull(tmp_path))
    made = discovery(tmp_path, stereotypes=place).run(Ask(leaning("odd")), 0)
    (found,) = (f for f in made.findings if f.attribute == "odd")
    assert "annotators" not in found.sentence
    assert "stereotype" not in found.details
    assert made.summary["stereotypes"]["listed"] == 0
    with pytest.raises(DataError, match="no stereotypes in 'ko'"):
        discovery(tmp_path, stereotypes=place, stereotypes_language="ko").run(
            Ask(leaning("odd")), 0
        )


@pytest.mark.shared
def test_a_run_is_matched_with_the_published_votes(shared: Path, tmp_path: Path) -> None:
    place = shared / "data" / "seegull" / "stereotypes_global_v2.csv"
    made = discovery(tmp_path, stereotypes=str(place)).run(Ask(leaning("greasy")), 0)
    (found,) = (f for f in made.findings if f.attribute == "greasy")
    assert found.details["stereotype"] == {"votes": 3, "annotators": 3, "country": ""}


@pytest.mark.shared
def test_published_files_are_read(shared: Path) -> None:
    place = shared / "data" / "seegull"
    many = read_stereotypes(place / "multilingual_stereotypes.jsonl.xz")
    assert len({(s.language, s.country) for s in many}) == 23
    assert len(read_stereotypes(place / "stereotypes_global_v2.csv")) == 6_781
