"""Which rows go through a model together."""
