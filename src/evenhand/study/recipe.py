"""What a study does, read from TOML: corpus, training, changes, metrics and tasks.

Paths may hold `{data}`, which stands for the folder given by `--data`, so that one recipe works
wherever the data lies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from evenhand.audit.suites import is_study, recipe_files
from evenhand.errors import DataError, SpecError, unknown
from evenhand.opening import read_toml
from evenhand.settings import Settings, filled
from evenhand.words.lexicons.files import weat

Direction = Literal["reduce", "increase"]
Share = float
TASKS = ("hate_speech", "coreference")


class Corpus(Settings):
    """The text that vectors are trained on."""

    files: tuple[str, ...] = Field(min_length=1)
    cleaning: Literal["wikipedia", "tweets"] = "wikipedia"
    rare: int | None = None
    """Tokens seen fewer times become <UNK>; None: the cut-off of the cleaning."""


class Training(Settings):
    """How vectors are trained; the defaults are the paper's (section 5.2)."""

    algorithms: tuple[Literal["word2vec", "fasttext"], ...] = ("word2vec",)
    dimensions: int = Field(default=300, ge=2)
    window: int = Field(default=5, ge=1)
    epochs: int = Field(default=5, ge=1)
    min_count: int = Field(default=5, ge=1)
    replicates: int = Field(default=3, ge=1)
    """How often the unmodified vectors are trained, each time with another seed."""


