"""Training small models on open data: recipes, seeds, dev scores."""
