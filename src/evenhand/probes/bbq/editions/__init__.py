"""BBQ in several languages: one module per published edition, each read from its own files.

    parrish   BBQ, English (Parrish et al. 2022): JSON lines
    kobbq     KoBBQ, Korean (Jin et al. 2024): one table of samples
    spain     EsBBQ and CaBBQ, Spanish and Catalan (Ruiz-Fernández et al. 2025): CSV per category
    cbbq      CBBQ, Chinese (Huang and Xiong 2024): CSV per category and condition

An edition says which files are its own, reads them into `Item`s, and says how its publication
scored them. The sound default is the same for all of them.
"""

from __future__ import annotations

from pathlib import Path

from evenhand.errors import DataError
from evenhand.probes.bbq.editions import cbbq, kobbq, parrish, spain
from evenhand.probes.bbq.items import Edition

EDITIONS: tuple[Edition, ...] = (
    kobbq.EDITION,
    spain.EDITION,
    cbbq.EDITION,
    parrish.EDITION,
)


def edition_of(place: Path) -> tuple[Edition, list[Path]]:
    """Whose files these are: the edition, and its files in the order of reading.

    Raises:
        DataError: no edition knows a file of the folder.
    """
    files = sorted(p for p in place.iterdir() if p.is_file()) if place.is_dir() else [place]
    for edition in EDITIONS:
        own = [file for file in files if edition.claims(file)]
        if own:
            return edition, own
    accepted = "; ".join(f"{e.title} ({e.looks})" for e in EDITIONS)
    raise DataError(
        f"{place}: holds no .jsonl file of BBQ, and no file of another edition. Accepted: "
        f"{accepted}."
    )
