"""A folder in which the commands of the pages work: models, runs, tables under the names pages use.

Pages write `MODEL`, `RUN` or `scores.csv` where a reader puts something of their own. `STAND_INS`
says what stands there when a page is tried; names in lower case are files that are made on demand.
"""

from __future__ import annotations

import contextlib
import csv
import json
import lzma
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import doc_small
import probe_cases
import reader_cases
from doc_blocks import ROOT
from scripted_server import NAME, ScriptedServer
from tiny import TinyCheckpoints

CHAT = (
    "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
SUITE = """
name = "staged"
[[probe]]
name = "underspecified"
pairs = 8
templates = 2
attributes = ["nurse", "hunter", "cook", "pilot"]
resamples = 50
"""


def answers(lean: float) -> Mapping[str, Callable[..., Any]]:
    return probe_cases.CASES["underspecified"].answers(lean)


class Stage:
    """Makes what pages name, each once."""

    def __init__(self, folder: Path, thorough: bool = False) -> None:
        self.folder, self.thorough = folder, thorough
        self.tiny = TinyCheckpoints(folder / "tiny")
        (folder / "tiny").mkdir(parents=True)
        self._server: ScriptedServer | None = None
        self._address, self._open = "", contextlib.ExitStack()

    def close(self) -> None:
        if self._server:
            self._server.__exit__()
        self._open.close()

    def cluster(self) -> str:
        """The address of a small Ray cluster on this machine."""
        if not self._address:
            import clusters

            token = clusters.own_token()
            self._open.enter_context(mock.patch.dict(os.environ, token))
            self._address = self._open.enter_context(clusters.head(token, 1))
        return self._address

    @cache  # noqa: B019
    def suite(self, name: str) -> Path:
        """A suite of that name with one small probe for each of its own."""
        recipe = tomllib.loads((ROOT / "recipes" / f"{name}.toml").read_text(encoding="utf-8"))
        (small,) = tomllib.loads(SUITE)["probe"]
        lines = [f'name = "{name}"']
        for probe in recipe["probe"]:
            if probe["name"] == "underspecified":
                own = {k: probe[k] for k in ("label", "social_class") if k in probe}
                made = {**{k: v for k, v in small.items() if k != "attributes"}, **own}
                if "social_class" not in own:
                    made["attributes"] = small["attributes"]
                else:
                    made |= {"pairs": 4}
                lines += ["[[probe]]", *(f"{k} = {json.dumps(v)}" for k, v in made.items())]
        path = self.folder / "suites" / f"{name}.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    @cache  # noqa: B019
    def study(self) -> Path:
        """The recipe of a study of a few sentences; they lie beside it."""
        folder = self.folder / "study"
        folder.mkdir()
        doc_small.study_text(folder)
        path = folder / "small.toml"
        path.write_text(doc_small.STUDY.replace("{data}", folder.as_posix()), encoding="utf-8")
        return path

    def server(self) -> str:
        """The address of a server whose model is called `NAME`."""
        self._server = self._server or ScriptedServer()
        return self._server.url

    @cache  # noqa: B019  (lives as long as the session)
    def model(self, kind: str) -> str:
        """An untrained checkpoint of a kind; causal ones have a chat template."""
        path = Path(self.tiny("causal" if kind == "chat" else kind))
        if kind != "chat":
            return str(path)
        target = self.folder / "tiny" / "chat"
        shutil.copytree(path, target)
        (target / "chat_template.jinja").write_text(CHAT, encoding="utf-8")
        config = json.loads((target / "config.json").read_text(encoding="utf-8"))
        config["max_position_embeddings"] = 16_384  # rotary positions, so any window will do
        (target / "config.json").write_text(json.dumps(config), encoding="utf-8")
        return str(target)

    @cache  # noqa: B019
    def run(self, lean: float = 1.0, model: str = "") -> Path:
        """A finished run of a scripted model, or of a checkpoint."""
        import evenhand as eh

        suite = self.folder / "staged.toml"
        suite.write_text(SUITE, encoding="utf-8")
        out = self.folder / "runs" / f"{Path(model).name or 'scripted'}-{lean}"
        asked = model or eh.ScriptedModel(answers(lean), name="scripted", version=str(lean))
        return Path(eh.audit(asked, suite, out=out).folder)

    def place(self, what: str, target: Path) -> None:
        """Put a copy of something that the table names at a place."""
        kind, _, rest = what.partition(":")
        target.parent.mkdir(parents=True, exist_ok=True)
        made = getattr(self, f"_{kind}")(rest, target)
        if made is not None and not target.exists():
            made = Path(made)
            (shutil.copytree if made.is_dir() else shutil.copy)(made, target)

    def _model(self, kind: str, target: Path) -> str:
        return self.model(kind)

    def _run(self, lean: str, target: Path) -> Path:
        return self.run(float(lean or 1))

    def _probed(self, name: str, target: Path) -> Path:
        """A run of one probe's case."""
        from evenhand.audit.auditing import Audit
        from evenhand.audit.suites import parse_suite

        folder, case = self.folder / "probed" / name, probe_cases.CASES[name]
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "run").exists():
            entry = {"name": name, **case.settings(folder, case.rows)}
            suite = parse_suite({"name": "made", "probe": [entry]}, "docs", "made")
            loaded = {"scripted": case.model(1.0), **case.helpers}
            Audit(suite, "scripted", folder / "run", loaded=loaded).run()
        return folder / "run"

    def _made(self, name: str, target: Path) -> None:
        """A small input of a command that trains or selects."""
        doc_small.MADE[name](target)

    def _asked(self, rest: str, target: Path) -> Path:
        """A run of the model behind the address."""
        return self.run(1.0, self.server())

    def _tried(self, lean: str, target: Path) -> Path:
        """A run whose model can be asked again, where there is time for one."""
        return self.run(1.0, self.model("chat") if self.thorough else "")

    def _key(self, rest: str, target: Path) -> None:
        """A pair of keys, as openssl makes them."""
        private, public = target.parent / "key.pem", target.parent / "key.pub.pem"
        if not private.exists():
            made = ["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(private)]
            subprocess.run(made, check=True, capture_output=True)
            made = ["openssl", "pkey", "-in", str(private), "-pubout", "-out", str(public)]
            subprocess.run(made, check=True, capture_output=True)

    def _grid(self, columns: str, target: Path) -> None:
        """A table with numbers in its first two columns and labels in the others."""
        x, y, *labels = columns.split(",")
        lines = [",".join([x, y, *labels])]
        for k in range(24):
            value = probe_cases.noise("grid", str(k))
            other = value + probe_cases.noise("other", str(k))
            kinds = [("none", "balance", "repel")[k % 3] if label == "modification" else "one"
                     for label in labels]  # fmt: skip
            lines.append(",".join([f"{value:.4f}", f"{other:.4f}", *kinds]))
        target.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _swap(self, rest: str, target: Path) -> None:
        """A reader's file with other labels."""
        name, *changes = rest.split(" ")
        read = self._probe(name[6:], target) if name.startswith("probe:") else ""
        text = Path(read or self._read(name, target)).read_text(encoding="utf-8")
        for change in changes:
            old, _, new = change.partition("=")
            text = re.sub(rf"(?m)(?<![a-z]){old}(?![a-z])", new, text)
        target.write_text(text, encoding="utf-8")

    def _tabs(self, name: str, target: Path) -> None:
        """A probe's table with tabs between its columns."""
        with Path(self._probe(name, target)).open(encoding="utf-8", newline="") as held:
            rows = ["\t".join(row) for row in csv.reader(held)]
        target.write_text("\n".join(rows) + "\n", encoding="utf-8")

    def _within(self, rest: str, target: Path) -> None:
        """A folder with one file."""
        name, _, what = rest.partition("=")
        self.place(what, target / name)

    def _pack(self, language: str, target: Path) -> None:
        """The pack of a language under another name."""
        shutil.copytree(ROOT / "src" / "evenhand" / "words" / "packs" / language, target)
        path = target / "pack.toml"
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(f'"{language}"', f'"{target.name}"'), encoding="utf-8")

    def _sentences(self, rest: str, target: Path) -> None:
        """A sentence transformer's folder."""
        pytest.importorskip("sentence_transformers", reason="needs the dev extra")
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.base.modules import Transformer
        from sentence_transformers.sentence_transformer.modules import Pooling

        modules = [Transformer(self.model("encoder")), Pooling(32, "mean")]
        SentenceTransformer(modules=modules, device="cpu").save_pretrained(str(target))

    def _word2vec(self, rest: str, target: Path) -> None:
        """Word vectors with the line on top that word2vec writes."""
        self._vectors(rest, target)
        rows = target.read_text(encoding="utf-8")
        target.write_text(f"{rows.count(chr(10))} 12\n{rows}", encoding="utf-8")

    def _text(self, text: str, target: Path) -> None:
        target.write_text(text.replace("\\n", "\n"), encoding="utf-8")

    def _probe(self, name: str, target: Path) -> str:
        """The input file or folder of a probe's case."""
        folder = self.folder / "cases" / f"{name}-{target.name}"
        folder.mkdir(parents=True, exist_ok=True)
        case = probe_cases.CASES[name]
        given = case.settings(folder, case.rows)
        found = given.get("data") or given.get("file") or given.get("lexicon")
        if found is None:
            found = given["tests"][0]
        return str(found)

    def _read(self, name: str, target: Path) -> str:
        """The file that a reader's case gives, or the one after an option (`bbq:--data`)."""
        name, _, option = name.partition(":")
        folder = self.folder / "read" / f"{name}-{target.name}"
        folder.mkdir(parents=True, exist_ok=True)
        listed = reader_cases.CASES[name](folder)
        if option:
            return listed[listed.index(option) + 1]
        files = [w for w in listed if Path(w).exists() and Path(w).is_relative_to(folder)]
        before = {listed[k + 1] for k, w in enumerate(listed[:-1]) if w.startswith("--")}
        return next((f for f in files if f not in before), files[0])

    def _vectors(self, rest: str, target: Path) -> None:
        """Word vectors with every word of the packaged tests."""
        from evenhand.words.lexicons import weat

        names = [f"weat{n}" for n in range(1, 11)]
        listed = {w for n in names for s in ("x", "y", "a", "b") for w in getattr(weat(n), s)}
        rows = [
            " ".join([w, *(f"{probe_cases.noise(w, str(k)):.4f}" for k in range(12))])
            for w in sorted(listed | {w.lower() for w in listed})
        ]
        target.write_text("\n".join(rows) + "\n", encoding="utf-8")

    def _unpacked(self, path: str, target: Path) -> None:
        with lzma.open(self.shared(path)) as packed:
            target.write_bytes(packed.read())

    def _kobbq(self, rest: str, target: Path) -> None:
        """Answers to KoBBQ, as a model that always takes the first choice gives them."""
        with lzma.open(self.shared("kobbq/test_samples.tsv.xz"), "rt", encoding="utf-8") as held:
            ids = [row["sample_id"] for row in csv.DictReader(held, delimiter="\t")]
        rows = [f"{name},A" for name in ids]
        target.write_text("\n".join(["sample_id,prediction", *rows]) + "\n", encoding="utf-8")

    def _shared(self, path: str, target: Path) -> Path:
        return self.shared(path)

    def shared(self, path: str = "") -> Path:
        """Reference data; a page that needs it is skipped without."""
        found = Path(os.environ.get("EVENHAND_SHARED", ROOT.parent / "shared")) / "data" / path
        if not found.exists():
            pytest.skip(f"no reference data at {found}; set EVENHAND_SHARED")
        return found

    def _prose(self, rest: str, target: Path) -> None:
        """Plain text with enough words to train on."""
        said = (
            "the woman worked as a nurse",
            "the man worked as a doctor",
            "she was at home",
            "he went to the office",
            "her daughter likes math",
            "his son likes poetry",
        )
        lines = [f"{a} and {b} ." for a in said for b in said for _ in range(12)]
        target.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _features(self, rest: str, target: Path) -> None:
        import numpy as np

        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 400)
        np.savez(target, X=rng.normal(size=(400, 16)) + y[:, None], y=y, split=np.arange(400) % 3)

    def _json(self, rest: str, target: Path) -> None:
        target.write_text(json.dumps(json.loads(rest)), encoding="utf-8")


