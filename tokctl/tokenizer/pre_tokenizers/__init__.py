"""Splitting text into words (pre-tokens)."""
