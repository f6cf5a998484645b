"""Words about people in other languages: packs of data with rules of agreement.

>>> from evenhand.words import packs
>>> packs.load_pack("de").name
'German'
"""

from __future__ import annotations

from evenhand.words.packs.files import Pack, load_pack, pack_places, packs, part_names
from evenhand.words.packs.questions import forms_asked, pack_lists, social_classes

__all__ = [
    "Pack",
    "forms_asked",
    "load_pack",
    "pack_lists",
    "pack_places",
    "packs",
    "part_names",
    "social_classes",
]
