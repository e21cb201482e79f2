"""Trainers: they fit a model from word counts."""
