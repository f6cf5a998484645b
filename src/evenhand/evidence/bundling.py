"""Making a bundle: the run is computed once more from its scores first, and must come out equal."""

from __future__ import annotations

import hashlib
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from evenhand import __version__
from evenhand.errors import RunError
from evenhand.evidence import checker
from evenhand.evidence.canonical import canonical
from evenhand.evidence.comparing import difference
from evenhand.evidence.documents import BASELINE, RUN, Terms, documents
from evenhand.evidence.signing import sign as signed
from evenhand.runs.kinds import Again, kind_of
from evenhand.runs.record import Run, code
from evenhand.writing import replacing

Content = bytes | Path


def bundle(
    run: Run | str | Path,
    out: str | Path | None = None,
    *,
    sign: str | Path | None = None,
    policy: str | Path | None = None,
    scenarios: str | Path | None = None,
    baseline: Run | str | Path | None = None,
) -> Path:
    """Write a finished run as one file that anybody can check without the model.

        eh.bundle(run, "evidence.tar", sign="key.pem")
        eh.verify("evidence.tar").ok

    Args:
        run: a finished run of any kind that keeps its scores, or its folder.
        out: the file; by default beside the run folder, with the ending `.evidence.tar`.
        sign: an Ed25519 private key in PEM, or a private key of OpenSSH.
        policy: a policy file, as for `gate`; the default policy if not given.
        scenarios: a TOML file of what you state about findings (hazard, mitigation, review).
        baseline: an earlier run of the same suite, which becomes part of the file: the verdict is
            then about what has become worse since.

    Raises:
        RunError: the run is not finished, keeps no scores, or its findings do not follow from
            them (a file was changed, or another version measured).
    """
    opened = run if isinstance(run, Run) else Run.open(run)
    if opened.status != "finished":
        raise RunError(
            f"{opened.folder}: the run is {opened.status!r}, and only a finished run is evidence. "
            f"Finish it with: evenhand resume {shlex.quote(str(opened.folder))}"
        )
    terms = Terms.read(policy, scenarios, baseline)
    folder = opened.folder.resolve()
    target = Path(out) if out else folder.with_name(f"{folder.name}.evidence.tar")
    parts = {RUN: opened, **({BASELINE: terms.baseline} if terms.baseline else {})}
    with tempfile.TemporaryDirectory(prefix="evenhand-bundle-") as scratch:
        names: dict[str, Content] = {"verify.py": Path(checker.__file__)}
        for place, part in parts.items():
            files = evidence_of(part, _again(part, Path(scratch) / place))
            names |= {f"{place}/{name}": content for name, content in files.items()}
        written, told = documents(opened, terms)
        with replacing(target) as file:
            _write(file, {**names, **written}, told, Path(sign) if sign else None)
    return target


def _again(run: Run, scratch: Path) -> Again:
    """A run once more from its scores; refused where it comes out otherwise."""
    kind, place = kind_of(run.facts), shlex.quote(str(run.folder))
    made = kind.again(run, scratch)
    wrong = difference(run, made.run)
    if wrong:
        again = f"evenhand resume {place}" if kind.resumes else kind.command(run.facts)[0]
        raise RunError(
            f"{run.folder}: {wrong} does not follow from the stored scores, so the run is not "
            "evidence. It was changed, or computed by a different state of evenhand than "
            f"{__version__} ({code()}). Compute it again with: {again}"
        )
    return made


def evidence_of(run: Run, again: Again) -> dict[str, Content]:
    """Files of a run folder that are evidence, by their place in it."""
    names = ["run.json", "findings.json", "findings.parquet"]
    tables = sorted((run.folder / "probes").glob("*/*.parquet"))
    own = {name: run.folder / name for name in names}
    return {**own, **{p.relative_to(run.folder).as_posix(): p for p in tables}, **again.files}


def _write(
    file: IO[bytes], names: dict[str, Content], told: dict[str, Any], key: Path | None
) -> None:
    """The tar file: the manifest first, since its name comes first."""
    known = {name: _known(content) for name, content in names.items()}
    manifest = canonical(
        {
            "format": checker.FORMAT,
            "evenhand": __version__,
            "about": told,
            "files": known,
        }
    )
    line = f"{hashlib.sha256(manifest).hexdigest()}  {checker.MANIFEST}\n"
    own: dict[str, Content] = {checker.MANIFEST: manifest, checker.DIGEST: line.encode()}
    if key is not None:
        own[checker.SIGNATURE] = signed(manifest, key)
    for name, content in sorted({**names, **own}.items()):
        size = len(content) if isinstance(content, bytes) else int(known[name]["size"])
        try:
            file.write(checker.header(name, size))
        except checker.Refused as why:
            raise RunError(f"{why}, so it cannot lie in a bundle.") from why
        for piece in _pieces(content):
            file.write(piece)
        file.write(bytes(-size % checker.BLOCK))
    file.write(bytes(2 * checker.BLOCK))


def _known(content: Content) -> dict[str, str | int]:
    state, size = hashlib.sha256(), 0
    for piece in _pieces(content):
        state.update(piece)
        size += len(piece)
    return {"sha256": state.hexdigest(), "size": size}


def _pieces(content: Content) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with open(content, "rb") as file:
        while piece := file.read(checker.PIECE):
            yield piece
