"""Mitigations: functions from model to model, or from features to features."""