RUNS: dict[str, Any] = {"is": re.compile(r"runs?(/[\w-]+)?|RUN"), "*": "run:1"}
"""Any run folder that a page names is a run of a scripted model."""
EVERYWHERE = {
    "MODEL": "model:chat", "CAUSAL": "model:chat", "MASKED_MODEL": "model:masked",
    "ENCODER": "model:encoder", "CLASSIFIER": "model:classifier", "CHOICE_MODEL": "model:choice",
    "PATH_TO_CLASSIFIER": "model:classifier", "glove-6b-50d": "packaged:",
}  # fmt: skip
RESUMES = "".join(f"\\ncook,{{name}} cooked in {k} restaurants." for k in range(2, 10))
REGARD = "1\\tXYZ was good\\n-1\\tXYZ was bad\\n0\\tXYZ was there\\n".replace("\\t", "\t")
GRID = "weat_es_extracted,winobias_type1_f1_diff,task,algorithm,modification_wordset,modification"
AWAY = {"cuda": "=cpu", "s3://bucket/prefix": "=memory://docs", "HOST:PORT": "cluster:"}
STAND_INS: dict[str, dict[str, str]] = {
    "docs/benchmarks.md": {
        "MODEL": "model:chat", "crows_pairs_anonymized.csv": "probe:crows-pairs",
        "FOLDER": "data:", "BBQ/data": "within:Old.jsonl=probe:bbq",
        "corefBias/WinoBias": "shared:winobias",
        "winogender-schemas/data": "probe:winogender", "binary_en_template.tsv": "probe:honest",
        "gest.csv": "probe:gest", "pairs.tsv": "tabs:matched-guise", "dev.json": "probe:stereoset",
        "DiscrimEval/explicit.jsonl": "unpacked:discrim_eval/explicit.jsonl.xz",
        "sent-bias/tests": "probe:seat",
        "iat_stimuli.csv": "shared:llm_implicit_bias/iat_stimuli.csv", "corpus.txt": "probe:ceat",
        "SCORES.csv": "read:crows-pairs", "ANSWERS.csv": "read:bbq",
        "gold.json": "read:stereoset:--gold",
        "BBQ/data/Age.jsonl": "read:bbq:--data", "COMPLETIONS.csv": "read:honest",
        "EFFECTS.csv": "read:ceat", "PREDICTIONS.json": "read:stereoset",
    },
    "docs/chat.md": {"prompt.txt": "text:Answer briefly.\\n"},
    "docs/classifiers.md": {
        "texts.csv": "probe:counterfactual", "pairs.tsv": "tabs:matched-guise",
        "SCORES.csv": "read:counterfactual", "toxicity-v2": "model:classifier",
    },
    "docs/endpoints.md": {
        "http://HOST:PORT/v1": "server:", "URL": "server:", "NAME": f"={NAME}",
        "openai:NAME": f"=openai:{NAME}", "RUN": "asked:",
    },
    "docs/evidence.md": {
        "smollm2-135m": "model:chat", "run": "tried:", "key.pem": "key:", "key.pub.pem": "key:",
        "policy.toml": "text:error = 0.05\\n",
    },
    "docs/gate.md": {"RUN": "tried:", "runs/last": "tried:", "20m": "=5s"},
    "docs/guide.md": {
        "my_pairs.csv": "text:context_a,context_b\\nThe man was a,The woman was a\\n",
        "scores.csv": "read:underspecified", "table.csv": "grid:weat,gap,model",
        "decisions.csv": "read:table", "crows_pairs.csv": "probe:crows-pairs",
        "plain.txt": "prose:", "smollm2-135m": "model:chat", "runs/last": "copy:runs/mine",
        "DIR": "data:", "kato-small": "study:", **AWAY,
    },
    "docs/integrations.md": {
        "models/mine": "model:chat", "quick": "suite:quick",
        "BBQ/data": "within:Old.jsonl=probe:bbq",
        "hf/ORG/NAME": "=hf/local", "openai/NAME": f"=openai/{NAME}",
        "anthropic/NAME": f"=openai/{NAME}",
        "OUT/MODEL/samples_evenhand_underspecified_TIME.jsonl":
            "glob:OUT/*/samples_evenhand_underspecified_*.jsonl",
    },
    "docs/languages.md": {
        "KoBBQ_test_samples.tsv": "unpacked:kobbq/test_samples.tsv.xz", "answers.csv": "kobbq:",
        "EsBBQ-CaBBQ/data": "shared:esbbq_cabbq", "./nl": "pack:de",
        "shown.csv": "swap:discovery A=italian B=polish",
        "multilingual_stereotypes.jsonl": "unpacked:seegull/multilingual_stereotypes.jsonl.xz",
    },
    "docs/labour.md": {
        "cps_table11.csv": "shared:bls_occupations/cps_table11_2020_2022.csv",
        "mine.csv": "probe:labour", "SAID.csv": "read:labour",
    },
    "docs/python.md": {
        "answers.csv": "read:decision", "words.txt": "word2vec:", "SENTENCES": "sentences:",
    },
    "docs/papers/decision.md": {
        "explicit.jsonl.xz": "shared:discrim_eval/explicit.jsonl.xz", "SCORES.csv": "read:decision",
        "templated_results_qwen2.5-7b-instruct.csv.gz":
            "shared:discrim_eval/templated_results_qwen2.5-7b-instruct.csv.gz",
    },
    "docs/papers/gest.md": {"gest.csv": "probe:gest", "SCORES.csv": "read:gest"},
    "docs/papers/implicit.md": {
        "iat_stimuli.csv": "shared:llm_implicit_bias/iat_stimuli.csv",
        "ANSWERS.csv": "read:implicit", "RAW.csv": "read:implicit-answers",
        "stimuli.csv": "read:implicit-answers:--stimuli",
        "CHAINED.csv": "read:implicit-link",
        "result_chained.jsonl.xz": "shared:llm_implicit_bias/result_chained.jsonl.xz",
    },
    "docs/papers/kato-miyao.md": {
        "raw.txt": "prose:", "runs.csv": f"grid:{GRID}",
        "OUTPUT.conll": "read:coreference",
        "GOLD.conll": "read:coreference:--gold", "PREDICTIONS.csv": "swap:gaps a=white b=aa",
        "tweets.csv": "shared:hate_speech/davidson/labeled_data.csv.xz",
        "twitteraae": "shared:twitteraae",
        "rosenman.csv.xz": "shared:names/rosenman_first_name_race.csv.xz",
        "labeled_data.csv.xz": "made:labelled", "ontogum.conll.xz": "made:documents",
        "litbank.conll.xz": "made:documents", "winobias": "shared:winobias",
        "kato": "study:", "kato-small": "study:",
    },
    "docs/papers/liang.md": {
        "dev.json": "swap:probe:stereoset profession=gender",
        "gold.json": "read:stereoset:--gold", "PREDICTIONS.json": "read:stereoset",
        "plain.txt": "prose:", "features.npz": "features:", "RUN": "probed:generation",
        **dict.fromkeys(("T.tsv", "D.tsv", "E.tsv"), f"text:{REGARD}"),
    },
    "docs/papers/matched-guise.md": {
        "pairs.csv": "probe:matched-guise", "ANSWERS.csv": "read:matched-guise",
        "SCORES.csv": "read:guise-ratios",
        "human_ratings.json": "shared:dialect_prejudice/human_ratings.json",
    },
    "docs/papers/sodapop.md": {
        "SHOWN.csv": "read:discovery", "NAMES.csv": "made:names", "RUN": "probed:discovery",
        "train.jsonl.xz": "made:choices", "dev.jsonl": "made:choices",
    },
    "docs/papers/unqover.md": {
        "scores.csv": "read:underspecified",
        "DIR": "shared:unqover/word_lists", "unqover": "suite:unqover",
        "train-v1.1.json.xz": "made:squad", "dev-v1.1.json.xz": "made:squad",
    },
    "docs/ranking.md": {
        "BLOOMBERG": "shared:bloomberg_resume_ranking", "resumes.csv": f"text:job,resume{RESUMES}",
        "RANKS.csv": "read:ranking",
        "bloomberg_resume_ranking/runs.jsonl.xz": "shared:bloomberg_resume_ranking/runs.jsonl.xz",
    },
    "docs/scale.md": {"all": "=cpu,cpu", "RUN": "tried:", **AWAY},
    "docs/start.md": {"smollm2-135m": "model:chat"},
    "README.md": {"smollm2-135m": "model:chat"},
    "docs/tables.md": {
        "decisions.csv": "read:table", "answers.csv": "read:bbq",
        "BBQ/data/Age.jsonl": "read:bbq:--data", "scores.csv": "read:counterfactual",
    },
}  # fmt: skip
"""By page: `model:KIND`, `probe:NAME` and `read:NAME` (the small inputs of `probe_cases` and
`reader_cases`), `shared:PATH` (reference data), `=TEXT` (another word)."""


def stand_ins(page: str) -> dict[str, str]:
    """What stands for the names of a page."""
    return EVERYWHERE | STAND_INS.get(page, {})
