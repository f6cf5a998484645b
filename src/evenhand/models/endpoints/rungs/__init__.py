"""The ways to learn which option a model behind an address takes, best first."""
