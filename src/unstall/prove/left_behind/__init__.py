"""What runs leave behind, and how far it is the same."""
