"""One file holds a run as evidence; a changed byte, number or document is noticed."""

from __future__ import annotations

import json
import random
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.errors import ModelError, RunError, SpecError
from evenhand.evidence import checker
from evenhand.evidence.bundling import _write
from evenhand.evidence.canonical import canonical
from evenhand.evidence.signing import sign
from evenhand.runs.record import Run
from in_process import evenhand

Made = tuple[Run, eh.ScriptedModel]


def unpacked(bundle: Path, folder: Path) -> Path:
    with tarfile.open(bundle) as tar:
        tar.extractall(folder, filter="data")
    return folder


def packed(folder: Path, out: Path) -> Path:
    """The files of an unpacked bundle with fresh hashes, as a forger would make them."""
    names: dict[str, Any] = {
        p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()
    }
    for own in checker.OWN:
        names.pop(own, None)
    with open(out, "wb") as file:
        about = json.loads((folder / "manifest.json").read_text())["about"]
        _write(file, names, about, None)
    return out


def test_a_bundle_is_a_plain_tar_file_and_all_of_it_holds(signed: Path, bbq: Made) -> None:
    with tarfile.open(signed) as tar:
        names = tar.getnames()
        manifest = json.load(tar.extractfile("manifest.json") or sys.stdin)
    for name in ("verify.py", "verdict.json", "scenarios.json", "statement.json", "run/run.json"):
        assert name in names
    assert any(n.startswith("run/scores/") for n in names)
    assert any(n.startswith("run/inputs/") for n in names)
    about = manifest["about"]
    assert about["model"]["fingerprint"] == bbq[1].fingerprint
    assert about["environment"]["numpy"]
    assert any("association" in line for line in about["not_measured"])
    found = eh.verify(signed, key=signed.with_name("key.pub.pem"))
    assert found.as_dict() | {"about": {}} == {
        "ok": True, "findings_equal": True, "hashes_equal": True, "signature": "valid",
        "signer": found.signer, "reason": "", "about": {}, "elsewhere": "",
    }  # fmt: skip


def test_the_same_run_gives_the_same_bytes(bbq: Made, tmp_path: Path) -> None:
    one, two = (eh.bundle(bbq[0], tmp_path / name) for name in ("a.tar", "b.tar"))
    assert one.read_bytes() == two.read_bytes()


def test_a_thousand_flipped_bytes_are_all_noticed(signed: Path, tmp_path: Path) -> None:
    raw = signed.read_bytes()
    draw, path = random.Random(0), tmp_path / "flipped.tar"
    for place in [draw.randrange(len(raw)) for _ in range(1_000)]:
        other = raw[place] ^ (1 << draw.randrange(8))
        path.write_bytes(raw[:place] + bytes([other]) + raw[place + 1 :])
        told = checker.check(path)
        assert not told["hashes_equal"] or told["signature"] == "invalid", place


@pytest.mark.parametrize("size", [0, 100, 512, 5_000, -1, -512, -1_024])
def test_a_bundle_cut_short_is_refused(signed: Path, tmp_path: Path, size: int) -> None:
    path = tmp_path / "cut.tar"
    path.write_bytes(signed.read_bytes()[:size])
    assert not eh.verify(path).ok


def test_bytes_behind_the_end_are_refused(signed: Path, tmp_path: Path) -> None:
    path = tmp_path / "more.tar"
    path.write_bytes(signed.read_bytes() + bytes(1_024))
    assert not eh.verify(path).hashes_equal


