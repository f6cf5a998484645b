"""Scores and decisions from elsewhere get the whole treatment: sentences, a run folder, a report."""

from __future__ import annotations

from evenhand.measured.writing import as_run

__all__ = ["as_run"]
