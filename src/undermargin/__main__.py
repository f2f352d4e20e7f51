"""python -m undermargin."""

from undermargin.cli import main

main()