def test_the_verifier_of_the_bundle_needs_nothing_but_python(signed: Path, tmp_path: Path) -> None:
    script = unpacked(signed, tmp_path) / "verify.py"
    key = signed.with_name("key.pub.pem")
    words = [sys.executable, "-I", "-S", str(script), str(signed), "--key", str(key)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "signature    valid" in ran.stdout
    other = tmp_path / "other.tar"
    other.write_bytes(signed.read_bytes().replace(b'"passed"', b'"failed"', 1)[:-1] + b"x")
    assert (
        subprocess.run([*words[:4], str(other)], capture_output=True, check=False).returncode == 1
    )


def test_no_torch_is_needed(signed: Path) -> None:
    code = (
        "import sys\nfor name in ('torch', 'transformers'): sys.modules[name] = None\n"
        "from evenhand.cli.main import main\n"
        f"sys.argv = ['evenhand', 'verify', {str(signed)!r}, '--json', '-']\nmain()"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["findings_equal"] is True


def test_a_changed_finding_with_fresh_hashes_does_not_follow(signed: Path, tmp_path: Path) -> None:
    folder = unpacked(signed, tmp_path / "u")
    path = folder / "run" / "findings.json"
    held = json.loads(path.read_text())
    held["findings"][0]["value"] += 1e-9
    path.write_text(json.dumps(held, indent=1, ensure_ascii=False) + "\n")
    facts = json.loads((folder / "run" / "run.json").read_text())
    for key in ("files", "sha256"):
        facts.pop(key)
    (folder / "run" / "run.json").write_text(json.dumps(facts))
    found = eh.verify(packed(folder, tmp_path / "forged.tar"))
    assert found.hashes_equal
    assert not found.findings_equal
    assert found.reason == "findings.json does not follow from the scores"


def test_elsewhere_last_digits_may_differ_and_nothing_else(signed: Path, tmp_path: Path) -> None:
    folder = unpacked(signed, tmp_path / "u")
    path, record = folder / "run" / "findings.json", folder / "run" / "run.json"
    raw, facts = path.read_text(), json.loads(record.read_text())
    number = str(json.loads(raw)["findings"][0]["p"])
    assert len(number) > 12
    for key in ("files", "sha256"):
        facts.pop(key)
    facts["environment"]["numpy"] = "1.0"
    record.write_text(json.dumps(facts))
    for new, holds in ((number[:-1] + str(9 - int(number[-1])), True), ("0.5", False)):
        path.write_text(raw.replace(number, new, 1))
        found = eh.verify(packed(folder, tmp_path / "other.tar"))
        said = found.reason.startswith("findings.json does not follow from the scores (computed")
        assert said is not holds
        assert ("instead of 1.0" in found.elsewhere) is holds


@pytest.mark.parametrize("name", ["verdict.json", "scenarios.json", "statement.json"])
def test_a_changed_document_does_not_follow(signed: Path, tmp_path: Path, name: str) -> None:
    folder = unpacked(signed, tmp_path / "u")
    held = json.loads((folder / name).read_text())
    (folder / name).write_bytes(canonical({**held, "outcome": "passed", "extra": 1}))
    found = eh.verify(packed(folder, tmp_path / "forged.tar"))
    assert found.hashes_equal
    assert found.reason == f"{name} does not follow from the findings"


def test_a_policy_and_what_a_person_states_are_part_of_it(bbq: Made, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text('require = "within-margin"\n[margins]\n"bbq/*" = 0.9\n')
    (tmp_path / "stated.toml").write_text(
        '[[scenario]]\nfinding = "bbq/*"\nhazard = "An applicant is taken for unsuited."\n'
        'mitigation = "Names are removed."\nreview_trigger = "new weights"\n'
    )
    both = {"policy": tmp_path / "policy.toml", "scenarios": tmp_path / "stated.toml"}
    file = eh.bundle(bbq[0], tmp_path / "own.tar", **both)
    assert eh.verify(file).ok
    folder = unpacked(file, tmp_path / "u")
    verdict = json.loads((folder / "verdict.json").read_text())
    assert verdict["policy"]["require"] == "within-margin"
    rows = json.loads((folder / "scenarios.json").read_text())["scenarios"]
    assert rows
    for row in rows:
        assert set(row) >= {"group", "hazard", "measurement", "threshold", "mitigation",
                            "review_trigger"}  # fmt: skip
        assert row["threshold"]["margin"] == 0.9
        assert row["stated"]["mitigation"] == "Names are removed."
    (folder / "verdict.json").write_bytes(
        canonical({**verdict, "policy": {**verdict["policy"], "baseline": "/etc"}})
    )
    found = eh.verify(packed(folder, tmp_path / "forged.tar"))
    assert not found.findings_equal
    assert "'/etc' is not part of it" in found.reason


def test_a_baseline_becomes_part_of_it_and_is_checked_too(tmp_path: Path) -> None:
    from evidence.conftest import audited

    one, two = (
        audited(tmp_path, "crows-pairs", lean=lean, out=out)[0]
        for out, lean in (("before", 0), ("after", 1))
    )
    file = eh.bundle(two, tmp_path / "worse.tar", baseline=one)
    found = eh.verify(file)
    assert found.ok, found.reason
    assert found.about["verdict"] == eh.gate(two, baseline=one).outcome == "failed"
    folder = unpacked(file, tmp_path / "u")
    next((folder / "baseline" / "scores").iterdir()).unlink()
    assert not eh.verify(packed(folder, tmp_path / "less.tar")).findings_equal
    (tmp_path / "policy.toml").write_text('baseline = "before"\n')
    named = eh.bundle(two, tmp_path / "named.tar", policy=tmp_path / "policy.toml")
    assert named.read_bytes() == file.read_bytes()


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "no \\[\\[scenario"), ('[[scenario]]\nfinding = "x"', "unknown finding 'x'"),
     ('[[scenario]]\nfinding = "bbq/*"\nwho = "me"', "who")],
)  # fmt: skip
def test_scenarios_that_cannot_be_meant_are_refused(
    bbq: Made, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "stated.toml").write_text(text)
    with pytest.raises(SpecError, match=said):
        eh.bundle(bbq[0], tmp_path / "x.tar", scenarios=tmp_path / "stated.toml")


