"""Checks every byte of an evenhand bundle, and its signature. Python 3.9 or newer, nothing else.

    tar xf BUNDLE verify.py          or use the copy of an evenhand that you trust more
    python verify.py BUNDLE [--key PUBLIC_KEY]

A bundle is a plain tar file of which nothing is left open: names in order, one kind of header,
zeros between. So every byte is either part of a file, whose SHA-256 stands in manifest.json, or
can only be what it is. Whether the findings follow from the scores is checked by: evenhand verify
"""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

FORMAT = "evenhand-bundle/1"
MANIFEST, DIGEST, SIGNATURE = "manifest.json", "manifest.sha256", "manifest.sig"
OWN = (MANIFEST, DIGEST, SIGNATURE)
BLOCK, PIECE = 512, 1 << 20
LARGEST = 1 << 26
"""Bytes of a manifest or a signature that are read at once."""
MOST = 8**11 - 1
"""Bytes of a file that the header has room for."""
NAMESPACE, SSHSIG, ED25519 = "evenhand", b"SSHSIG", b"ssh-ed25519"
ARMOUR = ("-----BEGIN SSH SIGNATURE-----\n", "-----END SSH SIGNATURE-----\n")


class Refused(Exception):
    """Why a file is no bundle, or not the one that was written."""


def header(name: str, size: int) -> bytes:
    """The only header (POSIX ustar) that a file of this name and size can have.

    >>> len(header("run/findings.json", 12)), header("a", 1)[257:263]
    (512, b'ustar\\x00')
    """
    raw, prefix = name.encode(), b""
    if len(raw) > 100:
        cut = raw.find(b"/", len(raw) - 101)
        prefix, raw = raw[:cut], raw[cut + 1 :]
    if not raw or len(raw) > 100 or len(prefix) > 155 or size > MOST or problem(name):
        raise Refused(f"{name!r:.120}: {problem(name) or 'too long a name or too large a file'}")
    fields = [raw.ljust(100, b"\0"), b"0000644\0", b"0000000\0", b"0000000\0"]
    fields += [b"%011o\0" % size, b"00000000000\0", b" " * 8, b"0", bytes(100), b"ustar\x0000"]
    whole = b"".join(fields).ljust(345, b"\0") + prefix.ljust(167, b"\0")
    return whole[:148] + b"%06o\0 " % sum(whole) + whole[156:]


def problem(name: str) -> str:
    """Why a file of this name could lie elsewhere than in its folder; empty when it cannot.

    >>> problem("run/findings.json"), problem("../x"), problem("/x")
    ('', 'leads out of the bundle', 'leads out of the bundle')
    """
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "leads out of the bundle"
    if any(c in '\\:*?"<>|' or ord(c) < 32 or 127 <= ord(c) < 160 for c in name):
        return "has a character that no name here may have"
    return ""


def members(file: IO[bytes]) -> Iterator[tuple[str, int, Iterator[bytes]]]:
    """Every file of a bundle with its size and its bytes, which must be read before the next."""
    seen: set[str] = set()
    last = ""
    while (head := _exactly(file, BLOCK)) != bytes(BLOCK):
        try:
            parts = [head[345:500].rstrip(b"\0"), head[:100].rstrip(b"\0")]
            name, size = b"/".join(filter(None, parts)).decode(), int(head[124:135], 8)
        except ValueError:
            raise Refused(f"the header after {last!r:.120} is damaged") from None
        if head != header(name, size):
            raise Refused(f"{name!r:.120}: another header than a bundle has (links are refused)")
        if name <= last or name.casefold() in seen:
            raise Refused(f"{name!r:.120}: occurs twice or is out of order")
        above = name.casefold().split("/")[:-1]
        if any("/".join(above[: k + 1]) in seen for k in range(len(above))):
            raise Refused(f"{name!r:.120}: lies below a file")
        seen.add(name.casefold())
        yield name, size, _pieces(file, size)
        if _exactly(file, -size % BLOCK).strip(b"\0"):
            raise Refused(f"{name!r:.120}: is followed by bytes that should be zero")
        last = name
    if file.read(BLOCK + 1) != bytes(BLOCK):
        raise Refused("the end is not that of a bundle")


def _exactly(file: IO[bytes], size: int) -> bytes:
    found = file.read(size)
    if len(found) != size:
        raise Refused("the file ends too early")
    return found


def _pieces(file: IO[bytes], size: int) -> Iterator[bytes]:
    while size > 0:
        piece = _exactly(file, min(PIECE, size))
        size -= len(piece)
        yield piece


