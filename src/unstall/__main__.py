"""``python -m unstall`` is the command."""

from unstall.cli.entry import main

main()
