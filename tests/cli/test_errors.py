"""A user's mistake is one paragraph on standard error, exit 2, and nothing half-written."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from in_process import evenhand


def assert_one_paragraph(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("evenhand: ")
    assert done.stderr.strip().count("\n") <= 1
    for part in parts:
        assert part in done.stderr
    assert done.stdout == ""


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    path = tmp_path / "v.txt"
    rng = np.random.default_rng(0)
    words = ["he", "she", "math", "art", "poem", "sum"]
    rows = [f"{w} " + " ".join(f"{x:.4f}" for x in rng.normal(size=5)) for w in words]
    path.write_text("\n".join(rows) + "\n")
    return path


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    done = evenhand("measure", "underspecified", "none.csv", "--json", "-", cwd=tmp_path)
    assert_one_paragraph(done, "none.csv")


def test_an_unknown_model_gets_a_suggestion_and_leaves_no_folder(tmp_path: Path) -> None:
    done = evenhand("audit", "smollm2-135", "--out", "r", cwd=tmp_path)
    assert_one_paragraph(done, "unknown model 'smollm2-135'", "Did you mean 'smollm2-135m'")
    assert not (tmp_path / "r").exists()


def test_a_missing_model_file_is_named(tmp_path: Path) -> None:
    done = evenhand("audit", "./none.gguf", "--out", "r", cwd=tmp_path)
    assert_one_paragraph(done, "no such file or folder", "evenhand ls models")


def test_the_wrong_kind_of_model_for_a_probe_says_what_fits(tmp_path: Path, vectors: Path) -> None:
    done = evenhand("probe", "divergence", str(vectors), "--out", "r", cwd=tmp_path)
    assert_one_paragraph(done, "is of kind 'vectors'", "needs divergence", "evenhand ls probes")
    assert not (tmp_path / "r").exists()


def test_an_unknown_attribute_axis_and_setting_get_suggestions(tmp_path: Path, tiny: Any) -> None:
    causal = tiny("causal")
    done = evenhand(
        "probe", "underspecified", causal, "--set", 'attributes=["nurze"]', "--out", "r",
        cwd=tmp_path,
    )  # fmt: skip
    assert_one_paragraph(done, "unknown attribute 'nurze'", "Did you mean 'nurse'")
    done = evenhand("probe", "underspecified", causal, "--set", "pears=3", cwd=tmp_path)
    assert_one_paragraph(done, "unknown setting 'pears'", "Did you mean 'pairs'")
    done = evenhand("probe", "underspecified", causal, "--set", "pairs=none", cwd=tmp_path)
    assert_one_paragraph(done, "pairs", "'none'")


def test_a_probe_given_as_a_suite_is_told_its_command(tmp_path: Path, vectors: Path) -> None:
    done = evenhand("audit", str(vectors), "--suite", "association", "--out", "r", cwd=tmp_path)
    assert_one_paragraph(done, "'association': is the name of a probe", "evenhand probe assoc")


def test_an_empty_name_is_no_model_in_this_folder(tmp_path: Path) -> None:
    assert_one_paragraph(evenhand("audit", "", cwd=tmp_path), "model '': is empty", "ls models")


def test_malformed_toml_is_shown_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('name = "s"\n[[probe]]\nname = \n')
    done = evenhand("audit", "--suite", "s.toml", "--out", "r", cwd=tmp_path)
    assert_one_paragraph(done, "s.toml", "line 3")
    assert not (tmp_path / "r").exists()


def test_an_unknown_suite_key_and_probe_are_named_with_their_place(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('[[probe]]\nname = "divergance"\n')
    done = evenhand("check", "--suite", "s.toml", cwd=tmp_path)
    assert_one_paragraph(done, "s.toml, probe[1]", "Did you mean 'divergence'")
    (tmp_path / "s.toml").write_text("titel = 'x'\n")
    assert_one_paragraph(
        evenhand("check", "--suite", "s.toml", cwd=tmp_path), "Did you mean 'title'"
    )


def test_a_word_set_that_is_empty_after_removal_gets_a_reason_not_a_crash(
    tmp_path: Path, vectors: Path
) -> None:
    sets = '{"t": {"x": ["math", "sum"], "y": ["poem", "art"], "a": ["he"], "b": ["zzz"]}}'
    (tmp_path / "t.json").write_text(sets)
    done = evenhand(
        "measure", "association", "--vectors", str(vectors), "--tests", "t.json", "--json", "-",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "none of its 1 words has a vector" in done.stdout
    assert "NaN" not in done.stdout


def test_nan_scores_are_counted_and_located(tmp_path: Path) -> None:
    rows = "template,attribute,first,second,negated,score_first,score_second\n"
    (tmp_path / "t.csv").write_text(rows + "t,a,x,y,0,nan,0.5\nt,a,y,x,0,0.5,0.5\n")
    done = evenhand("measure", "underspecified", "t.csv", "--json", "-", cwd=tmp_path)
    assert_one_paragraph(done, "score_first", "row 1")


def test_vectors_that_are_not_utf8_say_where_and_what_to_try(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_bytes(b"ok 1 2 3\ncaf\xe9 1 2 3\n")
    done = evenhand(
        "measure", "association", "--vectors", "v.txt", "--tests", "weat7", cwd=tmp_path
    )
    assert_one_paragraph(done, "v.txt", "latin-1")


def test_a_pickle_offered_as_vectors_is_never_opened(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return os.system, ("touch exploded",)

    for name in ("v.kv", "v.bin", "v.txt"):
        (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
        done = evenhand(
            "measure", "association", "--vectors", name, "--tests", "weat7", cwd=tmp_path
        )
        assert_one_paragraph(done, name)
        assert not (tmp_path / "exploded").exists()


FULL = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))
sys.argv = ["evenhand", *sys.argv[1:]]
from evenhand.cli.main import main
main()
"""


