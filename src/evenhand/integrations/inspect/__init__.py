"""Inspect: probes as its tasks (`inspect eval evenhand/NAME`), its logs as our input."""
