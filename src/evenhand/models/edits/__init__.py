"""Changes of a model's hidden states and head while it runs."""
