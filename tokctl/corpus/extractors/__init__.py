"""Extractors: from a fetched page or file to plain text."""
