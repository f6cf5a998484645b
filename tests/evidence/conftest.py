"""A run of each kind, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

import evenhand as eh
from evenhand.audit.suites import parse_suite
from evenhand.runs.record import Run
from probe_cases import CASES


def audited(
    folder: Path, *names: str, lean: float = 0.5, store: str | None = None, out: str = "run"
) -> tuple[Run, eh.ScriptedModel]:
    """Probes on the model of the first of them, whose lean is known."""
    case = CASES[names[0]]
    model = case.model(lean)
    rows = []
    for name in names:
        (folder / f"data-{name}").mkdir(parents=True, exist_ok=True)
        settings = CASES[name].settings(folder / f"data-{name}", CASES[name].rows)
        rows.append({"name": name, **settings})
    suite = parse_suite({"name": "short", "probe": rows}, "here", "short")
    return eh.audit(model, suite, out=folder / out, store=store), model


@pytest.fixture(scope="session")
def bbq(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, eh.ScriptedModel]:
    """A probe that reads a file of the user's, and one that this model cannot answer."""
    return audited(tmp_path_factory.mktemp("bbq"), "bbq", "association")


@pytest.fixture(scope="session")
def signed(bbq: tuple[Run, eh.ScriptedModel], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its bundle, signed with an Ed25519 key that lies beside it, with its public half."""
    crypto = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    folder = tmp_path_factory.mktemp("signed")
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        crypto.Encoding.PEM, crypto.PrivateFormat.PKCS8, crypto.NoEncryption()
    )
    (folder / "key.pem").write_bytes(private)
    public = key.public_key()
    (folder / "key.pub.pem").write_bytes(
        public.public_bytes(crypto.Encoding.PEM, crypto.PublicFormat.SubjectPublicKeyInfo)
    )
    return eh.bundle(bbq[0], folder / "evidence.tar", sign=folder / "key.pem")
