"""What a mitigation is: settings that check themselves, a fit, a mitigated model, a judgement.

    fitted = HiddenMitigation(method="leace", axis="gender").fit(model)
    fitted.model                       the mitigated model
    fitted.save("calmer")              a folder that can be given wherever a model can
    fitted.judge(out="run")            before and after on the same items: a run folder

A family (edits of the head, of hidden states, re-weighting, vectors, training) is one module or
folder beside this one and one line of `plugins.BUILT_IN`; other packages add theirs by entry point.
Which family a method means follows from what the families declare (`family_of`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from evenhand import plugins
from evenhand.errors import EvenhandError, ModelError, SpecError, unknown
from evenhand.models.protocol import Model
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding
from evenhand.settings import Asked

if TYPE_CHECKING:
    from evenhand.charts.base import Builder
    from evenhand.runner.progress import Progress
    from evenhand.runs.record import Run

Note = Callable[[str], None]
Floats = npt.NDArray[np.float64]
GROUNDS = "grounds"
GROUNDS_COLUMNS = pa.schema(
    [("name", pa.string()), ("text", pa.string()), ("numbers", pa.list_(pa.float64()))]
)


def quiet(text: str) -> None:
    """Ignore a note."""


def one_of(names: Collection[str]) -> AfterValidator:
    """Accept only these names for a setting, or None; a message suggests the nearest names."""

    def check(value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and value not in names:
            setting = str(info.field_name)
            raise SpecError(unknown(setting, value, names, where=f"--{setting}"))
        return value

    return AfterValidator(check)


@dataclass(frozen=True)
class Judgement:
    """What a mitigation buys and what it costs, on the same items before and after.

    Attributes:
        findings: measured changes; those that are tests say whether they were detected.
        tables: rows behind the charts, by table name; the first are the run's items.
        buys: the answer to "does the mitigation lower the measured gap?".
        costs, sure: what else changed, and how far all this can be trusted, line by line.
        proof: the numbers as JSON values (`--json`).
        grounds: what all of it was computed from; None where the family keeps nothing.
    """

    findings: Sequence[Finding]
    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    buys: str
    costs: tuple[str, ...] = ()
    sure: tuple[str, ...] = ()
    proof: Mapping[str, Any] = field(default_factory=dict)
    measurements: Measurements | None = None


class Mitigation(Asked):
    """Base of all families: frozen settings, unknown settings refused.

    Class attributes:
        name: of the family, as in `plugins` and in saved folders.
        title: the question that its judgement answers.
        methods: what users ask for, and the publication behind each.
        kinds: kinds of model it is for.
        label: the part of a run folder that holds its tables.
        several: whether methods may be given with commas, of which the best is kept.
        only_for: options that not every method of the family takes, and the methods that do.
        exports: whether what is fitted has a form that works without evenhand.
        cards: what its numbers are called and how they are read.
    """

    name: ClassVar[str]
    title: ClassVar[str] = "What does the mitigation buy, and what does it cost?"
    methods: ClassVar[Mapping[str, str]]
    kinds: ClassVar[tuple[str, ...]]
    label: ClassVar[str] = "mitigation"
    several: ClassVar[bool] = False
    only_for: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    exports: ClassVar[bool] = False
    cards: ClassVar[tuple[MetricCard, ...]] = ()

    method: str
    axis: str = Field("gender", description="gender, religion, race; or what the family takes.")
    as_published: bool = Field(False, description="Follow the released code.")
    seed: int = Field(0, ge=0, description="Seed of every draw: same seed, same bytes.")

    @model_validator(mode="after")
    def _known_methods(self) -> Mitigation:
        for method in self.chosen_methods:
            if method not in self.methods:
                raise SpecError(unknown("method", method, self.methods, where="mitigate"))
        return self

    @model_validator(mode="after")
    def _options_of_the_method(self) -> Mitigation:
        """Refuse an option that none of the chosen methods takes: it would be passed over."""
        wrong = [name for name in self.options_set if not self._takes(name, *self.chosen_methods)]
        if wrong:
            raise SpecError(self._not_taken(wrong))
        return self

    @property
    def chosen_methods(self) -> list[str]:
        return self.method.split(",") if self.several else [self.method]

    @property
    def options_set(self) -> list[str]:
        """Return the names of explicitly set settings, in the order of the class."""
        names = (name for name in type(self).model_fields if name in self.model_fields_set)
        return [name for name in names if getattr(self, name) is not None]

    @classmethod
    def _takes(cls, name: str, *methods: str) -> bool:
        return name not in cls.only_for or bool({*cls.only_for[name]} & {*methods})

    def _not_taken(self, wrong: Sequence[str]) -> str:
        """Name the options, what the method takes, and a command that takes them."""
        special = [name for name in self.only_for if self._takes(name, *self.chosen_methods)]
        taken = [f"--{name.replace('_', '-')}" for name in special]
        takes = ", ".join([*taken, "and what every method takes"])
        options, command = self._words(wrong), self._that_takes(wrong)
        it = "it" if len(wrong) == 1 else "them"
        return (
            f"{' '.join(options)}: the method {self.method} does not take {it}. It takes {takes}. "
            f"Leave {it} out{f', or use: {command}' if command else '.'}"
        )

    def _that_takes(self, wrong: Sequence[str]) -> str:
        """Return a command whose method takes every option set, or at least the wrong ones."""
        for options in ([n for n in self.options_set if n in self.only_for], wrong):
            methods = [m for m in self.methods if all(self._takes(name, m) for name in options)]
            if methods:
                method = min(methods, key=lambda m: self.method not in m)  # a-inlp for inlp
                words = ["evenhand mitigate MODEL --method", method, *self._words(options)]
                return " ".join([*words, "--out DIR"])
        return ""

    def _words(self, names: Sequence[str]) -> list[str]:
        values = self.model_dump(mode="json", include={*names})
        return [word for name in names for word in option_words(name, values[name])]

    def changed(self, **changes: Any) -> Self:
        """Return the settings with changes, checked again."""
        settings = {name: getattr(self, name) for name in self.model_fields_set}
        return type(self)(**{**settings, **changes})

    def for_method(self, method: str) -> Self:
        """Return the settings for one method, without the options that it does not take."""
        settings = {name: getattr(self, name) for name in self.model_fields_set}
        taken = {name: value for name, value in settings.items() if self._takes(name, method)}
        return type(self)(**{**taken, "method": method})

    @property
    def paper(self) -> str:
        """Publications of the chosen methods, each once."""
        return "; ".join(dict.fromkeys(self.methods[m] for m in self.chosen_methods))

    def lexicons(self, kind: str) -> list[str]:
        """Return the lexicons whose words a model of this kind is fitted and judged with."""
        return []

    def ready(self) -> None:
        """Refuse files that cannot be read, before a model is loaded."""

    def require_kind(self, model: Model) -> None:
        """Refuse a model of another kind, and say what there is for it."""
        if model.kind in self.kinds:
            return

        others = ", ".join(methods_for(model.kind)) or (
            "nothing, but features taken from it can be changed with: evenhand erase FILE.npz"
        )
        raise ModelError(
            f"model {model.name!r} ({model.kind}) cannot be mitigated by {self.method!r}, which "
            f"is for {' or '.join(self.kinds)} models. For this one there is: {others}."
        )

    def check_export(self, model: Model) -> None:
        """Refuse an export that no outcome of fitting could give, before any work is done."""
        if not self.exports:
            raise SpecError(
                f"--export: {self.method!r} has no form that works without evenhand. Use the "
                "folder of --out instead."
            )

    def fit(
        self, model: Model, *, texts: Sequence[str] | None = None, note: Note = quiet
    ) -> Fitted:
        """Fit on a model, which stays as it is; `texts` stand for a file in the settings."""
        self.require_kind(model)
        return self.fitted(model, list(texts) if texts is not None else None, note)

    def fitted(self, model: Any, texts: list[str] | None, note: Note) -> Fitted:
        """Fit: the part of `fit` that a family implements."""
        raise NotImplementedError

    @classmethod
    def load(cls, folder: Path, base: Model) -> Model:
        """Return the mitigated form of the model that a saved folder was fitted for."""
        raise NotImplementedError

    @classmethod
    def report(cls, measurements: Measurements) -> Judgement:
        """Return the family's judgement from the measurements alone; no model is available."""
        raise NotImplementedError

    @classmethod
    def command_today(cls, words: Sequence[str], settings: Mapping[str, Any]) -> list[str]:
        """Return the command that does a recorded judgement again, in the options of today.

        Args:
            words: the recorded command.
            settings: the recorded settings, which an earlier version may have written.
        """
        return list(words)

    @classmethod
    def charts(cls) -> Mapping[str, Builder]:
        """Return chart builders by table name, in the order of the page."""
        return {}


