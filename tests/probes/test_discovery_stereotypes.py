"""Discovered words beside what annotators call a stereotype (SeeGULL)."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from evenhand.errors import DataError
from evenhand.probes.discovery.stereotypes import match, read_stereotypes
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


@pytest.mark.shared
def test_published_files_are_read(shared: Path) -> None:
    place = shared / "data" / "seegull"
    many = read_stereotypes(place / "multilingual_stereotypes.jsonl.xz")
    assert len({(s.language, s.country) for s in many}) == 23
    assert len(read_stereotypes(place / "stereotypes_global_v2.csv")) == 6_781
