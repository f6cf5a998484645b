"""Write the golden files anew, or list what differs from them.

    python tests/pins/make.py                          every golden file
    python tests/pins/make.py bbq decision             the files of these names, in every group
    python tests/pins/make.py probes/bbq               one file
    python tests/pins/make.py --check bbq              write nothing; list all differences

Run it from the project's root, with the environment of the tests. A change of a golden file is a
change of a number or a sentence that users see: say in CHANGELOG.md which, and why.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pins.comparing import differences
from pins.golden import read_golden, write_golden
from pins.recording import GROUPS, record


def wanted(words: list[str]) -> list[tuple[str, str]]:
    """Return the groups and names that words name; all of them for no word."""
    pinned = [(group, name) for group, (names, _) in GROUPS.items() for name in names]
    unknown = {w for w in words if not any(w in (name, f"{g}/{name}") for g, name in pinned)}
    if unknown:
        raise SystemExit(f"nothing is pinned as {', '.join(sorted(unknown))}")
    return [(g, n) for g, n in pinned if not words or n in words or f"{g}/{n}" in words]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="NAME or GROUP/NAME; all by default")
    parser.add_argument("--check", action="store_true", help="write nothing, list differences")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    changed = 0
    for group, name in wanted(options.names):
        new = record(group, name)
        lines = list(differences(read_golden(group, name), new))
        changed += bool(lines)
        print(f"{group}/{name}: {f'{len(lines)} differences' if lines else 'equal'}")
        if options.check:
            for line in lines:
                print(f"    {line}")
        elif lines:
            write_golden(group, name, new)
    sys.exit(bool(options.check and changed))


if __name__ == "__main__":
    main()
