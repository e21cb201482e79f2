"""Renderings of a comparison."""
