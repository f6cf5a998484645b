"""Checking a bundle: every byte, the signature, and every finding once more from the scores."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evenhand import __version__
from evenhand.audit.gate import Gate, unjudging
from evenhand.confined import confined
from evenhand.errors import EvenhandError, RunError, SpecError
from evenhand.evidence import checker
from evenhand.evidence.canonical import canonical
from evenhand.evidence.comparing import (
    OLDER,
    another_state,
    difference,
    elsewhere,
    near,
    older_words,
    same_document,
)
from evenhand.evidence.documents import RUN, Terms, decided_by, documents
from evenhand.models.endpoints.address import OPENAI, is_address
from evenhand.models.protocol import LoadOptions, Model
from evenhand.opening import understood
from evenhand.runs.controls import CONTROLS
from evenhand.runs.kinds import Again, kind_of
from evenhand.runs.record import Run, code

TOLERANCE = 1e-3
WAYS = ("dtype", "load", "revision", "compile", "chat", "system", "way", "rung")
"""Options of a bundle that a model asked again follows; none is a place or an address."""


@dataclass(frozen=True)
class Rescored:
    """Shards that a model was asked once more.

    Attributes:
        shards, rows: how many were asked again.
        largest: the largest difference of a number from the stored one.
        other: rows whose text differs from the stored one.
        same_machine: whether the fingerprint is the recorded one (precision, kind of device and
            version of torch included).
    """

    shards: int
    rows: int
    largest: float
    other: int
    tolerance: float
    same_machine: bool

    @property
    def equal(self) -> bool:
        return self.largest <= self.tolerance and not self.other


@dataclass(frozen=True)
class Verified:
    """What holds for a bundle.

    Attributes:
        hashes_equal: every byte is as it was written.
        findings_equal: computing once more from the scores gives the same findings, tables and
            documents (verdict, scenarios, statement); False where that could not be tried.
        signature: none, valid or invalid.
        signer: fingerprint of the key that signed, as `ssh-keygen -l` shows it.
        rescored: what asking the model again gave; None when it was not asked.
        reason: the first thing that does not hold.
        about: what the manifest says about the run.
        elsewhere: where findings are equal but for last digits of numbers: what differs here from
            where they were computed (versions, machine). Empty: equal to the byte.
        verdict, why: what the gate of this version says of the run under the bundled policy. It
            differs from the bundled verdict where a version that wrote no controls let a run pass
            whose probes cannot judge the model.
    """

    hashes_equal: bool
    findings_equal: bool
    signature: str
    signer: str = ""
    rescored: Rescored | None = None
    reason: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)
    elsewhere: str = ""
    verdict: str = ""
    why: str = ""

    @property
    def ok(self) -> bool:
        asked = self.rescored is None or self.rescored.equal
        return self.hashes_equal and self.findings_equal and self.signature != "invalid" and asked

    def as_dict(self) -> dict[str, Any]:
        """The JSON contract (`evenhand verify --json`)."""
        told = {
            "ok": self.ok,
            "findings_equal": self.findings_equal,
            "hashes_equal": self.hashes_equal,
            "signature": self.signature,
            "signer": self.signer,
            "reason": self.reason,
            "about": dict(self.about),
            "elsewhere": self.elsewhere,
        }
        if self.verdict and self.verdict != self.about.get("verdict"):
            told |= {"verdict": self.verdict, "why": self.why}
        if self.rescored is not None:
            told["rescored"] = {**self.rescored.__dict__, "equal": self.rescored.equal}
        return told


def verify(
    file: str | Path,
    *,
    key: str | Path | None = None,
    rescore: int = 0,
    model: str | Model | None = None,
    tolerance: float = TOLERANCE,
    seed: int | None = None,
) -> Verified:
    """Check a bundle, without the model and without torch unless the model is asked again.

    Args:
        file: what `bundle` wrote.
        key: the public key that must have signed it.
        rescore: ask the model this many shards again, drawn at random, and compare.
        model: the model for that, as for `audit`; nothing that a bundle names is ever loaded.
        tolerance: how far a number asked again may lie from the stored one.
        seed: of the draw of shards; by default one that nobody can predict.

    Raises:
        SpecError: the file cannot be read, or `rescore` and `model` do not go together.
        ModelError: the model is not the one that was asked.
    """
    if bool(rescore) != (model is not None) or rescore < 0:
        raise SpecError(
            f"--rescore {rescore}: asks a model again, so give both: --rescore 3 --model MODEL"
        )
    path = Path(file)
    with tempfile.TemporaryDirectory(prefix="evenhand-verify-") as scratch:
        place = Path(scratch)
        try:
            told = checker.check(path, Path(key) if key else None, _keeper(place / "bundle"))
        except OSError as error:
            raise SpecError(
                f"{path}: cannot be read ({error.strerror or error}). Expected a bundle, as "
                f"written by: evenhand bundle RUN"
            ) from error
        held = {name: told[name] for name in ("hashes_equal", "signature", "signer")}
        if not told["hashes_equal"]:
            return Verified(**held, findings_equal=False, reason=told["reason"])
        manifest = told["manifest"]
        with confined(place):
            wrong, made, other, gated = _again(place, manifest)
        asked = None
        if rescore and made is not None and model is not None:
            asked = _rescored(place, made, rescore, model, tolerance, seed)
        return Verified(
            **held,
            findings_equal=not wrong,
            reason=told["reason"] or wrong,
            rescored=asked,
            about=manifest.get("about", {}),
            elsewhere=other,
            verdict=gated.outcome if gated else "",
            why=gated.reason if gated else "",
        )


def _keeper(folder: Path) -> Any:
    def keep(name: str) -> IO[bytes]:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        return open(target, "wb")

    return keep


def _again(place: Path, manifest: Mapping[str, Any]) -> tuple[str, Again | None, str, Gate | None]:
    """What of the bundle does not follow from its scores; the run computed from them; what differs
    here, where that made a difference in last digits; and the gate of this version.
    """
    held = place / "bundle"
    try:
        with understood("the run in the bundle"):
            terms, run = Terms.of(held), Run.open(held / RUN)
            wrong, made, other = _part(run, place / "again")
            if not wrong and terms.baseline is not None:
                wrong, _, more = _part(terms.baseline, place / "before")
                wrong, other = wrong and f"the baseline's {wrong}", other or more
            if wrong:
                return wrong, made, "", None
            older = older_words(run)
            changed = _changed(held, manifest, documents(run, terms), older)
            if changed and CONTROLS not in run.facts:  # written by a version without controls
                changed = _changed(held, manifest, documents(run, terms, silent={}), older)
            gated = decided_by(run, terms, unjudging(made.run, terms.baseline))
    except (EvenhandError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
        said = str(error).replace(f"{held}{os.sep}", "")
        return f"cannot be recomputed: {said}", None, "", None
    wrong = f"{changed} does not follow from the findings" if changed else ""
    return wrong, made, other, gated


def _changed(
    held: Path,
    manifest: Mapping[str, Any],
    computed: tuple[dict[str, bytes], dict[str, Any]],
    older: bool,
) -> str:
    """Return the first document that is not what was computed; "" if all are."""
    found, told = computed
    known = {name: _bytes(held / name) for name in found}
    expected = {**found, "manifest.json": canonical(told)}
    known["manifest.json"] = canonical(manifest.get("about"))
    return next(
        (n for n, raw in expected.items() if not same_document(raw, known[n], older=older)), ""
    )


def _part(run: Run, scratch: Path) -> tuple[str, Again, str]:
    """The same of one run of the bundle."""
    made, other = kind_of(run.facts).again(run, scratch), ""
    wrong = difference(run, made.run)
    if wrong and ((other := elsewhere(run)) or another_state(run)):
        wrong = difference(run, made.run, near)
    if not wrong:
        return "", made, ", ".join(filter(None, (other, OLDER if older_words(run) else "")))
    here = f" (computed here with {other})" if other else ""
    return f"{wrong} does not follow from the scores{here}{_state(run)}", made, ""


def _state(run: Run) -> str:
    """Which state of evenhand computed a run, where it is another one than this."""
    by = run.facts.get("environment", {})
    if by.get("code") == code():
        return ""
    return (
        f"; it was computed by evenhand {by.get('evenhand', '?')}, state "
        f"{by.get('code', 'not recorded')!r}, and this is {__version__}, state {code()!r}"
    )


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _rescored(
    place: Path, made: Again, number: int, model: str | Model, tolerance: float, seed: int | None
) -> Rescored:
    """Shards of the audited model taken away, so that it is asked for them."""
    from evenhand.models.adapters.stored import AskedAgain

    with confined(place):
        run = Run.open(place / "bundle" / RUN)
    facts, spec = run.facts, str(run.facts["work"]["model"])
    names = made.shards.get(spec, ())
    if not names:
        raise RunError(
            f"--rescore: the bundle holds no scores of {spec!r:.80}, so there is nothing to ask "
            f"again. Leave --rescore and --model out."
        )
    asked = AskedAgain(spec, facts["models"][spec], _model(model, facts))
    draw = random.Random(seed) if seed is not None else random.SystemRandom()
    chosen = sorted(draw.sample(names, min(number, len(names))))
    held = {_key(name): place / "held" / _key(name) for name in chosen}
    with confined(place):
        (place / "held").mkdir()
        for name in chosen:
            os.replace(run.folder / name, held[_key(name)])
        again = kind_of(facts).again(run, place / "rescored", {spec: asked})
    new = {_key(name): again.files[name] for name in again.shards[spec]}
    compared = [_apart(old, new[key]) for key, old in held.items()]
    return Rescored(
        shards=len(chosen),
        rows=sum(c[0] for c in compared),
        tolerance=tolerance,
        largest=max(c[1] for c in compared),
        other=sum(c[2] for c in compared),
        same_machine=asked.same,
    )


def _key(name: str) -> str:
    """The folder of a shard and what was asked, without the checksum of its answers."""
    return name.replace("/", "-").split(".")[0]


def _model(model: str | Model, facts: Mapping[str, Any]) -> Model:
    """The model that the user gave, loaded and asked in the recorded way."""
    from evenhand.models.loading.resolver import resolve

    if isinstance(model, Model):
        return model
    work = facts["work"]
    with understood("the run in the bundle"):
        recorded = {**work, **dict(work.get("options") or {})}
        options = LoadOptions(**{name: recorded[name] for name in WAYS if recorded.get(name)})
        if {m["device"] for m in facts["models"].values() if m.get("device")} == {"cpu"}:
            options = replace(options, device="cpu")
        if is_address(model) and not model.startswith(OPENAI):
            served = dict(work.get("options") or {}).get("model")
            options = replace(options, model=str(served or ""))
        kind = None if work.get("as") is None else str(work["as"])
    return resolve(model, kind=kind, options=options)


def _apart(old: Path, new: bytes | Path) -> tuple[int, float, int]:
    """Rows of a shard, the largest difference of its numbers, and rows with another text."""
    one = pq.read_table(old)
    two = pq.read_table(pa.BufferReader(new) if isinstance(new, bytes) else new)
    largest, other = 0.0, np.zeros(one.num_rows, bool)
    if one.num_rows != two.num_rows or one.column_names != two.column_names:
        return one.num_rows, float("inf"), one.num_rows
    for name in one.column_names:
        pair = [t.column(name).to_pylist() for t in (one, two)]
        for k, (a, b) in enumerate(zip(*pair)):
            texts = isinstance(a, str) or (isinstance(a, list) and a and isinstance(a[0], str))
            if texts or a is None or b is None:
                other[k] |= a != b
                continue
            x, y = np.atleast_1d(np.asarray(a, float)), np.atleast_1d(np.asarray(b, float))
            if x.shape != y.shape or (np.isnan(x) != np.isnan(y)).any():
                largest = float("inf")
                continue
            gaps = np.where(x == y, 0.0, np.abs(x - y))
            largest = max(largest, float(np.nanmax(gaps, initial=0.0)))
    return one.num_rows, largest, int(other.sum())
