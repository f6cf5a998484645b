"""Signing a manifest: with an Ed25519 key in PEM, or with any key that ssh-keygen can sign with."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from evenhand.errors import SpecError, need
from evenhand.evidence.checker import MANIFEST, NAMESPACE, signature_file

WAYS = (
    "Accepted: an Ed25519 private key in PEM (openssl genpkey -algorithm ed25519 -out key.pem) or "
    "a private key of OpenSSH (ssh-keygen -t ed25519)."
)


def sign(message: bytes, key: Path) -> bytes:
    """What goes into manifest.sig.

    Raises:
        SpecError: the key cannot be read, is encrypted PEM, or is of a kind that is not taken.
    """
    try:
        raw = key.read_bytes()
    except OSError as error:
        raise SpecError(f"--sign {key}: cannot be read ({error.strerror}). {WAYS}") from error
    if b"OPENSSH PRIVATE KEY" in raw or raw.startswith((b"ssh-", b"sk-", b"ecdsa-")):
        return _by_ssh(message, key)
    return _by_pem(message, raw, key)


def _by_pem(message: bytes, raw: bytes, key: Path) -> bytes:
    module: Any = need(
        "cryptography.hazmat.primitives.serialization", extra="sign", what="signing with a PEM key"
    )
    try:
        private = module.load_pem_private_key(raw, password=None)
        public = private.public_key().public_bytes_raw()
        return signature_file(public, private.sign(message))
    except (ValueError, TypeError, AttributeError) as error:
        why = "it is encrypted" if isinstance(error, TypeError) else "it is not such a key"
        raise SpecError(f"--sign {key}: {why}. {WAYS}") from error


def _by_ssh(message: bytes, key: Path) -> bytes:
    """ssh-keygen asks for a passphrase itself, or uses the agent."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / MANIFEST
        path.write_bytes(message)
        words = ["ssh-keygen", "-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(path)]
        try:
            done = subprocess.run(words, stderr=subprocess.PIPE, encoding="utf-8", check=False)
        except OSError as error:
            raise SpecError(f"--sign {key}: ssh-keygen (OpenSSH) is not here. {WAYS}") from error
        if done.returncode:
            why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise SpecError(f"--sign {key}: ssh-keygen could not sign ({why}). {WAYS}")
        return path.with_name(f"{MANIFEST}.sig").read_bytes()
