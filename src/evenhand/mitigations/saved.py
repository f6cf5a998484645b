"""Saved mitigations: a folder that turns one particular model into its mitigated form.

    evenhand-mitigation.json     family, method, axis, the model and its fingerprint, measured
    mitigation.safetensors       the arrays, where the family has some

The model may be a saved mitigation itself: mitigations stack.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from evenhand import __version__
from evenhand.errors import ModelError, SpecError
from evenhand.mitigations.base import Fitted, identity, spec_of
from evenhand.models.loading.saved import FACTS, FORMAT
from evenhand.models.protocol import Model
from evenhand.seals import digest, digests, write_sealed
from evenhand.systems import is_locked, locked
from evenhand.writing import drafted

ARRAYS = "mitigation.safetensors"
BEGUN = ".evenhand-begun"
"""In a folder that is not whole yet, locked by the process that works on it."""
README = """\
A mitigation made by evenhand {version} for the model {name!r}: {method} on {axis}.

Use it like any model:      evenhand audit FOLDER
In Python:                  import evenhand; evenhand.load_model("FOLDER")
{more}
It holds no model weights and is refused by any other model. What was measured is in {facts}; it
is about the texts named there and says nothing about other groups or uses.
"""


def check_free(folder: Path, option: str = "--out") -> None:
    """Refuse a place that holds something already, before any work is done for it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        what = "the folder is not empty" if folder.is_dir() else "is a file"
        raise SpecError(f"{folder}: {what}. Choose another with: {option} DIR")


@contextmanager
def unfinished(folder: Path, save: Callable[[Path], None]) -> Iterator[None]:
    """Save into a folder and mark it unfinished inside the context, so that a rerun may start over.

    From the moment it appears it holds a mark, which this process locks. Locks die with their
    process, so none is ever stale (the number of a process may be another's by then).
    """
    with drafted(folder) as draft:
        save(draft)
        (draft / BEGUN).touch()
    with locked(folder / BEGUN):
        yield
    (folder / BEGUN).unlink()


def start_over(folder: Path) -> None:
    """Delete a folder that a killed process left unfinished; keep others."""
    if (folder / BEGUN).exists() and not is_locked(folder / BEGUN):
        shutil.rmtree(folder)


def write(
    folder: Path,
    fitted: Fitted,
    facts: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]] | None = None,
    *,
    about: Mapping[str, Any] | None = None,
    readme: str = "",
) -> None:
    """Write a mitigation with its provenance into a new folder.

    `facts` are what the family needs when it loads it and what was measured, `about` more about
    the model than it describes itself, `readme` lines for README.txt.
    """
    settings, base = fitted.settings, fitted.base
    if base.describe().get("mitigations") and base.recipe is None:
        raise ModelError(
            f"model {base.name!r} carries a mitigation that was not saved, so a folder could not "
            "name it. Save that one first, load it with evenhand.load_model(FOLDER), and fit on "
            "what comes back."
        )
    if getattr(base, "held", None) is not None:
        raise ModelError(
            f"model {base.name!r} is an object in memory, which a folder could not name. Save it "
            "with its save_pretrained(DIR), and fit on that folder: evenhand.mitigate(DIR)"
        )
    check_free(folder)
    with drafted(folder) as draft:
        if arrays is not None:
            from safetensors.numpy import save_file

            save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, str(draft / ARRAYS))
            facts = {**facts, "arrays_sha256": digest(draft / ARRAYS)}
        body = {
            "format": FORMAT,
            "family": settings.name,
            "evenhand": __version__,
            "method": settings.method,
            "axis": settings.axis,
            "model": {
                "spec": spec_of(base),
                **(about or {}),
                **base.describe(),
                "fingerprint": base.fingerprint,
            },
            **facts,
        }
        text = README.format(
            version=__version__,
            name=base.name,
            method=settings.method,
            axis=settings.axis,
            facts=FACTS,
            more=readme,
        )
        (draft / "README.txt").write_text(text, encoding="utf-8")
        write_sealed(draft / FACTS, body, digests(draft))


def read_arrays(folder: Path, facts: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a saved mitigation; refuse others than those that were written."""
    from safetensors.numpy import load_file

    wanted = facts.get("arrays_sha256") or facts.get("edit", {}).get("file_sha256")
    try:
        if wanted and digest(folder / ARRAYS) != wanted:
            raise ValueError("its SHA-256 is not the one written beside it")
        return dict(load_file(str(folder / ARRAYS)))
    except Exception as error:
        raise damaged(folder, str(error)) from error


class Edit(Protocol):
    """What a family applies to a model: settings and arrays with a digest."""

    def digest(self) -> str:
        """SHA-256 of everything that can change a score."""


E = TypeVar("E", bound=Edit)
Arrays = dict[str, npt.NDArray[Any]]


def rebuild(
    folder: Path, facts: Mapping[str, Any], build: Callable[[Mapping[str, Any], Arrays], E]
) -> tuple[E, Arrays]:
    """Return the edit that `build` makes of the saved settings and arrays, and the arrays.

    Raises:
        ModelError: the arrays cannot be read, or the edit is not the one that was written.
    """
    arrays = read_arrays(folder, facts)
    try:
        edit = build(facts["edit"], arrays)
        if facts["edit"].get("sha256") not in (None, edit.digest()):
            raise ValueError("settings and arrays are not those that were written")
    except KeyError as error:
        raise ModelError(
            f"{folder}: the mitigation lacks {error}. Fit it again with: evenhand mitigate MODEL"
        ) from None
    except Exception as error:
        raise damaged(folder, str(error)) from error
    return edit, arrays


def damaged(folder: Path, why: str) -> ModelError:
    """Return the error for arrays that cannot be used."""
    return ModelError(
        f"{folder / ARRAYS}: damaged or changed ({why}). Fit it again with: evenhand mitigate MODEL"
    )


def check_base(folder: Path, facts: Mapping[str, Any], base: Model, width: int = 0) -> None:
    """Refuse a model other than the one that was fitted (`width`: of its states)."""
    fitted = facts["model"]
    kind, weights, chain = identity(base)
    if kind != fitted.get("kind"):
        refuse(folder, facts, base, f"a {fitted.get('kind')} model, against {kind} here")
    if width and width != fitted.get("width"):
        problem = f"states of width {fitted.get('width')}, against {width} here"
        refuse(folder, facts, base, problem)
    if weights != fitted.get("weights_sha256", fitted.get("fingerprint")):
        refuse(folder, facts, base, "other weights (SHA-256)")
    if list(chain) != list(fitted.get("mitigations", ())):
        refuse(folder, facts, base, "another chain of mitigations below it")


def refuse(folder: Path, facts: Mapping[str, Any], base: Model, problem: str) -> NoReturn:
    """Say that a mitigation does not fit a model, why, and what to do."""
    raise ModelError(
        f"{folder}: the mitigation was fitted for {facts['model'].get('name')!r} and does not fit "
        f"model {base.name!r}: {problem}. Fit one for it with: evenhand mitigate {base.name} "
        f"--axis {facts.get('axis', 'gender')}"
    )


def name_of(facts: Mapping[str, Any], base: Model) -> str:
    """Return the name of the mitigated form of a model."""
    return f"{base.name} + {facts.get('method')} {facts.get('axis')}"