def check(path: Path, key: Path | None = None, keep: Callable[..., Any] | None = None) -> Any:
    """What holds of a bundle: hashes_equal, signature, signer, manifest, reason.

    Args:
        path: the bundle.
        key: the public key that must have signed it (PEM, or a line of OpenSSH).
        keep: called with the name of each file; gives a file object to write it to, or None.
    """
    told = {"hashes_equal": False, "signature": "none", "signer": "", "reason": "", "manifest": {}}
    found: dict[str, dict[str, Any]] = {}
    own: dict[str, bytes] = {}
    try:
        with open(path, "rb") as file:
            for name, size, pieces in members(file):
                if name in OWN and size > LARGEST:
                    raise Refused(f"{name}: larger than {LARGEST >> 20} MiB")
                target = keep(name) if keep else None
                try:
                    digest, held = _read_through(pieces, target, name in OWN)
                finally:
                    if target is not None:
                        target.close()
                if name in OWN:
                    own[name] = held
                else:
                    found[name] = {"sha256": digest, "size": size}
        told["manifest"] = _agreed(found, own)
        told["hashes_equal"] = True
    except Refused as why:
        told["reason"] = str(why)
        return told
    if SIGNATURE in own or key is not None:
        told["signature"] = "invalid"
        try:
            told["signer"] = signer = _signer(own.get(SIGNATURE, b""), own[MANIFEST])
            if key is not None and fingerprint(public_key(key.read_bytes())) != signer:
                raise Refused(f"it was signed by another key ({signer}) than {key}")
            told["signature"] = "valid"
        except (Refused, OSError) as why:
            told["reason"] = f"the signature does not hold: {why}"
    return told


def _read_through(
    pieces: Iterator[bytes], target: IO[bytes] | None, whole: bool
) -> tuple[str, bytes]:
    """The SHA-256 of a file, which is written to `target`; its bytes where they are asked for."""
    state, held = hashlib.sha256(), []
    for piece in pieces:
        state.update(piece)
        if whole:
            held.append(piece)
        if target is not None:
            target.write(piece)
    return state.hexdigest(), b"".join(held)


def _agreed(found: dict[str, dict[str, Any]], own: dict[str, bytes]) -> dict[str, Any]:
    """The manifest, when it says just what was found."""
    raw = own.get(MANIFEST)
    if raw is None:
        raise Refused(f"there is no {MANIFEST}")
    if own.get(DIGEST) != f"{hashlib.sha256(raw).hexdigest()}  {MANIFEST}\n".encode():
        raise Refused(f"{MANIFEST} is not the one of {DIGEST}")
    try:
        manifest = json.loads(raw)
        known = dict(manifest["files"])
        if manifest["format"] != FORMAT:
            raise Refused(f"format {manifest['format']!r:.40}; this reads {FORMAT}")
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Refused(f"{MANIFEST} cannot be read") from None
    for name in sorted({*known, *found}):
        if known.get(name) != found.get(name):
            what = "is missing" if name not in found else "is not what was written"
            raise Refused(f"{name!r:.120} {what if name in known else 'was added'}")
    return dict(manifest)


def _signer(raw: bytes, message: bytes) -> str:
    """The fingerprint of the key that signed the message."""
    if raw.startswith(b"-----"):
        return _ssh_signer(raw, message)
    try:
        held = json.loads(raw)
        public, signature = (bytes.fromhex(held[k]) for k in ("public_key", "signature"))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Refused("it cannot be read" if raw else "there is none") from None
    if raw != signature_file(public, signature):  # one spelling only, so that no byte is free
        raise Refused("it is not as it was written")
    if not ed25519_holds(public, message, signature):
        raise Refused("it does not fit manifest.json")
    return fingerprint(_wire(ED25519, public))


def signature_file(public: bytes, signature: bytes) -> bytes:
    """manifest.sig of an Ed25519 key: canonical JSON."""
    held = {"algorithm": "ed25519", "public_key": public.hex(), "signature": signature.hex()}
    return json.dumps(held, sort_keys=True, separators=(",", ":")).encode()


