"""Readers: from files, archives and streams to records."""