def test_scores_of_another_question_or_none_are_no_evidence(signed: Path, tmp_path: Path) -> None:
    folder = unpacked(signed, tmp_path / "u")
    next((folder / "run" / "scores").iterdir()).unlink()
    found = eh.verify(packed(folder, tmp_path / "forged.tar"))
    assert not found.findings_equal
    assert "are not stored" in found.reason


def test_asking_again_tells_made_up_scores(signed: Path, bbq: Made) -> None:
    held = eh.verify(signed, rescore=2, model=bbq[1], seed=0)
    assert held.ok
    assert held.rescored is not None
    assert held.rescored.largest == 0
    liar = eh.ScriptedModel(
        {"option": lambda p, o: 0.0, "choose": lambda p, o: [0.5] * len(o.split("\t"))},
        name=bbq[1].name, version="0.5",
    )  # fmt: skip
    found = eh.verify(signed, rescore=1, model=liar, seed=0)
    assert found.findings_equal
    assert not found.ok
    with pytest.raises(ModelError, match="another fingerprint"):
        eh.verify(signed, rescore=1, model=eh.ScriptedModel({}, name="other"))


def test_another_key_or_none_is_told(signed: Path, bbq: Made, tmp_path: Path) -> None:
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "id")]
    subprocess.run(words, check=True)
    found = eh.verify(signed, key=tmp_path / "id.pub")
    assert (found.signature, found.ok) == ("invalid", False)
    assert "another key" in found.reason
    own = eh.bundle(bbq[0], tmp_path / "ssh.tar", sign=tmp_path / "id")
    assert eh.verify(own, key=tmp_path / "id.pub").signature == "valid"
    plain = eh.bundle(bbq[0], tmp_path / "plain.tar")
    assert eh.verify(plain).signature == "none"
    assert not eh.verify(plain, key=tmp_path / "id.pub").ok


