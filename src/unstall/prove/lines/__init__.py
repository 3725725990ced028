"""What of a change's source ran, and what may have been kept from running."""
