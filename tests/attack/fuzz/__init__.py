"""Files of strangers: damaged, hostile, or valid but for one field."""
