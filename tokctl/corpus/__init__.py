"""Documents: their schema, readers and extractors, deduplication, splitting and word counts."""
