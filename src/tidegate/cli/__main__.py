"""`python -m tidegate.cli`: the same as `tidegate`."""

from tidegate.cli.app import main

main()
