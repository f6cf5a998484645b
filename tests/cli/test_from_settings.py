"""Options made from settings: names, limits, choices, flags, lists, and nothing imported early."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from pydantic import Field
from typer.testing import CliRunner

from evenhand.cli.from_settings import function, joined, lazy_group, option, options
from evenhand.errors import SpecError
from evenhand.settings import Settings, filled


class Voyage(Settings):
    ship: Path = Field(description="Which ship.")
    cargo: tuple[str, ...] = Field((), description="What it carries.")
    ports: tuple[str, ...] = Field(("Oslo",), description="Where it calls.")
    wind: Literal["calm", "gale"] = Field("calm", description="The weather.")
    knots: int = Field(8, ge=1, le=30, description="Speed.")
    depth: Annotated[float | None, Field(ge=0, description="Below the keel.")] = None
    trim: float | Literal["learned"] | None = Field(None, description="A number, or learned.")
    at_night: bool = Field(False, description="Sail on.")
    captain: str = Field(description="Who commands.")


def call(*words: str, given_only: bool = False) -> tuple[Any, dict[str, Any]]:
    """What typer made of a command line."""
    found: dict[str, Any] = {}
    app = typer.Typer()
    made = options(Voyage, ("ship",), given_only=given_only)
    more = option("json", Annotated[str | None, typer.Option(help="Where to.")], None)
    app.command()(function(lambda **given: found.update(given), joined(made, [more]), "Sail."))
    return CliRunner().invoke(app, list(words)), found


def test_values_come_as_the_settings_have_them() -> None:
    done, found = call("Ann", "--captain", "Bo", "--cargo", "tea, silk", "--cargo", "tin",
                       "--wind", "gale", "--depth", "2.5", "--at-night", "--trim",
                       "learned")  # fmt: skip
    assert done.exit_code == 0, done.output
    made = filled(Voyage, found, "voyage")
    assert (made.ship, made.captain) == (Path("Ann"), "Bo")
    assert made.cargo == ("tea", "silk", "tin")
    assert made.ports == ("Oslo",)
    assert (made.wind, made.knots, made.depth) == ("gale", 8, 2.5)
    assert made.at_night
    assert made.trim == "learned"
    assert filled(Voyage, {**found, "trim": "0.5"}, "voyage").trim == 0.5


def test_only_what_was_given_is_told_where_the_settings_are_not_known_yet() -> None:
    _, found = call("Ann", "--captain", "Bo", "--knots", "8", given_only=True)
    assert found == {"ship": Path("Ann"), "captain": "Bo", "knots": 8}


@pytest.mark.parametrize(
    "words",
    [("--captain", "Bo"), ("Ann",), ("Ann", "--captain", "Bo", "--knots", "31"),
     ("Ann", "--captain", "Bo", "--depth", "-1"), ("Ann", "--captain", "Bo", "--wind", "fog"),
     ("Ann", "--captain", "Bo", "--speed", "3")],
)  # fmt: skip
def test_wrong_values_are_usage_errors(words: tuple[str, ...]) -> None:
    done, found = call(*words)
    assert done.exit_code == 2
    assert not found


def test_help_names_every_option_its_limits_and_its_default() -> None:
    shown = call("--help")[0].output
    for text in ("Which ship.", "--cargo", "--at-night", "--no-at-night", "1<=x<=30", "calm",
                 "gale", "Below the keel.", "Oslo"):  # fmt: skip
        assert text in shown


def test_settings_that_are_wrong_are_one_paragraph() -> None:
    with pytest.raises(SpecError) as caught:
        filled(Voyage, {"ship": "Ann", "knots": 99, "captian": "Bo"}, "voyage", "--{}".format)
    text = str(caught.value)
    assert text.startswith("voyage: --captain is needed.") or "--captain is needed." in text
    assert "--knots: Input should be less than or equal to 30; got 99." in text
    assert "unknown setting '--captian'. Did you mean '--captain'?" in text
    assert "\n" not in text


def test_a_lazy_group_loads_the_command_that_is_asked_for() -> None:
    loaded: list[str] = []

    def load(name: str) -> Any:
        if name not in ("sail", "row"):
            return None
        loaded.append(name)
        return function(lambda **given: typer.echo(f"{name} {given}"), [], f"To {name}.")

    app = typer.Typer(
        cls=lazy_group(lambda: {"sail": "To sail.", "row": ""}, load), rich_markup_mode=None
    )

    @app.callback()
    def harbour() -> None:
        """In port."""

    @app.command()
    def anchor() -> None:
        """To anchor."""

    run = CliRunner().invoke
    shown = run(app, ["--help"]).output
    assert loaded == ["row"]  # the help line of sail is known
    for line in ("anchor", "To anchor.", "sail", "To sail.", "row", "To row."):
        assert line in shown
    assert run(app, ["sail"]).output == "sail {}\n"
    wrong = run(app, ["sial"])
    assert wrong.exit_code == 2
    assert "Did you mean 'sail'" in wrong.output
