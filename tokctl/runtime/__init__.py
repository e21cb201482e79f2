"""How any stage runs: fingerprint, skip, resume, atomic commit, workers and progress. It knows no text."""
