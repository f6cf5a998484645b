"""Marks and chart builders: plain Vega-Lite dicts."""
