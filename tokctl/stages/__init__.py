"""The stages: what can be run. Each is thin: parameters and one run()."""
