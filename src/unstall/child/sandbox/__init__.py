"""What runs inside the sandbox, in the program's Python processes. Standard library only; must not raise."""
