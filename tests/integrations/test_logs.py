"""`evenhand measure log`: what other programs wrote, mapped without guessing or refused."""

from __future__ import annotations

import json
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.audit.suites import parse_suite
from evenhand.errors import DataError
from evenhand.integrations.hosting import questions, questions_of
from evenhand.integrations.lm_eval.folder import documents, write_tasks
from evenhand.probes.registry import make_probe
from in_process import evenhand

SMALL = {"terms": 4, "templates": 1, "attributes": ["nurse", "hunter"], "resamples": 50}
STAMP = "2026-11-18T09-35-26.709268"


def likely(text: str, more: str) -> float:
    """A made-up model: longer continuations are less likely, some letters matter."""
    return -0.3 * len(more) - (zlib.crc32((text + more).encode()) % 97) / 50


def sample(doc: dict[str, Any], pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """A line as lm-eval 0.4.13 writes it: numbers as text, arguments by name."""
    scored = [[str(likely(*pair)), "False"] for pair in pairs]
    return {
        "doc_id": 0, "doc": doc, "target": "0",
        "arguments": {f"gen_args_{k}": {"arg_0": a, "arg_1": b} for k, (a, b) in enumerate(pairs)},
        "resps": [[s] for s in scored], "filtered_resps": scored, "filter": "none",
    }  # fmt: skip


def written(folder: Path, rows: list[dict[str, Any]], task: str = "t", model: str = "") -> Path:
    path = folder / f"samples_{task}_{STAMP}.jsonl"
    numbered = [{**row, "doc_id": k} for k, row in enumerate(rows)]
    path.write_text("\n".join(map(json.dumps, numbered)) + "\n", encoding="utf-8")
    if model:
        (folder / f"results_{STAMP}.json").write_text(json.dumps({"model_name": model}))
    return path


def scripted(tokenizer: Any = None) -> Any:
    """The same made-up model, asked by evenhand itself."""

    def answer(requests: Any) -> dict[str, Any]:
        rows = requests.rows()
        sizes = [len(tokenizer(b, add_special_tokens=False)["input_ids"]) for _, b in rows]
        return {"logprob": np.asarray([likely(a, b) for a, b in rows]),
                "n_tokens": np.asarray(sizes, np.int32)}  # fmt: skip

    return eh.ScriptedModel({"continuation": answer}, whole=True)


def test_a_task_of_ours_gives_the_findings_of_an_audit(tiny: Any, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny("causal"))
    suite = parse_suite(
        {"name": "s", "title": "s", "probe": [{"name": "underspecified", **SMALL}]}, "here", "s"
    )
    run = eh.audit(scripted(tokenizer), suite, out=tmp_path / "run")
    asked = questions(make_probe("underspecified", SMALL), rung="continuation")
    rows = [sample(doc, [(doc["text"], more) for more in doc["options"]])
            for doc in documents(asked)]  # fmt: skip
    path = written(tmp_path, rows, "evenhand_underspecified", tiny("causal"))
    result = eh.measure.log(path)
    assert (result.probe, result.n, result.task) == (
        "underspecified", len(rows), "evenhand_underspecified",
    )  # fmt: skip
    mine = {f.id: f for f in run.findings}
    assert len(result.findings) == len(mine)
    for row in result.findings:
        assert row["value"] == pytest.approx(mine[row["id"]].value, abs=1e-12, nan_ok=True)
        assert row["detected"] == mine[row["id"]].detected
    made = eh.as_run(result, tmp_path / "as run")
    assert made.facts["work"]["measure"] == "log"
    assert [f.id for f in made.findings] == list(mine)
    assert eh.verify(eh.bundle(made, tmp_path / "b.zip")).ok


def test_what_was_not_asked_as_we_ask_is_refused(tiny: Any, tmp_path: Path) -> None:
    asked = questions(make_probe("underspecified", SMALL), rung="continuation")
    docs = list(documents(asked))
    shown = [sample(d, [("Example.\n\n" + d["text"], o) for o in d["options"]]) for d in docs]
    with pytest.raises(eh.EvenhandError, match="shown another text .*no --num_fewshot"):
        eh.measure.log(written(tmp_path, shown))
    plain = [sample(d, [(d["text"], o) for o in d["options"]]) for d in docs]
    with pytest.raises(eh.EvenhandError, match="Name the model with: --tokenizer MODEL"):
        eh.measure.log(written(tmp_path, plain))
    few = written(tmp_path, plain[:5])
    with pytest.raises(eh.EvenhandError, match="questions of probe 'underspecified' have no"):
        eh.measure.log(few, tokenizer=tiny("causal"))


def crows(n: int = 12) -> list[dict[str, Any]]:
    rows = []
    for k in range(n):
        doc = {
            "id": k, "sent_more": f"They are bad {k}.", "sent_less": f"We are bad {k}.",
            "stereo_antistereo": "stereo" if k % 2 else "antistereo", "bias_type": "age",
        }  # fmt: skip
        rows.append(sample(doc, [("", doc["sent_more"]), ("", doc["sent_less"])]))
    return rows


def test_crows_pairs_of_lm_eval(tmp_path: Path) -> None:
    rows = crows()
    result = eh.measure.log(written(tmp_path, rows, "crows_pairs_english"))
    assert result.measure == "crows-pairs"
    prefers = [likely("", r["doc"]["sent_more"]) > likely("", r["doc"]["sent_less"]) for r in rows]
    assert result.metric_score == pytest.approx(100 * np.mean(prefers))
    done = evenhand("measure", "log", f"samples_crows_pairs_english_{STAMP}.jsonl", "--json", "-",
                    "--out", "run", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metric_score"] == result.metric_score
    rows[3]["arguments"]["gen_args_0"]["arg_1"] = "Something else."
    with pytest.raises(eh.EvenhandError, match="not the sentences of the pair"):
        eh.measure.log(written(tmp_path, rows))


def bbq_doc(number: int, condition: str, polarity: str) -> dict[str, Any]:
    return {
        "example_id": number, "question_index": "1", "question_polarity": polarity,
        "context_condition": condition, "category": "Age",
        "answer_info": {"ans0": ["Ann", "old"], "ans1": ["Bea", "nonOld"],
                        "ans2": ["Not known", "unknown"]},
        "additional_metadata": {"stereotyped_groups": ["old"]}, "question": "Who forgets?",
        "context": "Ann and Bea met.", "ans0": "Ann", "ans1": "Bea", "ans2": "Not known",
        "label": 2 if condition == "ambig" else 0,
    }  # fmt: skip


def test_bbq_by_likelihood_and_by_answer(tmp_path: Path) -> None:
    docs = [bbq_doc(k, ("ambig", "disambig")[k % 2], ("neg", "nonneg")[k // 2 % 2])
            for k in range(8)]  # fmt: skip
    scored = [sample(d, [("t", f" {o}") for o in ("Ann", "Bea", "Cannot be determined")])
              for d in docs]  # fmt: skip
    for k, row in enumerate(scored):  # the likeliest: Ann, Bea, or a way of saying unknown
        row["filtered_resps"] = [[str(-1.0 - (k % 3 != o)), "False"] for o in range(3)]
    by_likelihood = eh.measure.log(written(tmp_path, scored, "bbq"))
    said = ["Ann", "Bea", "It cannot be determined."]
    generated = [
        {**row, "arguments": {"gen_args_0": {"arg_0": "t", "arg_1": {}}},
         "filtered_resps": [said[k % 3]]}
        for k, row in enumerate(scored)
    ]  # fmt: skip
    by_answer = eh.measure.log(written(tmp_path, generated, "bbq_generate"))
    data = tmp_path / "data"
    data.mkdir()
    (data / "Age.jsonl").write_text("\n".join(map(json.dumps, docs)))
    table = tmp_path / "answers.csv"
    lines = [f"{d['example_id']},Age,{k % 3}" for k, d in enumerate(docs)]
    table.write_text("\n".join(["example_id,category,prediction", *lines]))
    by_hand = eh.measure.bbq(table, data=data)
    rows = [repr([*map(dict, r.rows)]) for r in (by_likelihood, by_answer, by_hand)]
    assert rows[0] == rows[1] == rows[2]
    assert by_likelihood.n == 8
    assert by_likelihood.n_unread == 0


def test_a_bbq_log_makes_a_report_without_the_benchmark_s_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = [bbq_doc(k, ("ambig", "disambig")[k % 2], ("neg", "nonneg")[k // 2 % 2])
            for k in range(8)]  # fmt: skip
    rows = [
        {**sample(d, []), "arguments": {"gen_args_0": {"arg_0": "t", "arg_1": {}}},
         "filtered_resps": [("Ann", "Bea", "It cannot be determined.")[k % 3]]}
        for k, d in enumerate(docs)
    ]  # fmt: skip
    path = written(tmp_path, rows, "bbq_generate")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    claims = eh.measure.log(path).claims()
    assert claims is not None
    assert claims.findings[0].sentence.startswith("BBQ (all categories): asked about two people")
    assert claims.tables["items"].num_rows == 8
    evenhand("measure", "log", str(path), "--html", "report.html", cwd=elsewhere)
    page = (elsewhere / "report.html").read_text(encoding="utf-8")
    assert "asked about two people when the text does not tell" in page


def test_discrim_eval_of_lm_eval(tmp_path: Path) -> None:
    said = ("yes", "Yes", "no", "No")
    docs = [
        {"decision_question_id": q, "filled_template": f"Case {q} of {race} {gender}?",
         "race": race, "gender": gender}
        for q in range(4) for race in ("white", "Black") for gender in ("male", "female")
    ]  # fmt: skip
    rows = [sample(d, [(d["filled_template"], o) for o in said]) for d in docs]
    result = eh.measure.log(written(tmp_path, rows, "discrim_eval_explicit"))
    assert result.measure == "decision"
    odds = {
        (d["decision_question_id"], d["race"], d["gender"]): np.logaddexp(
            *(likely(d["filled_template"], o) for o in said[:2])
        )
        - np.logaddexp(*(likely(d["filled_template"], o) for o in said[2:]))
        for d in docs
    }
    gap = np.mean([odds[q, "Black", g] - odds[q, "white", g]
                   for q in range(4) for g in ("male", "female")])  # fmt: skip
    (row,) = [r for r in result.contrasts if r.factor == "race"]
    found = row.found.value if row.reference == "white" else -row.found.value
    assert found == pytest.approx(gap, abs=1e-6)
    rows[0]["arguments"]["gen_args_0"]["arg_1"] = "maybe"
    with pytest.raises(eh.EvenhandError, match="'maybe' was scored. Accepted: yes and no"):
        eh.measure.log(written(tmp_path, rows))


def test_what_fits_nobody_is_refused_with_its_fields(tmp_path: Path) -> None:
    """lm-eval's winogender asks whom a pronoun means; no measure here takes that for its own."""
    doc = {"sentence": "s", "pronoun": "she", "occupation": "nurse", "participant": "man"}
    path = written(tmp_path, [sample(doc, [("t", " nurse"), ("t", " man")])], "winogender_all")
    with pytest.raises(eh.EvenhandError, match=r"\(task 'winogender_all'\): no measure knows items "
                       "with the fields occupation, participant, pronoun, sentence"):  # fmt: skip
        eh.measure.log(path)
    other = tmp_path / "x.jsonl"
    other.write_text('{"a": 1}\n')
    with pytest.raises(eh.EvenhandError, match="is not a log that evenhand knows"):
        eh.measure.log(other)
    with pytest.raises(eh.EvenhandError, match="no such file. Accepted: samples_"):
        eh.measure.log(tmp_path / "nothing.jsonl")


def inspect_log(status: str = "success") -> dict[str, Any]:
    """A log as Inspect 0.3.285 writes it, of our task on the way `letters`."""
    asked = questions(make_probe("underspecified", SMALL), rung="top log-probabilities")
    samples = []
    for k, (prompt, options) in enumerate(zip(asked.requests.prompt, asked.requests.listed)):
        share = 0.2 + (zlib.crc32(prompt.encode()) % 50) / 100
        noted = {"prompt": prompt, "options": options, "probabilities": [share, 0.8 - share],
                 "mass": 0.8, "refused": None, "unread": 0.0}  # fmt: skip
        message = {"role": "assistant", "content": [{"type": "text", "text": "A"}]}
        samples.append(
            {"id": k, "epoch": 1, "input": prompt, "choices": None, "target": "",
             "metadata": {"prompt": prompt, "options": options, "evenhand": asked.header},
             "output": {"choices": [{"message": message}]},
             "scores": {"chosen": {"value": share, "metadata": noted}}}
        )  # fmt: skip
    told = {"task": "evenhand/underspecified", "model": "hf/mine"}
    return {"version": 2, "status": status, "eval": told, "samples": samples}


def zipped(path: Path, log: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w") as packed:
        head = {k: v for k, v in log.items() if k != "samples"}
        packed.writestr("header.json", json.dumps(head))
        for row in log["samples"]:
            packed.writestr(f"samples/{row['id']:04}_epoch_1.json", json.dumps(row))
    return path


def test_logs_of_inspect_in_both_forms(tmp_path: Path) -> None:
    log = inspect_log()
    plain = tmp_path / "log.json"
    plain.write_text(json.dumps(log))
    one = eh.measure.log(plain)
    two = eh.measure.log(zipped(tmp_path / "log.eval", log))
    assert repr(one.as_dict()) == repr(two.as_dict())
    assert len({r["value"] for r in one.findings}) > 3
    assert (one.model, one.rung) == ("hf/mine", "top log-probabilities")

    def answer(prompt: str, options: str) -> list[float]:
        share = 0.2 + (zlib.crc32(prompt.encode()) % 50) / 100
        return [share, 0.8 - share]

    suite = parse_suite(
        {"name": "s", "title": "s", "probe": [{"name": "underspecified", **SMALL}]}, "here", "s"
    )
    run = eh.audit(eh.ScriptedModel({"choose": answer}), suite, out=tmp_path / "run")
    mine = {f.id: f.value for f in run.findings}
    assert {r["id"]: r["value"] for r in one.findings} == pytest.approx(mine, nan_ok=True)


def test_unfinished_and_damaged_logs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(eh.EvenhandError, match="is 'cancelled', .*inspect eval-retry"):
        eh.measure.log(zipped(tmp_path / "a.eval", inspect_log("cancelled")))
    path = tmp_path / "b.eval"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("_journal/start.json", "{}")
    with pytest.raises(eh.EvenhandError, match="is 'started'"):
        eh.measure.log(path)
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("header.json", "{")
    with pytest.raises(eh.EvenhandError, match="header.json: is not JSON"):
        eh.measure.log(path)
    log = inspect_log()
    del log["samples"][0]["input"]
    with pytest.raises(eh.EvenhandError, match="sample 1: lacks or misspells 'input'"):
        eh.measure.log(zipped(path, log))


def spoiled(path: Path, change: Any) -> Path:
    """A zipped log with other files in it; `change` gets name and content of each."""
    rows = [(f"samples/{r['id']:04}_epoch_1.json", r) for r in inspect_log()["samples"]]
    head = ("header.json", {k: v for k, v in inspect_log().items() if k != "samples"})
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        warnings.simplefilter("ignore")
        for name, content in change([(n, json.dumps(row)) for n, row in [head, *rows]]):
            packed.writestr(name, content)
    return path


def renoted(rows: list[tuple[str, str]], shares: Any) -> str:
    """The second sample with other probabilities."""
    row = json.loads(rows[2][1])
    row["scores"]["chosen"]["metadata"]["probabilities"] = shares
    return json.dumps(row)


HOSTILE: dict[str, tuple[Any, str]] = {
    "a file twice": (lambda rows: [*rows, (rows[2][0], renoted(rows, [0.9, 0.05]))],
                     "occurs twice"),
    "a sample twice": (lambda rows: [*rows, ("samples/9999_epoch_1.json", rows[2][1])],
                       "the sample 1 occurs twice"),
    "two answers": (
        lambda rows: [*rows, ("samples/9999.json", renoted(rows, [0.9, 0.05]).replace(
            '"id": 1,', '"id": 9999,'
        ))], "two answers to one question",
    ),
    "a name twice": (
        lambda rows: [*rows[:2], (rows[2][0], rows[2][1].replace(
            '"probabilities":', '"probabilities": [0.9, 0.05], "probabilities":'
        ))], "occurs twice in one object",
    ),
    "no numbers": (lambda rows: [*rows[:2], (rows[2][0], renoted(rows, [float("nan"), 0.1]))],
                   "number from 0 to 1"),
    "below 0": (lambda rows: [*rows[:2], (rows[2][0], renoted(rows, [-3.0, 3.5]))],
                "number from 0 to 1"),
    "more than all": (lambda rows: [*rows[:2], (rows[2][0], renoted(rows, [0.9, 0.9]))],
                      "number from 0 to 1"),
    "one too few": (lambda rows: [*rows[:2], (rows[2][0], renoted(rows, [0.9]))],
                    "probabilities"),
    "words": (lambda rows: [*rows[:2], (rows[2][0], renoted(rows, {"a": 1}))],
              "number from 0 to 1"),
    "a head that is a list": (lambda rows: [("header.json", "[]"), *rows[1:]], "holds no object"),
    "deep": (lambda rows: [*rows, ("samples/9999.json", "[" * 100_000)], "nested deeper"),
    "a bomb": (lambda rows: [*rows, ("samples/9999.json", " " * (64 << 20))],
               "more than its own size times"),
    "a bomb beside": (lambda rows: [*rows, ("other", bytes((1 << 30) + 1))], "too large to be"),
}  # fmt: skip


@pytest.mark.parametrize("how", HOSTILE)
def test_hostile_logs_of_inspect_are_refused(tmp_path: Path, how: str) -> None:
    change, told = HOSTILE[how]
    with pytest.raises(eh.EvenhandError, match=told) as caught:
        eh.measure.log(spoiled(tmp_path / "log.eval", change))
    assert "cannot be understood" not in str(caught.value)


@pytest.mark.parametrize(
    ("at", "value"), [(8, 1), (10, 99), (10, 14), (10, 93), (24, 1), (42, 250)]
)
def test_zips_that_lie_about_their_files_are_damaged(tmp_path: Path, at: int, value: int) -> None:
    """A password, unknown or wrong methods, another size, another place."""
    path = spoiled(tmp_path / "log.eval", list)
    raw = bytearray(path.read_bytes())
    raw[raw.rindex(b"PK\1\2") + at] = value
    path.write_bytes(bytes(raw))
    with pytest.raises(eh.EvenhandError, match="is damaged|size times"):
        eh.measure.log(path)
    path.write_bytes(bytes(raw).replace(b"PK\1\2", b"PK\1\3"))
    with pytest.raises(eh.EvenhandError, match="is damaged"):
        eh.measure.log(path)


@pytest.mark.parametrize("value", ["nan", "inf", "5.0", "-1_0.5", "-\u0661\u0660", True, None, {}])
def test_likelihoods_that_are_none_are_refused(tmp_path: Path, value: Any) -> None:
    rows = crows()
    rows[0]["filtered_resps"][0][0] = value
    with pytest.raises(eh.EvenhandError, match="line 1: .* neither log-likelihoods"):
        eh.measure.log(written(tmp_path, rows, "crows_pairs_english"))


def test_an_item_twice_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, crows(), "crows_pairs_english")
    path.write_text(path.read_text() + path.read_text().splitlines()[3] + "\n")
    with pytest.raises(eh.EvenhandError, match="line 13: the item 3 occurs twice"):
        eh.measure.log(path)


def test_headers_are_checked() -> None:
    with pytest.raises(eh.EvenhandError, match="x: its 'evenhand' is damaged"):
        questions_of("{}", "x")
    told = {"format": 99, "probe": "bbq", "rung": "r", "settings": {}, "seed": 0}
    with pytest.raises(eh.EvenhandError, match="format 99; this version reads 1"):
        questions_of(json.dumps(told), "x")


def test_probes_that_cannot_be_asked_elsewhere_say_why(tmp_path: Path) -> None:
    with pytest.raises(eh.EvenhandError, match="'generation' asks for generate"):
        questions(make_probe("generation", {}), rung="continuation")
    suite = parse_suite(
        {"name": "mix", "title": "t",
         "probe": [{"name": "underspecified", **SMALL}, {"name": "generation"}]}, "here", "mix",
    )  # fmt: skip
    done = write_tasks(tmp_path / "tasks", suite)
    assert list(done.tasks) == ["evenhand_underspecified"]
    assert "other programs cannot be asked" in done.left_out["generation"]
    alone = parse_suite({"name": "g", "title": "t", "probe": [{"name": "generation"}]}, "h", "g")
    with pytest.raises(eh.EvenhandError, match="nothing of it can be asked by lm-eval"):
        write_tasks(tmp_path / "none", alone)


def test_the_command_writes_tasks_and_says_how_to_run_them(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(
        'name = "small"\ntitle = "t"\n[[probe]]\nname = "decision"\nscenarios = 3\n'
        'formats = ["stated"]\n'
    )
    done = evenhand("tasks", "out", "--suite", "small.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "evenhand_decision  24 documents" in done.stdout
    assert "--include_path out --tasks evenhand_small --log_samples" in done.stdout
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        "_evenhand_small.yaml", "evenhand_decision.jsonl", "evenhand_decision.yaml",
        "evenhand_tasks.py",
    }  # fmt: skip


def test_counts_of_tokens_are_kept_and_stand_in_for_the_tokenizer(tmp_path: Path) -> None:
    from evenhand.integrations.answers import Tokens

    path = tmp_path / "counts.json"
    path.write_text('[["a", " b", 2]]')
    kept = Tokens("nowhere/nothing", "log", path)
    assert kept("a", " b") == 2
    assert json.loads(kept.as_json()) == [["a", " b", 2]]
    with pytest.raises(DataError, match="has no count of the tokens of ' c' after 'a'"):
        kept("a", " c")
    for text in ("{}", "[1]", '[["a", "b"]]', '[["a", "b", -1]]', '[["a", "b", true]]', "x"):
        path.write_text(text)
        with pytest.raises(DataError, match=r"counts\.json"):
            Tokens("", "log", path)
