"""Build the site: `python -m website [--out site]`; offline, and a warning is an error."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from website import config, gallery, reference, staging, tutorials

ASSETS = Path(__file__).with_name("assets")
BUILD = staging.ROOT / "build" / "website"


def main() -> int:
    """Stage the pages, make the generated ones, and let Zensical build all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=staging.ROOT / "site")
    parser.add_argument("--keep-gallery", action="store_true", help="take the gallery of last time")
    options = parser.parse_args()
    docs, kept = BUILD / "docs", BUILD / "gallery"
    staging.stage(docs)
    shutil.copytree(ASSETS, docs / "assets")
    if not (options.keep_gallery and kept.is_dir()):
        shutil.rmtree(kept, ignore_errors=True)
        with tempfile.TemporaryDirectory() as scratch:
            gallery.write(kept, Path(scratch))
    shutil.copytree(kept, docs / "gallery")
    reference.write(docs / "api")
    tutorials.write(docs / "tutorials")
    settings = BUILD / "zensical.toml"
    config.write(settings, docs, BUILD / "site")
    command = [
        sys.executable,
        "-m",
        "zensical",
        "build",
        "--clean",
        "--strict",
        "-f",
        str(settings),
    ]
    code = subprocess.run(command, check=False, env=os.environ | {"NO_COLOR": "1"}).returncode
    if code == 0:
        shutil.rmtree(options.out, ignore_errors=True)
        shutil.move(BUILD / "site", options.out)
    return code


if __name__ == "__main__":
    sys.exit(main())
