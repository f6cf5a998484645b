"""evenhand discovers, measures and mitigates social bias in language models and embeddings."""

__version__ = "0.1.0"