@dataclass(frozen=True)
class Fitted:
    """What a family fitted for `base`; `facts` say how, and what was measured, as JSON values."""

    settings: Mitigation
    base: Model
    facts: Mapping[str, Any]

    @property
    def asked(self) -> Mitigation:
        """The requested settings, before fitting chose among several methods."""
        return self.settings

    @cached_property
    def model(self) -> Model:
        """The mitigated model."""
        return self.apply(self.base)

    @property
    def title(self) -> str:
        """Name of the mitigated model, such as `minilm + leace gender`."""
        return f"{self.base.name} + {self.settings.method} {self.settings.axis}"

    def apply(self, model: Model) -> Model:
        """Return the mitigated form of the model that this was fitted for; refuse any other."""
        if identity(model) != identity(self.base):
            raise ModelError(
                f"the mitigation was fitted for {self.base.name!r} and does not fit model "
                f"{model.name!r}: other weights, or another chain of mitigations. Fit one for it "
                f"with: evenhand mitigate {model.name} --axis {self.settings.axis}"
            )
        return self.applied(model)

    def applied(self, model: Model) -> Model:
        """Return the mitigated model: the part of `apply` that a family implements."""
        raise NotImplementedError

    def save(self, folder: str | Path) -> None:
        """Write the mitigation with its provenance into a folder that works as a model."""
        raise NotImplementedError

    def export(self, path: Path) -> Mapping[str, Any]:
        """Write a form that works without evenhand, and return facts about what was written."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        from evenhand.runs.html import mapping_page

        asked = self.settings.model_dump(mode="json", exclude_defaults=True)
        chosen = {"method": self.settings.method, "axis": self.settings.axis, **asked}
        steps = (
            "Fitted, not yet judged: .judge() measures both models on the same items; .model "
            "answers as any model does; .save(DIR) writes it."
        )
        facts = {"base": self.base.name, "kind": self.base.kind, "after": self.settings.paper}
        return mapping_page(self.title, [self.settings.title, steps], {**facts, **chosen})

    def as_dict(self) -> dict[str, Any]:
        """Return what was fitted and measured, as JSON values."""
        return dict(self.facts)

    def measure(
        self, before: Model, after: Model, *, proof: Path, progress: Progress | None = None
    ) -> Measurements:
        """Measure both models; audits go below `proof`. A family implements this part."""
        raise NotImplementedError

    def judged(
        self, before: Model, after: Model, *, proof: Path, progress: Progress | None = None
    ) -> Judgement:
        """Measure both models and judge the mitigation."""
        measurements = self.measure(before, after, proof=proof, progress=progress)
        return replace(type(self.settings).report(measurements), measurements=measurements)

    def judge(
        self,
        before: Model | None = None,
        after: Model | None = None,
        *,
        out: str | Path | None = None,
        proof: Path | None = None,
        progress: Progress | None = None,
    ) -> Run:
        """Judge both models on the same items, as a run folder with a report.

        `out` is by default a new folder below runs/, audits of both go to `proof` in it.
        """
        from evenhand.mitigations.running import judge

        return judge(
            self, before or self.base, after or self.model, out=out, proof=proof, progress=progress
        )


def option_words(name: str, value: Any) -> list[str]:
    """Return the words of the command line that set an option to a JSON value.

    >>> option_words("task_limit", 20), option_words("offset", False)
    (['--task-limit', '20'], ['--no-offset'])
    """
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    return [f"--{flag}", ",".join(map(str, value)) if isinstance(value, list) else str(value)]


def identity(model: Model) -> tuple[Any, ...]:
    """Return what a mitigation is bound to: kind, weights, mitigations below; not the precision."""
    about = model.describe()
    weights = about.get("weights_sha256") or model.fingerprint
    return model.kind, weights, tuple(about.get("mitigations", ()))


def spec_of(model: Model) -> str:
    """Return what to type to get a model: the resolver's words, else the place it was read from."""
    if model.recipe is not None:
        return model.recipe.spec
    return str(getattr(model, "source", "") or model.name)


