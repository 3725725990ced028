"""Diagnose: from what was measured to what is to blame."""
