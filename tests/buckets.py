"""A small S3 service of one's own on a free port of this machine, for tests of stores."""

from __future__ import annotations

import contextlib
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


@contextlib.contextmanager
def s3_server() -> Iterator[str]:
    """The address of an S3-compatible server that lives inside."""
    pytest.importorskip("moto", reason="needs moto: pip install 'evenhand[dev]'")
    pytest.importorskip("flask_cors", reason="needs flask-cors, for moto's server")
    pytest.importorskip("s3fs", reason="needs s3fs")
    with subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    ) as server:  # fmt: skip
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.kill()


def use(address: str, patch: pytest.MonkeyPatch) -> None:
    """Let s3:// mean that server, whatever this machine's own settings are."""
    import s3fs

    for name in [n for n in os.environ if n.startswith("AWS_") or n.lower().endswith("_proxy")]:
        patch.delenv(name)
    settings = {
        "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_ENDPOINT_URL": address,
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_MAX_ATTEMPTS": "1", "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }  # fmt: skip
    for name, value in settings.items():
        patch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
