"""One module per kind of model: requests in, scores out."""