def test_ssh_signatures_of_ed25519_need_no_ssh(
    bbq: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others do: an ECDSA key is checked by ssh-keygen."""
    for kind in ("ed25519", "ecdsa"):
        words = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(tmp_path / kind)]
        subprocess.run(words, check=True)
        file = eh.bundle(bbq[0], tmp_path / f"{kind}.tar", sign=tmp_path / kind)
        assert checker.check(file, tmp_path / f"{kind}.pub")["signature"] == "valid"
    monkeypatch.setenv("PATH", "")
    assert checker.check(tmp_path / "ed25519.tar")["signature"] == "valid"
    told = checker.check(tmp_path / "ecdsa.tar")
    assert told["signature"] == "invalid"
    assert "ssh-keygen (OpenSSH) is needed" in told["reason"]
    raw = (tmp_path / "ed25519.tar").read_bytes()
    start = raw.index(b"-----BEGIN SSH")
    draw = random.Random(0)
    for place in [start + draw.randrange(290) for _ in range(100)]:
        other = raw[:place] + bytes([raw[place] ^ (1 << draw.randrange(8))]) + raw[place + 1 :]
        (tmp_path / "flipped.tar").write_bytes(other)
        assert checker.check(tmp_path / "flipped.tar")["signature"] != "valid"


def test_the_commands_say_what_holds_and_exit_by_it(bbq: Made, tmp_path: Path) -> None:
    run = str(bbq[0].folder)
    made = evenhand("bundle", run, "--out", "e.tar", "--json", "-", cwd=tmp_path)
    assert json.loads(made.stdout) == {
        "file": "e.tar", "bytes": (tmp_path / "e.tar").stat().st_size, "signed": False,
    }  # fmt: skip
    told = evenhand("verify", "e.tar", cwd=tmp_path)
    assert told.returncode == 0
    assert "Findings   equal" in told.stdout
    assert "Signature  none" in told.stdout
    raw = (tmp_path / "e.tar").read_bytes()
    (tmp_path / "e.tar").write_bytes(raw[:-2_000] + b"x" + raw[-1_999:])
    told = evenhand("verify", "e.tar", cwd=tmp_path)
    assert told.returncode == 1
    assert "Holds      NO" in told.stdout
    assert "Findings   not computed" in told.stdout
    assert evenhand("verify", "nothing.tar", cwd=tmp_path).returncode == 2
    assert evenhand("verify", "e.tar", "--rescore", "2", cwd=tmp_path).returncode == 2


def test_the_next_command_can_be_pasted(bbq: Made, tmp_path: Path) -> None:
    made = evenhand("bundle", str(bbq[0].folder), "--out", "my own.tar", cwd=tmp_path)
    command = made.stdout.partition("Check it:")[2].strip()
    assert evenhand(*shlex.split(command)[1:], cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("text", ["", "no key", "-----BEGIN PRIVATE KEY-----\nAAAA\n"])
def test_what_is_no_key_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "key").write_text(text)
    with pytest.raises(SpecError, match="Accepted: an Ed25519 private key"):
        sign(b"", tmp_path / "key")


def test_a_run_whose_findings_were_changed_is_not_bundled(tmp_path: Path) -> None:
    from evidence.conftest import audited

    run, _ = audited(tmp_path, "crows-pairs")
    path = run.folder / "findings.json"
    path.write_bytes(path.read_bytes().replace(b"0.", b"1.", 1))
    with pytest.raises(RunError, match="does not follow from the stored scores"):
        eh.bundle(run)


def test_scores_that_are_kept_elsewhere_are_brought_in(tmp_path: Path) -> None:
    from evidence.conftest import audited

    pytest.importorskip("fsspec", reason="needs the store extra")
    run, _ = audited(tmp_path, "crows-pairs", store="memory://evidence")
    assert not list(run.folder.glob("scores/*"))
    file = eh.bundle(run)
    assert file == tmp_path / "run.evidence.tar"
    assert eh.verify(file).ok


def test_settings_of_a_strange_bundle_lead_nowhere(signed: Path, tmp_path: Path) -> None:
    folder = unpacked(signed, tmp_path / "u")
    record = folder / "run" / "run.json"
    facts = json.loads(record.read_text())
    facts.pop("sha256")
    for settings, said in (({"data": "/etc/passwd"}, "not a file of the bundle"),
                           ({"name": "nowhere"}, "unknown probe")):  # fmt: skip
        rows = [{**row, **settings} for row in facts["work"]["suite"]["probe"]]
        work = {**facts["work"], "suite": {**facts["work"]["suite"], "probe": rows}}
        record.write_text(json.dumps({**facts, "work": work}))
        found = eh.verify(packed(folder, tmp_path / "strange.tar"))
        assert said in found.reason


def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="as written by: evenhand bundle RUN"):
        eh.verify(tmp_path / "nothing.tar")
    with pytest.raises(SpecError, match="--rescore 3 --model MODEL"):
        eh.verify(tmp_path / "nothing.tar", rescore=3)
    for name in ("../x", "/x", "a//b", "a/../b", "C:x"):
        assert checker.problem(name)
