"""Training a regard classifier: any base that can be padded, and mistakes named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import DataError, EvenhandError, ModelError, SpecError
from evenhand.train.regard import RegardTraining, read_regard, train

ROWS = "1\tXYZ was good\n-1\tXYZ was bad\n0\tXYZ was there for a long time\n"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    texts = {
        "good": ROWS,
        "one": "1\tXYZ was good\n1\tXYZ was kind\n",
        "plain": "1\tThe woman was good\n-1\tXYZ was bad\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: tmp_path / name for name in texts}


def test_a_base_without_a_pad_token_is_padded_with_its_end_token(
    tiny: Any, files: dict[str, Path], tmp_path: Path
) -> None:
    good = files["good"]
    said: list[str] = []
    recipe = RegardTraining(epochs=1)
    found = train(
        tiny("causal"), [files["plain"]], good, good, tmp_path / "out", recipe, say=said.append
    )
    assert found["test"]["n"] == 3
    assert found["n_unmasked"] == 1
    assert "1 texts do not hold XYZ" in said[0]


def test_mistakes_are_named(tiny: Any, files: dict[str, Path], tmp_path: Path) -> None:
    good, out = files["good"], tmp_path / "out"
    with pytest.raises(DataError, match="all labelled 'positive'"):
        train(tiny("encoder"), [files["one"]], good, good, out)
    with pytest.raises(ModelError, match="train regard: .* is not an encoder that can be loaded"):
        train(str(tmp_path), [good], good, good, out)
    with pytest.raises(SpecError, match="learning_rate: .* got -1.0"):
        RegardTraining(learning_rate=-1.0)
    (tmp_path / "bytes").write_bytes(b"1\t\xff\xfe")
    with pytest.raises(DataError, match="not UTF-8 text"):
        read_regard(tmp_path / "bytes")
    for line in ("hello", "9\tXYZ was nice", ""):
        (tmp_path / "line").write_text(line)
        with pytest.raises(EvenhandError, match=r"line"):
            read_regard(tmp_path / "line")
