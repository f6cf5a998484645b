"""Scores and decisions from elsewhere, made into sentences, a run folder and a report."""

from __future__ import annotations

from evenhand.measured.writing import as_run

__all__ = ["as_run"]
