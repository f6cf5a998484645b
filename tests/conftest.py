"""What tests share: reference data, packaged weights and tiny checkpoints, when they are there."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from evenhand.models.loading.fetch import PACKAGES

ROOT = Path(__file__).resolve().parents[1]
collect_ignore = [
    "old_runs/make.py",  # runs with the modules of an older version only
    "portable/sitecustomize.py",  # to import it is to lose modules for good (make test-portable)
]
# torch's compiler needs it, and refuses when distutils, which some test imports, was there before.
with contextlib.suppress(ImportError):
    import setuptools  # noqa: F401
os.environ["HF_HUB_OFFLINE"] = "1"  # before transformers is imported: tests never use a network
if os.environ.get("EVENHAND_TEST_GPU") != "1":  # else: `make test-gpu`
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the same numbers on every machine
# Servers that tests name are no servers that the user named.
os.environ["EVENHAND_STATE"] = tempfile.mkdtemp(prefix="evenhand-test-state-")
# `make test` is no make whose commands a user reads: what is printed is as without it.
for name in ("MAKELEVEL", "MAKEFLAGS", "MFLAGS"):
    os.environ.pop(name, None)
# How fast examples are drawn depends on what else the machine does, and says nothing about us.
hypothesis.settings.register_profile(
    "evenhand", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("evenhand")


@pytest.fixture(scope="session")
def limited_files() -> None:
    """Skip where the size of files cannot be limited, which is how a full disk is played."""
    try:
        import resource  # noqa: F401
    except ImportError:
        pytest.skip("this system has no limit on the size of files")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference data: EVENHAND_SHARED, or `shared` beside the project root."""
    folder = Path(os.environ.get("EVENHAND_SHARED", ROOT.parent / "shared"))
    if not (folder / "golden").is_dir():
        pytest.skip(f"no reference data at {folder}; set EVENHAND_SHARED")
    return folder


@pytest.fixture(scope="session")
def shared_folder(shared: Path) -> Path:
    return shared


def packaged(alias: str) -> str:
    """The alias, or a skip that says how to get its weights."""
    if not PACKAGES[alias].ready:
        pytest.skip(f"weights of {alias} are not in the cache; run: evenhand fetch {alias}")
    return alias


@pytest.fixture(scope="session")
def smollm2() -> Any:
    """The packaged causal model asked as plain text, loaded once."""
    from evenhand.models.loading.resolver import resolve

    return resolve(packaged("smollm2-135m"), chat="off")


@pytest.fixture(scope="session")
def smollm2_chat() -> Any:
    """The packaged causal model as the chat model it is, loaded once."""
    from evenhand.models.loading.resolver import resolve

    return resolve(packaged("smollm2-135m"))


@pytest.fixture(scope="session")
def glove() -> Any:
    """The packaged GloVe vectors as a table."""
    from evenhand.models.vectors.files import open_vectors, resolve_vectors

    return open_vectors(resolve_vectors(packaged("glove-6b-50d")))


@pytest.fixture(scope="session")
def minilm(shared: Path) -> dict[str, str]:
    """Folders of the small real checkpoints by kind."""
    models = shared / "models"
    if not models.is_dir():
        pytest.skip(f"no checkpoints at {models}; set EVENHAND_SHARED")
    return {
        "masked": str(models / "minilm-mlm"),
        "span": str(models / "minilm-qa"),
        "choice": str(models / "minilm-mcq"),
    }


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Untrained checkpoints of every kind, made on the spot: `tiny("causal") -> folder`."""
    pytest.importorskip("transformers", reason="needs the hf extra")
    from tiny import TinyCheckpoints

    return TinyCheckpoints(tmp_path_factory.mktemp("tiny"))
