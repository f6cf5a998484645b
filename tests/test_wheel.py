"""The fast form of `make test-wheel`: the same checks with everything optional hidden."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HIDDEN = '''
"""Nothing but the core dependencies can be imported."""
import sys

GONE = {"pip", "torch", "transformers", "gensim", "pandas", "ray", "gguf", "numba", "accelerate",
        "vl_convert", "starlette", "uvicorn", "httpx2", "fsspec", "nltk", "vaderSentiment",
        "cryptography", "peft", "huggingface_hub", "tokenizers"}


class Hidden:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in GONE:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Hidden)
import importlib.util
_find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name in GONE else _find(name, *a)
'''


def test_measure_vectors_and_lists_need_no_extra(tmp_path: Path) -> None:
    (tmp_path / "hide").mkdir()
    (tmp_path / "hide" / "sitecustomize.py").write_text(HIDDEN, encoding="utf-8")
    (tmp_path / "work").mkdir()
    path = os.pathsep.join([str(tmp_path / "hide"), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "wheel" / "plain.py"), str(tmp_path / "work")],
        capture_output=True, encoding="utf-8",
        env={**os.environ, "PYTHONPATH": path, "EVENHAND_CACHE": str(tmp_path / "cache")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    told = done.stdout.splitlines()
    assert told[1:4] == ["ls", "measure, report, show", "vectors"]
