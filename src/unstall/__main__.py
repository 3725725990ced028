"""``python -m unstall`` is the command."""

from unstall.cli.main import main

main()
