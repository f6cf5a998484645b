"""Whom does a model greet politely? A small package that adds to evenhand by entry points."""

from pathlib import Path

SUITE = Path(__file__).with_name("manners.toml")
LEXICON = Path(__file__).with_name("words.toml")
