"""The documentation site: `python -m website` stages the pages and builds them with Zensical."""
