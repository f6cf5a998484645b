"""A small S3 service of one's own, for tests of stores."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()  # ends with the process that started it
"""


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The address of an S3-compatible server on a free port, where moto and s3fs are installed."""
    pytest.importorskip("moto", reason="needs moto: pip install 'moto[server]' s3fs")
    pytest.importorskip("s3fs", reason="needs s3fs")
    quiet = {**os.environ, "PYTHONWARNINGS": "ignore"}
    with subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=quiet,
    ) as server:  # fmt: skip
        assert server.stdout is not None
        port = int(server.stdout.readline())
        yield f"http://127.0.0.1:{port}"
        server.kill()


@pytest.fixture
def s3_settings(s3: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The environment in which s3:// means that server; gives its address."""
    import s3fs

    for name in [n for n in os.environ if n.startswith("AWS_") or n.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    settings = {
        "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_ENDPOINT_URL": s3,
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_MAX_ATTEMPTS": "1", "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }  # fmt: skip
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    return s3


@pytest.fixture
def bucket(s3_settings: str) -> str:
    """A bucket of that server."""
    import s3fs

    fs = s3fs.S3FileSystem(use_listings_cache=False)
    if not fs.exists("evenhand-test"):
        fs.mkdir("evenhand-test")
    return "s3://evenhand-test"
