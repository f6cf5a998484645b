"""Nothing that a probe, a reader, a comparison or a mitigation says has changed (see README.md).

pytest tests/pins -k bbq                  one probe, its reader and its comparisons
python tests/pins/make.py --check bbq     every difference
"""

from __future__ import annotations

import json
import re

import pytest

import reader_cases
from evenhand import plugins
from evenhand.probes.reading import readers
from pins.comparing import differences
from pins.golden import GOLDEN, golden_path, read_golden
from pins.probes import VARIED
from pins.recording import GROUPS, record

SHOWN = 40
"""Differences that a failure lists."""
PLACE = re.compile(r"/(tmp|home|root|Users|var|work|usr)/|[A-Z]:\\\\")
PINNED = [(group, name) for group, (names, _) in GROUPS.items() for name in names]


@pytest.mark.parametrize(("group", "name"), PINNED, ids=lambda text: text)
def test_what_is_pinned_is_said(group: str, name: str) -> None:
    golden = read_golden(group, name)
    assert golden, f"no golden file yet; write it with: python tests/pins/make.py {group}/{name}"
    lines = list(differences(golden, record(group, name)))
    shown = "\n".join(lines[:SHOWN])
    assert not lines, f"{len(lines)} differences from {golden_path(group, name).name}:\n{shown}"


def test_every_probe_and_every_reader_is_pinned() -> None:
    assert set(GROUPS["probes"][0]) == set(plugins.BUILT_IN[plugins.PROBES]) == set(VARIED)
    built_in = {n for n, r in readers().items() if r.__module__.startswith("evenhand.")}
    assert set(GROUPS["readers"][0]) == built_in == set(reader_cases.CASES)
    expected = {golden_path(group, name) for group, name in PINNED}
    assert set(GOLDEN.rglob("*.json.gz")) == expected


def test_golden_files_name_no_place_on_a_machine() -> None:
    for group, name in PINNED:
        text = json.dumps(read_golden(group, name))
        assert not PLACE.search(text), (group, name, PLACE.search(text))


def test_a_change_of_the_eighth_digit_shows() -> None:
    golden = read_golden("probes", "bbq")
    changed = read_golden("probes", "bbq")
    finding = changed["lean 0.5"]["findings"][0]
    finding["value"] *= 1 + 1e-7
    (line,) = differences(golden, changed)
    assert line.startswith("lean 0.5/findings[0]/value: ")
