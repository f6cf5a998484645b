"""Word vectors in files."""
