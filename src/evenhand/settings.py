"""Settings that check themselves, and one wording for what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from evenhand.errors import EvenhandError, SpecError, unknown

M = TypeVar("M", bound=BaseModel)


LARGEST = 2**53
"""Beyond it numbers are no longer told apart, and no setting means so much."""


class Settings(BaseModel):
    """Frozen settings; unknown ones are refused, and so are numbers beyond any meaning."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    @field_validator("*")
    @classmethod
    def _meant(cls, value: Any) -> Any:
        if isinstance(value, int) and abs(value) > LARGEST:
            raise ValueError(f"Input should be between -{LARGEST} and {LARGEST}")
        return value


class Asked(Settings):
    """Settings that a user gives in Python too: wrong ones are refused in one sentence."""

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise refused(error, type(self)) from error


def filled(
    kind: type[M], given: Mapping[str, Any], what: str, spelled: Callable[[str], str] = str
) -> M:
    """Settings of a kind; the error names every wrong one and its value.

    Args:
        what: what has these settings, the beginning of the message.
        spelled: a setting's name as the user wrote it.

    >>> class Speed(Settings):
    ...     knots: int
    >>> filled(Speed, {"knots": "many"}, "ship 'Ann'")
    Traceback (most recent call last):
    ...
    evenhand.errors.SpecError: ship 'Ann': knots: Input should be a valid integer, ...; got 'many'.
    """
    try:
        return kind(**given)
    except (ValidationError, SpecError) as error:
        wrong = error.__cause__ if isinstance(error, SpecError) else error  # worded by the class
        if not isinstance(wrong, ValidationError):
            raise
        raise refused(wrong, kind, f"{what}: ", spelled) from wrong


def refused(
    error: ValidationError,
    kind: type[BaseModel],
    what: str = "",
    spelled: Callable[[str], str] = str,
) -> EvenhandError:
    """What is wrong with settings: every one with its value, in one message.

    Without a beginning (`what`) a setting that was refused in words of our own keeps them.
    """
    problems = []
    for problem in error.errors():
        cause = problem.get("ctx", {}).get("error")
        if isinstance(cause, EvenhandError) and not what:
            return cause
        path = spelled(".".join(map(str, problem["loc"])))
        if problem["type"] == "extra_forbidden":
            message = unknown("setting", path, map(spelled, kind.model_fields))
        elif problem["type"] == "missing":
            message = f"{path} is needed."
        elif isinstance(cause, EvenhandError) and path:
            message = f"{path}: {cause}"
        else:
            said = str(cause) if isinstance(cause, ValueError) else problem["msg"]
            got = f"; got {problem.get('input')!r}" if path else ""  # else of several together
            message = f"{path}: {said}{got}." if path else f"{said}."
        problems.append(message)
    return SpecError(what + " ".join(problems))