@dataclass(frozen=True)
class Measurements:
    """Settled when it is made: what is computed from it is what a reader of the file computes.

    Attributes:
        model: name of the model that was mitigated.
        facts: JSON values; `settings` among them.
        numbers: columns of numbers by name.
        audits: the runs before and after, where the family makes some.
    """

    model: str
    facts: Mapping[str, Any]
    numbers: Mapping[str, Floats]
    audits: tuple[Run, Run] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", json.loads(self._text()))
        settled = {k: np.asarray(v, np.float64).ravel() for k, v in self.numbers.items()}
        object.__setattr__(self, "numbers", settled)

    def _text(self) -> str:
        return json.dumps(self.facts, default=_value)

    def codes(self, name: str) -> npt.NDArray[np.int64] | None:
        """Return each item's level of a factor, or None if it was not recorded."""
        return self.numbers[name].astype(np.int64) if name in self.numbers else None

    def as_table(self) -> pa.Table:
        """Return a table for the run folder; audits have their own folders."""
        rows: list[dict[str, Any]] = [
            {"name": "model", "text": self.model},
            {"name": "facts", "text": self._text()},
            *({"name": k, "numbers": v.tolist()} for k, v in self.numbers.items()),
        ]
        return pa.Table.from_pylist(rows, schema=GROUNDS_COLUMNS)

    @classmethod
    def read(cls, table: pa.Table, audits: tuple[Run, Run] | None) -> Measurements:
        """Read the table that `as_table` wrote."""
        rows = {row["name"]: row for row in table.to_pylist()}
        model, facts = rows.pop("model")["text"], json.loads(rows.pop("facts")["text"])
        return cls(model, facts, {k: row["numbers"] for k, row in rows.items()}, audits)


