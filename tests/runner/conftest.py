"""A cluster and a bucket for the tests that need one, each started once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import buckets
import clusters


@pytest.fixture(scope="session")
def token() -> Iterator[dict[str, str]]:
    """The cluster's token, in the environment of every audit that a test starts."""
    with pytest.MonkeyPatch.context() as patch:
        settings = {**clusters.own_token(), **clusters.QUIET}
        for name, value in settings.items():
            patch.setenv(name, value)
        yield settings


@pytest.fixture(scope="session")
def cluster(token: dict[str, str]) -> Iterator[str]:
    """A head and two more nodes as processes of their own, stopped afterwards."""
    with clusters.head(token, others=2) as address:
        yield address


@pytest.fixture(scope="session")
def local(tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Path]:
    """The model, the suite, and a finished local run."""
    folder = tmp_path_factory.mktemp("local")
    suite = folder / "small.toml"
    suite.write_text(clusters.SUITE)
    clusters.finish(clusters.start(tiny("causal"), suite, folder / "run"))
    return tiny("causal"), suite, folder / "run"


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The address of an S3-compatible server, where moto and s3fs are installed."""
    with buckets.s3_server() as address:
        yield address


@pytest.fixture
def s3_settings(s3: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The environment in which s3:// means that server; gives its address."""
    buckets.use(s3, monkeypatch)
    return s3


@pytest.fixture
def bucket(s3_settings: str) -> str:
    """A bucket of that server."""
    import s3fs

    fs = s3fs.S3FileSystem(use_listings_cache=False)
    if not fs.exists("evenhand-test"):
        fs.mkdir("evenhand-test")
    return "s3://evenhand-test"