class Balancing(Settings):
    """Leaving out lines of the corpus: shares of affected lines that are kept."""

    directions: tuple[Direction, ...] = ("reduce", "increase")
    shares: tuple[Share, ...] = tuple(round(0.1 * i, 1) for i in range(10))

    @field_validator("shares")
    @classmethod
    def _shares(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        for share in value:
            if not 0.0 <= share < 1.0:
                raise ValueError(f"a share of kept lines lies in [0, 1), not {share}")
        return value


class AttractRepel(Settings):
    """Pulling word pairs together and apart; the grid of section 4.2."""

    directions: tuple[Direction, ...] = ("reduce", "increase")
    regularisations: tuple[float, ...] = (0.1, 0.05, 0.01)
    attract_margins: tuple[float, ...] = (0.0, 1.0)
    repel_margins: tuple[float, ...] = (0.0, 1.0)
    batch: int = Field(default=50, ge=2)
    epochs: int = Field(default=5, ge=1)


class Widening(Settings):
    """Larger word sets for both kinds of change; the metrics keep the sets as they are."""

    neighbours: int = Field(default=10, ge=0)
    """How many neighbours of each word join its set (0: the set as it stands)."""
    vectors: str = "glove-6b-50d"


class HateSpeech(Settings):
    """Training a hate-speech detector on the vectors and comparing groups of texts."""

    data: str
    dialect: str | None = None
    """Folder of the dialect model's count table; without it only gender terms are compared."""
    gender: bool = True
    repeats: int = Field(default=1, ge=1)
    """Detectors trained on each embedding, whose gaps are averaged."""
    settings: dict[str, float | int | str | bool] = Field(default_factory=dict)


class Coreference(Settings):
    """Training a coreference model on the vectors and comparing WinoBias halves."""

    train: tuple[str, ...] = Field(min_length=1, max_length=2)
    """Without `dev` and `test`: a file of OntoGUM, which is split, and possibly one of LitBank to
    train on as well. With them: one CoNLL file, or a folder of such as OntoNotes'."""
    dev: str | None = None
    test: str | None = None
    winobias: str

    @model_validator(mode="after")
    def _split(self) -> Coreference:
        if (self.dev is None) != (self.test is None):
            raise ValueError("dev and test belong together")
        if self.dev is not None and len(self.train) != 1:
            raise ValueError("with dev and test, train is a single file or folder")
        return self

    repeats: int = Field(default=1, ge=1)
    """Models trained on each embedding, whose gaps are averaged."""
    settings: dict[str, float | int | str | bool] = Field(default_factory=dict)


class Correlating(Settings):
    """How metrics are compared over embeddings."""

    resamples: int = Field(default=9_999, ge=99)
    scipy_stream: bool = False


class Recipe(Settings):
    """A whole study."""

    name: str = Field(pattern=r"^\w[\w.-]*$", max_length=100)
    title: str = ""
    seed: int = 0
    word_set: str = "kato_winobias"
    """Whose lists say what is stereotypical: targets x, y and attributes a, b."""
    tests: tuple[str, ...] = Field(default=("kato_winobias",), min_length=1)
    false_discovery_rate: float = Field(default=0.05, gt=0, lt=1)
    corpus: Corpus
    training: Training = Training()
    widening: Widening = Widening()
    balancing: Balancing | None = None
    attract_repel: AttractRepel | None = None
    hate_speech: HateSpeech | None = None
    coreference: Coreference | None = None
    correlation: Correlating = Correlating()

    @field_validator("word_set")
    @classmethod
    def _word_set(cls, value: str) -> str:
        weat(value)
        return value

    @field_validator("tests")
    @classmethod
    def _tests(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for test in value:
            weat(test)
        return value

    def settings_of(self, stage: str) -> Any:
        """What a stage's result depends on besides the vectors; a change of it is done anew."""
        values = self.model_dump(mode="json")
        return values["tests"] if stage == "intrinsic" else values.get(stage)

    def vectors_of(self) -> dict[str, Any]:
        """What the embeddings depend on: all but the metrics, tasks and titles."""
        later = {"name", "title", "tests", "correlation", "false_discovery_rate", *TASKS}
        return self.model_dump(mode="json", exclude=later)

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(task for task in TASKS if getattr(self, task) is not None)


def load_recipe(name: str | Path) -> Recipe:
    """A packaged study by name, or a TOML file.

    Raises:
        SpecError: no such recipe, malformed TOML, or a wrong setting (all of them at once).
    """
    path = Path(name)
    if not path.is_file():
        known = {k: p for k, p in recipe_files().items() if is_study(p)}
        if str(name) not in known:
            raise SpecError(unknown("study", str(name), known, hint="It is not a file either."))
        path = known[str(name)]
    return parse_recipe(read_toml(path), str(path), path.stem)


def parse_recipe(values: Mapping[str, Any], where: str, name: str = "study") -> Recipe:
    """A recipe from its TOML values."""
    return filled(Recipe, {"name": name, **values}, where)


def place(path: str, data: Path | None) -> Path:
    """A path of a recipe with `{data}` filled in.

    Raises:
        SpecError: the recipe needs a data folder and none was given.
        DataError: there is no such file.
    """
    if "{data}" in path:
        if data is None:
            raise SpecError(f"the recipe reads {path!r}. Say where the data lies with: --data DIR")
        path = path.replace("{data}", str(data))
    found = Path(path).expanduser()
    if not found.exists():
        raise DataError(f"{found}: there is no such file. Change it in the recipe, or --data DIR.")
    return found


def inputs_of(recipe: Recipe) -> dict[str, list[str]]:
    """Return the paths that each stage reads from outside the study, as the recipe writes them."""
    paths = {"corpus": list(recipe.corpus.files)}
    vectors = recipe.widening.vectors
    if recipe.widening.neighbours and Path(vectors).expanduser().exists():
        paths["corpus"].append(vectors)  # else a packaged file, whose content is pinned
    if tweets := recipe.hate_speech:
        paths["hate_speech"] = [p for p in (tweets.data, tweets.dialect) if p]
    if spec := recipe.coreference:
        own = [p for p in (spec.dev, spec.test) if p]
        paths["coreference"] = [*spec.train, *own, spec.winobias]
    return paths


def files_of(recipe: Recipe, stages: Sequence[str] = ()) -> list[str]:
    """Every path that the recipe reads, as written there; only those of some stages if given."""
    paths = inputs_of(recipe)
    return [p for stage in paths if not stages or stage in stages for p in paths[stage]]
