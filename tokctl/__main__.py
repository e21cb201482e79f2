"""``python -m tokctl``."""

from tokctl.cli import main

main()
