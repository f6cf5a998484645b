"""Trainings as users ask for them: settings and files in, a trained folder and its card out."""
