"""The command line: the only typer and rich code."""