def _ssh_signer(raw: bytes, message: bytes) -> str:
    try:
        text = raw.decode("ascii")
        inner = base64.b64decode(text[len(ARMOUR[0]) : -len(ARMOUR[1])])
        magic, key = inner[:10], _read(inner, 10)
    except ValueError:
        raise Refused("it cannot be read") from None
    if raw != armoured(inner) or magic != SSHSIG + b"\0\0\0\1":
        raise Refused("it is not as it was written")
    if key.startswith(_wire(ED25519)):
        if not _ssh_ed25519_holds(inner, key, message):
            raise Refused("it does not fit manifest.json")
        return fingerprint(key)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / SIGNATURE
        path.write_bytes(raw)
        words = ["ssh-keygen", "-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(path)]
        try:
            done = subprocess.run(words, input=message, capture_output=True, check=False)
        except OSError:
            raise Refused("ssh-keygen (OpenSSH) is needed to check it and is not here") from None
    if done.returncode:
        raise Refused("it does not fit manifest.json")
    return fingerprint(key)


def _ssh_ed25519_holds(inner: bytes, key: bytes, message: bytes) -> bool:
    """Whether an SSH signature by an Ed25519 key fits (PROTOCOL.sshsig of OpenSSH)."""
    parts, at = [], 10
    try:
        for _ in range(5):  # key, namespace, reserved, hash, signature
            parts.append(_read(inner, at))
            at += 4 + len(parts[-1])
        _, namespace, reserved, hashed, signature = parts
        digest = {b"sha512": hashlib.sha512, b"sha256": hashlib.sha256}[hashed](message).digest()
        held = _read(signature, 4 + len(ED25519))
        public = _read(key, 4 + len(ED25519))
    except (ValueError, KeyError):
        return False
    whole = at == len(inner) and signature == _wire(ED25519, held) and key == _wire(ED25519, public)
    signed = SSHSIG + _wire(namespace, reserved, hashed, digest)
    return whole and namespace == NAMESPACE.encode() and ed25519_holds(public, signed, held)


def armoured(inner: bytes) -> bytes:
    """An SSH signature as ssh-keygen writes it: lines of 70 characters."""
    text = base64.b64encode(inner).decode()
    rows = "".join(f"{text[k : k + 70]}\n" for k in range(0, len(text), 70))
    return f"{ARMOUR[0]}{rows}{ARMOUR[1]}".encode()


def public_key(raw: bytes) -> bytes:
    """A public key in SSH's wire form, from PEM (Ed25519) or a line of OpenSSH."""
    text = raw.decode("ascii", "replace").strip()
    try:
        if text.startswith("-----BEGIN PUBLIC KEY-----"):
            der = base64.b64decode("".join(text.splitlines()[1:-1]), validate=True)
            if der[:12].hex() == "302a300506032b6570032100" and len(der) == 44:
                return _wire(ED25519, der[12:])
        else:
            return base64.b64decode(text.split()[1], validate=True)
    except (ValueError, IndexError):
        pass
    raise Refused("the key given is neither an Ed25519 public key in PEM nor one of OpenSSH")


def fingerprint(key: bytes) -> str:
    """What `ssh-keygen -l` shows of a key."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")


def _wire(*parts: bytes) -> bytes:
    return b"".join(len(p).to_bytes(4, "big") + p for p in parts)


def _read(raw: bytes, at: int) -> bytes:
    size = int.from_bytes(raw[at : at + 4], "big")
    if len(raw) < at + 4 + size:
        raise ValueError("too short")
    return raw[at + 4 : at + 4 + size]


# Ed25519 (RFC 8032, section 5.1). Slow and plain: one signature takes some milliseconds.
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
Point = tuple[int, int, int, int]


def _recovered(y: int, sign: int) -> int:
    """x of the point with this y, or an error when there is none."""
    xx = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(xx, (P + 3) // 8, P)
    if (x * x - xx) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - xx) % P or y >= P or (x == 0 and sign):
        raise ValueError("no point of the curve")
    return P - x if x % 2 != sign else x


def _point(raw: bytes) -> Point:
    number = int.from_bytes(raw, "little")
    y = number & (2**255 - 1)
    x = _recovered(y, number >> 255)
    return x, y, 1, x * y % P


def _added(a: Point, b: Point) -> Point:
    one, two = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    three, four = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = two - one, four - three, four + three, two + one
    return e * f % P, g * h % P, f * g % P, e * h % P


def _times(number: int, point: Point) -> Point:
    total: Point = (0, 1, 1, 0)
    while number:
        if number & 1:
            total = _added(total, point)
        point, number = _added(point, point), number >> 1
    return total


def ed25519_holds(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether an Ed25519 signature fits: s B = R + h A, with s below the order of the group."""
    if len(public) != 32 or len(signature) != 64:
        return False
    s = int.from_bytes(signature[32:], "little")
    try:
        a, r = _point(public), _point(signature[:32])
    except ValueError:
        return False
    if s >= L:
        return False
    digest = hashlib.sha512(signature[:32] + public + message).digest()
    y = 4 * pow(5, P - 2, P) % P
    base = _recovered(y, 0)
    left = _times(s, (base, y, 1, base * y % P))
    right = _added(r, _times(int.from_bytes(digest, "little") % L, a))
    return not ((left[0] * right[2] - right[0] * left[2]) % P) and not (
        (left[1] * right[2] - right[1] * left[2]) % P
    )


def main(words: list[str]) -> int:
    """Exit 0: every byte is as it was written, and the signature, if there is one, holds."""
    key = None
    if len(words) == 3 and words[1] == "--key":
        key, words = Path(words[2]), words[:1]
    if len(words) != 1:
        print(f"usage: {Path(sys.argv[0]).name} BUNDLE [--key PUBLIC_KEY]", file=sys.stderr)
        return 2
    try:
        told = check(Path(words[0]), key)
    except OSError as error:
        print(f"{words[0]}: cannot be read ({error.strerror}).", file=sys.stderr)
        return 2
    for name in ("hashes_equal", "signature", "signer", "reason"):
        if told[name] != "":
            print(f"{name:<13}{told[name]}".encode("ascii", "backslashreplace").decode())
    print("findings     not computed again here: use evenhand verify")
    return 0 if told["hashes_equal"] and told["signature"] != "invalid" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
