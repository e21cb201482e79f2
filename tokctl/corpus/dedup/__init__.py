"""Deduplication: exact and by MinHash."""
