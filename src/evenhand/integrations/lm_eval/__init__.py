"""lm-evaluation-harness: probes as its tasks, its sample logs as our input."""
