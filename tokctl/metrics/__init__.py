"""How candidates are judged."""