@pytest.mark.usefixtures("limited_files")
def test_a_full_disk_stops_an_audit_without_a_traceback(tmp_path: Path, tiny: Any) -> None:
    settings = ["--set", "pairs=6", "--set", "templates=1", "--set", 'attributes=["nurse"]']
    done = subprocess.run(
        [
            sys.executable, "-c", FULL, "probe", "underspecified", tiny("causal"), *settings,
            "--out", "r",
        ],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert re.search(r"cannot (write|be written)", done.stderr)
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "r").rglob("*.tmp"))


def test_a_bad_setting_form_and_budget_are_explained(tmp_path: Path, tiny: Any) -> None:
    causal = tiny("causal")
    assert_one_paragraph(
        evenhand("probe", "underspecified", causal, "--set", "pairs", cwd=tmp_path), "name=value"
    )
    done = evenhand("audit", causal, "--budget", "soon", cwd=tmp_path)
    assert_one_paragraph(done, "--budget 'soon'", "5m")


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    for command in ("show", "resume", "report"):
        assert_one_paragraph(evenhand(command, ".", cwd=tmp_path), "no run.json there")


def test_an_unknown_command_is_a_usage_error(tmp_path: Path) -> None:
    assert evenhand("adit", cwd=tmp_path).returncode == 2


@pytest.mark.parametrize(
    ("target", "why"),
    [("nowhere/x.json", "there is no folder 'nowhere'"), ("", "expected a file"),
     (".", "expected a file")],
)  # fmt: skip
def test_a_file_for_results_is_checked_before_the_work(
    target: str, why: str, tmp_path: Path
) -> None:
    done = evenhand("audit", "no-such-model", "--out", "r", "--json", target, cwd=tmp_path)
    assert_one_paragraph(done, f"--json '{target}'", why)


def test_a_negative_seed_is_refused(tmp_path: Path) -> None:
    done = evenhand("audit", "no-such-model", "--seed", "-1", "--out", "r", cwd=tmp_path)
    assert done.returncode == 2
    assert "--seed" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_empty_store_is_no_store(tmp_path: Path) -> None:
    done = evenhand("audit", "no-such-model", "--store", "", "--out", "r", cwd=tmp_path)
    assert_one_paragraph(done, "--store '': names no place", "s3://bucket/prefix")
    assert not (tmp_path / "r").exists()


def test_outputs_that_cannot_be_written_name_another_place(tmp_path: Path) -> None:
    import made_runs

    run = made_runs.ordinary(tmp_path / "run")
    (tmp_path / "file").write_text("")
    for command in (["export", "--format", "csv"], ["report"]):
        done = evenhand(command[0], str(run.folder), *command[1:], "--out", "file/below/x",
                        cwd=tmp_path)  # fmt: skip
        assert_one_paragraph(done, "file/below", "Choose another place with: --out")


def test_too_little_memory_is_one_paragraph(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from evenhand.cli import main

    def app() -> None:
        np.empty((140, 10**12))

    monkeypatch.setattr(main, "app", app)
    with pytest.raises(SystemExit) as seen:
        main.main()
    assert seen.value.code == 2
    assert "not enough memory (Unable to allocate" in capsys.readouterr().err


TERMINATED = """
import os, signal, sys, threading
from pathlib import Path
from evenhand.cli.run import interruptible
folder = Path(sys.argv[1])
folder.mkdir()
(folder / "run.json").write_text("{}")
with interruptible(folder):
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
    threading.Event().wait(30)
"""


def test_a_time_limit_of_a_cluster_is_told_how_to_go_on(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TERMINATED, str(tmp_path / "my run")],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert f"Resume with: evenhand resume '{tmp_path}/my run'" in done.stderr
