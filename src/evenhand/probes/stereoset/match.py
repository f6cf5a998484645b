"""Do predictions belong to a gold file of StereoSet?"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from evenhand.errors import DataError
from evenhand.probes.stereoset.files import Example


def check_match(
    examples: Sequence[Example],
    predictions: Mapping[str, float],
    gold: str | Path,
    path: str | Path,
) -> None:
    """Refuse predictions that were made for other sentences.

    Sentences may lack a score (one split, a sample: counted as coverage), and there may be scores
    for further sentences when the gold file is a part of the whole. Both at once is the mark of
    another release, whose numbers would be those of the few sentences that both have.

    Args:
        predictions: sentence id -> score; NaN for a sentence that could not be scored.
        gold: the gold file's path, for messages.
        path: the prediction file's path, for messages.
    """
    known = {i for e in examples for i in e.ids}
    strange = [i for i in predictions if i not in known]
    if not strange:
        return
    counted = f"{path}: {len(strange)} of {len(predictions)} sentence ids are not in {gold}"
    if any(i not in predictions for i in known):
        raise DataError(
            f"{counted}, for example {strange[0]!r}, and sentences of it have no score, as with "
            "predictions for another release of StereoSet. Accepted: ids of the gold file's "
            "sentences. Name the gold file that they were made for: "
            f"evenhand measure stereoset --gold GOLD {shlex.quote(str(path))}"
        )
    warnings.warn(f"{counted}; they are left out.", stacklevel=2)
