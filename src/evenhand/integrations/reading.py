"""`evenhand measure log FILE`: a log of lm-eval or Inspect, measured by the probe that fits it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, PrivateAttr

from evenhand.errors import DataError
from evenhand.integrations.answers import Tokens, answers_in, asked_in, ours
from evenhand.integrations.inspect.logs import is_inspect, read_inspect
from evenhand.integrations.lm_eval.samples import is_samples, read_samples
from evenhand.opening import json_lines
from evenhand.probes.logs import Log
from evenhand.probes.reading import Claims, Reader, Result, Shown, number, readers, span
from evenhand.runs.controls import CANNOT, headline
from evenhand.runs.finding import Finding

FIELDS = ("id", "metric", "value", "low", "high", "p", "q", "n", "detected", "counts", "sentence")


def read_log(path: Path) -> Log:
    """A log of any program that is known here.

    Raises:
        DataError: it is none, or a damaged one.
    """
    if path.is_dir() or not path.exists():
        what = "is a folder" if path.is_dir() else "no such file"
        raise DataError(
            f"{path}: {what}. Accepted: samples_*.jsonl of lm-eval (--log_samples), a .eval or "
            f".json log of Inspect."
        )
    if is_inspect(path):
        return read_inspect(path)
    first = next(islice(json_lines(path, "a log of lm-eval or Inspect"), 1), (0, None))[1]
    if is_samples(first):
        return read_samples(path)
    raise DataError(
        f"{path}: is not a log that evenhand knows. Accepted: samples_*.jsonl of lm-eval "
        "(--log_samples), a .eval or .json log of Inspect. Tables of scores are read by: evenhand "
        "measure NAME"
    )


@dataclass(frozen=True, kw_only=True)
class LogResult(Result):
    """What one of our probes found in a log of its task."""

    measure: ClassVar[str] = "log"

    probe: str
    model: str
    task: str
    rung: str
    findings: Sequence[Mapping[str, Any]]
    n: int
    settings: Mapping[str, Any]
    control: Mapping[str, Any]

    def shown(self) -> Iterator[Shown]:
        who = f" of {self.model}" if self.model else ""
        yield Shown(f"{self.probe}{who}: {self.n:,} questions, by {self.rung}")
        if self.control["verdict"] == CANNOT:
            yield Shown(headline({self.probe: self.control["reason"]}))
            told: list[Mapping[str, Any]] = []
        else:
            told = [row for row in self.findings if row["detected"]]
            yield from (Shown(str(row["sentence"])) for row in told)
            if not told:
                yield Shown("No difference between groups was detected.")
        head = ("finding", "value", "95 %", "q", "n")
        rows = [
            [
                str(r["id"]),
                number(r["value"], "+.4f"),
                span(r["low"], r["high"]),
                number(r["q"]),
                str(r["n"]),
            ]
            for r in self.findings
            if r["counts"]
        ]
        yield Shown("Findings that count", head, rows)


class LogReader(Reader):
    """A log, given to whoever knows its items."""

    name = "log"
    help = """Numbers from a log of lm-eval or Inspect; the measure that fits is chosen.

    samples_*.jsonl of lm-eval (--log_samples), or a .eval or .json log of Inspect: of our own tasks
    (evenhand tasks, evenhand/NAME), or of tasks whose items a measure here knows.
    """
    positional = ("log",)

    log: Path = Field(description="The log.", json_schema_extra={"metavar": "LOG"})
    tokenizer: str = Field(
        "", description="Model that the likelihoods are of, where the log does not name it."
    )
    counts: Path | None = Field(
        None, description="Numbers of tokens kept by an earlier reading, instead of a tokenizer."
    )
    data: str = Field("", description="The benchmark's own files, where items lack something.")

    _tokens: Tokens | None = PrivateAttr(None)

    def work(self, say: Callable[[str], None]) -> Result:
        result = super().work(say)
        object.__setattr__(result, "called", self.name)
        return result

    def read(self) -> Result:
        log = read_log(self.log.expanduser())
        if ours(log):
            return self._hosted(log)
        given = {"data": self.data}
        fitting = {
            name: found
            for name, reader in readers().items()
            if (found := reader.from_log(log, given)) is not None
        }
        if len(fitting) != 1:
            raise DataError(_unfit(log, list(fitting)))
        return next(iter(fitting.values())).read()

    def _hosted(self, log: Log) -> Result:
        asked = asked_in(log)
        self._tokens = Tokens(self.tokenizer or log.model, log.source, self.counts)
        found = asked.measured(answers_in(log, asked, self._tokens), log.model)
        told = asked.findings(found, log.model or Path(log.source).name)
        result = LogResult(
            probe=asked.probe.name,
            model=log.model,
            task=log.task,
            rung=asked.rung,
            findings=[_row(f) for f in told],
            n=len(log.samples),
            settings={"seed": asked.seed, **self.only("tokenizer")},
            control=asked.control(found).as_dict(),
        )
        # A copy of the log alone does not tell whose tokens were counted.
        told_of = self.model_copy(update={"tokenizer": self.tokenizer or log.model})
        return result.telling(lambda: Claims.of(asked.probe, told_of, log.source, found))

    def kept(self) -> Mapping[str, bytes]:
        counts = self._tokens.as_json() if self._tokens and self.counts is None else b""
        return {"counts": counts} if counts else {}

    def whole(self) -> bool:
        return self.log.is_file() and not self.data


def _row(finding: Finding) -> dict[str, Any]:
    return {name: getattr(finding, name) for name in FIELDS}


def _unfit(log: Log, fitting: Sequence[str]) -> str:
    fields = ", ".join(sorted(map(str, log.samples[0].doc))) or "none"
    task = f" (task {log.task!r})" if log.task else ""
    if fitting:
        return f"{log.source}{task}: fits several measures: {', '.join(fitting)}."
    return (
        f"{log.source}{task}: no measure knows items with the fields {fields}, and nothing is "
        f"guessed. Accepted: our own tasks (evenhand tasks), and items of benchmarks as published, "
        f"e.g. sent_more, sent_less, stereo_antistereo, bias_type. A table with the answers is "
        f"read by: evenhand measure table"
    )
