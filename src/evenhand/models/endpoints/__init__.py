"""Models behind an HTTP address: client, capabilities, and the rungs by which they are asked."""
