"""Suites on models: running, planning, comparing, deciding."""
