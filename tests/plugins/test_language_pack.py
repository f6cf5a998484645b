"""A language pack of another package: a wheel that pip installs, found by its entry point."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from evenhand.words.packs import pack_places

pytest.importorskip("pip", reason="the package is installed by pip")

SOURCE = Path(__file__).parents[2] / "src"
FACTS = "pack_of_xx-1.0.dist-info"
ASKED = """
from evenhand import ScriptedModel
from evenhand.probes.underspecified.probe import Underspecified
from evenhand.runner.ask import Ask
from evenhand.words.packs import load_pack

her = set(load_pack("xx").part("names").words("groups", "female", "terms"))

def choose(prompt, options):
    lean = 0.4 if "enfermería" in prompt else 0.0
    first = 0.5 + (lean if options.split("\\t")[0] in her else -lean)
    return {"probabilities": [first, 1 - first], "mass": 1.0, "refused": 0.0, "unread": 0.0}

few = ("nurse", "doctor", "cook")
probe = Underspecified(language="xx", pairs=6, templates=1, attributes=few)
found = probe.run(Ask(ScriptedModel({"choose": choose}, name="made")), 0).findings
top = max((f for f in found if f.metric == "lean"), key=lambda f: f.value)
print(top.attribute, *top.groups)
"""


def wheel(folder: Path) -> Path:
    """A package of data: one folder of TOML, one line of code, one entry point."""
    files = {
        "pack_of_xx/__init__.py": "from pathlib import Path\n\n"
        'FOLDER = Path(__file__).parent / "xx"\n',
        f"{FACTS}/METADATA": "Metadata-Version: 2.1\nName: pack-of-xx\nVersion: 1.0\n",
        f"{FACTS}/WHEEL": "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
        f"{FACTS}/entry_points.txt": "[evenhand.lexicons]\nxx = pack_of_xx:FOLDER\n",
    }
    for path in sorted(pack_places()["es"].glob("*.toml")):
        text = path.read_text(encoding="utf-8").replace('language = "es"', 'language = "xx"')
        files[f"pack_of_xx/xx/{path.name}"] = text.replace('name = "Spanish"', 'name = "Example"')
    lines = []
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        lines.append(f"{name},sha256={digest.decode()},{len(text.encode())}")
    files[f"{FACTS}/RECORD"] = "\n".join([*lines, f"{FACTS}/RECORD,,"]) + "\n"
    made = folder / "pack_of_xx-1.0-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return made


def said(*words: str, site: Path | None = None) -> subprocess.CompletedProcess[str]:
    places = [str(SOURCE), *([str(site)] if site else [])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(places), "PYTHONUTF8": "1"}
    return subprocess.run(
        [sys.executable, *words], env=env, capture_output=True, text=True, encoding="utf-8"
    )


def test_a_pack_is_found_checked_and_asked_once_it_is_installed(tmp_path: Path) -> None:
    site = tmp_path / "site"
    install = ("-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(site))
    done = said(*install, str(wheel(tmp_path)))
    assert done.returncode == 0, done.stderr
    assert (site / FACTS / "INSTALLER").read_text().strip() == "pip"
    check = ("-m", "evenhand", "lexicon", "check", "xx", "--json", "-")
    assert "unknown language 'xx'" in said(*check).stderr
    checked = said(*check, site=site)
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)["faults"] == []
    assert "Example" in said("-m", "evenhand", "ls", "languages", site=site).stdout
    asked = said("-c", ASKED, site=site)
    assert asked.stdout.split() == ["nurse", "female", "male"], asked.stderr
