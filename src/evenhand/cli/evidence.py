"""Commands for a run as evidence: bundle, verify."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli import output
from evenhand.cli.options import Json, place
from evenhand.opening import understood

if TYPE_CHECKING:
    from evenhand.evidence.verifying import Verified

Bundle = Annotated[
    Path | None, place("--out", help="The file; default: RUN.evidence.tar beside the folder.")
]


def bundle(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    out: Bundle = None,
    sign: Annotated[
        Path | None,
        typer.Option(metavar="KEY", help="Ed25519 private key (PEM or OpenSSH)."),
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="Policy file for the verdict, as for evenhand gate.")
    ] = None,
    scenarios: Annotated[
        Path | None,
        typer.Option(help="TOML: what you state about findings (hazard, mitigation, review)."),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="An earlier run, bundled too: has anything become worse?"),
    ] = None,
    json: Json = None,
) -> None:
    """Write a run as one file of evidence, which anybody can check without the model.

    It holds scores, items, settings, identity of the model, environment, policy and verdict, a
    record of every bias scenario, an in-toto test-result statement, and a verifier in plain Python.
    The findings are computed once more from the scores first; where they differ, nothing is
    written.
    """
    from evenhand.evidence.bundling import bundle as make

    with understood(run):
        path = make(run, out, sign=sign, policy=policy, scenarios=scenarios, baseline=baseline)
    size = path.stat().st_size if path.is_file() else None
    told = {"file": str(path), "bytes": size, "signed": sign is not None}
    if not output.write_json(told, json):
        screen = output.console()
        if size is None:
            screen.print(f"Wrote      {path}", markup=False)
            return
        screen.print(f"Wrote      {path} ({size:,} bytes)", markup=False)
        check = f"Check it:  evenhand verify {shlex.quote(str(path))}"
        screen.print(check, markup=False, soft_wrap=True)


def verify(
    file: Annotated[Path, typer.Argument(help="What evenhand bundle wrote.")],
    key: Annotated[
        Path | None, typer.Option(help="Public key that must have signed it (PEM or OpenSSH).")
    ] = None,
    rescore: Annotated[
        int, typer.Option(metavar="N", help="Ask the model N randomly drawn shards again.")
    ] = 0,
    model: Annotated[str | None, typer.Option(help="The model for --rescore.")] = None,
    tolerance: Annotated[
        float,
        typer.Option(help="How far a score that is asked for again may lie from the stored one."),
    ] = 1e-3,
    seed: Annotated[int | None, typer.Option(help="Seed of the draw for --rescore.")] = None,
    json: Json = None,
) -> None:
    """Check a bundle: exit 0 if all of it holds, 1 if not.

    Checks every byte against the manifest, the signature, and every finding, table and document
    by computing it once more from the scores, without the model. Whether the scores are the model's
    own is shown only by asking it again: --rescore 3 --model MODEL.
    """
    from evenhand.evidence.verifying import verify as check

    found = check(file, key=key, rescore=rescore, model=model, tolerance=tolerance, seed=seed)
    if not output.write_json(found.as_dict(), json):
        _show(found)
    if not found.ok:
        raise typer.Exit(1)


def _show(found: Verified) -> None:
    from evenhand.runs.wording import count

    yes = {True: "equal", False: "DIFFER"}
    signed, other = found.signature, ""
    if found.elsewhere:
        other = f", except for last digits or words: with {found.elsewhere}"
    if signed == "valid":
        signed = f"valid, by key {found.signer}"
    findings = "not computed, since the bytes are not those that were written"
    if found.hashes_equal:
        findings = f"{yes[found.findings_equal]} (computed once more from the scores{other})"
    lines = [
        ("Bytes", yes[found.hashes_equal]),
        ("Findings", findings),
        ("Signature", signed),
    ]
    if found.rescored is not None:
        r = found.rescored
        lines.append(
            (
                "Scores",
                f"{yes[r.equal]} ({count(r.shards, 'shard')}, {count(r.rows, 'row')} asked "
                f"again; largest difference {r.largest:.2g}, other texts {r.other})",
            )
        )
    about = found.about
    if found.findings_equal:  # what a manifest says is shown where it follows from the run
        lines += [
            ("Model", f"{about['model'].get('name', '')} ({about['model'].get('kind', '')})"),
            ("Verdict", f"{about['verdict']}: {about['why']}"),
        ]
        if found.verdict and found.verdict != about["verdict"]:
            older = "The bundle was written by a version without this rule."
            lines.append(("Today", f"{found.verdict}: {found.why} {older}"))
    lines += [("Reason", found.reason)] if found.reason else []
    lines.append(("Holds", "yes" if found.ok else "NO"))
    for name, text in lines:
        output.console().print(f"{name:<11}{output.clean(text)}", markup=False, soft_wrap=True)
