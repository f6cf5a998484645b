"""Scorers: functions from texts to shares of negative, neutral and positive, for any probe."""

from __future__ import annotations

from evenhand.scorers.base import Scored, Scorer, scorer

__all__ = ["Scored", "Scorer", "scorer"]
