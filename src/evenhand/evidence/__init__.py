"""A run as evidence: one file that anybody can check, without the model."""