def _value(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def family(name: str, where: str = "") -> type[Mitigation]:
    """Return the family of a name."""
    found: type[Mitigation] = plugins.load(
        plugins.MITIGATIONS,
        name,
        what="mitigation",
        where=where,
        hint="It may be another package's, which is not installed here.",
    )
    return found


def adopted(settings: Mitigation) -> Mitigation:
    """Register the family of a custom mitigation by its name, for this process.

    Raises:
        SpecError: its name belongs to another family.
    """
    kind = type(settings)
    if kind.name not in plugins.places(plugins.MITIGATIONS) or family(kind.name) is not kind:
        plugins.adopt(plugins.MITIGATIONS, kind.name, kind, what="mitigation")
    return settings


def families() -> list[type[Mitigation]]:
    """Return all families, built-in ones first."""
    return [family(name) for name in plugins.places(plugins.MITIGATIONS)]


def methods_for(kind: str) -> list[str]:
    """Return the methods for a kind of model.

    >>> methods_for("vectors")
    ['attract-repel', 'hard-projection', 'soft-projection']
    """
    return [method for f in families() if kind in f.kinds for method in f.methods]


def family_of(method: str | None, kind: str) -> type[Mitigation]:
    """Return the family that a method means for a kind of model.

    A name that two families have (leace, of the head and of hidden states) is decided by the
    kind; without a method it is the first family for the kind.

    Args:
        method: as users write it, several with commas; None: the family's usual one.
        kind: of the model; empty where it is not known yet.

    >>> family_of("leace", "causal").name, family_of("leace", "masked").name
    ('head', 'hidden')
    """
    if method is None:
        fitting = [f for f in families() if kind in f.kinds or not kind]
        if not fitting:
            raise ModelError(f"there is no mitigation for models of kind {kind!r}.")
        return fitting[0]
    first = method.split(",")[0]
    known = [f for f in families() if first in f.methods]
    if not known:
        names = dict.fromkeys(m for f in families() for m in f.methods)
        raise SpecError(unknown("method", first, names, where="--method"))
    return next((f for f in known if kind in f.kinds), known[0])


def kind_if_known(spec: str) -> str:
    """Return the kind of a model without loading it, or "" if it is unknown.

    A model that is not there is refused when it is loaded, after the settings were checked.
    """
    from evenhand.models.loading.resolver import kind_of_spec

    try:
        return kind_of_spec(spec)
    except EvenhandError:
        return ""


def settings_for(method: str | None, kind: str, given: dict[str, Any]) -> Mitigation:
    """Return checked settings of the family that a method means.

    Raises:
        SpecError: a setting is wrong, or belongs to other methods.
    """
    chosen = family_of(method, kind)
    for name in given:
        if name not in chosen.model_fields:
            theirs = [m for f in families() if name in f.model_fields for m in f.methods]
            if theirs:
                own = ", ".join(chosen.methods)
                raise SpecError(
                    f"--{name.replace('_', '-')}: a setting of {', '.join(dict.fromkeys(theirs))}; "
                    f"for {kind or 'these'} models {own} do not have it. Leave it out."
                )
    return chosen(**({} if method is None else {"method": method}) | given)
