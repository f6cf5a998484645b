"""evenhand inside other people's programs: pytest, Trainer, Inspect, lm-eval, a Hub folder."""
