"""Write requirements-hashed.txt: the pins of constraints.txt with the SHA-256 of their files.

    python tools/hashes.py            asks the package index that pip asks

pip compares hashes only for requirements that are named, not for constraints, so that the hashes
stand in a file of their own:

    pip install --require-hashes -r requirements-hashed.txt
    pip install --no-deps .

Wheels for Python 3.11 and later and source archives are listed, whatever the machine. torch's
build for processors alone (+cpu) is no file of the index; its hash is given beside the others.
"""

from __future__ import annotations

import re
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
HEAD = """\
# The pins of constraints.txt with the hashes of their files; written by tools/hashes.py.
#   pip install --require-hashes -r requirements-hashed.txt && pip install --no-deps .
"""
ELSEWHERE = {
    "torch": ("6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b",),
}
"""Files that no index lists: torch 2.13.0+cpu for Python 3.11 on Linux, x86-64."""
OLD = re.compile(r"^(cp2|cp3[0-9]$|cp310$|pp|py2$)")


def pins(text: str) -> Iterator[tuple[str, str]]:
    """Names and versions of a constraints file."""
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, version = line.strip().partition("==")
            yield name, version


def listed(page: str, name: str, version: str) -> list[str]:
    """The hashes of one version's files on a page of the index."""
    found = set()
    for link in re.findall(r'href="([^"]*#sha256=[0-9a-f]{64})"', page):
        place, _, digest = link.partition("#sha256=")
        told = urllib.parse.unquote(place.rpartition("/")[2])
        try:
            if told.endswith(".whl"):
                own, number, _, tags = parse_wheel_filename(told)
                if all(OLD.match(t.interpreter) and t.abi != "abi3" for t in tags):
                    continue
            else:
                own, number = parse_sdist_filename(told)
        except (InvalidWheelFilename, InvalidSdistFilename):
            continue
        if own == canonicalize_name(name) and number == Version(version):
            found.add(digest)
    return sorted(found)


def page_of(index: str, name: str) -> str:
    """The page of a package, as every index has it."""
    place = f"{index.rstrip('/')}/{canonicalize_name(name)}/"
    with urllib.request.urlopen(place) as answer:
        return str(answer.read().decode())


def main() -> int:
    from pip._internal.models.index import PyPI

    rows = []
    for name, version in pins((ROOT / "constraints.txt").read_text()):
        hashes = [*listed(page_of(PyPI.simple_url, name), name, version), *ELSEWHERE.get(name, ())]
        if not hashes:
            sys.stderr.write(f"{name}=={version}: the index has no file of it.\n")
            return 1
        lines = [f"{name}=={version}", *(f"    --hash=sha256:{h}" for h in hashes)]
        rows.append(" \\\n".join(lines))
    (ROOT / "requirements-hashed.txt").write_text(HEAD + "\n".join(rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
